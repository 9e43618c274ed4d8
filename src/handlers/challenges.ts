/**
 * What a client is told that is not let in: the fault of the code, and for a 401 how it may identify itself (RFC 9110
 * 11.6.1). Made once for each code of an API, because floods of them come.
 */
import { FAULT, type FaultCode } from '../errors/catalogue.ts'
import { type Refusal, refusal } from '../exchange/outcome.ts'
import type { AccessScheme } from '../identity/identity-plan.ts'

const REALM = 'realm="Sluice"'

export class Challenges {
  readonly #schemes: readonly AccessScheme[]
  readonly #refusals = new Map<FaultCode, Refusal>()
  /** Name of the field that the descriptions speak of. */
  #field = ''

  constructor(schemes: readonly AccessScheme[]) {
    this.#schemes = schemes
  }

  /** `field`: the one that carries credentials, in lower case. */
  refusal(code: FaultCode, field: string): Refusal {
    if (field !== this.#field) {
      this.#refusals.clear()
      this.#field = field
    }
    let made = this.#refusals.get(code)
    if (made === undefined) {
      const description = code === 900902 ? this.#missing(field) : undefined
      made = Object.freeze({ ...refusal(code), description, lines: this.#linesFor(code) })
      this.#refusals.set(code, made)
    }
    return made
  }

  /** Which field to send, as the reference platform says it; none where a certificate alone is asked for. */
  #missing(field: string): string {
    const name = field.replace(/(?:^|-)[a-z]/g, start => start.toUpperCase())
    const fields = {
      oauth2: `${name}: Bearer ACCESS_TOKEN`,
      basic: `${name}: Basic CREDENTIALS`,
      api_key: 'apikey: API_KEY',
    }
    const ways = this.#schemes.flatMap(scheme => (scheme === 'mutual_tls' ? [] : `'${fields[scheme]}'`))
    const header = ways.length === 0 ? [] : [`a header: ${ways.join(' or ')}`]
    const certificate = this.#schemes.includes('mutual_tls') ? ['a client certificate'] : []
    return `Make sure your request has ${[...header, ...certificate].join(', or ')}`
  }

  #linesFor(code: FaultCode): string {
    const { status, description } = FAULT[code]
    if (status === 403) return code === 900910 ? this.#challengeLine('insufficient_scope', description) : ''
    if (status !== 401) return ''
    return this.#challengeLine(code === 900902 ? '' : 'invalid_token', description)
  }

  /** RFC 6750 3: no error where there were no credentials; a quoted description has neither `"` nor `\`. */
  #challengeLine(error: string, description: string): string {
    const why = error === '' ? '' : `, error="${error}", error_description="${description.replaceAll(/["\\]/g, "'")}"`
    const challenges = this.#schemes.map(scheme => {
      if (scheme === 'oauth2') return `Bearer ${REALM}${why}`
      if (scheme === 'basic') return `Basic ${REALM}, charset="UTF-8"`
      return scheme === 'api_key' ? `ApiKey ${REALM}` : `ClientCertificate ${REALM}`
    })
    const offered = this.#schemes.includes('oauth2') || this.#schemes.includes('basic')
    // Names that nobody has registered are said only where there is no other.
    const said = offered ? challenges.filter(text => /^(?:Bearer|Basic)/.test(text)) : challenges
    return `WWW-Authenticate: ${said.join(', ')}\r\n`
  }
}
