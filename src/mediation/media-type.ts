/** Content types as the formats that answers are written in. */
import { mediaTypeOf } from '../http1/media-type.ts'

export type Format = 'json' | 'xml' | 'soap11' | 'soap12' | 'text'

/** By type without parameters; what is none of them is written as text. */
const FORMATS: Readonly<Record<string, Format>> = {
  'application/json': 'json',
  'text/json': 'json',
  'application/xml': 'xml',
  'text/xml': 'soap11',
  'application/soap+xml': 'soap12',
}

export function formatOf(contentType: string): Format {
  const type = mediaTypeOf(contentType)
  if (Object.hasOwn(FORMATS, type)) return FORMATS[type]!
  if (type.endsWith('+json')) return 'json'
  return type.endsWith('+xml') ? 'xml' : 'text'
}
