/** Tells the operator's module of each revoked token (`apim.token.revocation.notifier_impl`). */
import { loadModule } from '../config/module-file.ts'
import type { RevocationRecord } from '../auth/records.ts'
import type { EventLog } from '../observe/events.ts'
import { withTimeout } from '../runtime/with-timeout.ts'

/** Pending calls; beyond them a slow module is told of no further token. */
const PENDING_MAX = 1000
/** Calls that never end would use up the limit. */
const TIMEOUT_MS = 10_000

type TokenRevoked = (...given: readonly unknown[]) => unknown

export class RevocationNotifier {
  readonly #tokenRevoked: TokenRevoked
  readonly #report: EventLog['report']
  #pending = 0

  private constructor(tokenRevoked: TokenRevoked, report: EventLog['report']) {
    this.#tokenRevoked = tokenRevoked
    this.#report = report
  }

  /** `path`: of a module that exports `tokenRevoked({ key, expiresMs })`; '' for none. Rejects with ModuleError. */
  static async load(path: string, home: string, report: EventLog['report']): Promise<RevocationNotifier | null> {
    if (path === '') return null
    return new RevocationNotifier(await loadModule(home, path, 'tokenRevoked'), report)
  }

  /** Returns at once; failures of the module are in the log, and the tokens stay revoked. */
  notify(tokens: readonly RevocationRecord[]): void {
    for (const { key, expiresMs } of tokens) void this.#notifyOf({ key, expiresMs })
  }

  async #notifyOf(token: RevocationRecord): Promise<void> {
    if (this.#pending >= PENDING_MAX) {
      this.#failed('it is too slow: this token is left out')
      return
    }
    this.#pending++
    try {
      const late = () => new Error(`no response within ${TIMEOUT_MS} ms`)
      await withTimeout(Promise.try(this.#tokenRevoked, token), TIMEOUT_MS, late)
    } catch (error) {
      this.#failed(error instanceof Error ? error.message : 'it threw no error')
    } finally {
      this.#pending--
    }
  }

  #failed(cause: string): void {
    this.#report('error', 'notifier_impl has failed', { CAUSE_OF_ERROR: cause })
  }
}
