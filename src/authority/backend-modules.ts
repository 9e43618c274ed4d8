/**
 * Modules of the operator's own behind the token for backends (`[apim.jwt]`): one that makes it, and one that looks up
 * what is known of a user. They run here and not where requests are, so that a slow one holds up those alone that wait
 * for it.
 */
import { loadModule } from '../config/module-file.ts'
import type { Configuration } from '../config/catalogue.ts'
import { InquiryFailed } from '../identity/identity-state.ts'
import { inTime } from '../structure/in-time.ts'
import { isText } from '../structure/strict-json.ts'

type JwtConfiguration = Configuration['apim.jwt']

/** What `claims_extractor_impl` names exports `retrieveClaims`. */
interface ClaimRetrieverInput {
  readonly user: string
  readonly tenant: string
}

type Claims = Readonly<Record<string, unknown>>
type Exported = (...given: readonly unknown[]) => unknown

/** Longer than this neither is waited for: reactors wait no longer than five seconds. */
const ANSWER_MS = 4000

export class BackendModules {
  readonly #generator: Exported | null
  readonly #retriever: Exported | null
  readonly #answerMs: number

  private constructor(generator: Exported | null, retriever: Exported | null, answerMs: number) {
    this.#generator = generator
    this.#retriever = retriever
    this.#answerMs = answerMs
  }

  /** `home`: folder that they must be in. `answerMs`: for tests. Rejects with ModuleBroken. */
  static async load(jwt: JwtConfiguration, home: string, answerMs = ANSWER_MS): Promise<BackendModules> {
    const load = (path: string, name: string) => (path === '' ? null : loadModule(home, path, name))
    const generator = jwt.enable ? load(jwt.generator_impl, 'generateToken') : null
    const extracts = jwt.enable && jwt.enable_user_claims
    const retriever = extracts ? load(jwt.claims_extractor_impl, 'retrieveClaims') : null
    return new BackendModules(await generator, await retriever, answerMs)
  }

  /** Null: the user store is asked. */
  get retriever(): ((input: ClaimRetrieverInput) => Promise<Claims>) | null {
    const retrieve = this.#retriever
    return retrieve === null ? null : input => this.#asked('claims_extractor_impl', () => retrieve(input), isRecord)
  }

  /** The whole token, of what would stand in it. Rejects with InquiryFailed. */
  generate(claims: Claims): Promise<string> {
    const generate = this.#generator
    if (generate === null) return Promise.reject(new InquiryFailed('there is no generator_impl'))
    return this.#asked('generator_impl', () => generate({ claims }), isText)
  }

  /** Within a bounded time, unless it never gives up the thread. */
  async #asked<T>(key: string, ask: () => unknown, isRight: (answer: unknown) => answer is T): Promise<T> {
    const late = () => new InquiryFailed(`${key} has not answered within ${this.#answerMs} ms`)
    try {
      const answer = await inTime(Promise.try(ask), this.#answerMs, late)
      if (isRight(answer)) return answer
      throw new InquiryFailed(`${key} has answered something else than it should`)
    } catch (error) {
      if (error instanceof InquiryFailed) throw error
      // Its message is the operator's own; what it was asked with stands in none of ours.
      throw new InquiryFailed(`${key} has failed: ${error instanceof Error ? error.message : 'it threw no error'}`)
    }
  }
}

function isRecord(answer: unknown): answer is Claims {
  return typeof answer === 'object' && answer !== null && !Array.isArray(answer)
}
