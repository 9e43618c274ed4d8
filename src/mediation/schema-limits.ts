/**
 * Ends a check by a schema that takes too long: a recursive schema with alternatives takes 2^depth steps. The code that
 * Ajv makes counts its steps, so that a check ends by an exception, and leaves nothing half done.
 */
import { showLife } from '../runtime/signs-of-life.ts'
import { LimitReached, threadCpuMs, TOO_LONG } from './flow-limits.ts'

/** Longest processor time of the checks of one message by one mediator, in milliseconds. Its other messages wait. */
const CHECK_MAX_MS = 1000
/** Steps between two looks at the clock. A step may take as long as a list or text of the message is long. */
const STEPS_PER_LOOK = 64
/** Milliseconds between two looks at the processor time, and between two signs of life. */
const LOOK_MS = 50
/** Characters or items that count as a step. */
const LENGTH_PER_STEP = 256
/** Errors of one function. A function that fails adds at least one to those of its caller: no error is none. */
const ERRORS_MAX = 1000

/** The check that this thread is in. Checks are synchronous. `sinceCpuMs` -1: not known yet. */
const running = { isLimited: false, steps: STEPS_PER_LOOK, nextLookMs: 0, sinceCpuMs: -1 }

/** Counters that the code of Ajv calls. */
export const checkSteps = {
  /** A function is called, or a loop turns. */
  step(): void {
    if (--running.steps < 0) look()
  },

  joined(errors: readonly unknown[], further: readonly unknown[]): readonly unknown[] {
    return errors.concat(further.slice(0, Math.max(1, ERRORS_MAX - errors.length)))
  },
}

/** A list or a text of the message is read. */
export function countLength(length: number): void {
  running.steps -= Math.floor(length / LENGTH_PER_STEP)
  if (running.steps < 0) look()
}

/** Runs the checks of one message; those within it count as its own. Throws LimitReached where they take too long. */
export function withinCheckTime<T>(check: () => T): T {
  if (running.isLimited) return check()
  running.isLimited = true
  restartCheckTime()
  try {
    return check()
  } finally {
    running.isLimited = false
  }
}

/** Time counts from now: a schema has been compiled, which happens once. */
export function restartCheckTime(): void {
  running.steps = STEPS_PER_LOOK
  running.sinceCpuMs = -1
}

function look(): void {
  running.steps = STEPS_PER_LOOK
  if (!running.isLimited) return
  const now = performance.now()
  if (running.sinceCpuMs === -1) running.sinceCpuMs = threadCpuMs()
  else if (now < running.nextLookMs) return
  else if (threadCpuMs() - running.sinceCpuMs > CHECK_MAX_MS) {
    throw new LimitReached(`a check by a schema takes more than ${CHECK_MAX_MS} ms on this message`, TOO_LONG)
  }
  running.nextLookMs = now + LOOK_MS
  showLife()
}

const BEGIN = 'let vErrors = null;'
/** The beginning of a loop over items or properties. Strings, which come from schemas, are matched first, and stay. */
const LOOPS = /"(?:[^"\\]|\\.)*"|(for\((?:let|const|var) [^{}]*?\)\{)/g

/** Returns the code of a function of Ajv with `first` at the beginning of each turn of its loops. */
export function inLoops(code: string, first: string): string {
  return code.replace(LOOPS, (text, loop: string | undefined) => (loop === undefined ? text : `${loop}${first}`))
}

/** Returns the code of a function of Ajv, which counts its calls and the turns of its loops. */
export function withSteps(code: string): string {
  const counted = inLoops(code, 'steps.step();')
    .replace(BEGIN, `steps.step();${BEGIN}`)
    .replace(/\bvErrors\.concat\(([\w.]+)\)/g, 'steps.joined(vErrors, $1)')
  return `const steps = self.checkSteps;${counted}`
}
