/**
 * A handler of the operator's own (`apim.key_manager.key_validation_handler_impl`): asked once for each token, API and
 * operation, when everything else allows it. It can refuse and cannot allow: what it says is kept with the grant.
 */
import type { FaultCode } from '../errors/catalogue.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Grant } from '../identity/grants.ts'
import type { Identity, Validator, ValidatorInput } from '../identity/identity.ts'
import type { AcceptedToken } from '../identity/token-verdict.ts'
import { inTime } from '../structure/in-time.ts'
import { told } from './authenticator.ts'

const CODES: readonly unknown[] = [900900, 900901, 900905, 900907, 900908, 900909, 900910, 900911]
/** Where it refuses and names no code of these. */
const REFUSED = 900908
/** Where nobody can say what it has answered. */
const UNREADABLE = 900911
/** Longer than this it is not waited for. */
const ANSWER_MS = 5000

/** By method and template; a promise while it is asked. */
type Answers = Map<string, FaultCode | 0 | Promise<FaultCode | 0>>

export class OwnValidation {
  readonly #identity: Identity
  /** Those of a validator that a reload has replaced are forgotten. */
  #answers = new WeakMap<Grant, Answers>()
  #validator: Validator | null = null

  constructor(identity: Identity) {
    this.#identity = identity
  }

  /** 0: it allows the request, or has nothing to say because no token was sent. */
  codeFor(exchange: Exchange, grant: Grant): FaultCode | 0 | Promise<FaultCode | 0> {
    const { validator } = this.#identity
    if (validator !== this.#validator) {
      this.#answers = new WeakMap()
      this.#validator = validator
    }
    const { token } = grant
    if (validator === null || token === null) return 0
    let answers = this.#answers.get(grant)
    if (answers === undefined) {
      answers = new Map()
      this.#answers.set(grant, answers)
    }
    const operation = `${exchange.method} ${exchange.resource!.template}`
    const known = answers.get(operation)
    if (known !== undefined) return known
    const asked = this.#ask(validator, exchange, token, answers, operation)
    answers.set(operation, asked)
    return asked
  }

  async #ask(
    validator: Validator,
    exchange: Exchange,
    token: AcceptedToken,
    answers: Answers,
    operation: string,
  ): Promise<FaultCode | 0> {
    try {
      // What it throws at once comes as late as everything else.
      const answer = (async () => validator(inputOf(exchange, token)))()
      const late = () => new Error(`no answer within ${ANSWER_MS} ms`)
      const code = codeIn(await inTime(answer, ANSWER_MS, late))
      answers.set(operation, code)
      return code
    } catch (error) {
      // Whatever went wrong may go right with the next request.
      answers.delete(operation)
      told(this.#identity, exchange, 900900, `key validation handler: ${String(error)}`)
      return 900900
    }
  }
}

function inputOf({ api, resource, method }: Exchange, token: AcceptedToken): ValidatorInput {
  const { issuer, consumerKey, user, isApplication, scopes, claims } = token
  return {
    token: { issuer, consumerKey, user, isApplication, scopes: [...scopes], claims: structuredClone(claims) },
    api: { name: api!.name, version: api!.version, context: api!.path },
    resource: resource!.template,
    verb: method,
  }
}

/** `{ allowed, code? }`. Anything else is no answer. */
function codeIn(answer: unknown): FaultCode | 0 {
  const { allowed, code } = (answer ?? {}) as { readonly allowed?: unknown; readonly code?: unknown }
  if (typeof allowed !== 'boolean') return UNREADABLE
  if (allowed) return 0
  return CODES.includes(code) ? (code as FaultCode) : REFUSED
}
