/** Lines of an answer that come from more than one place: no field is said twice, but those that are lists. */

/** RFC 9110 12.5.5: what a response varies by adds up. */
const LISTS = ['vary']
/** What a cache may store without being told to (RFC 9110 15.1), as far as faults have it. */
const STORED_UNTOLD = [404, 405, 410, 414, 501]
const ALLOW_ORIGIN = 'access-control-allow-origin'

/**
 * `lines` without what `said` has already; all of them end with CRLF. What is granted to one origin is not said beside
 * another, or the two together could grant what neither does.
 */
export function linesNotIn(said: string, lines: string): string {
  if (said === '' || lines === '') return lines
  const names = new Set(namesOf(said))
  const isOtherGrant = names.has(ALLOW_ORIGIN) && originIn(said) !== originIn(lines)
  return eachLine(lines)
    .filter(line => !names.has(nameOf(line)) || LISTS.includes(nameOf(line)))
    .filter(line => !isOtherGrant || !nameOf(line).startsWith('access-control-'))
    .join('')
}

/**
 * `lines` of a fault, which say that it is worded by what the client accepts (RFC 9110 12.5.5) where a cache may hand
 * it to another client. Lines that say themselves what caches may do are left alone.
 */
export function linesForCaches(status: number, lines: string): string {
  if (!STORED_UNTOLD.includes(status)) return lines
  const each = eachLine(lines)
  const names = each.map(nameOf)
  if (names.includes('cache-control')) return lines
  const last = names.lastIndexOf('vary')
  if (last < 0) return `${lines}Vary: Accept\r\n`
  const varied = each.filter((_, at) => names[at] === 'vary').flatMap(wordsOf)
  if (varied.some(word => word === '*' || word.toLowerCase() === 'accept')) return lines
  return each.with(last, `Vary: ${[...wordsOf(each[last]!), 'Accept'].join(', ')}\r\n`).join('')
}

function wordsOf(line: string): readonly string[] {
  const words = line.slice(line.indexOf(':') + 1).split(',')
  return words.map(word => word.trim()).filter(word => word !== '')
}

function originIn(lines: string): string | undefined {
  const line = eachLine(lines).find(each => nameOf(each) === ALLOW_ORIGIN)
  return line?.slice(ALLOW_ORIGIN.length + 1).trim()
}

/** `lines` without the field of a name, which is in lower case. */
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
