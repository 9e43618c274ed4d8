/**
 * Chooses the media type of a fault. A SOAP request gets a SOAP fault of its version. Other requests get JSON, unless
 * Accept names only XML or prefers XML over JSON (RFC 9110 12.5.1).
 */
import { type CapturedFields, capturedValue } from '../http1/captured-fields.ts'
import { mediaTypeOf } from '../http1/media-type.ts'

export type FaultFormat = 'application/json' | 'application/xml' | 'text/xml' | 'application/soap+xml'

/** One media range of Accept. */
interface Range {
  readonly type: string
  readonly quality: number
}

/** Media ranges of Accept that are read; later ones are ignored. */
const RANGES_MAX = 32

/** `captured`: has SOAPAction where the request has it, and Accept and Content-Type where they mention XML. */
export function faultFormat(captured: CapturedFields): FaultFormat {
  if (captured.length === 0) return 'application/json'
  let isSoap11 = false
  for (let i = 0; i < captured.length; i += 2) {
    const value = captured[i + 1]!
    if (captured[i] === 'soapaction') isSoap11 = true
    // SOAP 1.2 carries the action in the media type and has no SOAPAction (RFC 3902).
    else if (captured[i] === 'content-type' && mediaTypeOf(value) === 'application/soap+xml') {
      return 'application/soap+xml'
    }
  }
  if (isSoap11) return 'text/xml'
  return prefersXml(acceptOf(captured)) ? 'application/xml' : 'application/json'
}

/** Chooses between the two names of an XML document (RFC 7303 9.2). */
export function prefersTextXml(captured: CapturedFields): boolean {
  const ranges = rangesOf(acceptOf(captured))
  return qualityOf(ranges, 'text/xml') > qualityOf(ranges, 'application/xml')
}

function acceptOf(captured: CapturedFields): string {
  return capturedValue(captured, 'accept') ?? ''
}

function prefersXml(accept: string): boolean {
  if (accept === '') return false
  const ranges = rangesOf(accept)
  const xml = Math.max(qualityOf(ranges, 'application/xml'), qualityOf(ranges, 'text/xml'))
  const json = qualityOf(ranges, 'application/json')
  // `*/*` accepts JSON at any quality: browsers name XML beside it, and mean web pages.
  const comparesJson = ranges.some(({ type }) => type === 'application/json' || type === 'application/*')
  return json === 0 || comparesJson ? xml > json : false
}

/** Quality of the most specific range that matches the type (RFC 9110 12.5.1). */
function qualityOf(ranges: readonly Range[], type: string): number {
  const group = `${type.slice(0, type.indexOf('/'))}/*`
  const range = [type, group, '*/*'].map(wanted => ranges.find(it => it.type === wanted)).find(it => it !== undefined)
  return range?.quality ?? 0
}

function rangesOf(accept: string): readonly Range[] {
  return accept.split(',', RANGES_MAX).map(rangeOf)
}

function rangeOf(text: string): Range {
  const weight = /;\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*(?:;|$)/i.exec(text)
  return { type: mediaTypeOf(text), quality: weight === null ? 1 : Number(weight[1]) }
}
