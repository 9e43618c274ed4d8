/** The keys of one configuration: those of the catalogue, once per row of a repeated table and per free name in use. */
import { type AnySection, type CatalogueKey, SECTIONS } from './catalogue.ts'
import { FREE_NAME, keyPath } from './key.ts'
import { looksSecret } from './outside.ts'
import { type PlacedTable, withoutPlaces } from './setting.ts'
import { canonical } from './tables.ts'

export interface PresentKey extends CatalogueKey {
  /** Its beginning: a key is required where another of this beginning is set. */
  readonly group: string
}

/** In documented order, rows in that of the file. `paths` are those that somebody set. */
export function presentKeys(paths: readonly string[], rows: readonly PlacedTable[]): readonly PresentKey[] {
  return SECTIONS.flatMap(section => {
    if (!section.repeated) return keysAt(section, section.name, paths)
    const places = rows.map(row => row.path).filter(path => isRowOf(section.name, path))
    return [...new Set(places)].flatMap(place => keysAt(section, place, paths))
  })
}

function isRowOf(table: string, path: string): boolean {
  return path.endsWith(']') && withoutPlaces(path) === table
}

function keysAt({ keys }: AnySection, section: string, paths: readonly string[]): readonly PresentKey[] {
  const entries = Object.entries(keys)
  const named = entries.filter(([key]) => !key.includes(FREE_NAME))
  const free = entries.filter(([key]) => key.includes(FREE_NAME))
  const whole = keyPath(section, '')
  const own = named.map(([key, definition]) => ({ section, key, path: whole + key, definition, group: whole }))
  if (free.length === 0) return own
  const used = freeKeys(section, named, free, paths)
  return [...own, ...used.map(found => ({ ...found, section, path: whole + found.key, group: whole + found.group }))]
}

type Entries = readonly (readonly [key: string, definition: CatalogueKey['definition']])[]

interface FreeKey extends Pick<PresentKey, 'key' | 'definition' | 'group'> {}

/** Every key that a name can have, for each name that somebody has used with one of them. */
function freeKeys(section: string, named: Entries, free: Entries, paths: readonly string[]): readonly FreeKey[] {
  const own = paths.filter(path => path.startsWith(`${section}.`)).map(path => path.slice(section.length + 1))
  if (own.length === 0) return []
  const taken = new Set(named.map(([key]) => key))
  const found = new Map<string, FreeKey>()
  for (const [pattern] of free) {
    const [start = '', end = ''] = pattern.split(FREE_NAME)
    for (const key of own) {
      if (taken.has(key) || !key.startsWith(start) || !key.endsWith(end)) continue
      const name = key.slice(start.length, key.length - end.length)
      // A name that has keys of its own is none that the operator chose.
      if (name === '' || named.some(([known]) => known.startsWith(`${start}${name}.`))) continue
      for (const [other, plain] of free) {
        if (!other.startsWith(`${start}${FREE_NAME}`)) continue
        const key = other.replace(FREE_NAME, name)
        // What its operator calls a password is one: the catalogue cannot know such a name.
        const definition = other.endsWith(FREE_NAME) && looksSecret(name) ? { ...plain, secret: true } : plain
        found.set(key, { key, definition, group: `${start}${name}.` })
      }
    }
  }
  return [...found.values()]
}

/** What can be set by name: the keys there are, their other spellings, and keys of the operator's own. */
export function settablePaths(written: readonly string[], rows: readonly PlacedTable[]): ReadonlySet<string> {
  const paths = written.map(canonical)
  const spellings = presentKeys(paths, rows).flatMap(({ section, path, definition }) => [
    path,
    ...definition.aliases.map(alias => keyPath(section, alias)),
  ])
  return new Set([...spellings, ...paths])
}
