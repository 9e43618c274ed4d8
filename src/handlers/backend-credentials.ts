/**
 * What a backend is told: who is calling, by a token of the gateway's, and what the backend asks of the gateway itself,
 * in the place of whatever the client has sent. It is the last of the handlers: nothing is made for what is refused.
 */
import type { FaultCode } from '../errors/catalogue.ts'
import { CALLER_LINES_MAX, type OwnCredential } from '../exchange/caller.ts'
import type { Verdict } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { type Outcome, refusal } from '../exchange/outcome.ts'
import { KIND } from '../http1/field-kinds.ts'
import type { BackendApi } from '../identity/backend-claims.ts'
import { NoBackendJwt } from '../identity/backend-jwt.ts'
import type { BackendSide } from '../identity/backend-side.ts'
import { type BackendToken, NoBackendToken } from '../identity/backend-tokens.ts'
import type { CredentialPlan, CredentialPlans } from '../identity/identity-plan.ts'
import type { ExplainedHandler } from './chain.ts'

/** For one kind of endpoint. */
type Own = OwnCredential | BackendToken

interface Needs {
  readonly api: BackendApi
  readonly credentials: CredentialPlans
  /** Somebody may be known to call. */
  readonly tellsCaller: boolean
  /** Null where an API is only explained. */
  readonly services: BackendSide | null
}

const NOTHING_TO_REFUSE = (): void => {}
const MADE_IN_VAIN: readonly (readonly [new (message: string) => Error, FaultCode])[] = [
  [NoBackendJwt, 900900],
  [NoBackendToken, 900424],
]

export class BackendHandler implements ExplainedHandler {
  readonly name = 'backend credentials'
  readonly about: string
  readonly #api: BackendApi
  readonly #services: BackendSide | null
  readonly #production: Own | null
  readonly #sandbox: Own | null

  constructor({ api, credentials, tellsCaller, services }: Needs) {
    this.#api = api
    this.#services = services
    this.#production = ownOf(credentials.production, services)
    this.#sandbox = ownOf(credentials.sandbox, services)
    this.about = describe(credentials, tellsCaller)
  }

  request(exchange: Exchange): Verdict {
    const own = exchange.keyType === 'PRODUCTION' ? this.#production : this.#sandbox
    try {
      if (own !== null) withhold(exchange)
      const jwt = this.#jwtFor(exchange)
      const credential = own === null ? null : 'get' in own ? own.get() : own
      if (jwt instanceof Promise || credential instanceof Promise) return this.#waitFor(exchange, jwt, credential)
      return this.#add(exchange, jwt, credential)
    } catch (error) {
      return this.#failed(exchange, error)
    }
  }

  /** '' where there is nobody to tell of, or no need to. */
  #jwtFor({ caller }: Exchange): string | Promise<string> {
    const jwts = this.#services?.jwts
    if (jwts === undefined || !jwts.isMade || caller === null || caller.method === 'none') return ''
    return jwts.lineFor(caller, this.#api)
  }

  async #waitFor(
    exchange: Exchange,
    jwt: string | Promise<string>,
    credential: OwnCredential | null | Promise<OwnCredential>,
  ): Promise<Outcome | undefined> {
    try {
      // Both at once: what the first is refused for must not leave the other unheard.
      const [line, own] = await Promise.all([jwt, credential])
      return this.#add(exchange, line, own)
    } catch (error) {
      return this.#failed(exchange, error)
    }
  }

  #add(exchange: Exchange, jwt: string, own: OwnCredential | null): Outcome | undefined {
    if (own !== null) {
      exchange.ownCredential = own
      exchange.callerLines += own.line
    }
    if (jwt !== '') exchange.callerLines += jwt
    if (exchange.callerLines.length <= CALLER_LINES_MAX) return undefined
    this.#tell(exchange, 900900, `its lines for the backend have ${exchange.callerLines.length} characters`)
    return refusal(900900)
  }

  #failed(exchange: Exchange, error: unknown): Outcome {
    const [, code] = MADE_IN_VAIN.find(([kind]) => error instanceof kind) ?? []
    if (code === undefined) throw error
    this.#tell(exchange, code, (error as Error).message)
    return refusal(code)
  }

  #tell(exchange: Exchange, code: FaultCode, cause: string): void {
    this.#services?.report('error', 'no credentials for the backend', {
      ERROR_CODE: code,
      CAUSE_OF_ERROR: cause,
      API: `${this.#api.name}:${this.#api.version}`,
      HTTP_URL: exchange.requestTarget,
      HTTP_METHOD: exchange.method,
      CORRELATION_ID: exchange.correlationId,
    })
  }
}

/** What the client has sent for itself ends here. */
function withhold({ head }: Exchange): void {
  if (head?.has(KIND.AUTHORIZATION) !== true) return
  for (let field = 0; field < head.count; field++) {
    if (head.kinds[field] === KIND.AUTHORIZATION) head.kinds[field] = KIND.CREDENTIAL
  }
}

/** The primary, which only explains, has no services. */
function ownOf(plan: CredentialPlan | null, services: BackendSide | null): Own | null {
  if (plan === null || services === null) return null
  if (plan.kind === 'oauth2') return services.tokenFor(plan.key)
  return { line: `Authorization: ${plan.authorization}\r\n`, refused: NOTHING_TO_REFUSE }
}

const SHOWN = { basic: 'a password', oauth2: 'a token' } as const

/** Without any of them. */
function describe({ production, sandbox }: CredentialPlans, tellsCaller: boolean): string {
  const gets = (kind: string, plan: CredentialPlan | null) => {
    return plan === null ? '' : `${kind} endpoints get ${SHOWN[plan.kind]} of the gateway's`
  }
  const told = tellsCaller ? 'back ends learn who calls where [apim.jwt] is enabled' : ''
  return [gets('production', production), gets('sandbox', sandbox), told].filter(text => text !== '').join('; ')
}
