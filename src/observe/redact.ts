/**
 * Keeps secrets out of every log: values of secret query and path parameters, userinfo in URLs, credentials in free
 * text. The rules it must not break: in doubt it masks, and it takes time linear in its input, which a stranger writes.
 * A spelling that any backend might read as a secret name counts: percent-encoded, encoded twice, in another case or
 * in full-width letters, behind `;`, in brackets, inside another URL.
 */

/** What stands in the place of a secret. */
export const MASK = '***'

/** Secret when the whole name is one of these; compared folded: lower case, letters and digits only. */
const SECRET_NAMES = [
  ...['key', 'code', 'auth', 'authorization', 'bearer', 'jwt', 'pass', 'pwd', 'sig', 'sid', 'otp', 'ticket', 'cookie'],
  ...['authcode', 'authorizationcode', 'devicecode', 'usercode', 'codeverifier', 'samlart', 'samlresponse'],
]
/** Secret when the name ends so: `access_token`, `X-Amz-Signature`, `client-secret`, `JSESSIONID`. */
const SECRET_ENDINGS = [
  ...['token', 'secret', 'password', 'passwd', 'passphrase', 'assertion', 'signature', 'credential', 'credentials'],
  ...[
    'apikey',
    'accesskey',
    'secretkey',
    'privatekey',
    'subscriptionkey',
    'signingkey',
    'session',
    'sessionid',
    'sessid',
  ],
]
const SECRET = new RegExp(`^(?:${SECRET_NAMES.join('|')})$|(?:${SECRET_ENDINGS.join('|')})$`)
/** More of a name than its last 64 letters decides nothing. */
const NAME_CHARS = 64

/** Parameters that are looked at; what follows them is masked unseen, so that a long query stays cheap. */
const PARTS_MAX = 128

/**
 * A query without any of these has nothing to mask: one pass decides for nearly every request. The escapes that are
 * let through (white space and `+,-./:[]_|`) cannot spell one.
 */
const SUSPICIOUS = new RegExp(
  'key|code|token|auth|bearer|jwt|pass|pwd|sig|sid|otp|ticket|cookie|sess|saml|secret|cred|assert|eyJ' +
    '|%(?!2[0b-f]|3a|5[bdf]|7c)|[@\\x80-\\uffff]',
  'i',
)

/** In a request target of origin form nothing can be secret before the first of these. */
const FIRST_DELIMITER = /[?;#&@]/

/** A signed token is a secret whatever it is called. The look-behind allows one start per run of letters. */
const SIGNED_TOKEN = /(?<![\w-])eyJ[\w-]{8,}\.eyJ/

/** Userinfo of a URL inside something else, unless it is masked already. */
const NESTED_USERINFO = /:[\\/]{1,2}(?!\*\*\*@)[^\\/?#&]*@/

/** A backend may decode more often than we do: what is still encoded after these rounds is masked unseen. */
const DECODE_ROUNDS = 3

/** For a request target or a Referer. Gives back the same string when there is nothing to hide. */
export function redactUrl(url: string): string {
  if (!FIRST_DELIMITER.test(url)) return url
  const bare = url.includes('@') ? maskUserinfo(url) : url
  const from = bare.search(/[?;#&]/)
  return from !== -1 && SUSPICIOUS.test(bare) ? maskParameters(bare, from) : bare
}

/** For free text that may quote a URL or a header, such as the message of an error. */
export function redactText(text: string): string {
  return text
    .replace(/\b(authorization|cookie)(["']?\s*[:=]\s*)[^\r\n]+/gi, `$1$2${MASK}`)
    .replace(/\b(api[_-]?key|\w{0,20}_token|client_secret|password|secret)(["']?\s*:\s*)\S+/gi, `$1$2${MASK}`)
    .replace(/\b(bearer|basic|digest|negotiate)(\s+)\S{8,}/gi, `$1$2${MASK}`)
    .replace(/(:\/\/)[^/?#\s]*@/g, `$1${MASK}@`)
    .replace(/\S+/g, word => (/[?&;=]/.test(word) && SUSPICIOUS.test(word) ? maskParameters(word, 0) : word))
}

/**
 * Userinfo of the authority, which stands behind the scheme or two slashes (browsers take back slashes as well), or at
 * the very beginning in authority-form. An `@` in a path is left alone unless a password may hold it.
 */
function maskUserinfo(url: string): string {
  const opening = /^(?:[a-z][a-z0-9+.-]*:[\\/]+|[\\/]{2,})/i.exec(url)
  if (opening === null && /^[\\/?;#&]/.test(url)) return url
  const start = opening === null ? 0 : opening[0].length
  let end = endOf(url, start, /[\\/?#]/)
  const authority = url.slice(start, end)
  if (authority.includes('@')) {
    // `user:p@ss/word@host`: up to the last `@` before the query.
    if (authority.includes(':')) end = endOf(url, end, /[?#]/)
  } else if (/^[^[:]*:\d*[^\d]/.test(authority)) {
    // `user:pa/ss@host`: a port that is no number was a password, cut in two by its own slash.
    end = url.length
  }
  const at = url.lastIndexOf('@', end)
  return at < start ? url : url.slice(0, start) + MASK + url.slice(at)
}

function endOf(text: string, start: number, delimiter: RegExp): number {
  const length = text.slice(start).search(delimiter)
  return length === -1 ? text.length : start + length
}

/** Path parameters (`;jsessionid=`) end where the query begins; the query is split at `&`. */
function maskParameters(url: string, from: number): string {
  const query = url.indexOf('?', from)
  if (query <= from) return maskParts(url, from)
  return maskParts(url.slice(0, query), from) + maskParts(url.slice(query), 0)
}

function maskParts(text: string, from: number): string {
  let out = text.slice(0, from)
  let parts = 0
  for (let at = from; at < text.length; ) {
    if (++parts > PARTS_MAX) return `${out}&${MASK}`
    const next = text.indexOf('&', at + 1)
    const end = next === -1 ? text.length : next
    out += maskPart(text.slice(at, end))
    at = end
  }
  return out
}

/**
 * A masked value reaches to the end of its part, whatever its backend takes `;` for. `?` and `#` begin a name as well:
 * two URLs glued together carelessly still hide what they must.
 */
function maskPart(part: string): string {
  for (let at = 0; at < part.length; ) {
    const end = endOf(part, at + 1, /[?;#]/)
    const first = /[?;#&]/.test(part[at]!) ? at + 1 : at
    const shown = shownLength(part.slice(first, end))
    if (shown !== undefined) return part.slice(0, first + shown) + MASK
    at = end
  }
  return part
}

/** How much of `name=value` may be shown; undefined when all of it may. */
function shownLength(segment: string): number | undefined {
  const text = decode(segment)
  if (!carriesSecret(text)) return undefined
  const equals = segment.indexOf('=')
  // A name that hides an assignment of its own (`a%3D1%26token%3Dx=y`) is part of the secret.
  if (equals === -1 || decode(segment.slice(0, equals)).includes('=')) return 0
  return equals + 1
}

function carriesSecret(text: string): boolean {
  if (/%[0-9a-f]{2}/i.test(text) || SIGNED_TOKEN.test(text) || NESTED_USERINFO.test(text)) return true
  let word = 0
  let quote = -1
  let quoted = ''
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!
    if (char === '=') {
      if (namesSecret(text.slice(word, at))) return true
      word = at + 1
    } else if (char === '"' || char === "'") {
      // A name of JSON: what two quotes enclose before a colon.
      quoted = text.slice(quote + 1, at)
      quote = at
      word = at + 1
    } else if (char === ':') {
      if (quoted !== '' && namesSecret(quoted)) return true
    } else if ('?&;#,{}'.includes(char)) {
      word = at + 1
      quoted = ''
    }
  }
  return false
}

/** `user[password]`, `filter.token` and `code:text` name what one of their words names. */
export function namesSecret(name: string): boolean {
  return isSecret(name) || (/[^\w-]/.test(name) && name.split(/[^\w-]+/).some(isSecret))
}

function isSecret(word: string): boolean {
  const folded = word
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '')
    .slice(-NAME_CHARS)
  return SECRET.test(folded.replace(/\d+$/, ''))
}

/** Decoded until nothing changes, then folded to what a lenient reader might see: full-width and Kelvin signs too. */
function decode(text: string): string {
  if (!/[%+\x80-\uffff]/.test(text)) return text
  const bytes = Buffer.from(text, /[\u0100-\uffff]/.test(text) ? 'utf8' : 'latin1')
  let length = bytes.length
  for (let round = 0; round < DECODE_ROUNDS; round++) {
    const before = length
    length = decodeOnce(bytes, before)
    if (length === before) break
  }
  return bytes.toString('utf8', 0, length).normalize('NFKC').replaceAll('+', ' ')
}

const PERCENT = 0x25
const LETTER_U = 0x75

/** In place, and back comes the length. Reads `%u0061`, which some servers do, and leaves broken escapes alone. */
function decodeOnce(bytes: Buffer, length: number): number {
  let out = 0
  for (let at = 0; at < length; at++) {
    const byte = bytes[at]!
    bytes[out++] = byte
    if (byte !== PERCENT) continue
    const wide = (bytes[at + 1]! | 0x20) === LETTER_U
    const digits = wide ? at + 2 : at + 1
    const end = digits + (wide ? 4 : 2)
    const code = end > length ? -1 : hexNumber(bytes, digits, end)
    if (code < 0) continue
    // Three bytes at most, where six stood.
    out = code < 0x100 ? bytes.writeUInt8(code, out - 1) : out - 1 + bytes.write(String.fromCharCode(code), out - 1)
    at = end - 1
  }
  return out
}

/** -1 when a digit is none. */
function hexNumber(bytes: Buffer, start: number, end: number): number {
  let value = 0
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!
    const letter = byte | 0x20
    if (byte >= 0x30 && byte <= 0x39) value = value * 16 + byte - 0x30
    else if (letter >= 0x61 && letter <= 0x66) value = value * 16 + letter - 0x57
    else return -1
  }
  return value
}
