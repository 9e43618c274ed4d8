/** A message to a script thread and back: what the script sees of it, and what becomes of the changes. */
import { isToken } from '../http1/token.ts'
import { payloadXml } from './json-xml.ts'
import { MediationFault } from './mediation-fault.ts'
import type { Message, Payload } from './message.ts'
import type { ScriptChange, ScriptReply, ScriptSource, ScriptState, ScriptTask, ScriptValue } from './script-task.ts'
import { setBlocks } from './mediators/header.ts'
import { bodyOf, soapVersion } from './soap.ts'
import type { TaskServices } from './task-calls.ts'
import type { Json, Value } from './value.ts'
import { isElement, localName, prefixOf, writeXml, type XmlElementNode } from './xml-tree.ts'

/** Changes of one run of a script. */
const CHANGES_MAX = 10_000
/** Characters of a log line. */
const LOG_MAX = 8192
const FAILED = 102580
const NOT_MEDIATED = 'The message could not be mediated'

export function scriptTask(message: Message, source: ScriptSource): ScriptTask {
  const { payload } = message
  const state: ScriptState = {
    properties: [...properties(message)],
    kind: payload?.kind ?? 'none',
    to: message.to,
    isResponse: message.isResponse,
  }
  return { source, state: JSON.stringify(state), ...textsOf(payload), xml: xmlFor(source, payload) }
}

/** Few scripts read JSON as XML, and a conversion costs as much as a script. */
function xmlFor(source: ScriptSource, payload: Payload | null): string {
  if (payload?.kind !== 'json' && payload?.kind !== 'text') return ''
  return source.kind !== 'module' && source.text.includes('getPayloadXML') ? payloadXml(payload) : ''
}

function textsOf(payload: Payload | null): Pick<ScriptTask, 'payload' | 'envelope'> {
  if (payload === null || payload.kind === 'binary') return { payload: '', envelope: '' }
  if (payload.kind !== 'xml') return { payload: payload.text, envelope: '' }
  const { root } = payload
  if (soapVersion(root, 'Envelope') === undefined) return { payload: writeXml(root), envelope: '' }
  return { payload: bodyOf(root).map(writeXml).join(''), envelope: writeXml(root) }
}

/** All properties that `mc` knows: those that were set, fields, the start line, variables of the request. */
function* properties(message: Message): Iterable<ScriptState['properties'][number]> {
  const { default: own, axis2, operation, variables } = message.state()
  for (const [name, value] of own) yield ['default', name, scriptValue(value)]
  for (const name of derivedNames(message)) {
    const value = message.get('default', name)
    if (value !== undefined) yield ['default', name, scriptValue(value)]
  }
  for (const name of ['HTTP_METHOD', 'REST_URL_POSTFIX', 'HTTP_SC', 'HTTP_SC_DESC', 'ContentType', 'messageType']) {
    const value = message.read('axis2', name)
    if (value !== undefined) yield ['axis2', name, scriptValue(value)]
  }
  for (const [name, value] of axis2) yield ['axis2', name, scriptValue(value)]
  for (const [name, value] of operation) yield ['operation', name, scriptValue(value)]
  for (const [name, value] of variables) yield ['variable', name, scriptValue(value)]
  // Through `get`, which remembers the secrets among them for the log.
  const names = new Set([...message.keptFields(), ...message.fields()].map(([name]) => name.toLowerCase()))
  for (const name of names) yield ['transport', name, scriptValue(message.get('transport', name) ?? '')]
}

function derivedNames(message: Message): readonly string[] {
  const { target } = message.receivedHead
  const at = target.indexOf('?')
  const query = at < 0 ? [] : [...new URLSearchParams(target.slice(at + 1)).keys()]
  const templates = ['API_ELECTED_RESOURCE', 'REST_API_CONTEXT'].map(name => String(message.get('default', name) ?? ''))
  const variables = templates.flatMap(template => Array.from(template.matchAll(/\{([^{}/]+)\}/g), ([, name]) => name!))
  return [...query.map(name => `query.param.${name}`), ...variables.map(name => `uri.var.${name}`)]
}

function scriptValue(value: Value): ScriptValue {
  if (typeof value !== 'object') return value
  if (value.kind === 'json') return { json: value.value }
  return { xml: value.nodes.map(node => (typeof node === 'string' ? node : writeXml(node))).join('') }
}

/** Applies what a script has done; false ends the sequence. Throws MediationFault where it failed. */
export function applyReply(reply: ScriptReply, message: Message, services: TaskServices): boolean {
  if (reply.kind === 'failed') {
    throw new MediationFault({ code: FAILED, message: NOT_MEDIATED, cause: message.secrets.mask(reply.cause) })
  }
  const changes = JSON.parse(reply.changes) as readonly ScriptChange[]
  if (changes.length > CHANGES_MAX) {
    const cause = `the script makes more than ${CHANGES_MAX} changes`
    throw new MediationFault({ code: FAILED, message: NOT_MEDIATED, cause })
  }
  if (reply.payload !== null) setPayload(reply.payload, message, services)
  for (const change of changes) apply(change, message, services)
  return reply.goesOn
}

const TYPES = { json: 'application/json', xml: 'application/xml', text: 'text/plain' } as const

function setPayload(
  { kind, text }: NonNullable<Extract<ScriptReply, { kind: 'done' }>['payload']>,
  message: Message,
  services: TaskServices,
): void {
  if (kind === 'none') {
    message.payload = null
    return
  }
  const before = message.payload
  const isSoap = before?.kind === 'xml' && soapVersion(before.root, 'Envelope') !== undefined
  const made = kind === 'text' ? ({ kind, text } as const) : services.parse(text, TYPES[kind])
  const staysSoap = isSoap && made?.kind === 'xml' && soapVersion(made.root, 'Envelope') === undefined
  message.payload = staysSoap ? { kind: 'xml', root: withBody(before.root, made.root) } : made
  if (before?.kind !== kind) message.set('axis2', 'messageType', TYPES[kind])
  message.remove('axis2', 'NO_ENTITY_BODY')
}

function apply(change: ScriptChange, message: Message, services: TaskServices): void {
  switch (change.kind) {
    case 'set': {
      const { scope, name, value } = change
      if (scope === 'transport' && !isToken(name)) return
      message.set(scope, name, toValue(value))
      return
    }
    case 'remove':
      message.remove(change.scope, change.name)
      return
    case 'to':
      message.to = change.value
      return
    case 'header': {
      const block = services.parse(change.xml, 'application/xml')
      if (block?.kind === 'xml') addHeaderBlock(message, block.root, change.mustUnderstand)
      return
    }
    case 'log': {
      const text = message.secrets.mask(change.text).slice(0, LOG_MAX)
      services.report(change.level, 'script', { MESSAGE: text })
    }
  }
}

function toValue(value: ScriptValue): Value {
  if (value === null) return ''
  if (typeof value !== 'object') return value
  return 'json' in value ? { kind: 'json', value: value.json as Json } : value.xml
}

function withBody(root: XmlElementNode, content: XmlElementNode): XmlElementNode {
  const children = root.children.map(child =>
    isElement(child) && localName(child.name) === 'Body' ? { ...child, children: [content] } : child,
  )
  return { ...root, children }
}

/** `mustUnderstand`: SOAP 1.1 4.2.3; SOAP 1.2 takes 1 for true (SOAP 1.2 5.2.3). */
function addHeaderBlock(message: Message, block: XmlElementNode, mustUnderstand: boolean): void {
  const { payload } = message
  const root = payload?.kind === 'xml' && soapVersion(payload.root, 'Envelope') !== undefined ? payload.root : null
  const prefix = root === null ? 'soapenv' : prefixOf(root.name)
  const isMarked = mustUnderstand && prefix !== ''
  const attributes = isMarked ? [...block.attributes, [`${prefix}:mustUnderstand`, '1'] as const] : block.attributes
  setBlocks(message, [{ ...block, attributes }], () => false)
}
