/**
 * `deployment.toml` as a flat list of key paths, each with its value and the line it stands on. A parser answers values
 * without lines, so the lines come from a second walk over a text the parser has already found valid.
 */
import { parse, TomlError } from 'smol-toml'
import type { Fault } from './fault.ts'
import { type Header, outlineOf, pathOf, type Statement } from './statements.ts'
import { withoutPlaces } from './setting.ts'
import { syntaxFault } from './syntax-fault.ts'
import { isRepeated } from './tables.ts'

export interface Entry {
  /** Dotted whole: `[a.b]` with `c.d`, with `"c.d"` and with `c = { d }` all give `a.b.c.d`. */
  readonly path: string
  readonly value: unknown
  readonly line: number
  /** The table header it stands under, '' above the first. */
  readonly table: string
}

/** A header: `a.b` of a table, `a.b[0]` of a row of a repeated one. */
interface Table {
  readonly path: string
  readonly line: number
}

interface Document {
  readonly entries: readonly Entry[]
  readonly rows: readonly Table[]
  /** Tables that are written once. */
  readonly tables: readonly Table[]
  readonly faults: readonly Fault[]
}

/** A text that does not parse has one fault and no entries: what follows a syntax error would be guesses. */
export function readDocument(file: string, source: string): Document {
  let tree: Readonly<Record<string, unknown>>
  try {
    tree = parse(source, { integersAsBigInt: 'asNeeded' })
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    return { entries: [], rows: [], tables: [], faults: [syntaxFault(file, source, error)] }
  }
  const { statements, headers } = outlineOf(source, segments => isListOfRows(tree, segments))
  const rows = headers.filter(header => header.repeated).map(tableAt)
  const tables = headers.filter(header => !header.repeated).map(tableAt)
  return { ...flatten(file, tree, statements), rows, tables }
}

function tableAt({ segments, line }: Header): Table {
  return { path: pathOf(segments), line }
}

/** `x = [{ a = 1 }, { a = 2 }]` is what `[[x]]` is to TOML, and so it is here. */
function isListOfRows(tree: unknown, segments: Segments): boolean {
  if (!isRepeated(withoutPlaces(pathOf(segments)))) return false
  const value = valueAt(tree, segments)
  return Array.isArray(value) && value.every(isTable)
}

function isTable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

function flatten(
  file: string,
  tree: Readonly<Record<string, unknown>>,
  written: readonly Statement[],
): Pick<Document, 'entries' | 'faults'> {
  const entries: Entry[] = []
  const faults: Fault[] = []
  const firstLine = new Map<string, number>()
  for (const { segments, line, table } of written) {
    const path = pathOf(segments)
    const before = firstLine.get(path)
    if (before === undefined) {
      firstLine.set(path, line)
      entries.push({ path, value: valueAt(tree, segments), line, table: pathOf(table) })
      continue
    }
    // `"a.b" = 1` beside `a.b = 2` is valid TOML and one key to us.
    const remedy = `it is already set on line ${before}; quoted and nested spellings name the same key`
    faults.push({ where: `${file}:${line}`, key: path, given: '', expected: 'set twice', remedy })
  }
  return { entries, faults }
}

type Segments = Statement['segments']

function valueAt(tree: unknown, segments: Segments): unknown {
  return segments.reduce<unknown>((value, segment) => (value as Record<string | number, unknown>)[segment], tree)
}
