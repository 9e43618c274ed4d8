/**
 * The record of programs that measure without scenarios (bench/results/published-programs.json). A program writes rows
 * (`measured-table.ts`) or prints lines of the form `what: figure`; both become tables.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { RecordLine } from './measured-table.ts'
import type { Environment } from './results.ts'

interface RecordedTable {
  readonly title: string
  /** Titles of columns, with the digits that each shows after the point. */
  readonly columns: Readonly<Record<string, number>>
  readonly rows: readonly RecordedRow[]
}

interface RecordedRow {
  readonly name: string
  readonly cells: readonly (number | string | null)[]
}

export interface ProgramRecord {
  readonly title: string
  /** The command line that repeats the program. */
  readonly command: string
  readonly startedAt: string
  readonly tookSeconds: number
  readonly environment: Environment
  /** Processes that wanted a processor in the minute before the start: what other programs of the machine did. */
  readonly loadBefore: number
  readonly tables: readonly RecordedTable[]
  readonly notes: readonly string[]
}

export interface ProgramRecords {
  readonly schema: 1
  readonly programs: Readonly<Record<string, ProgramRecord>>
}

/** The tables of a file of rows; empty where a program has written none. */
export function tablesOf(file: string): Pick<ProgramRecord, 'tables' | 'notes'> {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  const lines = text.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line) as RecordLine]))
  const tables = new Map<string, { columns: Readonly<Record<string, number>>; rows: RecordedRow[] }>()
  const notes: string[] = []
  for (const line of lines) {
    if ('note' in line) {
      notes.push(line.note)
      continue
    }
    const known = tables.get(line.table)
    if (known === undefined) tables.set(line.table, { columns: line.columns, rows: [rowOf(line)] })
    else known.rows.push(rowOf(line))
  }
  return { tables: [...tables].map(([title, { columns, rows }]) => ({ title, columns, rows })), notes }
}

function rowOf({ row, cells }: Exclude<RecordLine, { note: string }>): RecordedRow {
  return { name: row, cells }
}

/** A table of printed lines `what: figure`; other lines are notes. */
export function tableOfLines(title: string, output: string): Pick<ProgramRecord, 'tables' | 'notes'> {
  const lines = output.split('\n').filter(line => line.trim() !== '')
  const pairs = lines.flatMap(line => /^([^:]+): (.+)$/.exec(line)?.slice(1) ?? [])
  const rows = Array.from({ length: pairs.length / 2 }, (_, at) => ({
    name: pairs[2 * at]!,
    cells: [pairs[2 * at + 1]!],
  }))
  const notes = lines.filter(line => !/^[^:]+: .+$/.test(line)).map(line => `${line.trim()}.`)
  return { tables: rows.length === 0 ? [] : [{ title, columns: { '': 0 }, rows }], notes }
}

/** A recorded figure; undefined where the record has none. */
export function recordedFigure(record: ProgramRecord, table: string, row: string, column: string): number | undefined {
  const { columns, rows } = record.tables.find(({ title }) => title === table) ?? { columns: {}, rows: [] }
  const cell = rows.find(({ name }) => name === row)?.cells[Object.keys(columns).indexOf(column)]
  return typeof cell === 'number' ? cell : undefined
}

export function readPrograms(file: string): ProgramRecords {
  if (!existsSync(file)) return { schema: 1, programs: {} }
  const parsed = JSON.parse(readFileSync(file, 'utf8')) as ProgramRecords
  if (parsed.schema !== 1) throw new Error(`${file} is not a record of programs (schema ${parsed.schema})`)
  return parsed
}

/** Adds programs to a file; replaces those of the same name and keeps the others. */
export function mergePrograms(file: string, fresh: ProgramRecords['programs']): ProgramRecords {
  const merged: ProgramRecords = { schema: 1, programs: { ...readPrograms(file).programs, ...fresh } }
  writeFileSync(file, `${JSON.stringify(merged, null, 2)}\n`)
  return merged
}
