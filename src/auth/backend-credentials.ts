/**
 * Adds credentials for the backend: a JWT that names the caller, and the gateway's own credentials in the place of the
 * client's. The filter is the last of its chain, so that refused requests cost no token.
 */
import type { FaultCode } from '../faults/error-codes.ts'
import type { DescribedFilter } from '../filters/filter-chain.ts'
import { KIND } from '../http1/field-kinds.ts'
import type { MetricsColumn } from '../observe/metrics.ts'
import { CALLER_LINES_MAX, type OwnCredential } from '../proxy/exchange/caller.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import type { FilterResult } from '../proxy/exchange/contract.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { type Outcome, refusal } from '../proxy/exchange/outcome.ts'
import type { BackendCredentialPlan, BackendCredentialPlans, BackendJwtPlan } from './auth-plan.ts'
import type { AuthState } from './auth-state.ts'
import { BackendJwtFailed, BackendJwts } from './backend-jwt.ts'
import type { BackendApi } from './backend-jwt-claims.ts'
import { BackendToken, BackendTokenFailed } from './backend-token.ts'

interface BackendCredentialsContext {
  readonly call: AuthState['call']
  readonly metrics: Pick<MetricsColumn, 'add'>
  readonly report: Report
}

/** Credentials for the backends of all APIs of a reactor. */
export class BackendCredentials {
  readonly jwts: BackendJwts
  readonly report: Report
  readonly #context: ConstructorParameters<typeof BackendToken>[1]
  /** Weak, so that a token goes with the last filter that uses it. */
  readonly #tokens = new Map<string, WeakRef<BackendToken>>()

  constructor(plan: BackendJwtPlan, { call, metrics, report }: BackendCredentialsContext) {
    this.#context = { call, now: Date.now }
    this.report = report
    this.jwts = new BackendJwts(plan, { ...this.#context, metrics })
  }

  /** The same object for the filters of an API before and after a reload. `key`: of the BackendTokenPlan. */
  tokenFor(key: string): BackendToken {
    const known = this.#tokens.get(key)?.deref()
    if (known !== undefined) return known
    const token = new BackendToken(key, this.#context)
    this.#tokens.set(key, new WeakRef(token))
    return token
  }

  /** At a reload: no cached credential is used again. */
  updatePlan(plan: BackendJwtPlan): void {
    this.jwts.updatePlan(plan)
    for (const [key, reference] of this.#tokens) {
      const token = reference.deref()
      if (token === undefined) this.#tokens.delete(key)
      else token.forget()
    }
  }
}

interface BackendCredentialsOptions {
  readonly api: BackendApi
  readonly plans: BackendCredentialPlans
  /** Some resource of the API authenticates its callers. */
  readonly hasCallers: boolean
  /** Null where the chain is only described and sees no request. */
  readonly credentials: BackendCredentials | null
}

const IGNORE_REFUSAL = (): void => {}

export class BackendCredentialsFilter implements DescribedFilter {
  readonly name = 'backend credentials'
  readonly about: string
  readonly #api: BackendApi
  readonly #credentials: BackendCredentials | null
  readonly #production: OwnCredential | BackendToken | null
  readonly #sandbox: OwnCredential | BackendToken | null

  constructor({ api, plans, hasCallers, credentials }: BackendCredentialsOptions) {
    this.#api = api
    this.#credentials = credentials
    this.#production = ownCredential(plans.production, credentials)
    this.#sandbox = ownCredential(plans.sandbox, credentials)
    this.about = description(plans, hasCallers)
  }

  request(exchange: Exchange): FilterResult {
    const own = exchange.keyType === 'PRODUCTION' ? this.#production : this.#sandbox
    try {
      if (own !== null) stripAuthorization(exchange)
      const jwt = this.#jwtFor(exchange)
      const credential = own === null ? null : 'get' in own ? own.get() : own
      if (jwt instanceof Promise || credential instanceof Promise) return this.#addLater(exchange, jwt, credential)
      return this.#add(exchange, jwt, credential)
    } catch (error) {
      return this.#refuse(exchange, error)
    }
  }

  /** '' where there is no caller, or backends get no JWT. */
  #jwtFor({ caller }: Exchange): string | Promise<string> {
    const jwts = this.#credentials?.jwts
    if (jwts === undefined || !jwts.isEnabled || caller === null || caller.method === 'none') return ''
    return jwts.lineFor(caller, this.#api)
  }

  async #addLater(
    exchange: Exchange,
    jwt: string | Promise<string>,
    credential: OwnCredential | null | Promise<OwnCredential>,
  ): Promise<Outcome | undefined> {
    try {
      // Both are awaited together: a rejection of the first must not leave that of the second unhandled.
      const [line, own] = await Promise.all([jwt, credential])
      return this.#add(exchange, line, own)
    } catch (error) {
      return this.#refuse(exchange, error)
    }
  }

  #add(exchange: Exchange, jwt: string, own: OwnCredential | null): Outcome | undefined {
    if (own !== null) {
      exchange.ownCredential = own
      exchange.callerLines += own.line
    }
    if (jwt !== '') exchange.callerLines += jwt
    if (exchange.callerLines.length <= CALLER_LINES_MAX) return undefined
    const cause = `the credentials have ${exchange.callerLines.length} characters, more than ${CALLER_LINES_MAX}`
    this.#report(exchange, 900900, cause)
    return refusal(900900)
  }

  #refuse(exchange: Exchange, error: unknown): Outcome {
    if (!(error instanceof BackendJwtFailed || error instanceof BackendTokenFailed)) throw error
    this.#report(exchange, error.code, error.message)
    return refusal(error.code)
  }

  #report(exchange: Exchange, code: FaultCode, cause: string): void {
    this.#credentials?.report('error', 'no credentials for the backend', {
      ERROR_CODE: code,
      CAUSE_OF_ERROR: cause,
      API: `${this.#api.name}:${this.#api.version}`,
      HTTP_URL: exchange.requestTarget,
      HTTP_METHOD: exchange.method,
      CORRELATION_ID: exchange.correlationId,
    })
  }
}

/** The gateway's own Authorization replaces that of the client. */
function stripAuthorization({ head }: Exchange): void {
  if (head?.has(KIND.AUTHORIZATION) !== true) return
  for (let field = 0; field < head.count; field++) {
    if (head.kinds[field] === KIND.AUTHORIZATION) head.kinds[field] = KIND.CREDENTIAL
  }
}

function ownCredential(
  plan: BackendCredentialPlan | null,
  credentials: BackendCredentials | null,
): OwnCredential | BackendToken | null {
  if (plan === null || credentials === null) return null
  if (plan.kind === 'oauth2') return credentials.tokenFor(plan.key)
  return { line: `Authorization: ${plan.authorization}\r\n`, refused: IGNORE_REFUSAL }
}

const CREDENTIAL_NAMES = { basic: 'a password', oauth2: 'a token' } as const

/** Names the credentials without showing them. */
function description({ production, sandbox }: BackendCredentialPlans, hasCallers: boolean): string {
  const own = (kind: string, plan: BackendCredentialPlan | null) => {
    return plan === null ? '' : `${kind} endpoints get ${CREDENTIAL_NAMES[plan.kind]} of the gateway's`
  }
  const jwt = hasCallers ? 'backends get a JWT that names the caller if [apim.jwt] is enabled' : ''
  return [own('production', production), own('sandbox', sandbox), jwt].filter(text => text !== '').join('; ')
}
