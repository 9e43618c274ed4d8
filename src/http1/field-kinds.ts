/**
 * The fields that a proxy has to know, told apart by length first: most fields of a request are none of them, and
 * leave after one comparison.
 */
import type { Head } from './head.ts'

export const KIND = {
  /** Passes unchanged. */
  OTHER: 0,
  HOST: 1,
  CONTENT_LENGTH: 2,
  TRANSFER_ENCODING: 3,
  CONNECTION: 4,
  /** Consumed by this hop (RFC 9110 7.6.1): Proxy-Connection, Proxy-Authenticate, … */
  HOP_BY_HOP: 5,
  EXPECT: 6,
  TRAILER: 7,
  SERVER: 8,
  DATE: 9,
  USER_AGENT: 10,
  X_FORWARDED_FOR: 11,
  /** X-Forwarded-Port and whatever else begins like it, X-Real-IP, and what some backends take for the target. */
  X_FORWARDED_OTHER: 12,
  FORWARDED: 13,
  CORRELATION: 14,
  /** Named by a Connection field of this message. */
  NOMINATED: 15,
  KEEP_ALIVE: 16,
  REFERER: 17,
  TE: 18,
  X_FORWARDED_PROTO: 19,
  X_FORWARDED_HOST: 20,
  /** Ends here as well; what may be asked for is said anew (RFC 9110 7.8). */
  UPGRADE: 21,
  ORIGIN: 22,
  /** Passes; decides about the format of a fault where it speaks of XML. */
  NEGOTIATED: 23,
  /** Passes; a fault sequence reads it. */
  KEPT: 24,
  /** Passes; a response that has one speaks of CORS itself. */
  CORS: 25,
  AUTHORIZATION: 26,
  /** Says who the client is, in words that only this gateway may use towards backends; or was read, and ends here. */
  CREDENTIAL: 27,
} as const

export type Kind = (typeof KIND)[keyof typeof KIND]

/** Names in lower case; `correlation` is added from the configuration. */
const NAMES: readonly (readonly [string, Kind])[] = [
  ['te', KIND.TE],
  ['host', KIND.HOST],
  ['date', KIND.DATE],
  ['server', KIND.SERVER],
  ['expect', KIND.EXPECT],
  ['origin', KIND.ORIGIN],
  ['referer', KIND.REFERER],
  ['trailer', KIND.TRAILER],
  ['upgrade', KIND.UPGRADE],
  ['authorization', KIND.AUTHORIZATION],
  ['forwarded', KIND.FORWARDED],
  ['x-real-ip', KIND.X_FORWARDED_OTHER],
  ['connection', KIND.CONNECTION],
  ['keep-alive', KIND.KEEP_ALIVE],
  ['user-agent', KIND.USER_AGENT],
  ['x-rewrite-url', KIND.X_FORWARDED_OTHER],
  ['x-original-url', KIND.X_FORWARDED_OTHER],
  ['content-length', KIND.CONTENT_LENGTH],
  ['http2-settings', KIND.HOP_BY_HOP],
  ['x-forwarded-for', KIND.X_FORWARDED_FOR],
  ['x-forwarded-host', KIND.X_FORWARDED_HOST],
  ['proxy-connection', KIND.HOP_BY_HOP],
  ['transfer-encoding', KIND.TRANSFER_ENCODING],
  ['x-forwarded-proto', KIND.X_FORWARDED_PROTO],
  ['proxy-authenticate', KIND.HOP_BY_HOP],
  ['proxy-authorization', KIND.HOP_BY_HOP],
  ['access-control-allow-origin', KIND.CORS],
  ['access-control-allow-methods', KIND.CORS],
  ['access-control-allow-headers', KIND.CORS],
  ['access-control-allow-credentials', KIND.CORS],
]

/**
 * What only this gateway may say to backends of who the client is, and what proxies in front of others say of a
 * client's certificate (Client-Cert: RFC 9440; Envoy, HAProxy, nginx, Apache, IIS, AWS, and the reference platform): a
 * backend that reads any of them must not believe the client itself.
 */
const CREDENTIALS: readonly string[] = [
  'x-jwt-assertion',
  'client-cert',
  'client-cert-chain',
  'x-client-cert',
  'x-client-cert-chain',
  'x-client-certificate',
  'x-wso2-client-certificate',
  'x-forwarded-client-cert',
  'x-forwarded-tls-client-cert',
  'x-forwarded-tls-client-cert-info',
  'x-ssl-cert',
  'x-ssl-certificate',
  'x-ssl-client-cert',
  'x-ssl-client-certificate',
  'x-ssl-client-verify',
  'x-ssl-client-dn',
  'x-ssl-client-cn',
  'x-ssl-client-s-dn',
  'x-ssl-client-sha1',
  'x-ssl-issuer',
  'ssl-cert',
  'ssl-client-cert',
  'ssl-client-verify',
  'ssl-client-subject-dn',
  'ssl-client-s-dn',
  'x-arr-clientcert',
  'x-amzn-mtls-clientcert',
  'x-amzn-mtls-clientcert-leaf',
  'x-amzn-mtls-clientcert-subject',
]

/** What a fault is worded after. Whoever says nothing of XML gets JSON, and nothing has to be known of the rest. */
const NEGOTIATED: readonly (readonly [string, Kind])[] = [
  ['accept', KIND.NEGOTIATED],
  ['content-type', KIND.NEGOTIATED],
  ['soapaction', KIND.KEPT],
]
const ALWAYS_READ = ['soapaction']

const FORWARDED = 'x-forwarded-'
const FORWARDED_FIRST = 120
const HYPHEN = 45
const UNDERSCORE = 95

interface Candidate {
  readonly name: string
  readonly kind: Kind
  /** Another name of the same length and first letter. */
  readonly next: Candidate | null
}

/** Whether the bytes at `at` are `lower`, which is ASCII letters, digits and hyphens in lower case. */
export function isName(bytes: Uint8Array, at: number, length: number, lower: string): boolean {
  if (length !== lower.length) return false
  for (let i = 0; i < length; i++) {
    const byte = bytes[at + i]!
    const folded = byte >= 65 && byte <= 90 ? byte | 32 : byte
    if (folded !== lower.charCodeAt(i)) return false
  }
  return true
}

/** The same where backends read "_" as "-", as CGI makes one of the other: nobody slips a credential past them so. */
function isCredentialName(bytes: Uint8Array, at: number, length: number, lower: string): boolean {
  if (length !== lower.length) return false
  for (let i = 0; i < length; i++) {
    const byte = bytes[at + i]!
    const folded = byte === UNDERSCORE ? HYPHEN : byte >= 65 && byte <= 90 ? byte | 32 : byte
    if (folded !== lower.charCodeAt(i)) return false
  }
  return true
}

/** The first field of a name, in lower case, from the field `from` on; -1 where there is none. */
export function fieldNamed(bytes: Uint8Array, head: Head, name: string, from = 0): number {
  for (let field = from; field < head.count; field++) {
    if (isName(bytes, head.nameAt(field), head.nameLength(field), name)) return field
  }
  return -1
}

/** Names of this length and beyond share their cells. */
const LENGTH_MAX = 64
const LETTERS = 32

export class FieldKinds {
  /** By length and first letter of the name: one load tells that a field is none of these. */
  readonly #candidates: (Candidate | null)[] = new Array((LENGTH_MAX + 1) * LETTERS).fill(null)
  readonly #correlation: string
  #added: readonly (readonly [string, Kind])[] = []
  /** Beside those that are always of that kind. */
  #credentials: readonly string[] = []
  /** Bit per KIND that something is kept of. */
  keptKinds = 0
  /** Names in lower case of which every value is kept. */
  keptNames: readonly string[] = []

  /** `correlation`: name of the correlation field, any case. */
  constructor(correlation: string) {
    this.#correlation = correlation.toLowerCase()
    this.#rebuild()
  }

  /** Further names, in any case, that only this gateway may use towards backends: of the next head on. */
  withhold(names: readonly string[]): void {
    const known = new Set([...NAMES.map(([name]) => name), this.#correlation])
    const folded = names.map(name => name.toLowerCase().replaceAll('_', '-'))
    this.#credentials = folded.filter(name => !known.has(name) && !CREDENTIALS.includes(name))
    this.#rebuild()
  }

  /**
   * Of requests, what fault sequences may ask for when the head is gone: `names`, in lower case, and what decides about
   * their format. Every reader has it from its next head on.
   */
  keep(names: readonly string[]): void {
    const known = new Map(this.#known())
    const kindOf = (name: string) =>
      known.get(name) ?? (name.startsWith(FORWARDED) ? KIND.X_FORWARDED_OTHER : KIND.KEPT)
    const added = names.filter(name => kindOf(name) === KIND.KEPT)
    const negotiated = NEGOTIATED.filter(([name]) => !added.includes(name))
    this.#added = [...negotiated, ...added.map(name => [name, KIND.KEPT] as const)]
    this.#rebuild()
    this.keptNames = [...new Set([...ALWAYS_READ, ...names])]
    const kinds: readonly Kind[] = [KIND.NEGOTIATED, KIND.KEPT, ...names.map(kindOf)]
    this.keptKinds = kinds.reduce<number>((bits, kind) => bits | (1 << kind), 0)
  }

  #known(): readonly (readonly [string, Kind])[] {
    const credentials = [...CREDENTIALS, ...this.#credentials].map(name => [name, KIND.CREDENTIAL] as const)
    return [...NAMES, [this.#correlation, KIND.CORRELATION], ...credentials]
  }

  #rebuild(): void {
    this.#candidates.fill(null)
    // Of one name the last that is put there is found first: what is withheld goes before what is merely read.
    for (const [name, kind] of [...this.#added, ...this.#known()]) {
      const cell = Math.min(name.length, LENGTH_MAX) * LETTERS + (name.charCodeAt(0) & (LETTERS - 1))
      this.#candidates[cell] = { name, kind, next: this.#candidates[cell]! }
    }
  }

  /** Fills `kinds` and the index of each framing field. Run once per complete head. */
  classify(bytes: Uint8Array, head: Head): void {
    const { spans, kinds, count } = head
    const candidates = this.#candidates
    for (let field = 0, i = 0; field < count; field++, i += 4) {
      kinds[field] = KIND.OTHER
      const length = spans[i + 1]!
      const first = bytes[spans[i]!]!
      let candidate = candidates[Math.min(length, LENGTH_MAX) * LETTERS + (first & (LETTERS - 1))]!
      for (; candidate !== null; candidate = candidate.next!) {
        const matches = candidate.kind === KIND.CREDENTIAL ? isCredentialName : isName
        if (!matches(bytes, spans[i]!, length, candidate.name)) continue
        note(head, candidate.kind, field)
        break
      }
      // Whatever else a proxy may say in that manner (-Port, -Prefix, -Ssl): a client must not say it in its stead.
      if (kinds[field] === KIND.OTHER && length > FORWARDED.length && (first | 32) === FORWARDED_FIRST) {
        if (isName(bytes, spans[i]!, FORWARDED.length, FORWARDED)) note(head, KIND.X_FORWARDED_OTHER, field)
      }
    }
  }
}

function note(head: Head, kind: Kind, field: number): void {
  head.kinds[field] = kind
  const bit = 1 << kind
  if ((head.present & bit) !== 0) {
    head.repeated |= bit
    return
  }
  head.present |= bit
  if (kind === KIND.HOST) head.host = field
  else if (kind === KIND.CONTENT_LENGTH) head.contentLength = field
  else if (kind === KIND.TRANSFER_ENCODING) head.transferEncoding = field
  else if (kind === KIND.CONNECTION) head.connection = field
}
