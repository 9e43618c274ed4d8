/**
 * Returns the memory that only the start of a thread used, about a third of its heap. Half of that is the young
 * generation: V8 grows it while modules load, and does not shrink it in a thread that allocates nothing.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { trimMalloc } from './c-functions.ts'

type Flavor = 'regular' | 'last-resort'

/** V8's function of `--expose-gc`. */
type Collect = (options: { type: 'major'; execution: 'sync'; flavor: Flavor }) => void

/** After the start of a thread: what follows a start at once has the processors for itself (D245). */
const DELAY_MS = 2000
/** Between the trims of two reactors: their pauses do not come together. */
export const TRIM_STEP_MS = 40
/** After the last trim, because V8 frees buffers beside the thread that collects. */
const SETTLE_MS = 300

/**
 * Trims the heap of this thread once, `delayMs` later than other threads: the pause is 10 to 30 ms. Skipped where the
 * thread is busy then: what it allocates makes V8 collect by itself.
 */
export function trimOnceIdle(delayMs = 0, isIdle = (): boolean => true): void {
  setTimeout(() => {
    if (isIdle()) collectGarbage('last-resort')
  }, DELAY_MS + delayMs).unref()
}

/** Trims the heap of this thread, the primary, and malloc once the heaps of so many reactors are trimmed. */
export function trimProcessOnceIdle(reactors: number): void {
  trimOnceIdle()
  setTimeout(trimMalloc, DELAY_MS + reactors * TRIM_STEP_MS + SETTLE_MS).unref()
}

/** Between two looks at the memory of the process. */
const LOOK_MS = 10_000
/** Looks without traffic before a trim: idle threads have collected their garbage by then. */
const IDLE_LOOKS = 2
/** Memory beyond the least that the process has had. */
const GROWN_MAX = 64 * 1_048_576

/**
 * Trims malloc once the process has had no traffic for a while, if it has grown. A trim takes 50 ms for 300 MB, and
 * threads that ask for memory may wait for it meanwhile. `traffic`: a number that changes with each request.
 */
export function trimProcessWhenIdle(traffic: () => number): void {
  let leastBytes = Number.POSITIVE_INFINITY
  let last = traffic()
  let idleLooks = 0
  setInterval(() => {
    const now = traffic()
    idleLooks = now === last ? idleLooks + 1 : 0
    last = now
    const bytes = process.memoryUsage.rss()
    leastBytes = Math.min(leastBytes, bytes)
    if (idleLooks === IDLE_LOOKS && bytes - leastBytes > GROWN_MAX) trimMalloc()
  }, LOOK_MS).unref()
}

/**
 * Collects all garbage of this thread. Blocks an idle thread for 10 to 30 ms. `last-resort`: once more, and returns
 * free pages to the system.
 */
export function collectGarbage(flavor: Flavor): void {
  // Contexts made from now on have the function; those that exist keep their globals.
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('globalThis.gc') as Collect | undefined
  collect?.({ type: 'major', execution: 'sync', flavor })
}
