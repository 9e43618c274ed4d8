/** What the key manager of another node says of a token (RFC 7662). */
import type { Introspection } from '../identity/feed.ts'
import { InquiryFailed } from '../identity/identity-state.ts'
import { SharedAnswers } from '../structure/shared-answers.ts'
import type { HttpClient } from './http-client.ts'
import { jsonIn } from './json-answer.ts'

interface IntrospectionTerms {
  /** `apim.key_manager.service_url`. */
  readonly serviceUrl: string
  readonly username: string
  readonly password: string
  /** Whose token it is where the answer does not say it. */
  readonly issuer: string
}

const BYTES_MAX = 64 * 1024
const SCOPES_MAX = 1000

export class Introspector {
  readonly #client: Pick<HttpClient, 'send'>
  readonly #terms: IntrospectionTerms
  readonly #url: string
  /** Of those who ask for the same token at once, one asks. */
  readonly #underWay = new SharedAnswers<Introspection>()

  constructor(client: Pick<HttpClient, 'send'>, terms: IntrospectionTerms) {
    this.#client = client
    this.#terms = terms
    this.#url = introspectionUrl(terms.serviceUrl)
  }

  /** Rejects with InquiryFailed. */
  introspect(token: string): Promise<Introspection> {
    return this.#underWay.ask(token, () => this.#ask(token))
  }

  async #ask(token: string): Promise<Introspection> {
    const { username, password, issuer } = this.#terms
    const answer = await this.#client.send({
      url: this.#url,
      // RFC 7617 2.1.
      authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
      form: new URLSearchParams({ token, token_type_hint: 'access_token' }),
      bytesMax: BYTES_MAX,
    })
    return introspectionIn(jsonIn(answer, 'the key manager'), issuer)
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
