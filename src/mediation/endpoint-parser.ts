/** Parses `<endpoint>`, in sequences and in files of endpoints, in the primary. */
import { createHash, createHmac, randomBytes } from 'node:crypto'
import {
  DEFAULT_ENDPOINT_SETTINGS,
  type EndpointSettings,
  type EndpointsDefinition,
  LONE_ENDPOINT_SETTINGS,
} from '../apis/api-definition.ts'
import { urlViolation } from '../apis/endpoint-url.ts'
import type { XmlElement } from '../config/xml.ts'
import type { ElementParser } from './element-parser.ts'
import { groupOf, NO_LIST, withProperties } from './endpoint-groups.ts'
import {
  type EndpointAddress,
  type EndpointForm,
  type EndpointFormat,
  FOUND_BY_EXPRESSION,
  type GroupAddress,
  RECIPIENT_VARIABLE,
  type RecipientsAddress,
  type SequenceEndpoint,
  type TemplatePiece,
} from './endpoint-plan.ts'
import { parseAuthentication, parseEndpointProperty } from './endpoint-properties.ts'
import { INERT_ATTRIBUTES, parseSettings } from './endpoint-settings.ts'

/** The part of a parser that endpoints use. */
const FORMS = ['address', 'http', 'default', 'failover', 'loadbalance', 'wsdl', 'recipientlist', 'dynamicLoadbalance']
/** Formats as documents write them; `leave-as-is`, `rest` and none keep the content of the message. */
const FORMATS: Readonly<Record<string, EndpointFormat>> = {
  soap11: 'soap11',
  soap12: 'soap12',
  pox: 'pox',
  get: 'get',
  rest: 'kept',
  'leave-as-is': 'kept',
}
/** Methods of formats; '': that of the message. SOAP is POST to the URL itself, as on the reference platform. */
const OF_FORMAT: Readonly<Record<EndpointFormat, string>> = {
  kept: '',
  pox: '',
  get: 'GET',
  soap11: 'POST',
  soap12: 'POST',
}
const METHODS = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options']
const ALGORITHMS: Readonly<Record<string, EndpointsDefinition['algorithm']>> = {
  RoundRobin: 'round_robin',
  roundRobin: 'round_robin',
  WeightedRoundRobin: 'weighted',
  WeightedRRLCAlgorithm: 'weighted',
}
/** Scheme and authority without variables. */
const ORIGIN = /^https?:\/\/[^/?#{}]+(?=[/?]|$)/i
const VARIABLE = /\{([^{}]*)\}/g
const VARIABLE_NAME = /^(\+?)((?:uri\.var|query\.param)\.[\w.-]{1,100})$/
const TEMPLATE_CHARS_MAX = 2048
const RECIPIENTS_MAX = 100
/** Addresses that a list keeps without `max-cache`, and those that a reactor keeps in all. */
const KEPT_DEFAULT = 20
const KEPT_MAX = 128

/**
 * The endpoint of a mediator: `<endpoint key="…"/>`, or one with a form. Undefined after an error. `mayBeFound`: an
 * expression may find its key.
 */
export function parseSequenceEndpoint(
  element: XmlElement,
  parser: ElementParser,
  mayBeFound: boolean,
): SequenceEndpoint | undefined {
  if (element.has('template')) {
    const form = parseTemplateUse(element, parser)
    if (form === undefined) return undefined
    return mayBeFound ? { name: nameOf(form), form } : { name: nameOf(form), form, takesOne: true }
  }
  parser.checkAttributes(element, ['key', 'name', ...(mayBeFound ? ['key-expression'] : [])])
  parser.checkNoText(element)
  const text = /^\{([\s\S]*)\}$/.exec(element.attribute('key'))?.[1] ?? element.attribute('key-expression')
  if (mayBeFound && text !== '') {
    parser.checkElements(element, [])
    const key = parser.expressionIn(element, text, element.has('key') ? 'key' : 'key-expression')
    return key === undefined ? undefined : { name: FOUND_BY_EXPRESSION, form: null, key }
  }
  if (!element.has('key')) {
    const form = parseForm(element, parser, 'sequence')
    if (form?.address.kind === 'recipients' && !mayBeFound) return refuseList(element, parser)
    return form === undefined ? undefined : { name: nameOf(form), form }
  }
  parser.checkElements(element, [])
  const name = parseKey(element, parser)
  if (name === undefined) return undefined
  return mayBeFound ? { name, form: null } : { name, form: null, takesOne: true }
}

function refuseList(element: XmlElement, parser: ElementParser): undefined {
  return parser.error(element, '', NO_LIST.expected, NO_LIST.hint)
}

/** `<endpoint template="…" uri="…">` with its parameters. */
function parseTemplateUse(element: XmlElement, parser: ElementParser): EndpointForm | undefined {
  parser.checkAttributes(element, ['template', 'name', 'uri'])
  parser.checkElements(element, ['parameter'])
  parser.checkNoText(element)
  const template = parser.required(element, 'template')
  const given: Record<string, string> = {}
  for (const name of ['name', 'uri']) if (element.has(name)) given[name] = element.attribute(name)
  for (const child of element.children.filter(({ name }) => name === 'parameter')) {
    parser.checkAttributes(child, ['name', 'value'])
    parser.checkElements(child, [])
    const name = parser.required(child, 'name')
    if (name === undefined) return undefined
    if (!child.has('value')) return parser.error(child, 'value', 'is missing', 'add it')
    if (Object.hasOwn(given, name)) return parser.error(child, 'name', 'is given twice', 'remove one', name)
    given[name] = child.attribute('value')
  }
  if (template === undefined) return undefined
  return { method: '', format: 'kept', appendsPath: false, address: { kind: 'instance', template, given } }
}

/** The endpoint of a template, with its parameters in place. */
export function parseInstance(element: XmlElement, parser: ElementParser): EndpointForm | undefined {
  parser.checkAttributes(element, ['name'])
  parser.checkNoText(element)
  return parseForm(element, parser, 'file')
}

/** Name of the file of an endpoint. */
function parseKey(element: XmlElement, parser: ElementParser): string | undefined {
  const name = parser.required(element, 'key')
  if (name === undefined || !/[{}:/]/.test(name)) return name
  return parser.error(element, 'key', 'expected the name of an endpoint', 'write the name of its file', name)
}

/** The endpoint of a URL that an attribute or element of `element` gives. Undefined after an error. */
export function endpointOfUrl(
  element: XmlElement,
  attribute: string,
  given: string,
  method: string,
  parser: ElementParser,
): SequenceEndpoint | undefined {
  const address = addressOf(given.trim(), false, LONE_ENDPOINT_SETTINGS)
  if (typeof address === 'string') {
    return parser.error(element, attribute, address, 'for example http://backend.example:8080/base', shown(given))
  }
  const form: EndpointForm = { method, format: 'kept', appendsPath: true, address }
  return { name: nameOf(form), form }
}

/** The root of a file of endpoints. */
export function parseNamedEndpoint(root: XmlElement, name: string, parser: ElementParser): EndpointForm | undefined {
  const isInstance = root.has('template')
  if (!isInstance) parser.checkAttributes(root, ['name'])
  parser.checkNoText(root)
  const given = parser.required(root, 'name')
  if (given !== undefined && given !== name) {
    parser.error(root, 'name', `is not the name of its file, ${name}`, 'give it the name of the file', given)
  }
  return isInstance ? parseTemplateUse(root, parser) : parseForm(root, parser, 'file')
}

/** Keys the hashes in names, so that nobody can find out secrets by guessing them. */
const NAME_KEY = randomBytes(32)

/**
 * Properties have no part in it, because they may be secrets: reactors know method, address and token alone by the
 * name. With OAuth, and of a template, it is another one after a start.
 */
function nameOf(form: EndpointForm): string {
  const text = JSON.stringify(form, (key, value: unknown) => (key === 'properties' ? undefined : value))
  const hash = /"(?:clientSecret|template)":/.test(text) ? createHmac('sha256', NAME_KEY) : createHash('sha256')
  return `inline-${hash.update(text).digest('hex').slice(0, 16)}`
}

/** Where an endpoint stands: in a group it may be out of use for longer, because there are others. */
type Place = 'sequence' | 'file' | 'member'

function parseForm(endpoint: XmlElement, parser: ElementParser, place: Place): EndpointForm | undefined {
  const given = endpoint.children.filter(({ name }) => name === 'property')
  const properties = given.map(property => parseEndpointProperty(property, parser))
  const form = parseOwnForm(endpoint, parser, place)
  const known = properties.filter(property => property !== undefined)
  return form === undefined || known.length < properties.length ? undefined : withProperties(form, known)
}

function parseOwnForm(endpoint: XmlElement, parser: ElementParser, place: Place): EndpointForm | undefined {
  const [element, ...others] = endpoint.children.filter(({ name }) => name !== 'description' && name !== 'property')
  if (element === undefined) {
    const forms = '<address>, <http>, <default>, <failover>, <loadbalance> or <recipientlist>'
    return parser.error(endpoint, '', 'is empty', `add key, or ${forms}`)
  }
  for (const other of others) parser.error(other, '', 'is not an element of <endpoint>', 'remove it')
  switch (element.name) {
    case 'address':
    case 'http':
      return parseSingle(element, parser, place)
    case 'default':
      return parseDefault(element, parser)
    case 'failover':
    case 'loadbalance':
      return parseGroup(element, parser)
    case 'recipientlist':
      if (place !== 'member') return parseRecipients(element, parser)
      return parser.error(element, '', 'is not supported in a group or a list', 'write it as an endpoint of its own')
  }
  if (!FORMS.includes(element.name)) return parser.error(element, '', 'is not a form of endpoint', 'write <http>')
  return parser.error(element, '', 'is not supported', 'write the address of the service in <address> or <http>')
}

// ---- forms ----------------------------------------------------------------------------------------------------------

function parseDefault(element: XmlElement, parser: ElementParser): EndpointForm | undefined {
  const settings = parseSettings(element, parser)?.alone
  const format = parseFormat(element, parser)
  parser.checkAttributes(element, ['format', ...INERT_ATTRIBUTES])
  if (settings === undefined || format === undefined) return undefined
  return { method: OF_FORMAT[format], format, appendsPath: !isSoap(format), address: { kind: 'message', settings } }
}

function parseSingle(element: XmlElement, parser: ElementParser, place: Place): EndpointForm | undefined {
  const isHttp = element.name === 'http'
  const attribute = isHttp ? 'uri-template' : 'uri'
  parser.checkAttributes(element, [...(isHttp ? ['uri-template', 'method'] : ['uri', 'format']), ...INERT_ATTRIBUTES])
  const authentication = isHttp ? parser.only(element, 'authentication') : undefined
  const credentials = authentication === undefined ? [] : [parseAuthentication(authentication, parser)]
  const settings = parseSettings(element, parser, isHttp ? ['authentication'] : [])
  const format = isHttp ? 'kept' : parseFormat(element, parser)
  const method = isHttp ? parser.choice(element, 'method', ['', ...METHODS], '') : ''
  const given = parser.required(element, attribute)
  if (given === undefined || settings === undefined || format === undefined || method === undefined) return undefined
  const address = addressOf(given.trim(), isHttp, place === 'member' ? settings.inGroup : settings.alone)
  if (typeof address === 'string') {
    return parser.error(element, attribute, address, 'for example http://backend.example:8080/base', shown(given))
  }
  const appendsPath = !isHttp && !isSoap(format)
  const own = { method: OF_FORMAT[format] || method.toUpperCase(), format, appendsPath, address }
  const [known] = credentials
  if (credentials.length > 0 && known === undefined) return undefined
  const form = { ...own, ...known }
  return place === 'file' ? { ...form, asMember: settings.inGroup } : form
}

/** The URL for a diagnostic: without what may be a password. */
function shown(url: string): string {
  return url.replace(/\/\/[^/?#]*@/, '//(set)@').replace(/\?[\s\S]*$/, '?(set)')
}

function single(url: string, settings: EndpointSettings): EndpointAddress {
  return {
    kind: 'urls',
    endpoints: { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints: [{ url, settings }] },
  }
}

/** A sentence in place of the address for what is none. */
function addressOf(url: string, hasVariables: boolean, settings: EndpointSettings): EndpointAddress | string {
  const isPlain = !url.includes('?') && (!hasVariables || !url.includes('{'))
  if (isPlain) {
    const violation = urlViolation(url)
    if (violation !== undefined) return violation[0]
    return single(url, settings)
  }
  if (url.length > TEMPLATE_CHARS_MAX) return `must be at most ${TEMPLATE_CHARS_MAX} characters long`
  if (/[^\x21-\x7e]|#/.test(url)) return 'must hold neither white space nor a fragment'
  const [origin = ''] = ORIGIN.exec(url) ?? []
  const violation = origin === '' ? undefined : urlViolation(origin)
  if (violation !== undefined) return violation[0]
  const pieces = templatePieces(origin, url.slice(origin.length))
  if (typeof pieces === 'string') return pieces
  if (origin === '' && (typeof pieces[0] === 'string' ? !/^https?:\/\//i.test(pieces[0]) : pieces.length === 0)) {
    return 'must be an http or https URL'
  }
  return { kind: 'template', origin, pieces, settings }
}

function templatePieces(origin: string, text: string): readonly TemplatePiece[] | string {
  const pieces: TemplatePiece[] = []
  let at = 0
  for (const found of text.matchAll(VARIABLE)) {
    const [, plus, name] = VARIABLE_NAME.exec(found[1]!) ?? []
    if (name === undefined) return 'has a variable that is neither {uri.var.name} nor {+uri.var.name}'
    if (found.index > at) pieces.push(text.slice(at, found.index))
    // A URL that begins with a variable has the whole address in it.
    pieces.push({ name, keeps: plus === '+' || (origin === '' && found.index === 0) })
    at = found.index + found[0].length
  }
  if (at < text.length) pieces.push(text.slice(at))
  return pieces.some(piece => typeof piece === 'string' && /[{}]/.test(piece)) ? 'has a "{" without its "}"' : pieces
}

function parseGroup(element: XmlElement, parser: ElementParser): EndpointForm | undefined {
  const isFailover = element.name === 'failover'
  parser.checkAttributes(element, isFailover ? [] : ['algorithm', 'failover', 'policy'])
  const algorithm = isFailover ? 'round_robin' : parseAlgorithm(element, parser)
  const failsOver = isFailover || !element.has('failover') ? true : parser.flag(element, 'failover')
  const members = element.children.flatMap(child => {
    const member = child.name === 'member' ? hostMember(child, parser) : groupMember(child, parser)
    return member === undefined ? [] : [member]
  })
  if (members.length < element.children.length || algorithm === undefined || failsOver === undefined) return undefined
  const group = { isFailover, algorithm, failsOver }
  const isKnown = members.every(
    member => typeof member !== 'string' && member.address.kind !== 'group' && member.address.kind !== 'instance',
  )
  const form = isKnown ? groupOf(group, members as readonly EndpointForm[]) : unresolved({ ...group, members })
  return 'hint' in form ? parser.error(element, '', form.expected, form.hint) : form
}

/** `<recipientlist>`: endpoints, `<member>`s, or one `<endpoints>` whose value has the addresses. */
function parseRecipients(element: XmlElement, parser: ElementParser): EndpointForm | undefined {
  parser.checkAttributes(element, [])
  const dynamic = parser.only(element, 'endpoints')
  if (dynamic !== undefined) {
    parser.checkElements(element, ['endpoints'])
    return parseListed(dynamic, parser)
  }
  const members = element.children.flatMap(child => {
    const member = child.name === 'member' ? hostMember(child, parser) : groupMember(child, parser)
    return member === undefined ? [] : [member]
  })
  if (members.length < element.children.length) return undefined
  if (members.length > 0 && members.length <= RECIPIENTS_MAX) return listOf({ members })
  const hint = 'write each in an <endpoint>, or an expression in <endpoints value="…"/>'
  return parser.error(element, '', `expected 1 to ${RECIPIENTS_MAX} recipients`, hint)
}

function parseListed(element: XmlElement, parser: ElementParser): EndpointForm | undefined {
  parser.checkAttributes(element, ['value', 'max-cache'])
  parser.checkElements(element, [])
  const list = parser.textOrExpression(element, 'value')
  const given = element.attribute('max-cache')
  const kept = given === '' ? KEPT_DEFAULT : /^\d{1,3}$/.test(given) ? Number(given) : 0
  if (kept < 1 || kept > KEPT_MAX) {
    return parser.error(element, 'max-cache', `expected a number from 1 to ${KEPT_MAX}`, 'leave it out for 20', given)
  }
  if (list === undefined) return undefined
  const pieces = [{ name: RECIPIENT_VARIABLE, keeps: true }]
  const address = { kind: 'template', origin: '', pieces, settings: LONE_ENDPOINT_SETTINGS, kept } as const
  return listOf({ members: [{ method: '', format: 'kept', appendsPath: true, address }], list })
}

function listOf(list: RecipientsAddress): EndpointForm {
  return { method: '', format: 'kept', appendsPath: false, address: { kind: 'recipients', ...list } }
}

/** The files that it names decide method, format and path. */
function unresolved(group: GroupAddress): EndpointForm {
  return { method: '', format: 'kept', appendsPath: false, address: { kind: 'group', ...group } }
}

function parseAlgorithm(element: XmlElement, parser: ElementParser): EndpointsDefinition['algorithm'] | undefined {
  const given = element.attribute('algorithm')
  const name = given.slice(given.lastIndexOf('.') + 1)
  if (given === '') return 'round_robin'
  if (Object.hasOwn(ALGORITHMS, name)) return ALGORITHMS[name]
  return parser.error(element, 'algorithm', 'there is no such algorithm', 'write RoundRobin', given)
}

/** An endpoint of a group, or the key of a file. */
function groupMember(element: XmlElement, parser: ElementParser): EndpointForm | string | undefined {
  if (element.name !== 'endpoint') {
    const hint = element.name === 'session' ? 'backends must share their sessions' : 'write <endpoint>'
    return parser.error(element, '', 'is not supported in a group', hint)
  }
  if (element.has('template')) return parseTemplateUse(element, parser)
  parser.checkAttributes(element, ['name', 'key'])
  if (element.has('key')) {
    parser.checkElements(element, [])
    return parseKey(element, parser)
  }
  return parseForm(element, parser, 'member')
}

/** `<member hostName httpPort httpsPort>`. */
function hostMember(element: XmlElement, parser: ElementParser): EndpointForm | undefined {
  parser.checkAttributes(element, ['hostName', 'httpPort', 'httpsPort'])
  const host = parser.required(element, 'hostName')
  const [http, https] = [element.attribute('httpPort'), element.attribute('httpsPort')]
  if (host === undefined) return undefined
  const url = https === '' ? `http://${host}:${http === '' ? 80 : http}` : `https://${host}:${https}`
  const violation = urlViolation(url)
  if (violation !== undefined) return parser.error(element, 'hostName', violation[0], violation[1], url)
  return { method: '', format: 'kept', appendsPath: true, address: single(url, DEFAULT_ENDPOINT_SETTINGS) }
}

function isSoap(format: EndpointFormat): boolean {
  return format === 'soap11' || format === 'soap12'
}

function parseFormat(element: XmlElement, parser: ElementParser): EndpointFormat | undefined {
  const format = parser.choice(element, 'format', Object.keys(FORMATS), 'leave-as-is')
  return format === undefined ? undefined : FORMATS[format]
}
