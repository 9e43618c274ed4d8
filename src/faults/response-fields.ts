/** Merges response lines of a sequence, a refusal and CORS, so that no single-valued field appears twice. */

/** Fields whose lines may repeat (RFC 9110 12.5.5). */
const LISTS = ['vary']
/** Statuses of faults that caches may store heuristically (RFC 9110 15.1). */
const HEURISTICALLY_CACHEABLE = [404, 405, 410, 414, 501]
const ALLOW_ORIGIN = 'access-control-allow-origin'

/**
 * Returns the lines of `lines` whose field `present` does not have; every line ends with CRLF. Where both name an
 * origin and differ, all Access-Control lines are left out: mixed, they could grant what neither grants alone.
 */
export function linesAbsentFrom(present: string, lines: string): string {
  if (present === '' || lines === '') return lines
  const names = new Set(namesOf(present))
  const differsInOrigin = names.has(ALLOW_ORIGIN) && originIn(present) !== originIn(lines)
  return eachLine(lines)
    .filter(line => !names.has(nameOf(line)) || LISTS.includes(nameOf(line)))
    .filter(line => !differsInOrigin || !nameOf(line).startsWith('access-control-'))
    .join('')
}

/**
 * Adds Accept to Vary where a cache may store the fault, because the body depends on Accept (RFC 9110 12.5.5). Lines
 * with Cache-Control stay as they are.
 */
export function withVaryAccept(status: number, lines: string): string {
  if (!HEURISTICALLY_CACHEABLE.includes(status)) return lines
  const each = eachLine(lines)
  const names = each.map(nameOf)
  if (names.includes('cache-control')) return lines
  const last = names.lastIndexOf('vary')
  if (last < 0) return `${lines}Vary: Accept\r\n`
  const varied = each.filter((_, at) => names[at] === 'vary').flatMap(valuesOf)
  if (varied.some(value => value === '*' || value.toLowerCase() === 'accept')) return lines
  return each.with(last, `Vary: ${[...valuesOf(each[last]!), 'Accept'].join(', ')}\r\n`).join('')
}

function valuesOf(line: string): readonly string[] {
  const values = line.slice(line.indexOf(':') + 1).split(',')
  return values.map(value => value.trim()).filter(value => value !== '')
}

function originIn(lines: string): string | undefined {
  const line = eachLine(lines).find(each => nameOf(each) === ALLOW_ORIGIN)
  return line?.slice(ALLOW_ORIGIN.length + 1).trim()
}

/** Returns `lines` without one field; `name` is in lower case. */
export function linesWithout(lines: string, name: string): string {
  if (!namesOf(lines).includes(name)) return lines
  return eachLine(lines)
    .filter(line => nameOf(line) !== name)
    .join('')
}

function namesOf(lines: string): readonly string[] {
  return eachLine(lines).map(nameOf)
}

function eachLine(lines: string): readonly string[] {
  return lines.split(/(?<=\r\n)/).filter(line => line !== '')
}

function nameOf(line: string): string {
  return line.slice(0, line.indexOf(':')).toLowerCase()
}
