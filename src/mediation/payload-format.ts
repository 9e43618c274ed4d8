/** Formats of payloads, by content type. */
import { mediaTypeOf } from '../http1/media-type.ts'

export type PayloadFormat = 'json' | 'xml' | 'soap11' | 'soap12' | 'text'

/** By media type without parameters; other types are text. */
const FORMATS: Readonly<Record<string, PayloadFormat>> = {
  'application/json': 'json',
  'text/json': 'json',
  'application/xml': 'xml',
  'text/xml': 'soap11',
  'application/soap+xml': 'soap12',
}

export function formatOf(contentType: string): PayloadFormat {
  const type = mediaTypeOf(contentType)
  if (Object.hasOwn(FORMATS, type)) return FORMATS[type]!
  if (type.endsWith('+json')) return 'json'
  return type.endsWith('+xml') ? 'xml' : 'text'
}
