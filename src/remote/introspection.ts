/** What the key manager of another node says of a token (RFC 7662). */
import type { Introspection } from '../identity/feed.ts'
import { InquiryFailed } from '../identity/identity-state.ts'
import type { EventLog } from '../observe/events.ts'
import type { HttpClient, RemoteAnswer } from './http-client.ts'
import { jsonIn } from './json-answer.ts'

interface IntrospectionTerms {
  /** `apim.key_manager.service_url`. */
  readonly serviceUrl: string
  readonly username: string
  readonly password: string
  /** Whose token it is where the answer does not say it. */
  readonly issuer: string
}

interface IntrospectorSurroundings {
  readonly client: Pick<HttpClient, 'send'>
  readonly report: EventLog['report']
  /** Of any clock that only goes forward. */
  readonly nowMs: () => number
}

const BYTES_MAX = 64 * 1024
/** For so long credentials that were refused are not tried again: each try counts, and would lock the account. */
const HELD_MS = 30_000
const REFUSED = 'the key manager refuses apim.key_manager.username and apim.key_manager.password (401)'
const SCOPES_MAX = 1000

export class Introspector {
  readonly #around: IntrospectorSurroundings
  readonly #terms: IntrospectionTerms
  readonly #url: string
  /** By the answer before. Until there is one, one asks for all: many would be as many wrong log-ins. */
  #isLetIn = false
  #first: Promise<RemoteAnswer> | null = null
  #heldUntilMs = -Infinity

  constructor(terms: IntrospectionTerms, around: IntrospectorSurroundings) {
    this.#terms = terms
    this.#around = around
    this.#url = introspectionUrl(terms.serviceUrl)
  }

  /** Rejects with InquiryFailed. */
  async introspect(token: string): Promise<Introspection> {
    while (!this.#isLetIn && this.#first !== null) await this.#first
    if (this.#around.nowMs() < this.#heldUntilMs) throw new InquiryFailed(REFUSED)
    const answer = await (this.#isLetIn ? this.#send(token) : this.#sendFirst(token))
    if (answer.status === 401) throw new InquiryFailed(REFUSED)
    return introspectionIn(jsonIn(answer, 'the key manager'), this.#terms.issuer)
  }

  async #sendFirst(token: string): Promise<RemoteAnswer> {
    this.#first = this.#send(token)
    try {
      return await this.#first
    } finally {
      this.#first = null
    }
  }

  async #send(token: string): Promise<RemoteAnswer> {
    const { client, report, nowMs } = this.#around
    const { username, password } = this.#terms
    const answer = await client.send({
      url: this.#url,
      // RFC 7617 2.1.
      authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
      form: new URLSearchParams({ token, token_type_hint: 'access_token' }),
      bytesMax: BYTES_MAX,
    })
    // RFC 7662 2.3: of whoever asks, and not of the token.
    this.#isLetIn = answer.status !== 401
    if (!this.#isLetIn && nowMs() >= this.#heldUntilMs) {
      this.#heldUntilMs = nowMs() + HELD_MS
      const cause = `${REFUSED}; it is asked again after ${HELD_MS / 1000} s`
      report('error', 'tokens cannot be introspected', { CAUSE_OF_ERROR: cause })
    }
    return answer
  }
}

/** `https://host:9443/services/` stands beside `https://host:9443/oauth2/introspect`. */
function introspectionUrl(serviceUrl: string): string {
  return URL.parse('../oauth2/introspect', serviceUrl.replace(/\/?$/, '/'))?.href ?? ''
}

/** RFC 7662 2.2; `aut` says on the reference platform whom a token was given to. */
function introspectionIn(members: Readonly<Record<string, unknown>>, ownIssuer: string): Introspection {
  const { active, iss, client_id, username, sub, scope, exp, nbf, aut, ...claims } = members
  if (typeof active !== 'boolean') throw new InquiryFailed('the key manager does not say whether the token is active')
  if (!active) return null
  const text = (name: string, value: unknown): string => {
    if (value !== undefined && typeof value !== 'string') throw new InquiryFailed(`the key manager: ${name} is no text`)
    return value ?? ''
  }
  const seconds = (name: string, value: unknown): number => {
    const isNumber = value === undefined || (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0)
    if (!isNumber) throw new InquiryFailed(`the key manager: ${name} is no number of seconds`)
    return (value as number | undefined) ?? 0
  }
  const consumerKey = text('client_id', client_id)
  const user = text('username', username) || text('sub', sub)
  const scopes = text('scope', scope).split(' ').filter(Boolean)
  if (scopes.length > SCOPES_MAX) throw new InquiryFailed(`the key manager names more than ${SCOPES_MAX} scopes`)
  if (seconds('nbf', nbf) * 1000 > Date.now()) return null
  const isNobody = user === '' || user === consumerKey
  return {
    issuer: text('iss', iss) || ownIssuer,
    consumerKey,
    user,
    isApplication: aut === undefined ? isNobody : text('aut', aut).toUpperCase() === 'APPLICATION',
    scopes,
    expiresMs: seconds('exp', exp) * 1000,
    claims: { ...claims, ...(sub === undefined ? {} : { sub }) },
  }
}
