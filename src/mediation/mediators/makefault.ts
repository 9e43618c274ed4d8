/** `<makefault>`: replaces the payload by a SOAP Fault, or by a plain `<Exception>`. */
import type { XmlElement } from '../../config/xml.ts'
import type { Expression } from '../expression.ts'
import { mediator } from '../mediator.ts'
import type { Message } from '../message.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import { codeOf, SOAP_NAMESPACES, soapVersion, type SoapVersion, writeFault } from '../soap.ts'
import { textOf, type Value } from '../value.ts'
import { element as xmlElement, localName, type XmlElementNode, type XmlNode } from '../xml-tree.ts'

interface FaultSettings {
  /** `message`: that of the Envelope of the message, soap11 without one. */
  readonly version: SoapVersion | 'pox' | 'message'
  /** Marks the message as a response, or as none. */
  readonly response: boolean
  readonly code: Expression
  readonly reason: Expression
  readonly node: string
  readonly role: string
  /** An expression, or the elements of the detail. */
  readonly detail: Expression | readonly XmlElementNode[]
}

const NONE: Expression = { kind: 'literal', value: '' }
const SOAP_VERSIONS: readonly SoapVersion[] = ['soap11', 'soap12']
/** SOAP 1.1 4.4.1, SOAP 1.2 5.4.6. */
const CODES: Readonly<Record<SoapVersion, readonly string[]>> = {
  soap11: ['VersionMismatch', 'MustUnderstand', 'Client', 'Server'],
  soap12: ['VersionMismatch', 'MustUnderstand', 'DataEncodingUnknown', 'Sender', 'Receiver'],
}

export const makefault = mediator<FaultSettings>({
  name: 'makefault',
  attributes: ['version', 'response'],
  elements: ['code', 'reason', 'node', 'role', 'detail'],

  parse(element, parser) {
    const given = parser.choice(element, 'version', ['soap11', 'soap12', 'pox'], 'soap11')
    const version = element.has('version') ? given : (versionOfCode(element) ?? 'message')
    // Without the attribute too, so that a refused request does not reach the backend.
    const response = parser.choice(element, 'response', ['true', 'false'], 'true')
    if (version === undefined || response === undefined) return undefined
    const code = readCode(element, version, parser)
    const reason = readReason(element, parser)
    const detail = readDetail(parser.only(element, 'detail'), parser)
    const [node, role] = ['node', 'role'].map(name => readText(parser.only(element, name), parser))
    if (code === undefined || reason === undefined || detail === undefined) return undefined
    return { version, response: response === 'true', code, reason, node: node!, role: role!, detail }
  },

  needs: () => 'worker',

  compile({ version, response, code, reason, node, role, detail }, context) {
    const [codeText, reasonText] = [context.compileExpression(code), context.compileExpression(reason)]
    const evaluate =
      'kind' in detail ? context.compileExpression(detail) : (): Value => ({ kind: 'xml', nodes: detail })
    return message => {
      const reasonGiven = textOf(reasonText(message))
      const details = nodesOf(evaluate(message))
      if (version === 'pox') {
        const root = xmlElement('Exception', details.length === 0 ? [reasonGiven] : details)
        message.payload = { kind: 'xml', root }
      } else {
        const soap = version === 'message' ? versionOf(message) : version
        const given = localName(textOf(codeText(message)))
        const known = CODES[soap].includes(codeOf(soap, given))
        if (!known) context.warn('the code of the fault is not a SOAP code')
        const fault = { code: known ? given : 'Server', reason: reasonGiven, node, role, detail: details }
        message.payload = { kind: 'xml', root: writeFault(soap, fault) }
      }
      message.set('default', 'RESPONSE', String(response))
      return true
    }
  },
})

/** The version whose namespace a literal code has; undefined for another code. */
function versionOfCode(element: XmlElement): SoapVersion | undefined {
  const code = element.child('code')
  const [prefix = ''] = code?.attribute('value').split(':', 1) ?? []
  const namespace = code?.namespaceOf(prefix)
  return SOAP_VERSIONS.find(version => SOAP_NAMESPACES[version] === namespace)
}

function versionOf({ payload }: Message): SoapVersion {
  return (payload?.kind === 'xml' ? soapVersion(payload.root, 'Envelope') : undefined) ?? 'soap11'
}

function nodesOf(value: Value): readonly XmlNode[] {
  if (typeof value === 'object' && value.kind === 'xml') return value.nodes
  const text = textOf(value)
  return text === '' ? [] : [text]
}

/** A literal code is a qualified name in the namespace of its version. */
function readCode(
  element: XmlElement,
  version: FaultSettings['version'],
  parser: SequenceParser,
): Expression | undefined {
  const code = parser.only(element, 'code')
  if (code === undefined) {
    return version === 'pox' ? NONE : parser.error(element, 'code', 'is missing', 'add <code>')
  }
  parser.checkAttributes(code, ['value', 'expression'])
  const from = parser.valueOrExpression(code)
  if (version === 'pox' || from?.kind !== 'literal' || code.has('expression')) return from
  const given = String(from.value)
  const [prefix, name] = given.includes(':') ? given.split(':') : ['', given]
  if (version === 'message') {
    const hint = `declare its prefix as ${Object.values(SOAP_NAMESPACES).join(' or ')}`
    return parser.error(code, 'value', 'is not a name of soap11 or soap12', hint, given)
  }
  if (code.namespaceOf(prefix!) !== SOAP_NAMESPACES[version]) {
    const hint = `declare its prefix as ${SOAP_NAMESPACES[version]}`
    return parser.error(code, 'value', `is not a name of ${version}`, hint, given)
  }
  if (CODES[version].includes(name!)) return from
  return parser.error(
    code,
    'value',
    `is not a code of ${version}`,
    `known codes are ${CODES[version].join(', ')}`,
    given,
  )
}

function readReason(element: XmlElement, parser: SequenceParser): Expression | undefined {
  const reason = parser.only(element, 'reason')
  if (reason === undefined) return parser.error(element, 'reason', 'is missing', 'add <reason>')
  parser.checkAttributes(reason, ['value', 'expression'])
  return parser.valueOrExpression(reason)
}

function readDetail(
  detail: XmlElement | undefined,
  parser: SequenceParser,
): Expression | readonly XmlElementNode[] | undefined {
  if (detail === undefined) return NONE
  parser.checkAttributes(detail, ['expression'])
  if (detail.has('expression')) {
    parser.checkElements(detail, [])
    parser.checkNoText(detail)
    return parser.expression(detail, 'expression')
  }
  if (detail.children.length === 0) return { kind: 'literal', value: detail.text }
  parser.checkNoText(detail)
  return detail.children.map(child => parser.tree(child))
}

function readText(within: XmlElement | undefined, parser: SequenceParser): string {
  if (within === undefined) return ''
  parser.checkAttributes(within, [])
  parser.checkElements(within, [])
  return within.text
}
