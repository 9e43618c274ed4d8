/** Which keys somebody means by a word behind `explain`. */
import { allKeys } from '../config/catalogue.ts'
import { printable } from '../config/fault.ts'
import { FREE_NAME } from '../config/key.ts'
import { nearest } from '../config/nearest.ts'
import type { ResolvedKey } from '../config/resolve.ts'
import { withoutPlaces } from '../config/setting.ts'
import { canonical } from '../config/tables.ts'

/** A key or section as somebody writes it in a file: its quotes, and the brackets of a header, are not part of it. */
export function asWord(asked: string): string {
  const plain = asked.replaceAll(/["']/g, '').trim()
  return /^\[\[?([^[\]]+)\]\]?$/.exec(plain)?.[1]?.trim() ?? plain
}

interface Choice {
  readonly chosen: readonly ResolvedKey[]
  /** A key was meant, by its path, its name or another spelling, and not a section or a few letters. */
  readonly named: boolean
}

/** All keys, those of a section, those meant by their path or the end of that, or all with these letters in it. */
export function choose(keys: readonly ResolvedKey[], wanted: string): Choice {
  if (wanted === '') return { chosen: keys, named: false }
  const ofSection = keys.filter(key => isWithin(key, wanted))
  if (ofSection.length > 0) return { chosen: ofSection, named: false }
  const absent = absentKeys(keys)
  const ofTable = absent.filter(key => isWithin(key, wanted))
  if (ofTable.length > 0) return { chosen: ofTable, named: false }
  const path = canonical(wanted)
  const letters = wanted.toLowerCase()
  const names: readonly ((key: ResolvedKey) => boolean)[] = [
    key => key.path === path,
    key => withoutPlaces(key.path) === path || key.path === withoutPlaces(path),
    key => key.path.includes(FREE_NAME) && isNamed(key.path, path),
    key => key.path.endsWith(`.${wanted}`) || key.definition.aliases.includes(wanted),
  ]
  const known = [...keys, ...absent]
  const chosen = names.map(name => known.filter(name)).find(found => found.length > 0)
  if (chosen !== undefined) return { chosen, named: true }
  const alike = known.filter(key => key.path.toLowerCase().includes(letters))
  return { chosen: alike, named: alike.length === 1 }
}

/** Whether a path is one of those that a free name stands for. */
function isNamed(pattern: string, path: string): boolean {
  const [start = '', end = ''] = pattern.split(FREE_NAME)
  return path.length > start.length + end.length && path.startsWith(start) && path.endsWith(end)
}

/** Of the section, of one row of a repeated table, or of any row of it. */
function isWithin({ section }: ResolvedKey, name: string): boolean {
  return section === name || withoutPlaces(section) === name
}

/** Keys of repeated tables that have no row, and of names that nobody has chosen yet: with their defaults. */
function absentKeys(keys: readonly ResolvedKey[]): readonly ResolvedKey[] {
  const tables = new Set(keys.map(({ section }) => withoutPlaces(section)))
  return allKeys()
    .filter(({ section, key }) => !tables.has(section) || key.includes(FREE_NAME))
    .map(key => ({
      ...key,
      value: key.definition.fallback,
      where: '',
      settings: [],
      secret: key.definition.secret,
      faulty: false,
    }))
}

/** Where there is nothing to choose: what might have been meant. */
export function noSuchKey(keys: readonly ResolvedKey[], wanted: string): string {
  const guess = nearest(
    wanted,
    keys.flatMap(key => [key.path, key.key, key.section]),
  )
  return `there is no key or section ${printable(wanted)}${guess === '' ? '' : `; did you mean ${guess}?`}\n`
}
