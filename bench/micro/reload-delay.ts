/**
 * Measures how long a reload blocks the event loop of the primary, which measures it itself (event-loop-delay.ts); the
 * figure is the longest delay, with garbage collection.
 *
 *     npx node bench/micro/reload-delay.ts [PROJECTS,...]
 */
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { largeDocument } from '../../test/harness/large-document.ts'
import { openProject } from '../../test/harness/open-project.ts'
import { makeHome, type RunningGateway, startProgram } from '../../test/harness/program.ts'
import { put, reload } from '../../test/harness/reloading.ts'
import { MeasuredTable } from '../measured-table.ts'

const POLL_MS = 10
const home = makeHome(9)
const file = join(home.path, 'event-loop-delay')

/** The longest delay since the last call. */
async function longestDelayMs({ program }: RunningGateway): Promise<number> {
  rmSync(file, { force: true })
  program.signal('SIGUSR2')
  for (;;) {
    await sleep(POLL_MS)
    try {
      const text = readFileSync(file, 'utf8')
      if (text !== '') return Number(text)
    } catch {
      // Not written yet.
    }
  }
}

const table = new MeasuredTable('A reload', { ms: 0, 'blocked for at most ms': 0 })

async function measure(what: string, gateway: RunningGateway): Promise<void> {
  await longestDelayMs(gateway)
  const startMs = performance.now()
  const { errors } = await reload(gateway)
  if (errors.length > 0) throw new Error(JSON.stringify(errors[0]))
  const tookMs = performance.now() - startMs
  const longestMs = await longestDelayMs(gateway)
  table.row(what, tookMs, longestMs)
}

function putProjects(gateway: Pick<RunningGateway, 'home'>, count: number, port: number): void {
  const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${port}` } }
  for (let i = 0; i < count; i++) {
    put(gateway.home, `apis/Api${i}/api.yaml`, openProject({ name: `Api${i}`, context: `/api/${i}`, endpointConfig }))
  }
}

const preload = pathToFileURL(join(import.meta.dirname, 'event-loop-delay.ts'))
const gateway = await startProgram(home, [], {
  NODE_OPTIONS: `--import=${preload}`,
  EVENT_LOOP_DELAY_FILE: file,
})
try {
  await measure('nothing has changed', gateway)
  put(home, 'apis/large.json', largeDocument(1200))
  await measure('a document of 14 MB', gateway)
  await measure('nothing has changed', gateway)
  for (const count of (process.argv[2] ?? '1000,5000').split(',').map(Number)) {
    putProjects(gateway, count, 9)
    await measure(`${count} projects`, gateway)
    putProjects(gateway, count, 10)
    await measure(`${count} projects, all of them changed`, gateway)
    await measure('nothing has changed', gateway)
  }
} finally {
  await gateway.program.kill()
  home.remove()
}
