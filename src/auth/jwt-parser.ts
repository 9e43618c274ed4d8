/**
 * Parses a JSON Web Token (RFC 7519, compact JWS of RFC 7515) into its parts; nothing here verifies the signature.
 * A token has exactly one spelling: what lenient parsers accept is refused. Otherwise a client could respell a token
 * that was revoked, counted or refused.
 */
import { isString, type JsonObject, parseStrictJson } from './strict-json.ts'

/** Longest token that is validated, in bytes. */
export const TOKEN_BYTES_MAX = 8192

/** The claims of RFC 7519 4.1 have checked types; all others are unknown. */
export interface JwtClaims extends JsonObject {
  readonly iss?: string
  readonly sub?: string
  readonly jti?: string
  readonly aud?: string | readonly string[]
  readonly exp?: number
  readonly nbf?: number
  readonly cnf?: unknown
}

export interface ParsedJwt {
  readonly claims: JwtClaims
  readonly algorithm: string
  /** undefined: the header names no key. */
  readonly kid: string | undefined
  /** Media type without `application/`, in lower case; '' where the header has no typ. */
  readonly type: string
  /** Bytes of header and payload that the signature covers. */
  readonly signedPart: Buffer
  readonly signature: Buffer
}

/**
 * True for a token that begins with base64url of `{` and contains a dot; all other tokens are opaque. A damaged JWT
 * is therefore refused here and never introspected.
 */
export function isJose(text: string): boolean {
  return /^e[w-z0-9_-]/.test(text) && text.includes('.')
}

/** The parts, or the reason why the text is refused. */
export function parseJwt(text: string): ParsedJwt | string {
  if (text.length > TOKEN_BYTES_MAX) return `longer than ${TOKEN_BYTES_MAX} bytes`
  const parts = text.split('.', 4)
  if (parts.length !== 3) return 'not three parts'
  const [head, payload, signature] = parts.map(canonicalBytes)
  if (head === undefined || payload === undefined || signature === undefined) return 'not canonical base64url'
  const header = parseStrictJson(head)
  if (typeof header === 'string') return `header: ${header}`
  const claims = parseStrictJson(payload)
  if (typeof claims === 'string') return `claims: ${claims}`
  const wrong = headerError(header) ?? claimsError(claims)
  if (wrong !== undefined) return wrong
  const signedPart = Buffer.from(text.slice(0, text.lastIndexOf('.')), 'latin1')
  const { alg, kid, typ = '' } = header as { alg: string; kid?: string; typ?: string }
  return { claims, algorithm: alg, kid, type: mediaType(typ), signedPart, signature }
}

/** undefined where another text has the same bytes: padding, white space, spare bits, the base64 alphabet. */
function canonicalBytes(part: string): Buffer | undefined {
  const bytes = Buffer.from(part, 'base64url')
  return bytes.toString('base64url') === part ? bytes : undefined
}

/** Access tokens (RFC 9068 2.1), and types that only mean "JWT". */
const TYPES = ['', 'jwt', 'at+jwt']

/**
 * `jku`, `x5u` and `x5c` are ignored, because some issuers write them into every token: keys come from the configured
 * key set of the issuer alone. An embedded `jwk` has no such use and is refused.
 */
function headerError({ alg, kid, typ, crit, b64, jwk }: JsonObject): string | undefined {
  if (typeof alg !== 'string' || alg.toLowerCase() === 'none') return 'unsigned, or alg is missing'
  if (kid !== undefined && (typeof kid !== 'string' || kid === '')) return 'kid is not a string, or empty'
  if (typ !== undefined && (typeof typ !== 'string' || !TYPES.includes(mediaType(typ)))) {
    return 'typ is neither JWT nor at+jwt'
  }
  // RFC 7515 4.1.11: extensions named by crit must be understood, and none is supported.
  if (crit !== undefined || b64 !== undefined) return 'crit and b64 are not supported'
  return jwk === undefined ? undefined : 'it embeds a jwk'
}

/** RFC 7515 4.1.9: `application/` may be left out. */
function mediaType(typ: string): string {
  return typ.toLowerCase().replace(/^application\//, '')
}

const STRINGS = ['iss', 'sub', 'jti']
const DATES = ['exp', 'nbf', 'iat']

function claimsError(claims: JsonObject): string | undefined {
  const name = STRINGS.find(name => claims[name] !== undefined && typeof claims[name] !== 'string')
  if (name !== undefined) return `${name} is not a string`
  const date = DATES.find(name => claims[name] !== undefined && !Number.isFinite(claims[name]))
  if (date !== undefined) return `${date} is not a number of seconds`
  const { aud } = claims
  const isAudience = aud === undefined || typeof aud === 'string' || (Array.isArray(aud) && aud.every(isString))
  return isAudience ? undefined : 'aud is neither a string nor a list of strings'
}
