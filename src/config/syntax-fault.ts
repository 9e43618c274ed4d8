/** What a text that is no TOML is about: the parser's reason, its place, and the table or key on that line. */
import { parse, TomlError } from 'smol-toml'
import type { Fault } from './fault.ts'
import { withoutPlaces } from './setting.ts'
import { type Header, outlineOf, pathOf, type Statement } from './statements.ts'

/** `source`: the text that does not parse. */
export function syntaxFault(file: string, source: string, error: TomlError): Fault {
  // Further lines of it are those around the mistake. They are not shown: one may hold a password.
  const reason = (error.message.split('\n')[0] ?? '').replace('Invalid TOML document: ', '')
  const { name, inTheWay } = namedOn(error.line, source)
  const first = inTheWay === 0 || !reason.includes('redefine') ? '' : ` of line ${inTheWay}`
  return {
    where: `${file}:${error.line}:${error.column}`,
    // Of no key: what all keys come to is not known.
    key: '',
    given: '',
    expected: ['not valid TOML', name, `${reason}${first}`].filter(part => part !== '').join(': '),
    remedy: 'nothing else was checked',
  }
}

interface Named {
  /** A header in its brackets, or the path of a key; '' where none is certain. */
  readonly name: string
  /** The line that defines the same, or what the name lies in or around; 0 for none. */
  readonly inTheWay: number
}

const SEGMENT = /(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')/.source
const PATH = `${SEGMENT}(?:[ \\t]*\\.[ \\t]*${SEGMENT})*[ \\t]*`
/** The beginning of a line that has a name: of a header, or of a key. */
const HEAD = new RegExp(`^\\ufeff?[ \\t]*(?:\\[[ \\t]*${PATH}\\]|\\[\\[[ \\t]*${PATH}\\]\\]|(${PATH}=))`)

/** What a line is about. Nothing of a value is ever a name, so the line must begin where no value is open. */
function namedOn(line: number, source: string): Named {
  const lines = source.split('\n')
  const above = lines
    .slice(0, line - 1)
    .map(text => `${text}\n`)
    .join('')
  const [head = '', key] = HEAD.exec(lines[line - 1] ?? '') ?? []
  const whole = key === undefined ? head : `${head} 0`
  if (head === '' || !isToml(whole) || !isToml(above)) return { name: '', inTheWay: 0 }
  const { statements, headers } = outlineOf(above + whole)
  const own = key === undefined ? headers.at(-1)! : statements.at(-1)!
  const path = pathOf(own.segments)
  const table = 'repeated' in own && own.repeated ? `[[${withoutPlaces(path)}]]` : `[${withoutPlaces(path)}]`
  const others = [...headers, ...statements].filter(other => other !== own)
  return { name: key === undefined ? table : path, inTheWay: lineInTheWay(withoutPlaces(path), others) }
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

function lineInTheWay(name: string, others: readonly (Header | Statement)[]): number {
  const placed = others.map(({ segments, line }) => ({ path: withoutPlaces(pathOf(segments)), line }))
  const nearest = placed.toSorted((one, other) => other.line - one.line)
  const found =
    nearest.find(({ path }) => path === name) ??
    placed.find(({ path }) => path.startsWith(`${name}.`)) ??
    nearest.find(({ path }) => name.startsWith(`${path}.`))
  return found?.line ?? 0
}
