/** `<makefault>`: the payload becomes a SOAP Fault, or a plain `<Exception>`. */
import type { XmlElement } from '../../config/xml.ts'
import type { Expression } from '../expression.ts'
import { mediator } from '../mediator.ts'
import type { Reading } from '../reading.ts'
import { codeOf, SOAP_NAMESPACES, type SoapVersion, writeFault } from '../soap.ts'
import { textOf, type Value } from '../value.ts'
import { element as xmlElement, localName, type XmlElementNode, type XmlNode } from '../xml-tree.ts'

interface FaultSettings {
  readonly version: SoapVersion | 'pox'
  /** What it says of the message: that it is a response, that it is none; null: nothing. */
  readonly response: boolean | null
  readonly code: Expression
  readonly reason: Expression
  readonly node: string
  readonly role: string
  /** Elements that are the detail themselves. */
  readonly detail: Expression | readonly XmlElementNode[]
}

const NONE: Expression = { kind: 'literal', value: '' }
/** SOAP 1.1 4.4.1, SOAP 1.2 5.4.6. */
const CODES: Readonly<Record<SoapVersion, readonly string[]>> = {
  soap11: ['VersionMismatch', 'MustUnderstand', 'Client', 'Server'],
  soap12: ['VersionMismatch', 'MustUnderstand', 'DataEncodingUnknown', 'Sender', 'Receiver'],
}

export const makefault = mediator<FaultSettings>({
  name: 'makefault',
  attributes: ['version', 'response'],
  elements: ['code', 'reason', 'node', 'role', 'detail'],

  read(element, reading) {
    const version = reading.choice(element, 'version', ['soap11', 'soap12', 'pox'], 'soap11')
    const response = element.has('response') ? reading.flag(element, 'response') : null
    if (version === undefined || response === undefined) return undefined
    const code = readCode(element, version, reading)
    const reason = readReason(element, reading)
    const detail = readDetail(reading.only(element, 'detail'), reading)
    const [node, role] = ['node', 'role'].map(name => readText(reading.only(element, name), reading))
    if (code === undefined || reason === undefined || detail === undefined) return undefined
    return { version, response, code, reason, node: node!, role: role!, detail }
  },

  compile({ version, response, code, reason, node, role, detail }, compiling) {
    const [codeText, reasonText] = [compiling.expression(code), compiling.expression(reason)]
    const evaluate = 'kind' in detail ? compiling.expression(detail) : (): Value => ({ kind: 'xml', nodes: detail })
    return message => {
      const reasonGiven = textOf(reasonText(message))
      const details = nodesOf(evaluate(message))
      if (version === 'pox') {
        const root = xmlElement('Exception', details.length === 0 ? [reasonGiven] : details)
        message.payload = { kind: 'xml', root }
      } else {
        const given = localName(textOf(codeText(message)))
        const known = CODES[version].includes(codeOf(version, given))
        if (!known) compiling.complain('the code of the fault is none of SOAP')
        const fault = { code: known ? given : 'Server', reason: reasonGiven, node, role, detail: details }
        message.payload = { kind: 'xml', root: writeFault(version, fault) }
      }
      if (response !== null) message.set('default', 'RESPONSE', String(response))
      return true
    }
  },
})

function nodesOf(value: Value): readonly XmlNode[] {
  if (typeof value === 'object' && value.kind === 'xml') return value.nodes
  const text = textOf(value)
  return text === '' ? [] : [text]
}

/** A name with a prefix of the namespace of its version. */
function readCode(element: XmlElement, version: SoapVersion | 'pox', reading: Reading): Expression | undefined {
  const code = reading.only(element, 'code')
  if (code === undefined) {
    return version === 'pox' ? NONE : reading.fault(element, 'code', 'is missing', 'add <code>')
  }
  reading.attributes(code, ['value', 'expression'])
  const from = reading.valueOrExpression(code)
  if (version === 'pox' || from?.kind !== 'literal' || code.has('expression')) return from
  const given = String(from.value)
  const [prefix, name] = given.includes(':') ? given.split(':') : ['', given]
  if (code.namespaceOf(prefix!) !== SOAP_NAMESPACES[version]) {
    const remedy = `declare its prefix as ${SOAP_NAMESPACES[version]}`
    return reading.fault(code, 'value', `is no name of ${version}`, remedy, given)
  }
  if (CODES[version].includes(name!)) return from
  return reading.fault(code, 'value', `is no code of ${version}`, `known are ${CODES[version].join(', ')}`, given)
}

function readReason(element: XmlElement, reading: Reading): Expression | undefined {
  const reason = reading.only(element, 'reason')
  if (reason === undefined) return reading.fault(element, 'reason', 'is missing', 'add <reason>')
  reading.attributes(reason, ['value', 'expression'])
  return reading.valueOrExpression(reason)
}

function readDetail(
  detail: XmlElement | undefined,
  reading: Reading,
): Expression | readonly XmlElementNode[] | undefined {
  if (detail === undefined) return NONE
  reading.attributes(detail, ['expression'])
  if (detail.has('expression')) {
    reading.elements(detail, [])
    reading.noText(detail)
    return reading.expression(detail, 'expression')
  }
  if (detail.children.length === 0) return { kind: 'literal', value: detail.text }
  reading.noText(detail)
  return detail.children.map(child => reading.tree(child))
}

function readText(within: XmlElement | undefined, reading: Reading): string {
  if (within === undefined) return ''
  reading.attributes(within, [])
  reading.elements(within, [])
  return within.text
}
