/** Introspects opaque tokens at the key manager of another node (RFC 7662). */
import { basicAuthorization } from '../../auth/basic-credentials.ts'
import { ControlCallFailed, type IntrospectionResult } from '../../auth/control-protocol.ts'
import type { EventLog } from '../../observe/events.ts'
import { type HttpClient, jsonBody, type RemoteResponse } from './http-client.ts'

interface IntrospectionSettings {
  /** `apim.key_manager.service_url`. */
  readonly serviceUrl: string
  readonly username: string
  readonly password: string
  /** Issuer of tokens whose response has no `iss`. */
  readonly issuer: string
}

interface IntrospectionContext {
  readonly client: Pick<HttpClient, 'send'>
  readonly report: EventLog['report']
  /** Monotonic clock, milliseconds. */
  readonly nowMs: () => number
}

const BYTES_MAX = 64 * 1024
/** Milliseconds without a further attempt after a 401: every attempt counts towards the lockout of the account. */
const PAUSE_MS = 30_000
const REFUSED = 'the key manager rejects apim.key_manager.username and apim.key_manager.password (401)'
const SCOPES_MAX = 1000

export class IntrospectionClient {
  readonly #context: IntrospectionContext
  readonly #settings: IntrospectionSettings
  readonly #url: string
  /**
   * True if the last response accepted the credentials. Until one has, only one request is in flight: many would be as
   * many failed logins.
   */
  #isAuthenticated = false
  #firstRequest: Promise<RemoteResponse> | null = null
  #pausedUntilMs = -Infinity

  constructor(settings: IntrospectionSettings, context: IntrospectionContext) {
    this.#settings = settings
    this.#context = context
    this.#url = introspectionUrl(settings.serviceUrl)
  }

  /** Resolves with null for an inactive token. Rejects with ControlCallFailed. */
  async introspect(token: string): Promise<IntrospectionResult> {
    while (!this.#isAuthenticated && this.#firstRequest !== null) await this.#firstRequest
    if (this.#context.nowMs() < this.#pausedUntilMs) throw new ControlCallFailed(REFUSED)
    const response = await (this.#isAuthenticated ? this.#send(token) : this.#sendFirst(token))
    if (response.status === 401) throw new ControlCallFailed(REFUSED)
    return introspectionOf(jsonBody(response, 'the key manager'), this.#settings.issuer)
  }

  async #sendFirst(token: string): Promise<RemoteResponse> {
    this.#firstRequest = this.#send(token)
    try {
      return await this.#firstRequest
    } finally {
      this.#firstRequest = null
    }
  }

  async #send(token: string): Promise<RemoteResponse> {
    const { client, report, nowMs } = this.#context
    const { username, password } = this.#settings
    const response = await client.send({
      url: this.#url,
      authorization: basicAuthorization(username, password),
      form: new URLSearchParams({ token, token_type_hint: 'access_token' }),
      bytesMax: BYTES_MAX,
    })
    // RFC 7662 2.3: a 401 concerns the credentials of the gateway, not the token.
    this.#isAuthenticated = response.status !== 401
    if (!this.#isAuthenticated && nowMs() >= this.#pausedUntilMs) {
      this.#pausedUntilMs = nowMs() + PAUSE_MS
      const cause = `${REFUSED}; next attempt in ${PAUSE_MS / 1000} s`
      report('error', 'token introspection failed', { CAUSE_OF_ERROR: cause })
    }
    return response
  }
}

/** `https://host:9443/services/` becomes `https://host:9443/oauth2/introspect`. */
function introspectionUrl(serviceUrl: string): string {
  return URL.parse('../oauth2/introspect', serviceUrl.replace(/\/?$/, '/'))?.href ?? ''
}

/**
 * Reads an introspection response (RFC 7662 2.2). `aut` is the reference platform's member: APPLICATION or
 * APPLICATION_USER.
 */
function introspectionOf(members: Readonly<Record<string, unknown>>, ownIssuer: string): IntrospectionResult {
  const { active, iss, client_id, username, sub, scope, exp, nbf, aut, ...claims } = members
  if (typeof active !== 'boolean')
    throw new ControlCallFailed('the key manager does not say whether the token is active')
  if (!active) return null
  const text = (name: string, value: unknown): string => {
    if (value !== undefined && typeof value !== 'string')
      throw new ControlCallFailed(`the key manager: ${name} is not a string`)
    return value ?? ''
  }
  const seconds = (name: string, value: unknown): number => {
    const isNumber = value === undefined || (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0)
    if (!isNumber) throw new ControlCallFailed(`the key manager: ${name} is not a number of seconds`)
    return (value as number | undefined) ?? 0
  }
  const consumerKey = text('client_id', client_id)
  const user = text('username', username) || text('sub', sub)
  const scopes = text('scope', scope).split(' ').filter(Boolean)
  if (scopes.length > SCOPES_MAX) throw new ControlCallFailed(`the key manager names more than ${SCOPES_MAX} scopes`)
  const hasNoUser = user === '' || user === consumerKey
  return {
    issuer: text('iss', iss) || ownIssuer,
    consumerKey,
    user,
    isApplication: aut === undefined ? hasNoUser : text('aut', aut).toUpperCase() === 'APPLICATION',
    scopes,
    notBeforeMs: seconds('nbf', nbf) * 1000,
    expiresMs: seconds('exp', exp) * 1000,
    claims: { ...claims, ...(sub === undefined ? {} : { sub }) },
  }
}
