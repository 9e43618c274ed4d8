/** Describes a TOML syntax error: the parser's reason and position, and the header or key on that line. */
import { parse, TomlError } from 'smol-toml'
import type { Diagnostic } from './diagnostics.ts'
import { dottedPath, findPositions, type HeaderPosition, type KeyPosition } from './key-positions.ts'
import { withoutIndexes } from './setting.ts'

/** `source`: the text that does not parse. */
export function syntaxDiagnostic(file: string, source: string, error: TomlError): Diagnostic {
  // The further lines of the message quote the file, which may hold a password.
  const reason = (error.message.split('\n')[0] ?? '').replace('Invalid TOML document: ', '')
  const { name, conflictingLine } = subjectOfLine(error.line, source)
  const conflict = conflictingLine === 0 || !reason.includes('redefine') ? '' : ` of line ${conflictingLine}`
  return {
    where: `${file}:${error.line}:${error.column}`,
    key: '',
    given: '',
    expected: ['not valid TOML', name, `${reason}${conflict}`].filter(part => part !== '').join(': '),
    hint: `${remedyFor(reason)}; nothing else was checked`,
  }
}

/** Remedies by words of the parser's reason; the first that fits holds. */
const REMEDIES: readonly (readonly [reason: RegExp, remedy: string])[] = [
  [/in strings|unfinished string/, 'close the text with a quotation mark on its line'],
  [/escape/, "write \\\\ for a backslash, or the text in '...'"],
  [/redefine/, 'keep one of them'],
  [/invalid value|numeric|leading zero|underscore|date/, 'write text in quotation marks'],
  [/comma or end of structure|unfinished (?:array|table)/, 'put commas between the values, and close the bracket'],
  [/end-of-line/, 'write one key on a line, and text in quotation marks'],
  [/cannot find end of key|end of table array/, 'write KEY = VALUE, and end a header with ]'],
  [/key/, 'end a header with ] on its line, and write a name with other characters in quotation marks'],
]

function remedyFor(reason: string): string {
  return REMEDIES.find(([words]) => words.test(reason))?.[1] ?? 'correct this line'
}

interface LineSubject {
  /** A header in its brackets, or the path of a key; '' where neither is certain. */
  readonly name: string
  /** The line that defines the same name, a part of it, or a table around it; 0 for none. */
  readonly conflictingLine: number
}

const SEGMENT = /(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')/.source
const PATH = `${SEGMENT}(?:[ \\t]*\\.[ \\t]*${SEGMENT})*[ \\t]*`
/** The beginning of a line with a header or a key. */
const HEAD = new RegExp(`^\\ufeff?[ \\t]*(?:\\[[ \\t]*${PATH}\\]|\\[\\[[ \\t]*${PATH}\\]\\]|(${PATH}=))`)

/** The lines above must parse: within an open value, a line could look like a key and hold a secret. */
function subjectOfLine(line: number, source: string): LineSubject {
  const lines = source.split('\n')
  const above = lines
    .slice(0, line - 1)
    .map(text => `${text}\n`)
    .join('')
  const [head = '', key] = HEAD.exec(lines[line - 1] ?? '') ?? []
  const statement = key === undefined ? head : `${head} 0`
  if (head === '' || !isToml(statement) || !isToml(above)) return { name: '', conflictingLine: 0 }
  const { keys, headers } = findPositions(above + statement)
  const own = key === undefined ? headers.at(-1)! : keys.at(-1)!
  const path = withoutIndexes(dottedPath(own.path))
  const header = 'repeated' in own && own.repeated ? `[[${path}]]` : `[${path}]`
  const others = [...headers, ...keys].filter(other => other !== own)
  return {
    name: key === undefined ? header : dottedPath(own.path),
    conflictingLine: conflictingLine(path, others),
  }
}

function isToml(text: string): boolean {
  try {
    parse(text, { integersAsBigInt: 'asNeeded' })
    return true
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    return false
  }
}

function conflictingLine(name: string, others: readonly (HeaderPosition | KeyPosition)[]): number {
  const positions = others.map(({ path, line }) => ({ path: withoutIndexes(dottedPath(path)), line }))
  const nearest = positions.toSorted((one, other) => other.line - one.line)
  const found =
    nearest.find(({ path }) => path === name) ??
    positions.find(({ path }) => path.startsWith(`${name}.`)) ??
    nearest.find(({ path }) => name.startsWith(`${path}.`))
  return found?.line ?? 0
}
