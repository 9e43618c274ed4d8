/** `<header>`: sets or removes a header field, the destination (`To`), or a header block of SOAP. */
import type { XmlElement } from '../../config/xml.ts'
import type { Expression } from '../expression.ts'
import { fieldNameError } from '../field-rules.ts'
import { SEQUENCE_NAMESPACE } from '../functions.ts'
import { payloadElement } from '../json-xml.ts'
import { mediator } from '../mediator.ts'
import type { Message } from '../message.ts'
import { convertTo } from '../property-type.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import { envelope, soapVersion, withHeaderBlocks } from '../soap.ts'
import { textOf } from '../value.ts'
import { element as xmlElement, localName, type XmlElementNode } from '../xml-tree.ts'

type What =
  | { readonly kind: 'field'; readonly name: string }
  /** Destination, or the field SOAPAction. */
  | { readonly kind: 'to' | 'action' }
  | { readonly kind: 'block'; readonly name: string; readonly namespace: string }
  /** Blocks as they are. */
  | { readonly kind: 'blocks'; readonly blocks: readonly XmlElementNode[] }

interface HeaderSettings {
  readonly what: What
  /** null: removes it. */
  readonly value: Expression | null
}

/** Names of the default scope that stand for WS-Addressing. */
const ADDRESSING = ['From', 'FaultTo', 'ReplyTo', 'RelatesTo']

export const header = mediator<HeaderSettings>({
  name: 'header',
  attributes: ['name', 'value', 'expression', 'scope', 'action'],
  elements: null,

  parse(element, parser) {
    if (!element.has('name') && element.children.length > 0) return inlineBlocks(element, parser)
    parser.checkElements(element, [])
    const name = parser.required(element, 'name')
    const scope = parser.choice(element, 'scope', ['default', 'transport'], 'default')
    const action = parser.choice(element, 'action', ['set', 'remove'], 'set')
    if (name === undefined || scope === undefined || action === undefined) return undefined
    const what =
      scope === 'default' ? defaultScope(element, name, parser) : field(element, name, action === 'remove', parser)
    if (what === undefined) return undefined
    if (action === 'set') {
      const value = parser.valueOrExpression(element)
      return value === undefined ? undefined : { what, value }
    }
    for (const other of ['value', 'expression']) {
      if (element.has(other)) parser.error(element, other, 'has no effect with action="remove"', 'remove it')
    }
    return { what, value: null }
  },

  needs({ what, value }, context) {
    if (what.kind === 'block' || what.kind === 'blocks') return 'worker'
    if (what.kind !== 'to' && (value === null || value.kind === 'literal')) return 'constant'
    return value === null ? 'heads' : context.expression(value)
  },

  compile({ what, value }, context) {
    if (what.kind === 'blocks') {
      const names = what.blocks.map(({ name }) => localName(name))
      return message => {
        setBlocks(message, what.blocks, (local, _) => names.includes(local))
        return true
      }
    }
    const evaluate = value === null ? () => '' : context.compileExpression(value)
    return message => {
      const text = convertTo(evaluate(message), 'STRING')
      if (text === undefined) context.warn('the value is too long')
      set(message, what, value === null || text === undefined ? null : textOf(text))
      return true
    }
  },
})

/** `text`: null removes it. */
function set(message: Message, what: Exclude<What, { kind: 'blocks' }>, text: string | null): void {
  switch (what.kind) {
    case 'to':
      message.to = text ?? ''
      return
    case 'field':
    case 'action': {
      const name = what.kind === 'field' ? what.name : 'SOAPAction'
      if (text === null) message.remove('transport', name)
      else message.set('transport', name, what.kind === 'field' ? text : `"${text}"`)
      return
    }
    case 'block': {
      const { name, namespace } = what
      const declaration = name.includes(':') ? `xmlns:${name.split(':', 1)[0]}` : 'xmlns'
      const blocks = text === null ? [] : [xmlElement(name, [text], [[declaration, namespace]])]
      setBlocks(message, blocks, (local, of) => local === localName(name) && of === namespace)
    }
  }
}

/** Replaces blocks; the message becomes an Envelope where there is something to put in its Header. */
export function setBlocks(
  message: Message,
  blocks: readonly XmlElementNode[],
  isReplaced: (local: string, namespace: string) => boolean,
): void {
  const { payload } = message
  const root = payload === null ? null : payloadElement(payload)
  const isEnvelope = root !== null && soapVersion(root, 'Envelope') !== undefined
  if (!isEnvelope && blocks.length === 0) return
  const enclosing = isEnvelope ? root : envelope('soap11', root === null ? [] : [root])
  message.payload = { kind: 'xml', root: withHeaderBlocks(enclosing, blocks, isReplaced) }
}

function inlineBlocks(element: XmlElement, parser: SequenceParser): HeaderSettings | undefined {
  for (const { name } of element.attributes) {
    if (name !== 'description') parser.error(element, name, 'has no effect with elements', 'remove it')
  }
  const blocks = element.children.filter(({ namespace }) => namespace !== '' && namespace !== SEQUENCE_NAMESPACE)
  if (blocks.length < element.children.length) {
    parser.checkElements(element, [])
    return undefined
  }
  const value: Expression = { kind: 'literal', value: '' }
  return { what: { kind: 'blocks', blocks: blocks.map(block => parser.tree(block)) }, value }
}

function field(element: XmlElement, name: string, isRemoved: boolean, parser: SequenceParser): What | undefined {
  const why = fieldNameError(name, isRemoved)
  return why === '' ? { kind: 'field', name } : parser.error(element, 'name', why, 'remove it', name)
}

function defaultScope(element: XmlElement, name: string, parser: SequenceParser): What | undefined {
  if (name === 'To') return { kind: 'to' }
  if (name === 'Action') return { kind: 'action' }
  if (ADDRESSING.includes(name)) {
    return parser.error(element, 'name', 'is of WS-Addressing, which is not supported', 'remove it', name)
  }
  const [prefix, local] = name.includes(':') ? (name.split(':') as [string, string]) : ['', name]
  const namespace = prefix === '' ? undefined : element.namespaceOf(prefix)
  if (namespace !== undefined && /^[A-Za-z_][\w.-]*$/.test(local)) return { kind: 'block', name, namespace }
  const hint = 'write scope="transport" for a header field, or a declared prefix'
  return parser.error(element, 'name', 'is no header of SOAP: it has no namespace', hint, name)
}
