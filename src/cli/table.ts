/** Rows of text in columns that line up. */
import { paint, type Terminal } from './terminal.ts'

/** Columns that are empty in every row are left out. */
export function table(terminal: Terminal, heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const used = heading.map((_, column) => rows.some(row => row[column] !== ''))
  const widths = heading.map((name, column) =>
    rows.reduce((width, row) => Math.max(width, row[column]!.length), name.length),
  )
  const lineOf = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => (used[column] ? `${cell.padEnd(widths[column]!)}  ` : ''))
      .join('')
      .trimEnd()
  const body = rows.map(row => `${lineOf(row)}\n`).join('')
  return `${paint(terminal, 'dim', lineOf(heading))}\n${body}`
}
