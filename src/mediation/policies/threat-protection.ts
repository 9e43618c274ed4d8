/**
 * Threat protection of API policies: limits of JSON and XML bodies, and regular expressions that no part of a request
 * may match. A violation raises `_threat_fault_`, with THREAT_CODE, THREAT_MSG and THREAT_DESC.
 */
import type { XmlElement } from '../../config/xml.ts'
import { compilePattern, type Pattern } from '../../runtime/pattern.ts'
import { namesSeveralTypes } from '../../http1/media-type.ts'
import { hasHeapRoom } from '../../runtime/heap-room.ts'
import { bodyFormatOf, isXmlFormat } from '../formats/body-types.ts'
import { MediationFault } from '../mediation-fault.ts'
import { mediator } from '../mediator.ts'
import type { Message, Payload } from '../message.ts'
import { noRoom } from '../property-type.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import { textOf } from '../value.ts'
import { allTexts, INSPECTED_MAX, isTooLong, textsOfBody } from './inspected-texts.ts'
import { type JsonLimits, jsonViolation, type XmlLimits, xmlViolation } from './threat-limits.ts'

const CODE = 400
const MESSAGE = 'Bad Request'

/** Ends the flow. `violation`: without any text of the client. */
function refuse(message: Message, policy: string, violation: string): never {
  const detail = `${policy}: ${violation}`
  message.set('default', 'THREAT_CODE', CODE)
  message.set('default', 'THREAT_MSG', MESSAGE)
  message.set('default', 'THREAT_DESC', detail)
  throw new MediationFault({ code: CODE, message: detail, sequence: '_threat_fault_' })
}

/** Reads the body; one that cannot be read is a threat. */
function readBody<T>(message: Message, policy: string, read: (message: Message) => T): T {
  try {
    return read(message)
  } catch (error) {
    if (!(error instanceof MediationFault)) throw error
    return refuse(message, policy, error.raised.cause)
  }
}

function formatOfBody(message: Message, policy: string) {
  const type = textOf(message.get('transport', 'content-type'))
  if (namesSeveralTypes(type)) refuse(message, policy, 'the request has more than one content type')
  return bodyFormatOf(type)
}

const SPACES = [
  ' \t\n\v\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a',
  '\u2028\u2029\u202f\u205f\u3000',
].join('')
/** Bytes in front of a document: white space in UTF-8, marks of encodings, and the zeros of UTF-16. */
const BEFORE = new Set([...Buffer.from(`${SPACES}\ufeff\0`), 0xfe, 0xff])
const BEGINS = { json: '[{', xml: '<' } as const
/** Bytes of the heap for each byte of a text that is parsed. */
const HEAP_PER_BYTE = 6

/** Bytes are compared, because they need not be text in the charset that the content type names. */
function beginsAs(format: 'json' | 'xml', bytes: Uint8Array): boolean {
  const at = bytes.findIndex(byte => !BEFORE.has(byte))
  if (at === -1) return false
  const first = String.fromCharCode(bytes[at]!)
  return BEGINS[format].includes(first) || (format === 'json' && first === '"' && isJson(bytes.subarray(at)))
}

/** Other texts begin with a quote, too. Throws MediationFault without room in the heap. */
function isJson(bytes: Uint8Array): boolean {
  if (!hasHeapRoom(HEAP_PER_BYTE * bytes.length)) throw noRoom()
  try {
    JSON.parse(Buffer.from(bytes).toString('latin1').replaceAll('\0', ''))
    return true
  } catch {
    return false
  }
}

/** The payload to inspect; null for none. A body that begins as the format is one, whatever its content type says. */
function inspected(message: Message, policy: string, format: 'json' | 'xml'): Payload | null {
  const own = formatOfBody(message, policy)
  const isOwn = format === 'json' ? own === 'json' : isXmlFormat(own)
  return readBody(message, policy, () => {
    const { bodySource, bodyState } = message
    if (isOwn || bodySource === null || bodyState === 'replaced') return message.payload
    const raw = bodySource.build('application/octet-stream')
    const bytes = raw?.kind === 'binary' ? raw.bytes : Buffer.from(bodySource.text())
    return beginsAs(format, bytes) ? bodySource.build(`application/${format}`) : null
  })
}

const LIMIT_MAX = 1_000_000_000

/** Limits in attributes with these names; undefined after an error. A limit that is absent or 0 is none. */
function limitsIn<Name extends string>(
  element: XmlElement,
  names: readonly Name[],
  parser: SequenceParser,
): Readonly<Record<Name, number>> | undefined {
  const limits = names.map(name => [name, limitIn(element, name, parser)] as const)
  if (limits.some(([, limit]) => limit === undefined)) return undefined
  return Object.fromEntries(limits) as Record<Name, number>
}

export function limitIn(element: XmlElement, name: string, parser: SequenceParser): number | undefined {
  const given = element.attribute(name)
  if (given === '') return 0
  if (/^\d{1,10}$/.test(given) && Number(given) <= LIMIT_MAX) return Number(given)
  return parser.error(element, name, `expected a whole number, 0 to ${LIMIT_MAX}`, '0 is no limit', given)
}

const JSON_LIMITS = ['maxDepth', 'maxProperties', 'maxArrayElements', 'maxKeyLength', 'maxStringLength'] as const

/** `<jsonThreatProtection>`: of bodies whose content type is JSON, and of others that begin as JSON. */
export const jsonThreatProtection = mediator<JsonLimits>({
  name: 'jsonThreatProtection',
  attributes: JSON_LIMITS,
  elements: [],
  parse: (element, parser) => limitsIn(element, JSON_LIMITS, parser),
  needs: () => 'worker',
  compile: limits => message => {
    const payload = inspected(message, 'JSON threat protection', 'json')
    const violation = payload?.kind === 'json' ? jsonViolation(payload.text, limits) : ''
    return violation === '' || refuse(message, 'JSON threat protection', violation)
  },
})

const XML_LIMITS = [
  ...(['maxDepth', 'maxElements', 'maxAttributes', 'maxAttributeLength', 'maxChildren', 'maxTextLength'] as const),
] as const
const NEVER = ['dtdEnabled', 'externalEntitiesEnabled']

/** `<xmlThreatProtection>`: of bodies of XML and SOAP, and of others that begin as XML. Refuses all document types. */
export const xmlThreatProtection = mediator<XmlLimits>({
  name: 'xmlThreatProtection',
  attributes: [...XML_LIMITS, ...NEVER],
  elements: [],
  parse(element, parser) {
    for (const name of NEVER) {
      if (parser.flag(element, name))
        parser.warn(element, name, 'has no effect: document types are refused', 'remove it')
    }
    return limitsIn(element, XML_LIMITS, parser)
  },
  needs: () => 'worker',
  compile: limits => message => {
    const payload = inspected(message, 'XML threat protection', 'xml')
    const violation = payload?.kind === 'xml' ? xmlViolation(payload.root, limits) : ''
    return violation === '' || refuse(message, 'XML threat protection', violation)
  },
})

interface RegexSettings {
  /** For faults and logs. */
  readonly name: string
  readonly pattern: string
  readonly parts: readonly Part[]
}

const PARTS = ['headers', 'query', 'path', 'body'] as const
type Part = (typeof PARTS)[number]
/** `<regexThreatProtection>`: refuses what contains a match of the pattern, as sent or without its escapes. */
export const regexThreatProtection = mediator<RegexSettings>({
  name: 'regexThreatProtection',
  attributes: ['name', 'pattern', ...PARTS],
  elements: [],
  parse(element, parser) {
    const pattern = parser.pattern(element, 'pattern')
    const flags = PARTS.map(part => [part, parser.flag(element, part)] as const)
    if (pattern === undefined || flags.some(([, flag]) => flag === undefined)) return undefined
    const parts = flags.filter(([, flag]) => flag).map(([part]) => part)
    if (parts.length === 0) {
      return parser.error(element, '', 'inspects nothing', `set one of ${PARTS.join(', ')} to true`)
    }
    return { name: element.attribute('name') || 'regular expression', pattern, parts }
  },
  needs: ({ parts }) => (parts.includes('body') ? 'worker' : 'heads'),
  compile({ name, pattern, parts }) {
    let compiled: Pattern | undefined
    return message => {
      compiled ??= compilePattern(pattern)
      for (const part of parts) {
        for (const text of textsOf(message, part, name)) {
          if (compiled.test(text)) return refuse(message, name, `the ${part} of the request may not match`)
        }
      }
      return true
    }
  },
})

function* textsOf(message: Message, part: Part, policy: string): Generator<string> {
  if (part === 'headers') {
    for (const [, value] of message.keptFields()) yield value
    for (const [, value] of message.fields()) yield textOf(value)
    return
  }
  if (part === 'body') {
    const texts = readBody(message, policy, textsOfBody)
    if (isTooLong(texts)) refuse(message, policy, `the body has more than ${INSPECTED_MAX} characters`)
    yield* allTexts(texts)
    return
  }
  const { target } = message.receivedHead
  const query = target.indexOf('?')
  const sent =
    part === 'path' ? (query === -1 ? target : target.slice(0, query)) : query === -1 ? '' : target.slice(query + 1)
  yield sent
  const decoded = percentDecoded(part === 'query' ? sent.replaceAll('+', ' ') : sent)
  if (decoded !== sent) yield decoded
}

/** Bytes that are no UTF-8 hide none beside them: a backend may leave them out or replace them. */
function percentDecoded(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, run => Buffer.from(run.replaceAll('%', ''), 'hex').toString())
}
