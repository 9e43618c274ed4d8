/**
 * Texts that patterns and lists of URLs are compared with: a body as a whole, and each name and value in it without
 * escapes, because escapes of a format hide text from a look at the whole.
 */
import { type BodyFormat, bodyFormatOf, isXmlFormat } from '../formats/body-types.ts'
import { hasHeapRoom } from '../../runtime/heap-room.ts'
import { showLife } from '../../runtime/signs-of-life.ts'
import { decodeName } from '../formats/element-names.ts'
import { bytesOfFile, writeForm } from '../formats/forms.ts'
import { jsonOf } from '../formats/json-text.ts'
import { decodedText, jsonTokens } from '../formats/json-tokens.ts'
import { textOfPayload } from '../json-xml.ts'
import type { Message, Payload } from '../message.ts'
import { noRoom } from '../property-type.ts'
import { type Json, textOf } from '../value.ts'
import { elementsOf, textWithin, writeXml, type XmlElementNode } from '../xml-tree.ts'

/** Characters. A longer text is refused by what inspects it, because nobody has looked at the rest. */
export const INSPECTED_MAX = 1_048_576

export interface InspectedTexts {
  /** The text as it was received; further ones are other spellings of it. */
  readonly whole: readonly [received: string, ...spellings: string[]]
  /** Names and values; null: the text has no parts. */
  readonly parts: Iterable<string> | null
}

/** Tells whether the text is too long to be inspected. */
export function isTooLong({ whole: [received] }: InspectedTexts): boolean {
  return received.length > INSPECTED_MAX
}

/** Parts between two signs of life. */
const PARTS_PER_SIGN = 8192

/** Yields the whole text, then its parts. */
export function* allTexts({ whole, parts }: InspectedTexts): Generator<string> {
  for (const text of new Set(whole)) {
    showLife()
    yield text
  }
  let count = 0
  for (const part of parts ?? []) {
    if (++count % PARTS_PER_SIGN === 0) showLife()
    yield part
  }
}

export function textsOfText(text: string): InspectedTexts {
  return { whole: [text], parts: null }
}

export function textsOfJson(json: Json): InspectedTexts {
  const text = JSON.stringify(json)
  return { whole: [text], parts: partsOfJson(text) }
}

/** Returns the texts of the body, an empty one without a body. Throws MediationFault where it cannot be read. */
export function textsOfBody(message: Message): InspectedTexts {
  const { payload } = message
  if (payload === null) return textsOfText('')
  const format = bodyFormatOf(textOf(message.get('transport', 'content-type')))
  const received = message.bodyState === 'read' ? message.bodySource!.text() : textOfMade(payload, format)
  // Spellings would cost more than the text is worth, because it is refused.
  if (received.length > INSPECTED_MAX) return textsOfText(received)
  if (payload.kind === 'text') return { whole: [received], parts: partsOfHiddenJson(received) }
  if (payload.kind === 'json') {
    return { whole: [received, JSON.stringify(jsonOf(payload))], parts: partsOfJson(payload.text) }
  }
  if (payload.kind === 'binary') {
    const text = utf8Of(received)
    return { whole: [received, text], parts: partsOfHiddenJson(text) }
  }
  if (format === 'form') {
    return { whole: [received], parts: joined(partsOfForm(payload.root), partsOfHiddenJson(received)) }
  }
  const isMultipart = format === 'multipart'
  const parts = partsOfXml(payload.root, isMultipart)
  if (isMultipart) return { whole: [received, utf8Of(received)], parts }
  return { whole: isXmlFormat(format) ? [received, writeXml(payload.root)] : [received], parts }
}

/** Text of a payload that a sequence made. */
function textOfMade(payload: Payload, format: BodyFormat): string {
  if (payload.kind === 'binary') return Buffer.from(payload.bytes).toString('latin1')
  return payload.kind === 'xml' && format === 'form' ? writeForm(payload.root) : textOfPayload(payload)
}

/** The same bytes as UTF-8. */
function utf8Of(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString()
}

function* partsOfJson(text: string): Generator<string> {
  for (const token of jsonTokens(text)) {
    if (token.kind === 'name' || token.kind === 'text') yield decodedText(text, token)
  }
}

/** Bytes of the heap that a character of JSON takes at most once it is parsed. */
const BYTES_OF_CHARACTER = 32

/**
 * Parts of a text that is JSON, though its content type is another one: a backend may read it. Null for other texts.
 * Throws MediationFault where the heap has no room.
 */
function partsOfHiddenJson(text: string): Iterable<string> | null {
  const json = text.startsWith('\ufeff') ? text.slice(1) : text
  if (!/^\s*["[{]/.test(json)) return null
  if (!hasHeapRoom(BYTES_OF_CHARACTER * json.length)) throw noRoom()
  try {
    JSON.parse(json)
  } catch {
    return null
  }
  return partsOfJson(json)
}

function* joined(parts: Iterable<string>, others: Iterable<string> | null): Generator<string> {
  yield* parts
  yield* others ?? []
}

function* partsOfForm(root: XmlElementNode): Generator<string> {
  for (const field of elementsOf(root)) {
    yield decodeName(field.name, true)
    yield textWithin(field)
  }
}

/** Names and attributes of elements, and the text of each, whole and between its elements. */
function* partsOfXml(root: XmlElementNode, isMultipart: boolean): Generator<string> {
  const pending: XmlElementNode[] = [root]
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    yield node.name
    for (const attribute of node.attributes) yield* attribute
    const file = isMultipart ? bytesOfFile(node) : null
    if (file !== null) {
      yield file.toString('latin1')
      yield file.toString()
      continue
    }
    const texts = node.children.filter(child => typeof child === 'string')
    if (texts.length > 1) yield texts.join('')
    yield* texts
    for (const child of elementsOf(node)) pending.push(child)
  }
}
