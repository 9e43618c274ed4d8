/** Which builder reads a content type, and which formatter writes it. */
import { mediaTypeOf } from '../../http1/media-type.ts'
import type { Payload } from '../message.ts'
import { soapVersion } from '../soap.ts'

/** `binary` keeps the bytes; it reads all types that nothing else reads. */
export type BodyFormat = 'json' | 'badgerfish' | 'xml' | 'soap11' | 'soap12' | 'form' | 'multipart' | 'text' | 'binary'

/** By media type without parameters. */
const FORMATS: ReadonlyMap<string, BodyFormat> = new Map([
  ['application/json', 'json'],
  ['text/json', 'json'],
  ['text/javascript', 'json'],
  ['application/json/badgerfish', 'badgerfish'],
  ['application/xml', 'xml'],
  ['text/xml', 'soap11'],
  ['application/soap+xml', 'soap12'],
  ['application/x-www-form-urlencoded', 'form'],
  ['multipart/form-data', 'multipart'],
  ['application/octet-stream', 'binary'],
  ['application/binary', 'binary'],
])

/** Types with `+json` and `+xml` (RFC 6839) and other texts are read too; '' is binary (RFC 9110 8.3). */
export function bodyFormatOf(contentType: string): BodyFormat {
  const type = mediaTypeOf(contentType)
  const known = FORMATS.get(type)
  if (known !== undefined) return known
  if (type.endsWith('+json')) return 'json'
  if (type.endsWith('+xml')) return 'xml'
  return type.startsWith('text/') ? 'text' : 'binary'
}

/** Text up to the first comma, but for commas within quotes. */
const FIRST = /^(?:[^",]|"(?:[^"\\]|\\.)*"?)*/

/**
 * The type that messageType or ContentType names: the first one of a list, '' for a range. Sequences copy `Accept` into
 * them, and no body is of a range.
 */
export function namedType(text: string): string {
  const [first] = FIRST.exec(text)!
  return mediaTypeOf(first).includes('*') ? '' : first
}

/** XML with or without an Envelope. */
export function isXmlFormat(format: BodyFormat): boolean {
  return format === 'xml' || format === 'soap11' || format === 'soap12'
}

/** Content type of a payload that a sequence made without naming a type. */
export function typeOfPayload(payload: Payload): string {
  if (payload.kind === 'json') return 'application/json'
  if (payload.kind === 'text') return 'text/plain'
  if (payload.kind === 'binary') return 'application/octet-stream'
  const version = soapVersion(payload.root, 'Fault') ?? soapVersion(payload.root, 'Envelope')
  if (version === undefined) return 'application/xml'
  return version === 'soap11' ? 'text/xml' : 'application/soap+xml'
}
