/**
 * An API whose work is a folder: each file is a job, by its name and the attempts before it. A request adds a file. The
 * jobs of the first attempt do what their name says, later ones end and remove their file.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { OpenMountedApi } from '../../src/mounted/interface.ts'

const FIRST: Readonly<Record<string, (signal: AbortSignal) => unknown>> = {
  throws: () => {
    throw new TypeError('text of a client')
  },
  // Takes no processor from other tests; in `test/reactor/worker-pool.test.ts` a thread computes for ever.
  blocks: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0),
  exits: () => process.exit(7),
  'ignores its abort': () => Promise.withResolvers<never>().promise,
  'is late': signal => aborted(signal),
}

export const open: OpenMountedApi = ({ settings, log, wake }) => {
  const folder = String(settings.folder)
  log('info', 'opened')
  return {
    handle: ({ query }) => {
      writeFileSync(join(folder, decodeURIComponent(query)), '')
      wake()
      return { status: 202 }
    },
    work: {
      due: async () => {
        if (settings.due === 'throws') throw new RangeError('text of a client')
        if (settings.due === 'nothing') return undefined as never
        return { jobs: readdirSync(folder), againMs: Number(settings.againMs ?? 60_000) }
      },
      run: async (job, signal) => {
        const file = join(folder, job)
        const attempts = readFileSync(file, 'utf8').length
        log('info', 'job begins', { JOB: job })
        if (job === 'waits for its abort') await aborted(signal)
        else if (attempts === 0) {
          writeFileSync(file, 'x')
          await FIRST[job]?.(signal)
        }
        if (!signal.aborted) rmSync(file)
        log('info', signal.aborted ? 'job aborted' : 'job ends', { JOB: job })
      },
    },
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()))
}
