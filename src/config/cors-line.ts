/** Lists of names that leave in one line of a head, which has a size: methods and fields that pages are told of. */
const CHARS_MAX = 2000

export const CORS_LINE_LIMIT = `at most ${CHARS_MAX} characters long: it is one line of an answer`

export function fitsCorsLine(names: readonly string[]): boolean {
  return names.reduce((chars, name) => chars + name.length + 2, 0) <= CHARS_MAX + 2
}
