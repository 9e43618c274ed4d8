/**
 * Reads `deployment.toml` as a flat list of keys, each with value and line. smol-toml gives values without positions,
 * so lines come from a second pass over the text (`key-positions.ts`).
 */
import { parse, TomlError } from 'smol-toml'
import type { Diagnostic } from './diagnostics.ts'
import { dottedPath, findPositions, type HeaderPosition, type KeyPath, type KeyPosition } from './key-positions.ts'
import { withoutIndexes } from './setting.ts'
import { syntaxDiagnostic } from './syntax-diagnostic.ts'
import { isRepeated } from './tables.ts'

export interface DocumentEntry {
  /** Whole dotted path: `[a.b]` with `c.d`, with `"c.d"` and with `c = { d }` all give `a.b.c.d`. */
  readonly path: string
  readonly value: unknown
  readonly line: number
  /** The header above the key; '' above the first. */
  readonly table: string
}

/** A header: `a.b` of a table, `a.b[0]` of a row of an array of tables. */
interface TableHeader {
  readonly path: string
  readonly line: number
}

interface TomlDocument {
  readonly entries: readonly DocumentEntry[]
  readonly rows: readonly TableHeader[]
  /** Tables that are written once. */
  readonly tables: readonly TableHeader[]
  readonly errors: readonly Diagnostic[]
}

/** A text that does not parse gives one error and no entries, because the rest could only be guessed. */
export function readDocument(file: string, source: string): TomlDocument {
  let tree: Readonly<Record<string, unknown>>
  try {
    tree = parse(source, { integersAsBigInt: 'asNeeded' })
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    return { entries: [], rows: [], tables: [], errors: [syntaxDiagnostic(file, source, error)] }
  }
  const { keys, headers } = findPositions(source, path => isArrayOfTables(tree, path))
  const rows = headers.filter(header => header.repeated).map(tableHeader)
  const tables = headers.filter(header => !header.repeated).map(tableHeader)
  return { ...readEntries(file, tree, keys), rows, tables }
}

function tableHeader({ path, line }: HeaderPosition): TableHeader {
  return { path: dottedPath(path), line }
}

/** `x = [{ a = 1 }, { a = 2 }]` means the same as `[[x]]` (TOML 1.0, Array of Tables). */
function isArrayOfTables(tree: unknown, path: KeyPath): boolean {
  if (!isRepeated(withoutIndexes(dottedPath(path)))) return false
  const value = valueAt(tree, path)
  return Array.isArray(value) && value.every(isTable)
}

function isTable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

function readEntries(
  file: string,
  tree: Readonly<Record<string, unknown>>,
  keys: readonly KeyPosition[],
): Pick<TomlDocument, 'entries' | 'errors'> {
  const entries: DocumentEntry[] = []
  const errors: Diagnostic[] = []
  const firstLine = new Map<string, number>()
  for (const { path: names, line, table } of keys) {
    const path = dottedPath(names)
    const before = firstLine.get(path)
    if (before === undefined) {
      firstLine.set(path, line)
      entries.push({ path, value: valueAt(tree, names), line, table: dottedPath(table) })
      continue
    }
    // `"a.b" = 1` beside `a.b = 2` is valid TOML, and one key of the catalogue.
    const hint = `it is already set on line ${before}; quoted and nested spellings name the same key`
    errors.push({ where: `${file}:${line}`, key: path, given: '', expected: 'set twice', hint })
  }
  return { entries, errors }
}

function valueAt(tree: unknown, path: KeyPath): unknown {
  return path.reduce<unknown>((value, name) => (value as Record<string | number, unknown>)[name], tree)
}
