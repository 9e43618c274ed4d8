/** What somebody set, before the catalogue has judged it. */
import { parse, TomlError } from 'smol-toml'
import type { Entry } from './document.ts'

/** One key as somebody set it. */
export interface Setting extends Entry {
  /** `conf/deployment.toml:12`, `environment NAME`, or `--set`. */
  readonly where: string
  /** What else the value may be read as: the plain text behind `--set`. */
  readonly otherwise: unknown
}

/** A table, or a row of a repeated one, `a.b[0]`, whether or not it sets a key. */
export interface PlacedTable {
  readonly path: string
  readonly where: string
}

/** The headers of a file. */
export interface Headers {
  readonly rows: readonly PlacedTable[]
  /** Written once. */
  readonly tables: readonly PlacedTable[]
}

const PLACE = /\[\d+\]/g

/** The path of a table without the places in repeated tables. */
export function withoutPlaces(path: string): string {
  return path.replace(PLACE, '')
}

/** Text from outside a file is TOML where it parses as one value, and text otherwise. */
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
