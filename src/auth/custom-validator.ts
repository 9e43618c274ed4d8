/**
 * Custom validator: a module of the operator (`apim.key_manager.key_validation_handler_impl`), called once per token,
 * API and operation. It decides in place of the built-in checks of subscription, token type and scopes; a token that is
 * not genuine, expired or revoked never reaches it. Its result is kept with the grant.
 */
import type { FaultCode } from '../faults/error-codes.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { withTimeout } from '../runtime/with-timeout.ts'
import { reportRefusal } from './authenticator.ts'
import type { Grant } from './grants.ts'
import type { ReactorAuth } from './reactor-auth.ts'
import type { AcceptedToken } from './token-result.ts'

/** Argument of the module's function. */
export interface CustomValidatorInput {
  readonly token: Pick<AcceptedToken, 'issuer' | 'consumerKey' | 'user' | 'isApplication' | 'claims'> & {
    readonly scopes: readonly string[]
  }
  readonly api: { readonly name: string; readonly version: string; readonly context: string }
  /** Path template. */
  readonly resource: string
  readonly verb: string
  /** Result of the built-in checks, which the module may return. */
  readonly builtIn: { readonly allowed: boolean; readonly code: number }
}

/** Function `validate` of the module; returns `{ allowed, code? }` or a promise of it. */
export type CustomValidator = (input: CustomValidatorInput) => unknown

const CODES: readonly unknown[] = [900900, 900901, 900905, 900907, 900908, 900909, 900910, 900911]
/** Code of a refusal that names none of CODES, where the built-in checks allow. */
const REFUSED = 900908
/** Code of a malformed result. */
const MALFORMED = 900911
const TIMEOUT_MS = 5000

/** The module has blocked its reactor until a time limit, and would again. */
export class ValidatorHung extends Error {
  override readonly name = 'ValidatorHung'
}

/** Fault codes by method and template, 0 for none; a promise while the module runs. */
type Results = Map<string, FaultCode | 0 | Promise<FaultCode | 0>>

export class CustomValidation {
  readonly #auth: ReactorAuth
  #results = new WeakMap<Grant, Results>()
  /** The module that `#results` come from; a reload may replace it. */
  #validator: CustomValidator | null = null

  constructor(auth: ReactorAuth) {
    this.#auth = auth
  }

  /** Fault code of the refusal; 0: allowed. `builtIn`: that of the built-in checks, which holds without a token. */
  codeFor(exchange: Exchange, grant: Grant, builtIn: FaultCode | 0): FaultCode | 0 | Promise<FaultCode | 0> {
    const { validator } = this.#auth
    if (validator !== this.#validator) {
      this.#results = new WeakMap()
      this.#validator = validator
    }
    const { token } = grant
    if (validator === null || token === null) return builtIn
    let results = this.#results.get(grant)
    if (results === undefined) {
      results = new Map()
      this.#results.set(grant, results)
    }
    const operation = `${exchange.method} ${exchange.resource!.template}`
    const known = results.get(operation)
    if (known !== undefined) return known
    const code = this.#run(validator, inputOf(exchange, token, builtIn), exchange, results, operation)
    results.set(operation, code)
    return code
  }

  async #run(
    validator: CustomValidator,
    input: CustomValidatorInput,
    exchange: Exchange,
    results: Results,
    operation: string,
  ): Promise<FaultCode | 0> {
    const builtIn = input.builtIn.code
    try {
      // An async function, so that a synchronous throw also becomes a rejection.
      const result = (async () => validator(input))()
      const late = () => new Error(`no result within ${TIMEOUT_MS} ms`)
      const code = codeIn(await withTimeout(result, TIMEOUT_MS, late), builtIn)
      results.set(operation, code)
      return code
    } catch (error) {
      // Another failure is not kept: the next request calls the module again.
      if (error instanceof ValidatorHung) results.set(operation, 900900)
      else results.delete(operation)
      reportRefusal(this.#auth, exchange, 900900, `key validation handler: ${String(error)}`)
      return 900900
    }
  }
}

function inputOf(
  { api, resource, method }: Exchange,
  token: AcceptedToken,
  builtIn: FaultCode | 0,
): CustomValidatorInput {
  const { issuer, consumerKey, user, isApplication, scopes, claims } = token
  return {
    token: { issuer, consumerKey, user, isApplication, scopes: [...scopes], claims: structuredClone(claims) },
    api: { name: api!.name, version: api!.version, context: api!.path },
    resource: resource!.template,
    verb: method,
    builtIn: { allowed: builtIn === 0, code: builtIn },
  }
}

function codeIn(result: unknown, builtIn: number): FaultCode | 0 {
  const { allowed, code } = (result ?? {}) as { readonly allowed?: unknown; readonly code?: unknown }
  if (typeof allowed !== 'boolean') return MALFORMED
  if (allowed) return 0
  if (CODES.includes(code)) return code as FaultCode
  return builtIn === 0 ? REFUSED : (builtIn as FaultCode)
}
