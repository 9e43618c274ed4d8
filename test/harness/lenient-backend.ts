/**
 * Model of a lenient backend: the path that it reads in a request target, and the template that fits this path best.
 * The backend decodes escapes twice, ends a path at a NUL, takes backslashes for slashes, drops parameters, empty
 * segments and the slash at the end, and resolves dot segments last. The model shares no code with the gateway.
 */
export function lenientPath(target: string): string {
  let path = target.split('?')[0]!
  for (let round = 0; round < 2; round++) {
    path = path.replace(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
  }
  const segments: string[] = []
  for (const segment of path.split('\0')[0]!.replaceAll('\\', '/').split('/')) {
    const name = segment.split(';')[0]!
    if (name === '..') segments.pop()
    else if (name !== '' && name !== '.') segments.push(name)
  }
  return `/${segments.join('/')}`
}

/**
 * The template that fits a path of that backend best, '' for none: all that fit are compared, segment by segment.
 * `path`: without escapes, one character per byte.
 */
export function bestTemplate(templates: readonly string[], path: string): string {
  const fitting = templates.filter(template => fits(template, path))
  const [best] = fitting.sort((one, other) => compare(ranks(one), ranks(other)))
  return best ?? ''
}

function fits(template: string, path: string): boolean {
  const pattern = plain(template)
    .split('/')
    .map(segment =>
      segment
        .split(/\{\w+\}/)
        .map(RegExp.escape)
        .join('[^/]+?'),
    )
    .join('/')
    .replace(/\/\\\*$/, '(?:/[\\s\\S]*)?')
    .replace(/(?!^)\/$/, '')
  return new RegExp(`^${pattern}$`).test(path) || (path === '/' && template === '/*')
}

/** A literal as bytes that are not escaped. */
function plain(template: string): string {
  return Buffer.from(decodeURIComponent(template.replace(/%(?![0-9A-F]{2})/g, '%25'))).toString('latin1')
}

/** Per segment: smaller is more specific. */
function ranks(template: string): readonly number[] {
  const all = plain(template)
    .split('/')
    .slice(1)
    .filter(segment => segment !== '')
  return all.map(segment => {
    if (segment === '*') return 2_000_000
    const literal = segment.replace(/\{\w+\}/g, '')
    if (literal === segment) return 0
    return literal === '' ? 1_000_000 : 1000 - literal.length
  })
}

/** Of templates that fit the same path: one that has ended is more specific than one that goes on with `/*`. */
function compare(one: readonly number[], other: readonly number[]): number {
  for (let at = 0; at < Math.max(one.length, other.length); at++) {
    const difference = (one[at] ?? -1) - (other[at] ?? -1)
    if (difference !== 0) return difference
  }
  return 0
}
