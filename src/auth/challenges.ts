/** Refusals of authentication with their challenge (RFC 9110 11.6.1): one object per API and code, for floods. */
import { FAULT, type FaultCode } from '../faults/error-codes.ts'
import { type Refusal, refusal } from '../proxy/exchange/outcome.ts'
import type { AccessScheme } from './auth-plan.ts'

const REALM = 'realm="Sluice"'

export class Challenges {
  readonly #schemes: readonly AccessScheme[]
  readonly #refusals = new Map<FaultCode, Refusal>()
  /** Header field that the cached descriptions name. */
  #field = ''

  constructor(schemes: readonly AccessScheme[]) {
    this.#schemes = schemes
  }

  /** `field`: header field of tokens, in lower case. */
  refusal(code: FaultCode, field: string): Refusal {
    if (field !== this.#field) {
      this.#refusals.clear()
      this.#field = field
    }
    let made = this.#refusals.get(code)
    if (made === undefined) {
      const description = code === 900902 ? this.#missingCredentials(field) : undefined
      made = Object.freeze({ ...refusal(code), description, lines: this.#linesFor(code) })
      this.#refusals.set(code, made)
    }
    return made
  }

  /** Text of the reference platform: the header fields that the API accepts. */
  #missingCredentials(field: string): string {
    const name = field.replace(/(?:^|-)[a-z]/g, start => start.toUpperCase())
    const fields = {
      oauth2: `${name}: Bearer ACCESS_TOKEN`,
      basic: `${name}: Basic CREDENTIALS`,
      api_key: 'apikey: API_KEY',
    }
    const headers = this.#schemes.flatMap(scheme => (scheme === 'mutual_tls' ? [] : `'${fields[scheme]}'`))
    const header = headers.length === 0 ? [] : [`a header: ${headers.join(' or ')}`]
    const certificate = this.#schemes.includes('mutual_tls') ? ['a client certificate'] : []
    return `Make sure your request has ${[...header, ...certificate].join(', or ')}`
  }

  #linesFor(code: FaultCode): string {
    const { status, description } = FAULT[code]
    if (status === 403) return code === 900910 ? this.#challengeLine('insufficient_scope', description) : ''
    if (status !== 401) return ''
    return this.#challengeLine(code === 900902 ? '' : 'invalid_token', description)
  }

  /** RFC 6750 3: no error for missing credentials; a quoted description contains neither `"` nor `\`. */
  #challengeLine(error: string, description: string): string {
    const why = error === '' ? '' : `, error="${error}", error_description="${description.replaceAll(/["\\]/g, "'")}"`
    const challenges = this.#schemes.map(scheme => {
      if (scheme === 'oauth2') return `Bearer ${REALM}${why}`
      if (scheme === 'basic') return `Basic ${REALM}, charset="UTF-8"`
      return scheme === 'api_key' ? `ApiKey ${REALM}` : `ClientCertificate ${REALM}`
    })
    const hasRegistered = this.#schemes.includes('oauth2') || this.#schemes.includes('basic')
    // ApiKey and ClientCertificate are not registered schemes: they are offered only where there is no other.
    const offered = hasRegistered ? challenges.filter(text => /^(?:Bearer|Basic)/.test(text)) : challenges
    return `WWW-Authenticate: ${offered.join(', ')}\r\n`
  }
}
