/**
 * `<oauth>` within `<authentication>`: how the gateway gets an access token for an endpoint. No diagnostic shows a
 * value of it. Runs in the primary.
 */
import { isSafeTokenUrl } from '../apis/endpoint-security.ts'
import type { XmlElement } from '../config/xml.ts'
import { isToken } from '../http1/token.ts'
import { isFieldText } from '../http1/writer.ts'
import type { ElementParser } from './element-parser.ts'
import type { TokenRequest } from '../plan/backend-planning.ts'

const GRANTS = ['authorizationCode', 'clientCredentials', 'passwordCredentials']
/** Elements of every grant. */
const COMMON = ['clientId', 'clientSecret', 'tokenUrl', 'authMode', 'requestParameters', 'customHeaders']
/** Token requests use the connections of `[apim.http_client]`, as all requests of the gateway itself do. */
const WITHOUT_EFFECT = [
  ...['connectionTimeout', 'connectionRequestTimeout', 'socketTimeout'],
  ...['useGlobalConnectionTimeoutConfigs', 'useGlobalProxyConfigs'],
]
const CHARS_MAX = 1024
/** A refresh token may be a JWT. */
const TOKEN_CHARS_MAX = 6144
const ENTRIES_MAX = 32
/** Parameters and fields of a token request that the gateway sets itself (RFC 6749 4.3, 4.4, 6). */
const OWN_PARAMETERS = ['grant_type', 'client_id', 'client_secret', 'username', 'password', 'refresh_token']
const OWN_FIELDS = [
  ...['authorization', 'accept', 'user-agent', 'content-type', 'content-length', 'content-encoding'],
  ...['transfer-encoding', 'connection', 'keep-alive', 'upgrade', 'expect', 'host', 'te', 'trailer'],
]
const HOW_TO_SET = "write it, or read a variable of the environment: {get-property('env', 'NAME')}"

/** Undefined after an error. */
export function parseOAuth(element: XmlElement, parser: ElementParser): TokenRequest | undefined {
  parser.checkElements(element, GRANTS)
  const [grant, other] = element.children
  if (grant === undefined) return parser.error(element, '', 'is empty', `add one of ${GRANTS.join(', ')}`)
  if (other !== undefined) return parser.error(other, '', 'is a second grant', 'remove one of them')
  const own: Readonly<Record<string, readonly string[]>> = {
    authorizationCode: ['refreshToken'],
    clientCredentials: [],
    passwordCredentials: ['username', 'password'],
  }
  if (!Object.hasOwn(own, grant.name)) return undefined
  parser.checkElements(grant, [...COMMON, ...own[grant.name]!, ...WITHOUT_EFFECT])
  for (const name of WITHOUT_EFFECT) {
    const given = parser.only(grant, name)
    const hint = 'token requests have the limits of [apim.http_client]; remove it'
    if (given !== undefined) parser.warn(given, '', 'has no effect', hint)
  }
  const value = (name: string, max = CHARS_MAX) => textIn(grant, name, max, parser)
  const [clientId, clientSecret, tokenUrl] = [value('clientId'), value('clientSecret'), parseUrl(grant, parser)]
  const [first, second] = own[grant.name]!.map(name => value(name, TOKEN_CHARS_MAX))
  const inForm = parseMode(grant, parser)
  const parameters = parseEntries(parser.only(grant, 'requestParameters'), 'parameter', parser)
  const headers = parseEntries(parser.only(grant, 'customHeaders'), 'header', parser)
  if (clientId === undefined || clientSecret === undefined || tokenUrl === undefined) return undefined
  if (inForm === undefined || parameters === undefined || headers === undefined) return undefined
  const request = { tokenUrl, clientId, clientSecret, scopes: [], parameters }
  const more = {
    ...(inForm ? { inForm: true as const } : {}),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
  }
  if (grant.name === 'clientCredentials') return { ...request, ...more }
  if (first === undefined) return undefined
  if (grant.name === 'authorizationCode') {
    return { ...request, ...more, grant: { kind: 'refresh_token', refreshToken: first } }
  }
  if (second === undefined) return undefined
  return { ...request, ...more, grant: { kind: 'password', username: first, password: second } }
}

/** Text of a child, or the variable of the environment that it names. */
function textIn(parent: XmlElement, name: string, max: number, parser: ElementParser): string | undefined {
  const child = parser.only(parent, name)
  const text = child === undefined ? undefined : givenIn(child, parser)
  if (child !== undefined && text === undefined) return undefined
  if (text === undefined || text === '') return parser.error(child ?? parent, name, 'is missing', HOW_TO_SET)
  if (text.length <= max) return text
  return parser.error(child!, '', `is longer than ${max} characters`, HOW_TO_SET)
}

function givenIn(element: XmlElement, parser: ElementParser): string | undefined {
  parser.checkElements(element, [])
  const text = element.text.trim()
  const inner = text.startsWith('${') ? text : /^\{([\s\S]*)\}$/.exec(text)?.[1]
  if (inner === undefined) return text
  const expression = parser.expressionIn(element, inner, '', true)
  if (expression === undefined) return undefined
  if (expression.kind === 'literal') return String(expression.value)
  if (expression.kind !== 'environment') {
    return parser.error(element, '', 'depends on messages, and the token is for all of them', HOW_TO_SET)
  }
  const value = process.env[expression.name] ?? ''
  if (value !== '') return value
  return parser.error(element, '', `reads ${expression.name}, which is not set`, 'set the variable of the environment')
}

function parseUrl(parent: XmlElement, parser: ElementParser): string | undefined {
  const url = textIn(parent, 'tokenUrl', CHARS_MAX, parser)
  if (url === undefined || isSafeTokenUrl(url)) return url
  const expected = 'must be https, or lead to this machine, and hold no credentials'
  return parser.error(parent.child('tokenUrl')!, '', expected, 'the gateway sends the client secret there')
}

/** Returns whether the credentials of the client are in the form, and not in Authorization. */
function parseMode(parent: XmlElement, parser: ElementParser): boolean | undefined {
  const child = parser.only(parent, 'authMode')
  const mode = (child?.text ?? '').trim().toLowerCase()
  if (['', 'header', 'payload'].includes(mode)) return mode === 'payload'
  return parser.error(child!, '', 'expected header or payload', 'leave it out for header', child!.text)
}

/** `<parameter name="…">` or `<header name="…">`, with its value as text. */
function parseEntries(
  parent: XmlElement | undefined,
  kind: 'parameter' | 'header',
  parser: ElementParser,
): Readonly<Record<string, string>> | undefined {
  if (parent === undefined) return {}
  parser.checkElements(parent, [kind])
  const isField = kind === 'header'
  const entries: [string, string][] = []
  for (const child of parent.children.filter(({ name }) => name === kind)) {
    parser.checkAttributes(child, ['name'])
    const given = parser.required(child, 'name')
    const value = givenIn(child, parser)
    if (given === undefined || value === undefined) return undefined
    const name = isField ? given.toLowerCase() : given
    if ((isField ? OWN_FIELDS : OWN_PARAMETERS).includes(name)) {
      return parser.error(child, 'name', 'is set by the gateway', 'remove it', given)
    }
    if (isField && !(isToken(name) && isFieldText(value))) {
      return parser.error(child, '', 'cannot stand in a header', 'write a name of a field, and one line of text')
    }
    if (value.length > TOKEN_CHARS_MAX) {
      return parser.error(child, '', `is longer than ${TOKEN_CHARS_MAX} characters`, 'shorten it')
    }
    entries.push([name, value])
  }
  if (entries.length <= ENTRIES_MAX) return Object.fromEntries(entries)
  return parser.error(parent, '', `has more than ${ENTRIES_MAX} entries`, 'remove some')
}
