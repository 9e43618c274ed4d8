/**
 * From the text of a JSON Web Token (RFC 7519, compact JWS of RFC 7515) to its parts, and no step further: nothing here
 * says that it is genuine. One token has one text: whatever other parsers read leniently is refused, so that nobody can
 * word a token anew that was revoked, counted or refused before.
 */
import { isText, type JsonObject, strictObject } from '../structure/strict-json.ts'

/** Longest credentials that are looked at, in bytes. */
export const TOKEN_BYTES_MAX = 8192

/** Those of RFC 7519 4.1 have their types; every other one may be anything. */
export interface JwtClaims extends JsonObject {
  readonly iss?: string
  readonly sub?: string
  readonly jti?: string
  readonly aud?: string | readonly string[]
  readonly exp?: number
  readonly nbf?: number
  readonly cnf?: unknown
}

export interface StrictJwt {
  readonly claims: JwtClaims
  readonly algorithm: string
  /** undefined: not said. */
  readonly kid: string | undefined
  /** Media type without `application/`, in lower case; '' where it is not said. */
  readonly type: string
  /** Header and payload as they stand, what the signature is of. */
  readonly signedPart: Buffer
  readonly signature: Buffer
}

/**
 * Whether a token means to be one of JOSE: the first byte behind base64url is `{`, and there is a dot. Only others are
 * opaque. So a token that is spoiled on its way is refused here, and costs nobody an inquiry.
 */
export function isJose(text: string): boolean {
  return /^e[w-z0-9_-]/.test(text) && text.includes('.')
}

/** The parts, or what is wrong with it. */
export function readJwt(text: string): StrictJwt | string {
  if (text.length > TOKEN_BYTES_MAX) return `longer than ${TOKEN_BYTES_MAX} bytes`
  const parts = text.split('.', 4)
  if (parts.length !== 3) return 'not three parts'
  const [head, payload, signature] = parts.map(canonicalBytes)
  if (head === undefined || payload === undefined || signature === undefined) return 'not canonical base64url'
  const header = strictObject(head)
  if (typeof header === 'string') return `header: ${header}`
  const claims = strictObject(payload)
  if (typeof claims === 'string') return `claims: ${claims}`
  const wrong = headerFault(header) ?? claimsFault(claims)
  if (wrong !== undefined) return wrong
  const signedPart = Buffer.from(text.slice(0, text.lastIndexOf('.')), 'latin1')
  const { alg, kid, typ = '' } = header as { alg: string; kid?: string; typ?: string }
  return { claims, algorithm: alg, kid, type: mediaType(typ), signedPart, signature }
}

/** undefined where another text would be the same bytes: padding, white space, spare bits, the other alphabet. */
function canonicalBytes(part: string): Buffer | undefined {
  const bytes = Buffer.from(part, 'base64url')
  return bytes.toString('base64url') === part ? bytes : undefined
}

/** Access tokens (RFC 9068 2.1), and what says no more than that it is a JWT. */
const TYPES = ['', 'jwt', 'at+jwt']

/**
 * `jku`, `x5u` and `x5c` are ignored, because some issuers write them into every token: keys come from the key set that
 * the issuer was configured with, and from nowhere else. An embedded `jwk` has no such use.
 */
function headerFault({ alg, kid, typ, crit, b64, jwk }: JsonObject): string | undefined {
  if (typeof alg !== 'string' || alg.toLowerCase() === 'none') return 'unsigned, or alg is missing'
  if (kid !== undefined && (typeof kid !== 'string' || kid === '')) return 'kid is not a text'
  if (typ !== undefined && (typeof typ !== 'string' || !TYPES.includes(mediaType(typ)))) return 'typ of something else'
  // RFC 7515 4.1.11: an extension that must be understood, and none is.
  if (crit !== undefined || b64 !== undefined) return 'extensions are not understood'
  return jwk === undefined ? undefined : 'it brings a key of its own along'
}

/** RFC 7515 4.1.9: `application/` may be left out. */
function mediaType(typ: string): string {
  return typ.toLowerCase().replace(/^application\//, '')
}

const TEXTS = ['iss', 'sub', 'jti']
const DATES = ['exp', 'nbf', 'iat']

function claimsFault(claims: JsonObject): string | undefined {
  const text = TEXTS.find(name => claims[name] !== undefined && typeof claims[name] !== 'string')
  if (text !== undefined) return `${text} is not a text`
  const date = DATES.find(name => claims[name] !== undefined && !Number.isFinite(claims[name]))
  if (date !== undefined) return `${date} is not a number of seconds`
  const { aud } = claims
  const isAudience = aud === undefined || typeof aud === 'string' || (Array.isArray(aud) && aud.every(isText))
  return isAudience ? undefined : 'aud is neither a text nor a list of texts'
}
