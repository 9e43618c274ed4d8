/** How long a running gateway takes to deploy one API that has changed, from the question to the answer that it is. */
import { readFileSync, writeFileSync } from 'node:fs'
import { askOnce } from '../../src/cli/ask.ts'
import type { ReloadAnswer } from '../../src/primary/reload-report.ts'
import { median } from '../results.ts'

const PROJECT = 'Api00000'
/** Once there, once back, and again: what is measured later is as it was. */
const RELOADS = 4
/** Answered by the same backend, which knows both paths. */
const ENDPOINT = /^( +url: http:\/\/[^/\n]+)(\/chain)?$/m

export function edited(definition: string): string {
  return definition.replace(ENDPOINT, (_, url: string, path?: string) => (path === undefined ? `${url}/chain` : url))
}

/** `folder`: the one that holds home and data. */
export async function reloadMs(folder: string): Promise<number> {
  const file = `${folder}/home/apis/${PROJECT}/api.yaml`
  const times: number[] = []
  for (let reload = 0; reload < RELOADS; reload++) {
    writeFileSync(file, edited(readFileSync(file, 'utf8')))
    const startMs = performance.now()
    const { apis, failures } = await askOnce<ReloadAnswer>(`${folder}/data`, { command: 'reload' })
    times.push(performance.now() - startMs)
    if (apis.changed.length !== 1 || failures.length > 0)
      throw new Error(`a reload of one API changed ${apis.changed.length}: ${failures.join(', ')}`)
  }
  return median(times)
}
