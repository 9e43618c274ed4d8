/**
 * The media type of a fault: JSON, unless the client takes only XML or names both and prefers it (RFC 9110 12.5.1), or
 * its request is SOAP, which is answered in the version that it speaks. `kept` has what the request says of it, and
 * nothing that does not decide.
 */
import { type KeptFields, keptValue } from '../http1/kept-fields.ts'
import { mediaTypeOf } from '../http1/media-type.ts'

export type FaultFormat = 'application/json' | 'application/xml' | 'text/xml' | 'application/soap+xml'

interface Range {
  readonly type: string
  readonly quality: number
}

/** Of one that says more than this, the rest is not looked at. */
const RANGES_MAX = 32

export function formatOf(kept: KeptFields): FaultFormat {
  if (kept.length === 0) return 'application/json'
  let isSoap11 = false
  for (let i = 0; i < kept.length; i += 2) {
    const value = kept[i + 1]!
    if (kept[i] === 'soapaction') isSoap11 = true
    // SOAP 1.2 has its action within the type, and needs no SOAPAction (RFC 3902).
    else if (kept[i] === 'content-type' && mediaTypeOf(value) === 'application/soap+xml') return 'application/soap+xml'
  }
  if (isSoap11) return 'text/xml'
  return prefersXml(acceptOf(kept)) ? 'application/xml' : 'application/json'
}

/** Of the two names of an XML document (RFC 7303 9.2): the other one. */
export function prefersTextXml(kept: KeptFields): boolean {
  const ranges = rangesOf(acceptOf(kept))
  return qualityOf(ranges, 'text/xml') > qualityOf(ranges, 'application/xml')
}

function acceptOf(kept: KeptFields): string {
  return keptValue(kept, 'accept') ?? ''
}

/** Both XML types are one: what is answered is an XML document of no version of SOAP. */
function prefersXml(accept: string): boolean {
  if (accept === '') return false
  const ranges = rangesOf(accept)
  const xml = Math.max(qualityOf(ranges, 'application/xml'), qualityOf(ranges, 'text/xml'))
  const json = qualityOf(ranges, 'application/json')
  // A wildcard takes JSON as well as anything, whatever it is worth: browsers name XML, and mean pages.
  const comparesJson = ranges.some(({ type }) => type === 'application/json' || type === 'application/*')
  return json === 0 || comparesJson ? xml > json : false
}

/** That of the most specific range that includes the type (RFC 9110 12.5.1). */
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
