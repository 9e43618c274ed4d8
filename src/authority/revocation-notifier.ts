/** A module of the operator's own that is told of each revoked token (`apim.token.revocation.notifier_impl`). */
import { loadModule } from '../config/module-file.ts'
import type { RevokedFacts } from '../identity/facts.ts'
import type { EventLog } from '../observe/events.ts'
import { inTime } from '../structure/in-time.ts'

/** Calls that have not ended; a module that is slower than revocations come is told of no more. */
const UNDER_WAY_MAX = 1000
/** One that takes longer has failed: calls that never end would use up their number. */
const ANSWER_MS = 10_000

type TokenRevoked = (...given: readonly unknown[]) => unknown

export class RevocationNotifier {
  readonly #tokenRevoked: TokenRevoked
  readonly #report: EventLog['report']
  #underWay = 0

  private constructor(tokenRevoked: TokenRevoked, report: EventLog['report']) {
    this.#tokenRevoked = tokenRevoked
    this.#report = report
  }

  /** `path`: exports `tokenRevoked`, given `{ key, expiresMs }`; '' for no module. Rejects with ModuleBroken. */
  static async load(path: string, home: string, report: EventLog['report']): Promise<RevocationNotifier | null> {
    if (path === '') return null
    return new RevocationNotifier(await loadModule(home, path, 'tokenRevoked'), report)
  }

  /** Nobody waits for it, and its failures keep no token good. */
  tell(tokens: readonly RevokedFacts[]): void {
    for (const { key, expiresMs } of tokens) void this.#tellOf({ key, expiresMs })
  }

  async #tellOf(token: RevokedFacts): Promise<void> {
    if (this.#underWay >= UNDER_WAY_MAX) {
      this.#failed('it is too slow: this one is left out')
      return
    }
    this.#underWay++
    try {
      const late = () => new Error(`no answer within ${ANSWER_MS} ms`)
      await inTime(Promise.try(this.#tokenRevoked, token), ANSWER_MS, late)
    } catch (error) {
      this.#failed(error instanceof Error ? error.message : 'it threw no error')
    } finally {
      this.#underWay--
    }
  }

  #failed(cause: string): void {
    this.#report('error', 'notifier_impl has failed', { CAUSE_OF_ERROR: cause })
  }
}
