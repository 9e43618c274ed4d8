/** Lines of an answer that come from more than one place: no field is said twice, but those that are lists. */

/** RFC 9110 12.5.5: what a response varies by adds up. */
const LISTS = ['vary']

/** `lines` without what `said` has already; all of them end with CRLF. */
export function linesNotIn(said: string, lines: string): string {
  if (said === '' || lines === '') return lines
  const names = new Set(namesOf(said))
  return eachLine(lines)
    .filter(line => !names.has(nameOf(line)) || LISTS.includes(nameOf(line)))
    .join('')
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
