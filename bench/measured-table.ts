/**
 * Tables of programs that measure without scenarios and peers. Each row is printed as soon as it is measured, and
 * appended to the file that `BENCH_RECORD` names, so that an interrupted program keeps its rows (`program-records.ts`).
 */
import { appendFileSync } from 'node:fs'

/** A figure, or a word such as a status. Undefined: not measured. */
type Cell = number | string | undefined

/** A line of the file that `BENCH_RECORD` names. */
export type RecordLine =
  | {
      readonly table: string
      readonly columns: Readonly<Record<string, number>>
      readonly row: string
      readonly cells: readonly (number | string | null)[]
    }
  | { readonly note: string }

const NAME_WIDTH = 56
const COLUMN_WIDTH = 9
/** Digits of recorded figures: more than any column shows. */
const PRECISION = 6

export class MeasuredTable {
  readonly #title: string
  readonly #columns: Readonly<Record<string, number>>
  #hasHeading = false

  /** `columns`: their titles, with the digits that each shows after the point. */
  constructor(title: string, columns: Readonly<Record<string, number>>) {
    this.#title = title
    this.#columns = columns
  }

  row(name: string, ...cells: readonly Cell[]): void {
    const columns = Object.entries(this.#columns)
    const widths = columns.map(([title]) => Math.max(COLUMN_WIDTH, title.length + 2))
    if (!this.#hasHeading) {
      const titles = columns.map(([title], at) => title.padStart(widths[at]!))
      console.log(`\n${this.#title.padEnd(NAME_WIDTH)}${titles.join('')}`)
      this.#hasHeading = true
    }
    const shown = columns.map(([, digits], at) => formatCell(cells[at], digits).padStart(widths[at]!))
    console.log(`  ${name.padEnd(NAME_WIDTH - 2)}${shown.join('')}`)
    const kept = columns.map((_, at) => recorded(cells[at]))
    append({ table: this.#title, columns: this.#columns, row: name, cells: kept })
  }
}

/** Prints a sentence, which the record keeps below the tables. */
export function measuredNote(note: string): void {
  console.log(note)
  append({ note })
}

function append(line: RecordLine): void {
  const file = process.env.BENCH_RECORD ?? ''
  if (file !== '') appendFileSync(file, `${JSON.stringify(line)}\n`)
}

function recorded(cell: Cell): number | string | null {
  if (typeof cell === 'string') return cell
  return cell === undefined || !Number.isFinite(cell) ? null : Number(cell.toPrecision(PRECISION))
}

export function formatCell(cell: Cell | null, digits: number): string {
  if (typeof cell === 'string') return cell
  if (cell === undefined || cell === null || !Number.isFinite(cell)) return '–'
  return (Number(cell.toFixed(digits)) + 0).toLocaleString('en-US', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
}
