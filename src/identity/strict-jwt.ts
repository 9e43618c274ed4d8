/**
 * From the text of a JSON Web Token (RFC 7519, compact JWS of RFC 7515) to its parts, and no step further: nothing here
 * says that it is genuine. One token has one text: whatever other parsers read leniently is refused, so that nobody can
 * word a token anew that was revoked, counted or refused before.
 */
import { isUtf8 } from 'node:buffer'

/** Longest credentials that are looked at, in bytes. */
export const TOKEN_BYTES_MAX = 8192
/** Objects and lists within each other. */
const DEPTH_MAX = 16

export type JsonObject = Readonly<Record<string, unknown>>

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

/** An object of JSON, or what is wrong with it. */
export function strictObject(bytes: Buffer): JsonObject | string {
  if (!isUtf8(bytes)) return 'not UTF-8'
  const text = bytes.toString('utf8')
  try {
    const value = JSON.parse(text) as unknown
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'not an object'
    return ambiguity(text) ?? (value as JsonObject)
  } catch {
    return 'not JSON'
  }
}

const CODE = { QUOTE: 34, COMMA: 44, COLON: 58, LEFT_BRACKET: 91, BACKSLASH: 92, RIGHT_BRACKET: 93 } as const
const BRACE = { LEFT: 123, RIGHT: 125 } as const

/** What parsers disagree about, in a text that is JSON: members twice (RFC 8259 4), prototypes, depth. */
function ambiguity(text: string): string | undefined {
  /** Member names of the objects that are open; null for a list. */
  const open: (Set<string> | null)[] = []
  let isName = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === CODE.QUOTE) {
      const end = endOfText(text, i)
      const name = isName ? (JSON.parse(text.slice(i, end + 1)) as string) : ''
      if (isName && (open.at(-1)!.has(name) || name === '__proto__'))
        return 'a member that is there twice, or __proto__'
      if (isName) open.at(-1)!.add(name)
      i = end
    } else if (code === BRACE.LEFT || code === CODE.LEFT_BRACKET) {
      if (open.push(code === BRACE.LEFT ? new Set() : null) > DEPTH_MAX) return `deeper than ${DEPTH_MAX}`
      isName = code === BRACE.LEFT
    } else if (code === BRACE.RIGHT || code === CODE.RIGHT_BRACKET) open.pop()
    else if (code === CODE.COMMA) isName = open.at(-1) !== null
    else if (code === CODE.COLON) isName = false
  }
  return undefined
}

/** The closing quote of the text that begins at `from`. */
function endOfText(text: string, from: number): number {
  let end = from + 1
  while (text.charCodeAt(end) !== CODE.QUOTE) end += text.charCodeAt(end) === CODE.BACKSLASH ? 2 : 1
  return end
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

export function isText(value: unknown): value is string {
  return typeof value === 'string'
}
