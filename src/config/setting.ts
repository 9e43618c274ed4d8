/** What somebody set, before the catalogue has judged it. */
import type { Entry } from './document.ts'

/** One key as somebody set it. */
export interface Setting extends Entry {
  /** `conf/deployment.toml:12`, or `--set`. */
  readonly where: string
  /** What else the value may be read as: the plain text behind `--set`. */
  readonly otherwise: unknown
}

/** A row of a repeated table, `a.b[0]`, whether or not it sets a key. */
export interface PlacedRow {
  readonly path: string
  readonly where: string
}

const PLACE = /\[\d+\]/g

/** The path of a table without the places in repeated tables. */
export function withoutPlaces(path: string): string {
  return path.replace(PLACE, '')
}
