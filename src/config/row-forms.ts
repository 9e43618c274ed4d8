/**
 * Rows of repeated tables that documents also write in another way: `[x]` for the only row, `[x.NAME]` for one of
 * several. However they are written, they are rows from here on.
 */
import { type AnySection, SECTIONS } from './catalogue.ts'

interface Placed {
  readonly path: string
  readonly line: number
}

interface Entry extends Placed {
  readonly value: unknown
  readonly table: string
}

/** What stands in a file, line by line. */
interface Outline {
  readonly entries: readonly Entry[]
  /** Rows, `a.b[0]`. */
  readonly rows: readonly Placed[]
  /** Tables that are written once. */
  readonly tables: readonly Placed[]
}

interface OpenedRow extends Placed {
  /** '' where its form gives it none. */
  readonly name: string
}

const FORMED = SECTIONS.filter(({ otherForm }) => otherForm !== '')

/** The same outline with such tables as rows. */
export function inRows<T extends Outline>(outline: T): T {
  return FORMED.reduce(withRowsOf, outline)
}

function withRowsOf<T extends Outline>(outline: T, section: AnySection): T {
  const start = startOf(section.name)
  const isOfIt = ({ path }: Placed): boolean => start.test(path)
  const headers = outline.tables.filter(isOfIt)
  if (headers.length === 0 && !outline.entries.some(isOfIt)) return outline
  const opened = new OpenedRows(section, start)
  for (const header of headers) opened.openBy(header)
  const entries = outline.entries.map(entry => (isOfIt(entry) ? opened.moved(entry) : entry))
  const set = new Set(entries.map(({ path }) => path))
  const named = opened.rows
    .filter(({ path, name }) => name !== '' && !set.has(`${path}.name`))
    .map(({ path, line, name }) => ({ path: `${path}.name`, line, value: name, table: path }))
  return {
    ...outline,
    entries: [...entries, ...named],
    rows: [...outline.rows, ...opened.rows.map(({ path, line }) => ({ path, line }))],
    tables: outline.tables.filter(table => !isOfIt(table)),
  }
}

/** The table itself and what is in it, in any row of the tables that it stands in, and not as a row. */
function startOf(table: string): RegExp {
  return new RegExp(`^${table.split('.').map(RegExp.escape).join('(?:\\[\\d+\\])?\\.')}(?=\\.|$)`)
}

class OpenedRows {
  readonly rows: OpenedRow[] = []
  readonly #byName = new Map<string, OpenedRow>()
  readonly #counts = new Map<string, number>()
  readonly #section: AnySection
  readonly #start: RegExp

  constructor(section: AnySection, start: RegExp) {
    this.#section = section
    this.#start = start
  }

  /** A header of named tables alone, `[x]`, opens none. */
  openBy({ path, line }: Placed): void {
    const { table, rest } = this.#parts(path)
    if (this.#section.otherForm === 'table') this.#row(table, '', line)
    else if (rest !== '') this.#row(table, rest, line)
  }

  moved<E extends Entry>(entry: E): E {
    const { table, rest } = this.#parts(entry.path)
    const name = this.#section.otherForm === 'table' ? '' : this.#nameIn(rest)
    const row = this.#row(table, name, entry.line)
    return { ...entry, path: `${row}.${name === '' ? rest : rest.slice(name.length + 1)}`, table: row }
  }

  #parts(path: string): { readonly table: string; readonly rest: string } {
    const table = this.#start.exec(path)![0]
    return { table, rest: path.slice(table.length + 1) }
  }

  /** `a` of `a.class`; '' of `class`. A key that the section does not have has one segment. */
  #nameIn(rest: string): string {
    const key = Object.keys(this.#section.keys).find(known => rest === known || rest.endsWith(`.${known}`))
    return rest.slice(0, Math.max(0, key === undefined ? rest.lastIndexOf('.') : rest.length - key.length - 1))
  }

  #row(table: string, name: string, line: number): string {
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
