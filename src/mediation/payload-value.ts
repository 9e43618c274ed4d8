/** Payloads as values of properties and expressions, and back. */
import { servicesOf } from './backend-calls.ts'
import { jsonOf, writtenValue } from './formats/json-text.ts'
import { jsonOfValue } from './json-edit.ts'
import { MediationFault } from './mediation-fault.ts'
import type { Message, Payload } from './message.ts'
import { jsonIn, MALFORMED, TEXT_MAX, tooLong } from './property-type.ts'
import type { TaskServices } from './task-calls.ts'
import { type Json, textOf, type Value, valueOfJson } from './value.ts'
import type { XmlChild } from './xml-tree.ts'

/** The value of a payload: JSON, the root element, text, or base64; '' without a payload. */
export function valueOfPayload(payload: Payload | null): Value {
  if (payload === null) return ''
  if (payload.kind === 'xml') return { kind: 'xml', nodes: [payload.root] }
  if (payload.kind === 'text') return payload.text
  // Properties hold no bytes; as the language has it, binary content is base64.
  if (payload.kind === 'binary') return Buffer.from(payload.bytes).toString('base64')
  return valueOfJson(writtenValue(payload))
}

/** The payload as JSON; null without a payload. */
export function jsonOfPayload(payload: Payload | null): Json {
  if (payload?.kind === 'json') return writtenValue(payload)
  return payload === null ? null : jsonOfValue(valueOfPayload(payload))
}

/**
 * The payload of a value. `contentType`: what a text is; '' leaves JSON and XML what they are, and other text is text.
 * Throws MediationFault for a text that is not of its content type. Runs on workers.
 */
export function payloadOfValue(value: Value, contentType: string, message: Message): Payload | null {
  if (typeof value === 'object' && value.kind === 'json') return { kind: 'json', text: JSON.stringify(value.value) }
  if (typeof value === 'object') {
    const [node] = value.nodes
    if (node !== undefined && typeof node !== 'string') return { kind: 'xml', root: node }
  }
  const text = textOf(value)
  return contentType === '' ? { kind: 'text', text } : servicesOf(message).parse(text, contentType)
}

/** Code of a body beyond a limit, which blames the client. */
export const BEYOND_LIMIT = 102521

/** Returns the content of an element that a text of markup is; undefined for another text. Throws MediationFault. */
export function contentIn(text: string, task: TaskServices | null): readonly XmlChild[] | undefined {
  const trimmed = text.trim().replace(/^<\?xml\s[^>]*>\s*/, '')
  if (task === null || !trimmed.startsWith('<') || !trimmed.endsWith('>')) return undefined
  try {
    const payload = task.parse(`<x>${trimmed}</x>`, 'application/xml')
    return payload?.kind === 'xml' ? payload.root.children : undefined
  } catch (error) {
    if (!(error instanceof MediationFault)) throw error
    if (error.raised.code === MALFORMED) return undefined
    throw error.raised.code === BEYOND_LIMIT ? tooLong(error.raised.cause) : error
  }
}

/** Returns the object or array that a text is as JSON; undefined for another text. Throws MediationFault. */
export function structureIn(text: string, task: TaskServices | null): Json | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined
  if (text.length <= TEXT_MAX) {
    const value = jsonIn(text)
    return typeof value === 'object' && value.kind === 'json' ? value.value : undefined
  }
  if (task === null) return undefined
  try {
    const payload = task.parse(text, 'application/json')
    return payload?.kind === 'json' ? jsonOf(payload) : undefined
  } catch (error) {
    if (!(error instanceof MediationFault)) throw error
    if (error.raised.code === MALFORMED) return undefined
    throw error.raised.code === BEYOND_LIMIT ? tooLong(error.raised.cause) : error
  }
}
