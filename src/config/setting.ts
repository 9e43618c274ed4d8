/** Settings: keys and headers as the operator wrote them, before they are matched with the catalogue. */
import { parse, TomlError } from 'smol-toml'
import type { DocumentEntry } from './document.ts'

/** A value that the file, the environment or `--set` gives to a key. */
export interface Setting extends DocumentEntry {
  /** `conf/deployment.toml:12`, `environment NAME`, or `--set`. */
  readonly where: string
  /** The plain text of `--set` and of a variable, for a key that does not take the TOML value; else undefined. */
  readonly alternative: unknown
}

/** A table, or a row of an array of tables, `a.b[0]`, with or without keys below it. */
export interface LocatedTable {
  readonly path: string
  readonly where: string
}

/** The headers of a file. */
export interface TableHeaders {
  readonly rows: readonly LocatedTable[]
  /** Tables that are written once. */
  readonly tables: readonly LocatedTable[]
}

const INDEX = /\[\d+\]/g

/** `a.b.c` of `a.b[0].c`. */
export function withoutIndexes(path: string): string {
  return path.replace(INDEX, '')
}

/** Reads text from `--set` or a variable: TOML where it parses as one value, else the text itself. */
export function readValue(text: string): unknown {
  // A line end would let a value bring further keys with it.
  if (/[\r\n]/.test(text)) return text
  try {
    return parse(`value = ${text}`, { integersAsBigInt: 'asNeeded' }).value
  } catch (error) {
    if (error instanceof TomlError) return text
    throw error
  }
}
