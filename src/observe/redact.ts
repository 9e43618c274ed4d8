/**
 * Masks secrets in logs and traces: values of secret query and path parameters, userinfo of URLs, credentials in free
 * text. Two rules hold: in doubt the value is masked, and time is linear in the input, which clients choose. Every
 * spelling that some backend reads as a secret name counts: percent-encoded once or more, in another case, in
 * full-width letters, after `;`, in brackets, inside another URL.
 */

/** Replaces a secret. */
export const MASK = '***'

/** Names of secrets in URLs and forms; members of ordinary payloads have them too, as `{"code":"A1"}`. */
const COMMON_NAMES = 'key|code'
/** Names of secrets, compared as a whole and folded: lower case, letters and digits only. */
const SECRET_NAMES =
  'auth|authorization|bearer|jwt|pass|pwd|sig|sid|otp|ticket|cookie|' +
  'authcode|authorizationcode|devicecode|usercode|codeverifier|samlart|samlresponse'
/** Endings of names of secrets: `access_token`, `X-Amz-Signature`, `client-secret`, `JSESSIONID`. */
const SECRET_ENDINGS =
  'token|secret|password|passwd|passphrase|assertion|signature|credential|credentials|' +
  'apikey|accesskey|secretkey|privatekey|subscriptionkey|signingkey|session|sessionid|sessid'
const SECRET = new RegExp(`^(?:${COMMON_NAMES}|${SECRET_NAMES})$|(?:${SECRET_ENDINGS})$`)
const SECRET_EVERYWHERE = new RegExp(`^(?:${SECRET_NAMES})$|(?:${SECRET_ENDINGS})$`)
/** Only the last 64 characters of a name are compared. */
const NAME_CHARS = 64

/** Parameters that are examined. The rest of the query is masked unseen, so that a long query stays cheap. */
const PARTS_MAX = 128

/**
 * Fast path: a URL that does not match has nothing to mask, which one pass decides for nearly every request. The
 * escapes that do not match (white space and `+,-./:[]_|`) cannot spell a secret name.
 */
const SUSPICIOUS = new RegExp(
  'key|code|token|auth|bearer|jwt|pass|pwd|sig|sid|otp|ticket|cookie|sess|saml|secret|cred|assert|eyJ' +
    '|%(?!2[0b-f]|3a|5[bdf]|7c)|[@\\x80-\\uffff]',
  'i',
)

/** Everything before the first of these characters is public in origin-form. */
const FIRST_DELIMITER = /[?;#&@]/

/** A signed JWT is a secret under every name. The look-behind allows one start per run of letters: linear time. */
const SIGNED_TOKEN = /(?<![\w-])eyJ[\w-]{8,}\.eyJ/

/** Unmasked userinfo of a URL within other text. */
const NESTED_USERINFO = /:[\\/]{1,2}(?!\*\*\*@)[^\\/?#&]*@/

/** Rounds of decoding. Text that is still encoded afterwards is masked, because a backend may decode more often. */
const DECODE_ROUNDS = 3

/** Redacts a request target or Referer. Returns the same string where nothing is secret. */
export function redactUrl(url: string): string {
  if (!FIRST_DELIMITER.test(url)) return url
  const bare = url.includes('@') ? maskUserinfo(url) : url
  const from = bare.search(/[?;#&]/)
  return from !== -1 && SUSPICIOUS.test(bare) ? maskParameters(bare, from) : bare
}

/** A secret by its name, also with escaped quotes, unless it is masked. */
const NAMED = new RegExp(
  String.raw`\b(api[_-]?key|\w{0,20}_token|client_secret|password|secret)(\\*["']?\s*:\s*)` +
    String.raw`(?!\\*["']\*{3}\\*["'](?:[\s,}\]]|$))\S+`,
  'gi',
)

/** Redacts free text that may quote a URL or header, such as the message of an error. */
export function redactText(text: string): string {
  return text
    .replace(/\b(authorization|cookie)(["']?\s*[:=]\s*)[^\r\n]+/gi, `$1$2${MASK}`)
    .replace(NAMED, `$1$2${MASK}`)
    .replace(/\b(bearer|basic|digest|negotiate)(\s+)\S{8,}/gi, `$1$2${MASK}`)
    .replace(/(:\/\/)[^/?#\s]*@/g, `$1${MASK}@`)
    .replace(/\S+/g, word => (/[?&;=]/.test(word) && SUSPICIOUS.test(word) ? maskParameters(word, 0) : word))
}

/** Name of a member of JSON with its colon, and the start tag of an element of XML. */
const MEMBER = /"((?:[^"\\]|\\.){1,100})"\s*:\s*|<([\w:.-]{1,100})[^<>]*>/g
const STRING_OR_BRACKET = /"(?:[^"\\]|\\.)*"?|[[\]{}]/g
const SCALAR = /"(?:[^"\\]|\\.)*"?|[^\s"{[,}\]]*/y

/** Members of OAuth requests (RFC 6749 4.1, RFC 7636): `code` beside one of them is an authorization code. */
const OAUTH_MEMBER = /grant_?type|redirect_?uri|code_?verifier/i
/** The shape of codes and keys that nobody can guess (RFC 6749 10.10): long, with a digit, without white space. */
const UNGUESSABLE = /(?<![^\s"[\],<>])(?=[^\s"[\],<>\d]{0,64}\d)[^\s"[\],<>]{16}/

/**
 * Redacts text that may be JSON, XML or a form, or the start of one: values of secret members whole, also lists.
 * Members `code` and `key` are secret beside members of OAuth, or where their values have the shape of a secret.
 */
export function redactMembers(text: string): string {
  return maskMembers(withinStrings(text, 0))
}

/** An escaped quote: a string with one may be JSON. */
const ESCAPED_QUOTE = /\\(?:"|u0022)/
const STRING = /"([^"\\]*(?:\\[\s\S][^"\\]*)*)("|\\?$)/g
const ESCAPE = /\\(?:u([\da-f]{4})|([\s\S]))/gi
const CUT_ESCAPE = /\\u[\da-f]{0,3}$/i
/** Strings within strings. What is deeper is masked unseen. */
const STRINGS_MAX = 8

/** Masks secret members of JSON that is a string of JSON, as `{"m":"{\\"password\\":\\"x\\"}"}`. */
function withinStrings(text: string, depth: number): string {
  if (!ESCAPED_QUOTE.test(text)) return text
  return text.replace(STRING, (whole, inner: string, end: string) => {
    if (!ESCAPED_QUOTE.test(inner)) return whole
    if (depth === STRINGS_MAX) return `"${MASK}"`
    const json = withoutEscapes(inner)
    const shown = maskMembers(withinStrings(json, depth + 1))
    return shown === json ? whole : JSON.stringify(shown).slice(0, end === '"' ? undefined : -1)
  })
}

const CONTROLS: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

/** The text of a string of JSON, or of the start of one. */
function withoutEscapes(inner: string): string {
  return inner
    .replace(CUT_ESCAPE, '')
    .replace(ESCAPE, (_, hex: string | undefined, char: string) =>
      hex === undefined ? (CONTROLS[char] ?? char) : String.fromCharCode(Number.parseInt(hex, 16)),
    )
}

function maskMembers(text: string): string {
  const isOAuth = OAUTH_MEMBER.test(text)
  let out = ''
  let from = 0
  MEMBER.lastIndex = 0
  for (let found = MEMBER.exec(text); found !== null; found = MEMBER.exec(text)) {
    const [start, inJson, inXml] = found
    const at = found.index + start.length
    const name = inJson === undefined ? inXml! : unescaped(inJson)
    if (!isSecretName(name) || start.endsWith('/>')) continue
    const isCommon = !isOAuth && !hasWord(name, SECRET_EVERYWHERE)
    const endOfScalars = inJson === undefined ? endOfText : endOfFlat
    if (isCommon && !UNGUESSABLE.test(text.slice(at, endOfScalars(text, at)))) continue
    const end = inJson === undefined ? endOfElement(text, at, inXml!) : endOfValue(text, at)
    if (end === at) continue
    out += redactText(text.slice(from, at)) + (inJson === undefined ? MASK : `"${MASK}"`)
    from = end
    MEMBER.lastIndex = end
  }
  return out + redactText(text.slice(from))
}

/** End of the text at the start of an element; elements after it are examined themselves. */
function endOfText(text: string, at: number): number {
  return endOf(text, at, /</)
}

/** As `endOfValue`, up to the first object or array within the value: its members are examined themselves. */
function endOfFlat(text: string, at: number): number {
  if (text[at] === '{') return at
  if (text[at] !== '[') return endOfValue(text, at)
  STRING_OR_BRACKET.lastIndex = at + 1
  for (let found = STRING_OR_BRACKET.exec(text); found !== null; found = STRING_OR_BRACKET.exec(text)) {
    if (!found[0].startsWith('"')) return found.index
  }
  return text.length
}

/** The name without escapes; unchanged where an escape is not JSON. */
function unescaped(name: string): string {
  if (!name.includes('\\')) return name
  try {
    return String(JSON.parse(`"${name}"`))
  } catch {
    return name
  }
}

function endOfElement(text: string, at: number, name: string): number {
  const end = text.indexOf(`</${name}`, at)
  return end === -1 ? text.length : end
}

/** End of a value of JSON, or of the text. */
function endOfValue(text: string, at: number): number {
  if (text[at] !== '[' && text[at] !== '{') {
    SCALAR.lastIndex = at
    return at + (SCALAR.exec(text)?.[0].length ?? 0)
  }
  STRING_OR_BRACKET.lastIndex = at
  let depth = 0
  for (let found = STRING_OR_BRACKET.exec(text); found !== null; found = STRING_OR_BRACKET.exec(text)) {
    if (found[0] === '[' || found[0] === '{') depth++
    else if (found[0] === ']' || found[0] === '}') depth--
    if (depth === 0) return STRING_OR_BRACKET.lastIndex
  }
  return text.length
}

/**
 * Masks the userinfo of the authority, which follows the scheme or two slashes (browsers accept backslashes too), or
 * stands first in authority-form. An `@` in a path stays, unless it may belong to a password.
 */
function maskUserinfo(url: string): string {
  const opening = /^(?:[a-z][a-z0-9+.-]*:[\\/]+|[\\/]{2,})/i.exec(url)
  if (opening === null && /^[\\/?;#&]/.test(url)) return url
  const start = opening === null ? 0 : opening[0].length
  let end = endOf(url, start, /[\\/?#]/)
  const authority = url.slice(start, end)
  if (authority.includes('@')) {
    // `user:p@ss/word@host`: the password reaches up to the last `@` before the query.
    if (authority.includes(':')) end = endOf(url, end, /[?#]/)
  } else if (/^[^[:]*:\d*[^\d]/.test(authority)) {
    // `user:pa/ss@host`: a port that is no number is a password that contains a slash.
    end = url.length
  }
  const at = url.lastIndexOf('@', end)
  return at < start ? url : url.slice(0, start) + MASK + url.slice(at)
}

function endOf(text: string, start: number, delimiter: RegExp): number {
  const length = text.slice(start).search(delimiter)
  return length === -1 ? text.length : start + length
}

/** Masks path parameters (`;jsessionid=`), which end at the query, and the query, which is split at `&`. */
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
 * Masks a value up to the end of its part, because backends differ in what `;` separates. `?` and `#` start a name too,
 * for URLs that are joined without encoding.
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

/** Length of the public start of `name=value`; undefined where all of it is public. */
function shownLength(segment: string): number | undefined {
  const text = decode(segment)
  if (!carriesSecret(text)) return undefined
  const equals = segment.indexOf('=')
  // A name that contains an encoded assignment (`a%3D1%26token%3Dx=y`) is part of the secret.
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
      if (isSecretName(text.slice(word, at))) return true
      word = at + 1
    } else if (char === '"' || char === "'") {
      // A JSON name: quoted text before a colon.
      quoted = text.slice(quote + 1, at)
      quote = at
      word = at + 1
    } else if (char === ':') {
      if (quoted !== '' && isSecretName(quoted)) return true
    } else if ('?&;#,{}'.includes(char)) {
      word = at + 1
      quoted = ''
    }
  }
  return false
}

/** Also true where one word of the name is secret: `user[password]`, `filter.token`, `code:text`. */
export function isSecretName(name: string): boolean {
  return hasWord(name, SECRET)
}

/** The name, or one word of it, is one of these. */
function hasWord(name: string, names: RegExp): boolean {
  if (isOneOf(names, name)) return true
  return /[^\w-]/.test(name) && name.split(/[^\w-]+/).some(word => isOneOf(names, word))
}

function isOneOf(names: RegExp, word: string): boolean {
  const folded = word
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '')
    .slice(-NAME_CHARS)
  return names.test(folded.replace(/\d+$/, ''))
}

/** Decodes until nothing changes, then folds as a lenient reader does: full-width letters, the Kelvin sign. */
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

/** Decodes in place and returns the length. Reads `%u0061`, as some servers do, and keeps broken escapes. */
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
    // Writes at most three bytes in place of six.
    out = code < 0x100 ? bytes.writeUInt8(code, out - 1) : out - 1 + bytes.write(String.fromCharCode(code), out - 1)
    at = end - 1
  }
  return out
}

/** Returns -1 where a byte is no hexadecimal digit. */
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
