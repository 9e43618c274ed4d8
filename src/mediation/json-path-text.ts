/**
 * Texts of JSONPath: rewrites the forms of the reference platform as RFC 9535 writes them, and tells what is wrong with
 * a text.
 */
import { endOfGroup } from './closing-bracket.ts'

/** Names behind a dot (RFC 9535 2.5.1.1), and the wildcard. */
const SHORTHAND = /^(\*|[\p{L}_\u{80}-\u{10ffff}][\p{L}\p{N}_\u{80}-\u{10ffff}]*)$/u
/** A path without `$`. */
const WITHOUT_ROOT = /^[\p{L}_[@]/u

/** Drops a dot at the end and before a bracket, adds `$.`, and puts other names behind a dot into brackets. */
export function standardPath(given: string): string {
  let path = given.trim()
  if (WITHOUT_ROOT.test(path)) path = `$.${path}`
  if (path.endsWith('.')) path = path.slice(0, -1)
  let standard = ''
  for (let at = 0; at < path.length; ) {
    const character = path[at]!
    if (character === '[') {
      const behind = endOfGroup(path, at + 1, '[]')
      const end = behind === -1 ? path.length : behind
      standard += path.slice(at, end)
      at = end
      continue
    }
    const [, dots = '', name = ''] = /^(\.{1,2})([^.[\](\s'"\\]*)/.exec(path.slice(at)) ?? []
    if (dots === '') {
      standard += character
      at++
      continue
    }
    const isBracketed = name !== '' && !SHORTHAND.test(name)
    const isBeforeBracket = name === '' && path[at + dots.length] === '['
    const kept = (isBracketed || isBeforeBracket) && dots === '.' ? '' : dots
    standard += isBracketed ? `${kept}['${name}']` : `${kept}${name}`
    at += dots.length + name.length
  }
  return standard
}

const EXAMPLES = "write it as $.a.b[0], $['a b'] or $.list[?(@.n > 1)].name"
/** Forms of the reference platform beyond RFC 9535 that are refused, each with its reason and its remedy. */
const OTHERS: readonly (readonly [form: RegExp, why: (found: string) => string, hint: string])[] = [
  [/^\s*$/, () => 'it is empty', 'write $ for the whole payload'],
  [
    /\.([\p{L}_]+)\([^)]*\)\s*$/u,
    name => `it ends with the function ${name}()`,
    'only length() ends a path: use <script>',
  ],
  [/=~/, () => 'its filter compares with =~', "write [?match(@.name, 'a.*')]"],
  [
    /\?.*[\s)\]](and|or|in|nin|subsetof|anyof|noneof|size|empty|contains)[\s([]/,
    word => `its filter has the operator ${word}`,
    'write conditions with ==, !=, <, >, && and ||',
  ],
  [/\[\(/, () => 'it computes an index', 'write [-1] for the last item'],
  [/\.\s*$/, () => 'it ends with a dot', 'remove the dot, or add a name'],
]

/** Why a text is no JSONPath, and what to do about it. `at`: index where the library stopped in the standard form. */
export function jsonPathError(given: string, at: number): { readonly why: string; readonly hint: string } {
  for (const [form, why, hint] of OTHERS) {
    const found = form.exec(given)
    if (found !== null) return { why: why(found[1] ?? ''), hint }
  }
  const rest = standardPath(given).slice(at, at + 20)
  return { why: rest === '' ? 'its end is missing' : `it has no form that is known from ${rest}`, hint: EXAMPLES }
}
