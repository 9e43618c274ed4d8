/** Media types of the API: what a client asks for (RFC 9110 12.5.1; R4, http.html#mime-type), and what it sends. */

export const HEALTH_JSON = 'application/health+json'
/** Media types of resources, in requests and responses. The first one is the default. */
export const JSON_TYPES: readonly string[] = [HEALTH_JSON, 'application/fhir+json', 'application/json', 'text/json']
/** Media ranges that are read; later ones are ignored. */
const RANGES_MAX = 32
const FHIR_VERSIONS = ['4.0', '4.0.1']

interface Range {
  readonly type: string
  readonly quality: number
}

/**
 * The media type of the response; undefined: none that the API makes is acceptable. `format`: value of `_format`, which
 * wins over Accept; undefined without one.
 */
export function responseType(accept: string | undefined, format: string | undefined): string | undefined {
  if (format !== undefined && format !== '') return typeOfFormat(format)
  if (accept === undefined || accept.trim() === '') return HEALTH_JSON
  const ranges = accept.split(',', RANGES_MAX).flatMap(text => rangeOf(text) ?? [])
  const rated = JSON_TYPES.map(type => ({ type, quality: qualityOf(ranges, type) }))
  const best = rated.reduce((one, other) => (other.quality > one.quality ? other : one))
  return best.quality > 0 ? best.type : undefined
}

/** The type and subtype in lower case, '' without one; undefined for a release of the standard that is not served. */
export function sentType(contentType: string | undefined): string | undefined {
  const [type = '', ...parameters] = (contentType ?? '').split(';')
  const isServed = parameters.every(parameter => {
    const [name = '', value = ''] = parameter.split('=', 2).map(part => part.trim().toLowerCase())
    if (name === 'fhirversion') return FHIR_VERSIONS.includes(value.replaceAll('"', ''))
    return name !== 'charset' || ['utf-8', 'utf8', 'us-ascii'].includes(value.replaceAll('"', ''))
  })
  return isServed ? type.trim().toLowerCase() : undefined
}

/** A plus in a query is a space. */
function typeOfFormat(format: string): string | undefined {
  const type = sentType(format.replace(' ', '+'))
  return type === 'json' ? HEALTH_JSON : JSON_TYPES.find(each => each === type)
}

function rangeOf(text: string): Range | undefined {
  const type = sentType(text)
  if (type === undefined) return undefined
  const weight = /;\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*(?:;|$)/i.exec(text)
  return { type, quality: weight === null ? 1 : Number(weight[1]) }
}

/** Quality of the most specific range. */
function qualityOf(ranges: readonly Range[], type: string): number {
  const group = `${type.slice(0, type.indexOf('/'))}/*`
  const range = [type, group, '*/*'].map(wanted => ranges.find(it => it.type === wanted)).find(it => it !== undefined)
  return range?.quality ?? 0
}
