/**
 * Classifies the fields that a proxy has to know. Length and first letter come first: most fields of a request are
 * unknown and cost one comparison.
 */
import type { Head } from './head.ts'

export const KIND = {
  /** Forwarded unchanged. */
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
  /** Other X-Forwarded fields, X-Real-IP, and fields that some backends take for the target. */
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
  /** Hop-by-hop; the gateway writes its own Upgrade (RFC 9110 7.8). */
  UPGRADE: 21,
  ORIGIN: 22,
  /** Forwarded; decides the format of a fault when its value mentions XML. */
  NEGOTIATED: 23,
  /** Forwarded; a fault sequence reads it. */
  CAPTURED: 24,
  /** Forwarded; a response with such a field handles CORS itself. */
  CORS: 25,
  AUTHORIZATION: 26,
  /** Identifies the client to backends, so only the gateway may send it; or a credential that was read. Stripped. */
  CREDENTIAL: 27,
  /** Forwarded; the gateway adds its own entry, and finds requests that come back to it (RFC 9110 7.6.3). */
  VIA: 28,
  /** W3C Trace Context: forwarded, or replaced where requests are traced. */
  TRACE_PARENT: 29,
  TRACE_STATE: 30,
} as const

export type Kind = (typeof KIND)[keyof typeof KIND]

/** Names in lower case; the correlation field is added from the configuration. */
const NAMES: readonly (readonly [string, Kind])[] = [
  ['te', KIND.TE],
  ['via', KIND.VIA],
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
  ['tracestate', KIND.TRACE_STATE],
  ['keep-alive', KIND.KEEP_ALIVE],
  ['user-agent', KIND.USER_AGENT],
  ['traceparent', KIND.TRACE_PARENT],
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
 * Fields in which gateways and TLS proxies tell backends who the client is (Client-Cert: RFC 9440; Envoy, HAProxy,
 * nginx, Apache, IIS, AWS, the reference platform). A backend that reads one must never get it from the client itself
 * (D111).
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

/**
 * Forwarding fields besides X-Forwarded. Their forms with underscores are credentials: CGI, WSGI and PHP map both forms
 * to one variable, so that a backend would take the field of a client for one of the gateway (D22).
 */
const UNDERSCORED = ['x-real-ip', 'x-rewrite-url', 'x-original-url']

/** Request fields that decide the format of a fault: JSON unless one of them mentions XML. */
const NEGOTIATED: readonly (readonly [string, Kind])[] = [
  ['accept', KIND.NEGOTIATED],
  ['content-type', KIND.NEGOTIATED],
  ['soapaction', KIND.CAPTURED],
]
const ALWAYS_READ = ['soapaction']

const FORWARDED = 'x-forwarded-'
const FORWARDED_FIRST = 120
const HYPHEN = 45
const UNDERSCORE = 95

interface Candidate {
  readonly name: string
  readonly kind: Kind
  /** Next name of the same length and first letter. */
  readonly next: Candidate | null
}

/** True if the bytes at `at` are `lower` (ASCII letters, digits and hyphens in lower case), ignoring case. */
export function isName(bytes: Uint8Array, at: number, length: number, lower: string): boolean {
  if (length !== lower.length) return false
  for (let i = 0; i < length; i++) {
    const byte = bytes[at + i]!
    const folded = byte >= 65 && byte <= 90 ? byte | 32 : byte
    if (folded !== lower.charCodeAt(i)) return false
  }
  return true
}

/** Like `isName`, with "_" equal to "-": CGI maps both to one name, so neither form may pass a credential. */
function isFoldedName(bytes: Uint8Array, at: number, length: number, lower: string): boolean {
  if (length !== lower.length) return false
  for (let i = 0; i < length; i++) {
    const byte = bytes[at + i]!
    const folded = byte === UNDERSCORE ? HYPHEN : byte >= 65 && byte <= 90 ? byte | 32 : byte
    if (folded !== lower.charCodeAt(i)) return false
  }
  return true
}

/** First field of a name in lower case, from field `from` on; -1 without one. */
export function fieldNamed(bytes: Uint8Array, head: Head, name: string, from = 0): number {
  for (let field = from; field < head.count; field++) {
    if (isName(bytes, head.nameAt(field), head.nameLength(field), name)) return field
  }
  return -1
}

/** All values of a name in lower case, joined as a list (RFC 9110 5.3); undefined without a field of the name. */
export function listNamed(bytes: Buffer, head: Head, name: string): string | undefined {
  let list: string | undefined
  for (let field = fieldNamed(bytes, head, name); field >= 0; field = fieldNamed(bytes, head, name, field + 1)) {
    const value = head.value(bytes, field)
    list = list === undefined ? value : `${list}, ${value}`
  }
  return list
}

/** Names of this length and longer ones share their cells. */
const LENGTH_MAX = 64
const LETTERS = 32

export class FieldKinds {
  /** Candidates by length and first letter of the name: one load tells that a field is unknown. */
  readonly #candidates: (Candidate | null)[] = new Array((LENGTH_MAX + 1) * LETTERS).fill(null)
  readonly #correlation: string
  #captured: readonly (readonly [string, Kind])[] = []
  /** Stripped names besides CREDENTIALS. */
  #credentials: readonly string[] = []
  /** Changes whenever a name may have got another kind. */
  version = 0
  /** Bit per KIND of which fields are captured. */
  capturedKinds = 0
  /** Names in lower case of which every value is captured. */
  capturedNames: readonly string[] = []

  /** `correlation`: name of the correlation field, any case. */
  constructor(correlation: string) {
    this.#correlation = correlation.toLowerCase()
    this.#rebuild()
  }

  /** Strips further names, in any case, that only the gateway may send to backends; from the next head on. */
  strip(names: readonly string[]): void {
    const known = new Set([...NAMES.map(([name]) => name), this.#correlation])
    const folded = names.map(name => name.toLowerCase().replaceAll('_', '-'))
    this.#credentials = folded.filter(name => !known.has(name) && !CREDENTIALS.includes(name))
    this.#rebuild()
  }

  /**
   * Captures request fields that a fault may need once the head is gone: `names`, in lower case, and the fields that
   * decide its format. Holds for every reader from its next head on.
   */
  capture(names: readonly string[]): void {
    const known = new Map(this.#known())
    const kindOf = (name: string) => known.get(name) ?? familyKind(name, KIND.CAPTURED)
    const captured = names.filter(name => kindOf(name) === KIND.CAPTURED)
    const negotiated = NEGOTIATED.filter(([name]) => !captured.includes(name))
    this.#captured = [...negotiated, ...captured.map(name => [name, KIND.CAPTURED] as const)]
    this.#rebuild()
    this.capturedNames = [...new Set([...ALWAYS_READ, ...names])]
    const kinds: readonly Kind[] = [KIND.NEGOTIATED, KIND.CAPTURED, ...names.map(kindOf)]
    this.capturedKinds = kinds.reduce<number>((bits, kind) => bits | (1 << kind), 0)
  }

  /** Kinds by name; the last one of a name counts. */
  #known(): readonly (readonly [string, Kind])[] {
    const credential = (name: string) => [name, KIND.CREDENTIAL] as const
    const credentials = [...CREDENTIALS, ...this.#credentials].map(credential)
    return [...UNDERSCORED.map(credential), ...NAMES, [this.#correlation, KIND.CORRELATION], ...credentials]
  }

  #rebuild(): void {
    this.version++
    this.#candidates.fill(null)
    // The last entry of a name is found first, so stripping a name wins over capturing it.
    for (const [name, kind] of [...this.#captured, ...this.#known()]) {
      const cell = Math.min(name.length, LENGTH_MAX) * LETTERS + (name.charCodeAt(0) & (LETTERS - 1))
      this.#candidates[cell] = { name, kind, next: this.#candidates[cell]! }
    }
  }

  /** The kind of fields of a name in any case. */
  kindOf(name: string): Kind {
    const lower = name.toLowerCase()
    const cell = Math.min(lower.length, LENGTH_MAX) * LETTERS + (lower.charCodeAt(0) & (LETTERS - 1))
    for (let candidate = this.#candidates[cell]!; candidate !== null; candidate = candidate.next!) {
      const wanted = candidate.kind === KIND.CREDENTIAL ? lower.replaceAll('_', '-') : lower
      if (wanted === candidate.name) return candidate.kind
    }
    return familyKind(lower, KIND.OTHER)
  }

  /** Sets the kinds of all fields and the index of each framing field. Runs once per complete head. */
  classify(bytes: Uint8Array, head: Head): void {
    const { spans, kinds, count } = head
    const candidates = this.#candidates
    for (let field = 0, i = 0; field < count; field++, i += 4) {
      kinds[field] = KIND.OTHER
      const length = spans[i + 1]!
      const first = bytes[spans[i]!]!
      let candidate = candidates[Math.min(length, LENGTH_MAX) * LETTERS + (first & (LETTERS - 1))]!
      for (; candidate !== null; candidate = candidate.next!) {
        const matches = candidate.kind === KIND.CREDENTIAL ? isFoldedName : isName
        if (!matches(bytes, spans[i]!, length, candidate.name)) continue
        note(head, candidate.kind, field)
        break
      }
      // A backend believes any X-Forwarded field (-Port, -Prefix, -Ssl) to come from a proxy.
      if (kinds[field] !== KIND.OTHER || length <= FORWARDED.length || (first | 32) !== FORWARDED_FIRST) continue
      const at = spans[i]!
      if (!isFoldedName(bytes, at, FORWARDED.length, FORWARDED)) continue
      const hasHyphens = isName(bytes, at, FORWARDED.length, FORWARDED)
      note(head, hasHyphens ? KIND.X_FORWARDED_OTHER : KIND.CREDENTIAL, field)
    }
  }
}

/** Kind of a name in lower case that no list has: X-Forwarded fields are known by the start of their name. */
function familyKind(lower: string, other: Kind): Kind {
  if (lower.length <= FORWARDED.length || !lower.replaceAll('_', '-').startsWith(FORWARDED)) return other
  return lower.startsWith(FORWARDED) ? KIND.X_FORWARDED_OTHER : KIND.CREDENTIAL
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
