/**
 * Timers of modules of the operator on a thread that must not hang. Their callbacks run through the runner of their
 * module, which limits their time. A timer belongs to a module that sets it while the module loads, in one of its
 * calls, or behind an `await` or in a timer of those.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'

/** Runs a callback, whose errors it takes. Returns false where the timer must not run again. */
export type TimerRunner = (callback: () => void) => boolean

type Callback = (...given: readonly unknown[]) => void
type SetTimer = (callback: Callback, ...rest: readonly unknown[]) => NodeJS.Timeout | NodeJS.Immediate

const runners = new AsyncLocalStorage<TimerRunner>()
/** Functions of `node:timers`, which are globals too. */
const NAMES = ['setTimeout', 'setInterval', 'setImmediate'] as const
let isInstalled = false

/** Makes a call whose timers belong to the runner. */
export function withTimersOf<Result>(runner: TimerRunner, call: () => Result): Result {
  if (!isInstalled) install()
  return runners.run(runner, call)
}

/** Code of a module runs, or what it has left behind. */
export function isInModule(): boolean {
  return runners.getStore() !== undefined
}

function install(): void {
  isInstalled = true
  const timers = process.getBuiltinModule('node:timers') as unknown as Record<string, unknown>
  for (const name of NAMES) {
    const replaced = limited(globalThis[name] as unknown as SetTimer)
    // Their own properties, such as the form that `util.promisify` returns.
    Object.defineProperties(replaced, Object.getOwnPropertyDescriptors(globalThis[name]))
    Object.assign(globalThis, { [name]: replaced })
    timers[name] = replaced
  }
  // Modules may import them by name.
  syncBuiltinESMExports()
}

/** Timers that no module has set stay as they are. */
function limited(original: SetTimer): SetTimer {
  return (callback, ...rest) => {
    const runner = runners.getStore()
    if (runner === undefined || typeof callback !== 'function') return original(callback, ...rest)
    const timer = original(
      (...given) => {
        const goesOn = runner(() => Reflect.apply(callback, timer, given))
        if (!goesOn) clearTimeout(timer as NodeJS.Timeout)
      },
      ...rest,
    )
    return timer
  }
}
