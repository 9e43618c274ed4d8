/** `<enrich>`: puts a part of the message, a property or a constant into another place of the message or a property. */
import { servicesOf } from '../backend-calls.ts'
import type { JsonPath, XPathExpression } from '../expression.ts'
import { compileNodes } from '../expression-compiler.ts'
import { jsonPayload, writtenValue } from '../formats/json-text.ts'
import { editAll, jsonOfValue, type Location, locate, withChild, withKeys, withSiblings } from '../json-edit.ts'
import { elementWithin, jsonOfXml, payloadElement } from '../json-xml.ts'
import { MediationFault } from '../mediation-fault.ts'
import { type CompileContext, mediator } from '../mediator.ts'
import type { Message, Payload } from '../message.ts'
import { payloadOfValue, valueOfPayload } from '../payload-value.ts'
import { firstOfBody, envelope, soapVersion } from '../soap.ts'
import { type Json, textOf, type Value } from '../value.ts'
import { XmlDocument } from '../xml-edit.ts'
import type { XmlElementNode, XmlNode } from '../xml-tree.ts'
import {
  type Action,
  type EnrichSettings,
  parseEnrich,
  type Parts,
  type Source,
  type Target,
} from './enrich-settings.ts'

const NOT_ENRICHED = 'The message could not be enriched'

export const enrich = mediator<EnrichSettings>({
  name: 'enrich',
  attributes: [],
  elements: ['source', 'target'],
  parse: parseEnrich,

  needs: () => 'worker',

  compile(settings, context) {
    const { source } = settings
    const write = compileWrite(settings, context)
    if (source?.kind === 'entry') {
      return async message => {
        write(message, entryValue(await servicesOf(message).code.text(source.key), message))
        return true
      }
    }
    const read = source === null ? () => '' : compileSource(source, context)
    return message => {
      write(message, read(message))
      return true
    }
  },
})

function compileWrite({ source, removed, isCopied, target, action }: EnrichSettings, context: CompileContext): Write {
  if (target.kind === 'property') return compileProperty(target, action, removed, context)
  const leave = removed === null ? null : compileRemoval(removed, context)
  if (leave === null) return compileTarget(target, action, movedBy(source, isCopied), context)
  return message => {
    const { payload } = message
    const left = payload === null ? null : leave(message, payload)
    if (left !== payload) message.payload = left
  }
}

/** The expression whose nodes leave their place; null where they stay. */
function movedBy(source: Source | null, isCopied: boolean): XPathExpression | null {
  if (isCopied || source?.kind !== 'expression') return null
  return source.expression.kind === 'xpath' ? source.expression : null
}

function compileProperty(
  { scope, name }: Extract<Target, { kind: 'property' }>,
  action: Action,
  removed: Parts | null,
  context: CompileContext,
): Write {
  if (action === 'replace') return (message, value) => message.set(scope, name, value)
  if (removed === null && action === 'remove') return message => message.remove(scope, name)
  const leave = removed === null ? null : compileRemoval(removed, context)
  return (message, value) => {
    const before = message.get(scope, name)
    const isAbsent = before === undefined || before === ''
    if (leave === null) {
      message.set(scope, name, isAbsent ? structured(value) : withChildIn(structured(before), value))
      return
    }
    const payload = isAbsent ? null : payloadOfText(before, message)
    if (payload === null) return
    const left = leave(message, payload)
    if (left === null) message.remove(scope, name)
    else if (left !== payload) message.set(scope, name, valueOfPayload(left))
  }
}

/** A text that is a JSON object or array is its value. */
function structured(value: Value): Value {
  if (typeof value !== 'string') return value
  const json = jsonOfValue(value)
  return typeof json === 'object' && json !== null ? { kind: 'json', value: json } : value
}

/** The value of a property with a child in it. */
function withChildIn(value: Value, child: Value): Value {
  if (typeof value === 'object' && value.kind === 'json') {
    return { kind: 'json', value: withChild(value.value, jsonOfValue(child)) }
  }
  const [root] = typeof value === 'object' ? value.nodes : []
  if (root === undefined || typeof root === 'string')
    throw notEnriched('the property holds neither JSON nor an element')
  const document = new XmlDocument({ kind: 'xml', root })
  const { body } = document
  document.append([...body.childNodes].find(({ nodeType }) => nodeType === body.nodeType) ?? body, nodesOfValue(child))
  return valueOfPayload(document.payload())
}

/** Returns the rest of a payload; the payload itself where the parts are not in it. */
type Leave = (message: Message, payload: Payload) => Payload | null

function compileRemoval(removed: Parts, { warn }: CompileContext): Leave {
  if (removed.kind === 'json') {
    return (_, payload) => {
      if (payload.kind !== 'json') return payload
      const json = writtenValue(payload)
      const places = removed.paths.flatMap(path => locate(path, json))
      return places.length === 0 ? payload : jsonPayload(editAll(json, places, () => undefined))
    }
  }
  const find = compileNodes(removed.expression, warn)
  return (message, payload) => {
    const document = new XmlDocument(payload)
    const nodes = find(message, document.root)
    for (const node of nodes) document.remove(node)
    return nodes.length === 0 ? payload : document.payload()
  }
}

/** The closure throws MediationFault where there is no source. */
function compileSource(
  source: Exclude<Source, { kind: 'entry' }>,
  context: CompileContext,
): (message: Message) => Value {
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
  return notEnriched('there is no source')
}

function notEnriched(cause: string): MediationFault {
  return new MediationFault({ message: NOT_ENRICHED, cause })
}

/** The text of an entry: JSON, an element of XML, or text. */
function entryValue(text: string, message: Message): Value {
  const value = inlineValue(text.trim())
  if (typeof value !== 'string' || !value.startsWith('<')) return value
  return valueOfPayload(servicesOf(message).parse(value, 'application/xml'))
}

function inlineValue(inline: XmlElementNode | string): Value {
  if (typeof inline !== 'string') return { kind: 'xml', nodes: [inline] }
  return structured(inline)
}

function enveloped(payload: Payload): XmlElementNode {
  const root = payloadElement(payload)
  return soapVersion(root, 'Envelope') === undefined ? envelope('soap11', [root]) : root
}

/** The first element of the Body. */
function content(payload: Payload): XmlElementNode {
  const root = payloadElement(payload)
  return soapVersion(root, 'Envelope') === undefined ? root : (firstOfBody(root) ?? root)
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
        editPlaces(message, target.path, (json, places) => withKeys(json, limited(places), textOf(value)))
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

/** Edits that change what is beside a place. */
const PLACES_MAX = 1000

function editPlaces(message: Message, path: JsonPath, edit: (json: Json, places: readonly Location[]) => Json): void {
  const { json } = message
  if (json === undefined) return
  const places = locate(path, json)
  if (places.length > 0) message.json = edit(json, places)
}

function limited(places: readonly Location[]): readonly Location[] {
  if (places.length <= PLACES_MAX) return places
  throw notEnriched(`the target has more than ${PLACES_MAX} places`)
}

function jsonAction(json: Json, places: readonly Location[], action: Action, value: Value): Json {
  if (action === 'remove') return editAll(json, places, () => undefined)
  const source = jsonOfValue(value)
  if (action === 'replace') return editAll(json, places, () => source)
  if (action === 'sibling') return withSiblings(json, limited(places), source)
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

/** Elements that stand for values of JSON. */
const OF_JSON = ['jsonObject', 'jsonArray', 'jsonElement']

/** A payload of another kind has the content type of its kind. */
function setPayload(message: Message, payload: Payload | null): void {
  const before = message.payload?.kind
  message.payload = payload
  if (payload === null || payload.kind === before) return
  // A part of what XPath sees of JSON is JSON.
  if (before === 'json' && payload.kind === 'xml' && OF_JSON.includes(payload.root.name)) {
    message.json = jsonOfXml(payload.root)
    return
  }
  const type = MESSAGE_TYPES[payload.kind]
  if (type !== undefined) message.set('axis2', 'messageType', type)
}
