/** Output of the commands: colours where the output is a terminal, and tables. */
import { styleText } from 'node:util'

export interface Terminal {
  readonly isTTY?: boolean
  write(text: string): unknown
}

type Style = 'bold' | 'dim' | 'green' | 'red' | 'yellow'

/** Returns plain text unless the output is a terminal and NO_COLOR is not set. */
export function paint(terminal: Terminal, style: Style, text: string): string {
  const isPlain = terminal.isTTY !== true || (process.env.NO_COLOR ?? '') !== ''
  return isPlain ? text : styleText(style, text, { validateStream: false })
}

/** Formats aligned columns. A column that is empty in every row is skipped. */
export function table(terminal: Terminal, heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const isUsed = heading.map((_, column) => rows.some(row => row[column] !== ''))
  const widths = heading.map((name, column) =>
    rows.reduce((width, row) => Math.max(width, row[column]!.length), name.length),
  )
  const formatRow = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => (isUsed[column] ? `${cell.padEnd(widths[column]!)}  ` : ''))
      .join('')
      .trimEnd()
  const body = rows.map(row => `${formatRow(row)}\n`).join('')
  return `${paint(terminal, 'dim', formatRow(heading))}\n${body}`
}

/** `1 API`, `2 APIs`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** Seconds until a retry, `1.5 s`; '' for a negative time, which means that no retry is due. */
export function retryText(ms: number): string {
  return ms < 0 ? '' : `${(ms / 1000).toFixed(1)} s`
}
