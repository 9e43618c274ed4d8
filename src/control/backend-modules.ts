/**
 * The operator's modules for backend tokens (`[apim.jwt]`): one makes the token, one looks up the claims of a user.
 * The modules run in the control thread, so that a slow module delays only the requests that need it.
 */
import { loadModule } from '../config/module-file.ts'
import type { Configuration } from '../config/catalogue.ts'
import { ControlCallFailed } from '../auth/control-protocol.ts'
import { withTimeout } from '../runtime/with-timeout.ts'
import { isString } from '../auth/strict-json.ts'

type JwtConfiguration = Configuration['apim.jwt']

/** Input of `retrieveClaims`, which the module of `claims_extractor_impl` exports. */
interface ClaimRetrieverInput {
  readonly user: string
  readonly tenant: string
}

type Claims = Readonly<Record<string, unknown>>
type Exported = (...given: readonly unknown[]) => unknown

/** Less than the five seconds that a reactor waits for its call. */
const TIMEOUT_MS = 4000

export class BackendModules {
  readonly #generator: Exported | null
  readonly #retriever: Exported | null
  readonly #timeoutMs: number

  private constructor(generator: Exported | null, retriever: Exported | null, timeoutMs: number) {
    this.#generator = generator
    this.#retriever = retriever
    this.#timeoutMs = timeoutMs
  }

  /** `home`: folder that contains the modules. `timeoutMs`: for tests. Rejects with ModuleError. */
  static async load(jwt: JwtConfiguration, home: string, timeoutMs = TIMEOUT_MS): Promise<BackendModules> {
    const load = (path: string, name: string) => (path === '' ? null : loadModule(home, path, name))
    const generator = jwt.enable ? load(jwt.generator_impl, 'generateToken') : null
    const extracts = jwt.enable && jwt.enable_user_claims
    const retriever = extracts ? load(jwt.claims_extractor_impl, 'retrieveClaims') : null
    return new BackendModules(await generator, await retriever, timeoutMs)
  }

  /** Null: no module; the user store has the claims. */
  get retriever(): ((input: ClaimRetrieverInput) => Promise<Claims>) | null {
    const retrieve = this.#retriever
    return retrieve === null ? null : input => this.#call('claims_extractor_impl', () => retrieve(input), isRecord)
  }

  /** Makes the token from its claims. Rejects with ControlCallFailed. */
  generate(claims: Claims): Promise<string> {
    const generate = this.#generator
    if (generate === null) return Promise.reject(new ControlCallFailed('there is no generator_impl'))
    return this.#call('generator_impl', () => generate({ claims }), isString)
  }

  /** Calls a module within the time-out, unless the module blocks the thread. */
  async #call<T>(key: string, run: () => unknown, isValid: (result: unknown) => result is T): Promise<T> {
    const late = () => new ControlCallFailed(`${key} has not responded within ${this.#timeoutMs} ms`)
    try {
      const result = await withTimeout(Promise.try(run), this.#timeoutMs, late)
      if (isValid(result)) return result
      throw new ControlCallFailed(`${key} has returned a value of the wrong type`)
    } catch (error) {
      if (error instanceof ControlCallFailed) throw error
      // The message is the module's own; the input of the call, which may be secret, stays out of ours.
      throw new ControlCallFailed(`${key} has failed: ${error instanceof Error ? error.message : 'it threw no error'}`)
    }
  }
}

function isRecord(value: unknown): value is Claims {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
