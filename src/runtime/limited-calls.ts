/**
 * Calls that end at a time limit, for code of operators on a thread that must not hang. V8 ends a loop, a pattern that
 * backtracks and a wait; it does not end a call of the system, such as `execSync`. The limit is that of
 * `Runtime.evaluate` of the inspector: no port is opened, and nothing of the thread is debugged.
 */
import type { Session } from 'node:inspector'

export class LimitedCalls {
  readonly limitMs: number
  /** Null once it is closed. */
  #session: Session | null
  readonly #evaluation: { readonly expression: string; readonly silent: true; readonly timeout: number }
  /** Name of the global function by which the inspector makes the call. */
  readonly #name = freeName()
  #call: () => void = () => undefined

  /** Throws where this Node has no inspector, or does not allow it. */
  constructor(limitMs: number) {
    const { Session } = process.getBuiltinModule('node:inspector')
    this.limitMs = limitMs
    const session = new Session()
    session.connect()
    this.#session = session
    const value = (): void => this.#call()
    Object.defineProperty(globalThis, this.#name, { value, configurable: true })
    this.#evaluation = { expression: `${this.#name}()`, silent: true, timeout: limitMs }
  }

  /**
   * Runs a call, and ends it at the limit: no `catch` or `finally` inside of it runs then. The call must keep its own
   * result and errors: an error that it throws is lost. Behind `close` a call has no limit.
   */
  run(call: () => void): void {
    const outer = this.#call
    this.#call = call
    if (this.#session === null) call()
    else this.#session.post('Runtime.evaluate', this.#evaluation)
    this.#call = outer
  }

  close(): void {
    this.#session?.disconnect()
    this.#session = null
    Reflect.deleteProperty(globalThis, this.#name)
  }
}

/** Returns a name that no global has. It is short, because each call compiles it. */
function freeName(): string {
  for (let number = 0; ; number++) {
    const name = `$limited${number}`
    if (!Object.hasOwn(globalThis, name)) return name
  }
}
