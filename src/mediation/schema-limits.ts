/**
 * Bounds checks by a schema. A recursive schema with alternatives would take 2^depth steps: a long check remembers what
 * it has found of each object. The code that Ajv makes counts its steps, so that a check that takes too long ends by an
 * exception, and leaves nothing half done.
 */
import { showLife } from '../runtime/signs-of-life.ts'
import { LimitReached, ProcessorTimeLimit, TOO_LONG } from './flow-limits.ts'

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
/** Steps after which a check remembers: short checks cost nothing more. */
const STEPS_BEFORE_MEMORY = 4096
/**
 * Steps of a call whose outcome is remembered. A cheaper call is as fast as a look into the memory, and a message may
 * hold a million small objects.
 */
const STEPS_REMEMBERED = 32
/** Errors that are remembered of one value. */
const REMEMBERED_ERRORS_MAX = 100

/**
 * The check that this thread is in. Checks are synchronous. `steps`: left until the next look. `taken`: steps until the
 * last look.
 */
const running = { isLimited: false, steps: STEPS_PER_LOOK, taken: 0, nextLookMs: 0 }
const time = new ProcessorTimeLimit(CHECK_MAX_MS)
/** Outcomes for objects and lists that the running check remembers, by function. */
const outcomes = new Map<Validate, Map<object, Outcome>>()

/** A function of Ajv. It leaves its errors, and the names that it has evaluated, in properties of itself. */
interface Validate {
  (data: unknown, context?: CheckContext): boolean
  errors?: readonly unknown[] | null
  evaluated?: object
}

interface CheckContext {
  readonly instancePath?: string
  readonly dynamicAnchors?: object
}

interface Outcome {
  readonly instancePath: string | undefined
  readonly isValid: boolean
  readonly errors: readonly unknown[] | null
  readonly evaluated: object | undefined
}

/** Counters that the code of Ajv calls. */
export const checkSteps = {
  /** A function is called, or a loop turns. */
  step(): void {
    if (--running.steps < 0) look()
  },

  joined(errors: readonly unknown[], further: readonly unknown[]): readonly unknown[] {
    return errors.concat(further.slice(0, Math.max(1, ERRORS_MAX - errors.length)))
  },

  /** Wraps a function of Ajv: a long check calls it once for each object and list that takes many steps. */
  once(validate: Validate): Validate {
    const wrapper: Validate = (data, context) => {
      if (running.taken < STEPS_BEFORE_MEMORY || !isRemembered(data, context)) return validate(data, context)
      const earlier = outcomes.get(wrapper)?.get(data)
      if (earlier !== undefined && earlier.instancePath === context?.instancePath) return recalled(wrapper, earlier)
      const before = stepsTaken()
      const isValid = validate(data, context)
      if (stepsTaken() - before < STEPS_REMEMBERED) return isValid
      const { errors, evaluated } = wrapper
      outcomesOf(wrapper).set(data, {
        instancePath: context?.instancePath,
        isValid,
        errors: errors?.slice(0, REMEMBERED_ERRORS_MAX) ?? null,
        evaluated: evaluated && { ...evaluated },
      })
      return isValid
    }
    return wrapper
  },
}

function stepsTaken(): number {
  return running.taken + STEPS_PER_LOOK - running.steps
}

/** With dynamic anchors a function finds different things where it is called from different places. */
function isRemembered(data: unknown, context: CheckContext | undefined): data is object {
  if (typeof data !== 'object' || data === null) return false
  for (const _ in context?.dynamicAnchors) return false
  return true
}

function outcomesOf(validate: Validate): Map<object, Outcome> {
  let known = outcomes.get(validate)
  if (known === undefined) {
    known = new Map()
    outcomes.set(validate, known)
  }
  return known
}

/** Ajv adds to the errors that a function has left. */
function recalled(validate: Validate, { isValid, errors, evaluated }: Outcome): boolean {
  validate.errors = errors && [...errors]
  if (validate.evaluated !== undefined) Object.assign(validate.evaluated, evaluated)
  checkSteps.step()
  return isValid
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
    running.taken = 0
    outcomes.clear()
  }
}

/** Time counts from now: a schema has been compiled, which happens once. */
export function restartCheckTime(): void {
  running.steps = STEPS_PER_LOOK
  running.nextLookMs = 0
  time.start()
}

function look(): void {
  running.taken += STEPS_PER_LOOK - running.steps
  running.steps = STEPS_PER_LOOK
  if (!running.isLimited) return
  const now = performance.now()
  if (now < running.nextLookMs) return
  if (time.isOver) {
    throw new LimitReached(`a check by a schema takes more than ${CHECK_MAX_MS} ms on this message`, TOO_LONG)
  }
  running.nextLookMs = now + LOOK_MS
  showLife()
}

const BEGIN = 'let vErrors = null;'
/** The function that the code of Ajv returns: nothing stands before it but names of what it uses. */
const RETURNED = /\breturn function (validate\d+)\(/
/** The beginning of a loop over items or properties. Strings, which come from schemas, are matched first, and stay. */
const LOOPS = /"(?:[^"\\]|\\.)*"|(for\((?:let|const|var) [^{}]*?\)\{)/g

/** Returns the code of a function of Ajv with `first` at the beginning of each turn of its loops. */
export function inLoops(code: string, first: string): string {
  return code.replace(LOOPS, (text, loop: string | undefined) => (loop === undefined ? text : `${loop}${first}`))
}

/** Returns the code of a function of Ajv, which counts its calls and the turns of its loops, and may remember. */
export function withSteps(code: string): string {
  const counted = inLoops(code, 'steps.step();')
    .replace(BEGIN, `steps.step();${BEGIN}`)
    .replace(/\bvErrors\.concat\(([\w.]+)\)/g, 'steps.joined(vErrors, $1)')
  const [, name] = RETURNED.exec(counted) ?? []
  if (name === undefined) throw new Error('the code of Ajv returns no function that is known')
  const wrapped = counted.replace(RETURNED, `const ${name} = steps.once(function(`)
  return `const steps = self.checkSteps;${wrapped});return ${name}`
}
