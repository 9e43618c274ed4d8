/** Media types within ranges of a document. */

const SUFFIX = /\+[^+]+$/

/** The most specific range that holds a media type: itself, its suffix, its main type, any type. */
export function rangeOf(ranges: readonly string[], type: string): string | undefined {
  const [main] = type.split('/', 1)
  const [suffix] = SUFFIX.exec(type) ?? []
  const bySuffix = suffix === undefined ? [] : [`${main}/*${suffix}`]
  return [type, ...bySuffix, `${main}/*`, '*/*', '*'].find(range => ranges.includes(range))
}

export function isRange(type: string): boolean {
  return type.includes('*')
}
