/** `<header>`: sets or removes a header field, the destination (`To`), or a header block of SOAP. */
import type { XmlElement } from '../../config/xml.ts'
import type { Expression } from '../expression.ts'
import { fieldNameError } from '../field-rules.ts'
import { SEQUENCE_NAMESPACE } from '../functions.ts'
import { payloadElement } from '../json-xml.ts'
import { mediator } from '../mediator.ts'
import type { Message } from '../message.ts'
import { convertIn } from '../property-type.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import { envelope, soapVersion, withHeaderBlocks } from '../soap.ts'
import { textOf, type Value } from '../value.ts'
import { declared, element as xmlElement, elementsOf, localName, prefixOf, type XmlElementNode } from '../xml-tree.ts'

type What =
  | { readonly kind: 'field'; readonly name: string }
  /** Destination, or the field SOAPAction. */
  | { readonly kind: 'to' | 'action' }
  | Block
  /** Blocks as they are. */
  | { readonly kind: 'blocks'; readonly blocks: readonly XmlElementNode[] }

/** `namespace`: '' for none. */
interface Block {
  readonly kind: 'block'
  readonly name: string
  readonly namespace: string
}

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
      const { uses } = message.secrets
      const given = evaluate(message)
      const text = convertIn(message, given, 'STRING')
      if (text !== undefined) message.secrets.computed(text, uses)
      if (text === undefined) context.warn('the value is too long')
      const isSet = value !== null && text !== undefined
      if (what.kind === 'block') setBlock(message, what, isSet ? blockOf(what, given) : null)
      else set(message, what, isSet ? textOf(text) : null)
      return true
    }
  },
})

/** `text`: null removes it. */
function set(message: Message, what: Exclude<What, Block | { kind: 'blocks' }>, text: string | null): void {
  switch (what.kind) {
    case 'to':
      message.to = text ?? ''
      return
    case 'field':
    case 'action': {
      const name = what.kind === 'field' ? what.name : 'SOAPAction'
      if (text === null) message.remove('transport', name)
      else message.set('transport', name, what.kind === 'field' ? text : `"${text}"`)
    }
  }
}

/** `block`: null removes it. */
function setBlock(message: Message, { name, namespace }: Block, block: XmlElementNode | null): void {
  const blocks = block === null ? [] : [block]
  setBlocks(message, blocks, (local, of) => local === localName(name) && of === namespace)
}

/** An element of the block's name is the block. Another one stands in it with its elements, else with its text. */
function blockOf({ name, namespace }: Block, value: Value): XmlElementNode {
  const nodes = typeof value === 'object' && value.kind === 'xml' ? value.nodes : []
  const [first] = nodes
  if (first !== undefined && typeof first !== 'string') {
    const isNamed = localName(first.name) === localName(name)
    if (isNamed && (declared(first, prefixOf(first.name)) ?? '') === namespace) return first
  }
  const hasElements = nodes.some(node => typeof node !== 'string' && elementsOf(node).length > 0)
  const declaration = name.includes(':') ? `xmlns:${prefixOf(name)}` : 'xmlns'
  return xmlElement(name, hasElements ? nodes : [textOf(value)], [[declaration, namespace]])
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
  const namespace = prefix === '' ? '' : element.namespaceOf(prefix)
  const hint = 'write scope="transport" for a header field, or a declared prefix'
  if (!/^[A-Za-z_][\w.-]*$/.test(local)) {
    return parser.error(element, 'name', 'is no name of a header block of SOAP', hint, name)
  }
  if (namespace === undefined) {
    return parser.error(element, 'name', 'is no header of SOAP: it has no namespace', hint, name)
  }
  if (namespace === '') parser.warn(element, 'name', 'is a header block of SOAP without a namespace', hint)
  return { kind: 'block', name, namespace }
}
