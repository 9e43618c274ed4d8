/** Forms as elements: `application/x-www-form-urlencoded`, and `multipart/form-data` (RFC 7578). */
import { randomUUID } from 'node:crypto'
import { showLife } from '../../runtime/signs-of-life.ts'
import { element, elementsOf, localName, textWithin, type XmlElementNode } from '../xml-tree.ts'
import type { BodyLimits } from './body-limits.ts'
import {
  type Charset,
  charsetNamed,
  decodeText,
  encodeText,
  parameterOf,
  requiredCharset,
  withParameter,
} from './charset.ts'
import { decodeName, encodeName, FORM_ROOT, MULTIPART_ROOT } from './element-names.ts'
import { FormatError } from './format-error.ts'
import { type Part, partFields, partName, partsOf } from './multipart.ts'

/** Fields between two signs of life. */
const FIELDS_PER_SIGN = 8192

/** Reads a form to one element per field, in order. `charset`: that of the escaped bytes. Throws FormatError. */
export function readForm(text: string, charset: Charset, limits: BodyLimits): XmlElementNode {
  const fields: XmlElementNode[] = []
  for (let from = 0; from < text.length; ) {
    const next = text.indexOf('&', from)
    const end = next === -1 ? text.length : next
    if (end > from) fields.push(readField(text.slice(from, end), from, charset, limits))
    if (fields.length > limits.items) throw new FormatError('limit', `the form has more than ${limits.items} fields`)
    if (fields.length % FIELDS_PER_SIGN === 0) showLife()
    from = end + 1
  }
  return element(FORM_ROOT, fields)
}

function readField(pair: string, at: number, charset: Charset, limits: BodyLimits): XmlElementNode {
  const equals = pair.indexOf('=')
  const [name, value] = [equals === -1 ? pair : pair.slice(0, equals), equals === -1 ? '' : pair.slice(equals + 1)]
  if (name.length > limits.nameLength) throw new FormatError('limit', `the form has too long a name at character ${at}`)
  if (value.length > limits.textLength)
    throw new FormatError('limit', `the form has too long a text at character ${at}`)
  return field(unescaped(name, at, charset), unescaped(value, at, charset), [])
}

function field(name: string, value: string, attributes: XmlElementNode['attributes']): XmlElementNode {
  return element(encodeName(name, true), value === '' ? [] : [value], attributes)
}

const ESCAPES = /(?:%[0-9A-Fa-f]{2})+/g
const NO_ESCAPE = /%(?![0-9A-Fa-f]{2})/

/** Bytes that stand side by side as escapes are decoded together. */
function unescaped(text: string, at: number, charset: Charset): string {
  const spaced = text.replaceAll('+', ' ')
  try {
    if (charset === 'utf-8') return decodeURIComponent(spaced)
    if (!NO_ESCAPE.test(spaced)) {
      return spaced.replace(ESCAPES, escapes => decodeText(Buffer.from(escapes.replaceAll('%', ''), 'hex'), charset))
    }
  } catch {
    // The error of the form says where the field begins.
  }
  throw new FormatError('malformed', `the form has a malformed escape at or after character ${at}`)
}

/** Fields of the children of any element, with escapes of UTF-8. */
export function writeForm(root: XmlElementNode): string {
  const pairs = elementsOf(root).map(child => [decodeName(localName(child.name), true), textWithin(child)])
  return new URLSearchParams(pairs as [string, string][]).toString()
}

/** Parts of files are base64, with attributes `filename` and `content-type`. Throws FormatError. */
export function readMultipart(bytes: Uint8Array, contentType: string, limits: BodyLimits): XmlElementNode {
  const parts: XmlElementNode[] = []
  for (const part of partsOf(bytes, contentType, limits, 'the form')) parts.push(elementOfPart(part, limits))
  return element(MULTIPART_ROOT, parts)
}

function elementOfPart(part: Part, limits: BodyLimits): XmlElementNode {
  const { head, content, at } = part
  const name = partName(part)
  if (name === '') throw new FormatError('malformed', `the form has a part without a name at byte ${at}`)
  if (name.length > limits.nameLength) throw new FormatError('limit', `the form has too long a name at byte ${at}`)
  const [disposition = ''] = partFields(head, 'content-disposition')
  const [type = ''] = partFields(head, 'content-type')
  const filename = parameterOf(disposition, 'filename')
  if (filename === '' && (type === '' || /^text\//i.test(type))) {
    const charset = requiredCharset(parameterOf(type, 'charset') || 'utf-8')
    return field(name, decodeText(content, charset), type === '' ? [] : [['content-type', type]])
  }
  const attributes = [
    ['filename', filename],
    ['content-type', type || 'application/octet-stream'],
  ] as const
  return field(
    name,
    content.toString('base64'),
    attributes.filter(([, value]) => value !== ''),
  )
}

interface WrittenForm {
  readonly bytes: Buffer
  readonly boundary: string
}

/** Parts of the children of any element; children with a type that is no text hold base64. */
export function writeMultipart(root: XmlElementNode): WrittenForm {
  const boundary = `part-${randomUUID()}`
  const pieces: Buffer[] = []
  for (const child of elementsOf(root)) {
    const attribute = (name: string) => child.attributes.find(([each]) => each === name)?.[1] ?? ''
    const [filename, given] = [attribute('filename'), attribute('content-type')]
    const file = bytesOfFile(child)
    const { bytes, type } = file === null ? partOfText(textWithin(child), given) : { bytes: file, type: given }
    const name = quoted(decodeName(localName(child.name), true))
    const disposition = `form-data; name=${name}${filename === '' ? '' : `; filename=${quoted(filename)}`}`
    const typeLine = type === '' ? '' : `Content-Type: ${type.replace(/[\r\n]/g, ' ')}\r\n`
    pieces.push(Buffer.from(`--${boundary}\r\nContent-Disposition: ${disposition}\r\n${typeLine}\r\n`))
    pieces.push(bytes, Buffer.from('\r\n'))
  }
  pieces.push(Buffer.from(`--${boundary}--\r\n`))
  return { bytes: Buffer.concat(pieces), boundary }
}

/** In the charset that the type names, or in UTF-8 where that lacks a character. */
function partOfText(text: string, type: string): { readonly bytes: Buffer; readonly type: string } {
  const bytes = encodeText(text, charsetNamed(parameterOf(type, 'charset')) ?? 'utf-8', null)
  return bytes === undefined
    ? { bytes: Buffer.from(text), type: withParameter(type, 'charset', 'UTF-8') }
    : { bytes, type }
}

/** Bytes of a part that is a file; null for other elements. */
export function bytesOfFile({ attributes, children }: XmlElementNode): Buffer | null {
  const attribute = (name: string) => attributes.find(([each]) => each === name)?.[1] ?? ''
  const type = attribute('content-type')
  if (attribute('filename') === '' && (type === '' || /^text\//i.test(type))) return null
  return Buffer.from(children.map(textWithin).join(''), 'base64')
}

/** As browsers write it (RFC 7578 4.2). */
function quoted(text: string): string {
  return `"${text.replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A')}"`
}
