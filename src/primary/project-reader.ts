/**
 * Reads projects in a thread of its own, so that large documents do not block the primary. A project whose reading ends
 * the thread, or takes too long, has an error; the others are read all the same.
 */
import { getCompileCacheDir } from 'node:module'
import { dirname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type ReadingJob, type ReadingThread, UNREAD } from '../apis/project-reading.ts'
import type { ParsedProject } from '../apis/api-project.ts'
import { labelOf } from '../config/source-file.ts'
import { TimeSlices } from '../runtime/time-slices.ts'

/** From the folder of a room, in the source and in the package (scripts/bundle.ts). */
const ENTRY = new URL('../primary/project-thread-entry.js', import.meta.url)
/** Time and memory that one project may take; the largest document takes a second and 500 MB. */
interface ReadingLimits {
  readonly projectMs: number
  readonly heapMb: number
}

const LIMITS: ReadingLimits = { projectMs: 60_000, heapMb: 2048 }

const KB = 1024
/** At a start nothing waits for the primary; a thread costs more time than it saves for small homes. */
export const AT_START: ReadingThread = {
  read: jobs => readInThread(jobs),
  bytesMin: 1024 * KB,
  documentBytesMin: 1024 * KB,
}
/** While the node runs, the primary is blocked for a few milliseconds at most. */
export const AT_RELOAD: ReadingThread = { read: jobs => readInThread(jobs), bytesMin: 64 * KB, documentBytesMin: 1 }

export async function readInThread(
  jobs: readonly ReadingJob[],
  limits: ReadingLimits = LIMITS,
): Promise<readonly ParsedProject[]> {
  const results: ParsedProject[] = []
  const slices = new TimeSlices()
  while (results.length < jobs.length) {
    const { texts, cause } = await runThread(jobs.slice(results.length), limits)
    for (const text of texts) {
      if (slices.isOver) await slices.next()
      results.push(JSON.parse(text) as ParsedProject)
    }
    if (results.length === jobs.length) break
    results.push(unread(jobs[results.length]!, cause))
    // A thread that reads nothing at all would not read the others either.
    if (texts.length === 0) results.push(...jobs.slice(results.length).map(job => unread(job, cause)))
  }
  return results
}

interface Outcome {
  /** Results as JSON, in the order of the jobs; fewer than there are jobs if the thread has failed. */
  readonly texts: readonly string[]
  readonly cause: string
}

function runThread(jobs: readonly ReadingJob[], { projectMs, heapMb }: ReadingLimits): Promise<Outcome> {
  // A folder of one version of Node, below the folder that `launch.js` has chosen.
  const compileCache = getCompileCacheDir()
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  const texts: string[] = []
  let cause = 'the thread that reads projects has ended'
  const workerData = { jobs, compileCache: compileCache === undefined ? '' : dirname(compileCache) }
  const resourceLimits = { maxOldGenerationSizeMb: heapMb }
  let worker: Worker
  try {
    worker = new Worker(ENTRY, { name: 'projects', workerData, resourceLimits })
  } catch (error) {
    // The system has no thread left.
    return Promise.resolve({ texts, cause: (error as Error).message })
  }
  const timer = setTimeout(() => {
    cause = `reading takes longer than ${projectMs} ms`
    void worker.terminate()
  }, projectMs)
  worker.on('message', (text: string) => {
    texts.push(text)
    timer.refresh()
  })
  worker.on('error', (error: NodeJS.ErrnoException) => {
    cause = error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'reading takes too much memory' : error.message
  })
  worker.on('exit', () => {
    clearTimeout(timer)
    resolve({ texts, cause })
  })
  return promise
}

/** Not the files alone decide it: the project is read again at the next load. */
function unread({ path }: ReadingJob, cause: string): ParsedProject {
  const hint = 'leave out what is not needed, or split it'
  const error = { where: labelOf(path), key: '', given: '', expected: `cannot be read: ${cause}`, hint }
  return { ...UNREAD, errors: [error], hasExternalValues: true }
}
