/** `<enrich>`: puts a part of the message, a property or a constant into another place of the message or a property. */
import type { XmlElement } from '../../config/xml.ts'
import type { Expression, JsonPath, XPathExpression } from '../expression.ts'
import { compileNodes } from '../expression-compiler.ts'
import { editAll, jsonOfValue, type Location, locate, withChild, withKey, withSibling } from '../json-edit.ts'
import { elementWithin, payloadElement } from '../json-xml.ts'
import { MediationFault } from '../mediation-fault.ts'
import { type CompileContext, mediator } from '../mediator.ts'
import type { Message, Payload } from '../message.ts'
import { payloadOfValue, valueOfPayload } from '../payload-value.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import { bodyOf, envelope, soapVersion } from '../soap.ts'
import { type Json, textOf, type Value } from '../value.ts'
import { XmlDocument } from '../xml-edit.ts'
import type { XmlElementNode, XmlNode } from '../xml-tree.ts'

type PropertyScope = 'default' | 'variable'

type Source =
  | { readonly kind: 'expression'; readonly expression: Expression }
  | { readonly kind: 'envelope' | 'body' }
  | { readonly kind: 'property'; readonly scope: PropertyScope; readonly name: string }
  | { readonly kind: 'inline'; readonly content: XmlElementNode | string }

type Target =
  | { readonly kind: 'json'; readonly path: JsonPath }
  | { readonly kind: 'xml'; readonly expression: XPathExpression }
  /** Renames the members that the path finds. */
  | { readonly kind: 'key'; readonly path: JsonPath }
  | { readonly kind: 'envelope' | 'body' }
  | { readonly kind: 'property'; readonly scope: PropertyScope; readonly name: string }

const ACTIONS = ['replace', 'child', 'sibling', 'remove'] as const
type Action = (typeof ACTIONS)[number]

interface EnrichSettings {
  /** null: the action is `remove`. */
  readonly source: Source | null
  /** The source stays where it is; false: an element that an XPath finds moves. */
  readonly isCopied: boolean
  readonly target: Target
  readonly action: Action
}

const TYPES = ['custom', 'envelope', 'body', 'property', 'variable', 'inline', 'key'] as const

export const enrich = mediator<EnrichSettings>({
  name: 'enrich',
  attributes: [],
  elements: ['source', 'target'],

  parse(element, parser) {
    const [given, into] = [parser.only(element, 'source'), parser.only(element, 'target')]
    if (into === undefined) return parser.error(element, 'target', 'is missing', 'add <target>')
    const action = parser.choice(into, 'action', ACTIONS, 'replace')
    const target = parseTarget(into, parser)
    if (target === undefined || action === undefined) return undefined
    if (action !== 'replace' && target.kind === 'key') {
      return parser.error(into, 'action', 'has no meaning for a key', 'remove it', action)
    }
    if (action !== 'replace' && action !== 'remove' && target.kind === 'property') {
      return parser.error(into, 'action', 'has no meaning for a property', 'replace it', action)
    }
    if (action === 'remove') return { source: null, isCopied: true, target, action }
    if (given === undefined) return parser.error(element, 'source', 'is missing', 'add <source>')
    const source = parseSource(given, parser)
    const isCopied = parser.flag(given, 'clone')
    return source === undefined || isCopied === undefined ? undefined : { source, isCopied, target, action }
  },

  needs: () => 'worker',

  compile({ source, isCopied, target, action }, context) {
    const read = source === null ? () => '' : compileSource(source, context)
    if (target.kind === 'property') {
      const { scope, name } = target
      return message => {
        if (source === null) message.remove(scope, name)
        else message.set(scope, name, read(message))
        return true
      }
    }
    const write = compileTarget(target, action, movedBy(source, isCopied), context)
    return message => {
      write(message, read(message))
      return true
    }
  },
})

/** The expression whose nodes leave their place; null where they stay. */
function movedBy(source: Source | null, isCopied: boolean): XPathExpression | null {
  if (isCopied || source?.kind !== 'expression') return null
  return source.expression.kind === 'xpath' ? source.expression : null
}

function parseSource(source: XmlElement, parser: SequenceParser): Source | undefined {
  parser.checkAttributes(source, ['type', 'clone', 'xpath', 'property', 'key'])
  const type = parser.choice(source, 'type', TYPES, 'custom')
  if (type !== 'inline') {
    parser.checkElements(source, [])
    parser.checkNoText(source)
  }
  switch (type) {
    case undefined:
      return undefined
    case 'custom': {
      const expression = parser.expression(source, 'xpath')
      return expression === undefined ? undefined : { kind: 'expression', expression }
    }
    case 'property':
    case 'variable': {
      const name = parser.required(source, 'property')
      return name === undefined
        ? undefined
        : { kind: 'property', scope: type === 'variable' ? 'variable' : 'default', name }
    }
    case 'inline':
      return inlineSource(source, parser)
    case 'key':
      return parser.error(source, 'type', 'is only for a target', 'write the content inline', 'key')
    default:
      return { kind: type }
  }
}

function inlineSource(source: XmlElement, parser: SequenceParser): Source | undefined {
  if (source.has('key')) {
    return parser.error(source, 'key', 'names a resource of a registry, which there is none', 'write it inline')
  }
  const [inner, second] = source.children
  if (second !== undefined) return parser.error(second, '', 'is a second element', 'put one element around both')
  if (inner !== undefined) return { kind: 'inline', content: parser.tree(inner) }
  return { kind: 'inline', content: source.text.trim() }
}

function parseTarget(target: XmlElement, parser: SequenceParser): Target | undefined {
  parser.checkAttributes(target, ['type', 'action', 'xpath', 'property'])
  parser.checkElements(target, [])
  parser.checkNoText(target)
  const type = parser.choice(target, 'type', TYPES, 'custom')
  if (type === undefined) return undefined
  if (type === 'inline') return parser.error(target, 'type', 'is only for a source', 'name the place', 'inline')
  if (type === 'envelope' || type === 'body') return { kind: type }
  if (type === 'property' || type === 'variable') {
    const name = parser.required(target, 'property')
    return name === undefined ? undefined : { kind: 'property', scope: type === 'variable' ? type : 'default', name }
  }
  const expression = parser.expression(target, 'xpath')
  if (expression === undefined) return undefined
  if (expression.kind === 'json-path') return { kind: type === 'key' ? 'key' : 'json', path: expression.path }
  if (expression.kind === 'xpath' && type === 'custom') return { kind: 'xml', expression }
  const hint = type === 'key' ? 'write json-eval($.a)' : 'write json-eval($.a) or //a'
  return parser.error(target, 'xpath', 'is no path into the body', hint, target.attribute('xpath'))
}

/** The closure throws MediationFault where there is no source. */
function compileSource(source: Source, context: CompileContext): (message: Message) => Value {
  switch (source.kind) {
    case 'expression': {
      const evaluate = context.compileExpression(source.expression)
      return message => {
        const value = evaluate(message)
        if (typeof value === 'object' && value.kind === 'xml' && value.nodes.length === 0) throw noSource()
        return value
      }
    }
    case 'envelope':
      return ({ payload }) =>
        valueOfPayload(payload?.kind === 'xml' ? { kind: 'xml', root: enveloped(payload) } : payload)
    case 'body':
      return ({ payload }) =>
        valueOfPayload(payload?.kind === 'xml' ? { kind: 'xml', root: content(payload) } : payload)
    case 'property':
      return message => {
        const value = message.get(source.scope, source.name)
        if (value === undefined) throw noSource()
        return value
      }
    case 'inline': {
      const inline = inlineValue(source.content)
      return () => inline
    }
  }
}

function noSource(): MediationFault {
  return new MediationFault({ message: 'The message could not be enriched', cause: 'there is no source' })
}

function inlineValue(inline: XmlElementNode | string): Value {
  if (typeof inline !== 'string') return { kind: 'xml', nodes: [inline] }
  const json = jsonOfValue(inline)
  return typeof json === 'object' && json !== null ? { kind: 'json', value: json } : inline
}

function enveloped(payload: Payload): XmlElementNode {
  const root = payloadElement(payload)
  return soapVersion(root, 'Envelope') === undefined ? envelope('soap11', [root]) : root
}

/** The first element of the Body. */
function content(payload: Payload): XmlElementNode {
  const root = payloadElement(payload)
  return soapVersion(root, 'Envelope') === undefined ? root : (bodyOf(root)[0] ?? root)
}

type Write = (message: Message, value: Value) => void

function compileTarget(
  target: Exclude<Target, { kind: 'property' }>,
  action: Action,
  moved: XPathExpression | null,
  { warn }: CompileContext,
): Write {
  switch (target.kind) {
    case 'json':
      return (message, value) =>
        editPlaces(message, target.path, (json, places) => jsonAction(json, places, action, value))
    case 'key':
      return (message, value) =>
        editPlaces(message, target.path, (json, places) =>
          oneByOne(json, places, (whole, at) => withKey(whole, at, textOf(value))),
        )
    case 'xml': {
      const find = compileNodes(target.expression, warn)
      const findMoved = moved === null ? null : compileNodes(moved, warn)
      return (message, value) => {
        const document = new XmlDocument(message.payload)
        const targets = find(message, document.root)
        if (targets.length === 0) return
        for (const node of findMoved?.(message, document.root) ?? []) document.remove(node)
        const nodes = nodesOfValue(value)
        for (const node of action === 'remove' ? targets : targets.slice(0, 1)) {
          if (action === 'remove') document.remove(node)
          else if (action === 'child') document.append(node, nodes)
          else if (action === 'sibling') document.insertAfter(node, nodes)
          else document.replace(node, nodes)
        }
        message.payload = document.payload()
      }
    }
    case 'body':
      return (message, value) => writeBody(message, action, value)
    case 'envelope':
      return (message, value) => {
        if (action !== 'replace') writeBody(message, action, value)
        else setPayload(message, payloadOfValue(value, '', message))
      }
  }
}

/** Edits that change what is beside a place; each copies the parent. */
const PLACES_MAX = 1000

function editPlaces(message: Message, path: JsonPath, edit: (json: Json, places: readonly Location[]) => Json): void {
  const { json } = message
  if (json === undefined) return
  const places = locate(path, json)
  if (places.length > 0) message.json = edit(json, places)
}

/** From the last place to the first one: an edit moves what comes after it. */
function oneByOne(json: Json, places: readonly Location[], edit: (json: Json, at: Location) => Json): Json {
  if (places.length <= PLACES_MAX) return [...places].reverse().reduce(edit, json)
  const cause = `the target has more than ${PLACES_MAX} places`
  throw new MediationFault({ message: 'The message could not be enriched', cause })
}

function jsonAction(json: Json, places: readonly Location[], action: Action, value: Value): Json {
  if (action === 'remove') return editAll(json, places, () => undefined)
  const source = jsonOfValue(value)
  if (action === 'replace') return editAll(json, places, () => source)
  if (action === 'sibling') return oneByOne(json, places, (whole, at) => withSibling(whole, at, source))
  return editAll(json, places, place => withChild(place, source))
}

function nodesOfValue(value: Value): readonly XmlNode[] {
  if (typeof value !== 'object') return [textOf(value)]
  if (value.kind === 'xml') return value.nodes
  return [elementWithin(value.value)]
}

/** `child` and `sibling` add to what the Body, or the JSON value, holds. */
function writeBody(message: Message, action: Action, value: Value): void {
  const { payload } = message
  if (action === 'remove') message.payload = null
  else if (action !== 'replace' && payload?.kind === 'json') message.json = withChild(message.json!, jsonOfValue(value))
  else if (action !== 'replace') {
    const document = new XmlDocument(payload)
    document.append(document.body, nodesOfValue(value))
    message.payload = document.payload()
  } else if (payload?.kind === 'xml' && soapVersion(payload.root, 'Envelope') !== undefined && isXml(value)) {
    const document = new XmlDocument(payload)
    for (const node of [...document.body.childNodes]) document.remove(node)
    document.append(document.body, nodesOfValue(value))
    message.payload = document.payload()
  } else setPayload(message, payloadOfText(value, message))
}

function isXml(value: Value): boolean {
  return typeof value === 'object' && value.kind === 'xml'
}

/** A text that is a JSON object or array is JSON. */
function payloadOfText(value: Value, message: Message): Payload | null {
  const json = typeof value === 'string' ? jsonOfValue(value) : null
  if (typeof json === 'object' && json !== null) return { kind: 'json', text: textOf(value) }
  return payloadOfValue(value, '', message)
}

const MESSAGE_TYPES: Partial<Record<Payload['kind'], string>> = { json: 'application/json', xml: 'application/xml' }

/** A payload of another kind has the content type of its kind. */
function setPayload(message: Message, payload: Payload | null): void {
  const before = message.payload?.kind
  message.payload = payload
  if (payload === null || payload.kind === before) return
  const type = MESSAGE_TYPES[payload.kind]
  if (type !== undefined) message.set('axis2', 'messageType', type)
}
