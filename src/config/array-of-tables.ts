/**
 * Rewrites the alternative forms of repeated tables into rows `x[0]`, `x[1]`, so that the other files know one form
 * only. The forms are `[x]` for a single row and `[x.NAME]` for one of several.
 */
import { type AnySection, SECTIONS } from './catalogue.ts'

interface Located {
  readonly path: string
  readonly line: number
}

interface Entry extends Located {
  readonly value: unknown
  readonly table: string
}

/** The parts of a document that change. */
interface Outline {
  readonly entries: readonly Entry[]
  /** `a.b[0]`. */
  readonly rows: readonly Located[]
  /** Tables that are written once. */
  readonly tables: readonly Located[]
}

interface Row extends Located {
  /** '' for a row of the form `[x]`. */
  readonly name: string
}

const SECTIONS_WITH_ALTERNATIVE = SECTIONS.filter(({ alternativeForm }) => alternativeForm !== '')

/** The same document with every such table as a row. */
export function normalizeRows<T extends Outline>(outline: T): T {
  return SECTIONS_WITH_ALTERNATIVE.reduce(withRowsOf, outline)
}

function withRowsOf<T extends Outline>(outline: T, section: AnySection): T {
  const prefix = tablePattern(section.name)
  const isInSection = ({ path }: Located): boolean => prefix.test(path)
  const headers = outline.tables.filter(isInSection)
  if (headers.length === 0 && !outline.entries.some(isInSection)) return outline
  const opener = new RowOpener(section, prefix)
  for (const header of headers) opener.openHeader(header)
  const entries = outline.entries.map(entry => (isInSection(entry) ? opener.moveEntry(entry) : entry))
  const set = new Set(entries.map(({ path }) => path))
  const names = opener.rows
    .filter(({ path, name }) => name !== '' && !set.has(`${path}.name`))
    .map(({ path, line, name }) => ({ path: `${path}.name`, line, value: name, table: path }))
  return {
    ...outline,
    entries: [...entries, ...names],
    rows: [...outline.rows, ...opener.rows.map(({ path, line }) => ({ path, line }))],
    tables: outline.tables.filter(table => !isInSection(table)),
  }
}

/** Matches the table without an index and everything in it, within any row of the tables around it. */
function tablePattern(table: string): RegExp {
  return new RegExp(`^${table.split('.').map(RegExp.escape).join('(?:\\[\\d+\\])?\\.')}(?=\\.|$)`)
}

/** Opens a row for each table of one section, and moves the entries of the table into it. */
class RowOpener {
  readonly rows: Row[] = []
  readonly #byName = new Map<string, Row>()
  readonly #counts = new Map<string, number>()
  readonly #section: AnySection
  readonly #prefix: RegExp

  constructor(section: AnySection, prefix: RegExp) {
    this.#section = section
    this.#prefix = prefix
  }

  /** `[x]` opens no row where rows have names. */
  openHeader({ path, line }: Located): void {
    const { table, rest } = this.#split(path)
    if (this.#section.alternativeForm === 'table') this.#rowPath(table, '', line)
    else if (rest !== '') this.#rowPath(table, rest, line)
  }

  moveEntry<E extends Entry>(entry: E): E {
    const { table, rest } = this.#split(entry.path)
    const name = this.#section.alternativeForm === 'table' ? '' : this.#nameIn(rest)
    const row = this.#rowPath(table, name, entry.line)
    return { ...entry, path: `${row}.${name === '' ? rest : rest.slice(name.length + 1)}`, table: row }
  }

  #split(path: string): { readonly table: string; readonly rest: string } {
    const table = this.#prefix.exec(path)![0]
    return { table, rest: path.slice(table.length + 1) }
  }

  /** `a` of `a.class`, '' of `class`; an unknown key is taken for one segment. */
  #nameIn(rest: string): string {
    const key = Object.keys(this.#section.keys).find(known => rest === known || rest.endsWith(`.${known}`))
    return rest.slice(0, Math.max(0, key === undefined ? rest.lastIndexOf('.') : rest.length - key.length - 1))
  }

  #rowPath(table: string, name: string, line: number): string {
    const known = this.#byName.get(`${table}.${name}`)
    if (known !== undefined) return known.path
    const count = this.#counts.get(table) ?? 0
    this.#counts.set(table, count + 1)
    const row = { path: `${table}[${count}]`, line, name }
    this.#byName.set(`${table}.${name}`, row)
    this.rows.push(row)
    return row.path
  }
}
