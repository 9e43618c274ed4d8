/** The keys of one configuration: those of the catalogue, once per row of a repeated table and per name in use. */
import { type AnySection, type CatalogueKey, SECTIONS } from './catalogue.ts'
import { withKeys } from './conditions.ts'
import { isSecretName } from './external-values.ts'
import { FREE_NAME, type Key, keyPath } from './key.ts'
import { type LocatedTable, withoutIndexes } from './setting.ts'
import { canonicalPath } from './tables.ts'

export interface KeyInstance extends CatalogueKey {
  /** Prefix of the path; a key is required where another key with this prefix is set. */
  readonly group: string
}

/** In documented order, rows in the order of the file. `paths`: keys that are set. */
export function keyInstances(paths: readonly string[], rows: readonly LocatedTable[]): readonly KeyInstance[] {
  return SECTIONS.flatMap(section => {
    if (!section.repeated) return instancesIn(section, section.name, paths)
    const own = rows.map(row => row.path).filter(path => isRowOf(section.name, path))
    return [...new Set(own)].flatMap(row => instancesIn(section, row, paths))
  })
}

function isRowOf(table: string, path: string): boolean {
  return path.endsWith(']') && withoutIndexes(path) === table
}

/** `section`: its name, or the path of a row. */
function instancesIn({ keys }: AnySection, section: string, paths: readonly string[]): readonly KeyInstance[] {
  const entries = Object.entries(keys)
  const named = entries.filter(([key]) => !key.includes(FREE_NAME))
  const free = entries.filter(([key]) => key.includes(FREE_NAME))
  const prefix = keyPath(section, '')
  const own = named.map(([key, definition]) => ({ section, key, path: prefix + key, definition, group: prefix }))
  if (free.length === 0) return own
  const chosen = operatorNamedKeys(section, named, free, paths)
  return [...own, ...chosen.map(key => ({ ...key, section, path: prefix + key.key, group: prefix + key.group }))]
}

type Entries = readonly (readonly [key: string, definition: CatalogueKey['definition']])[]

interface OperatorNamedKey extends Pick<KeyInstance, 'key' | 'definition' | 'group'> {}

/** All keys that a name can have, for each name that at least one setting uses. */
function operatorNamedKeys(
  section: string,
  named: Entries,
  free: Entries,
  paths: readonly string[],
): readonly OperatorNamedKey[] {
  const own = paths.filter(path => path.startsWith(`${section}.`)).map(path => path.slice(section.length + 1))
  if (own.length === 0) return []
  const fixed = new Set(named.map(([key]) => key))
  const found = new Map<string, OperatorNamedKey>()
  for (const [pattern] of free) {
    const [start = '', end = ''] = pattern.split(FREE_NAME)
    for (const key of own) {
      if (fixed.has(key) || !key.startsWith(start) || !key.endsWith(end)) continue
      const name = key.slice(start.length, key.length - end.length)
      // A name with keys of its own in the catalogue is not chosen by the operator.
      if (name === '' || named.some(([known]) => known.startsWith(`${start}${name}.`))) continue
      for (const [other, plain] of free) {
        if (!other.startsWith(`${start}${FREE_NAME}`)) continue
        const key = other.replace(FREE_NAME, name)
        // The catalogue cannot know which of these names stand for secrets.
        const secret = plain.secret || (other.endsWith(FREE_NAME) && isSecretName(name))
        const definition = { ...plain, secret, requirements: requirementsOf(plain, name) }
        found.set(key, { key, definition, group: `${start}${name}.` })
      }
    }
  }
  return [...found.values()]
}

/** The requirements of a key with a free name, about the keys of one name. */
function requirementsOf({ requirements }: Key<unknown>, name: string): Key<unknown>['requirements'] {
  return requirements.map(each => {
    return { ...each, condition: withKeys(each.condition, key => key.replace(FREE_NAME, name)) }
  })
}

/** Paths that a variable can set: key instances, their other spellings, and the operator's own keys in the file. */
export function settablePaths(written: readonly string[], rows: readonly LocatedTable[]): ReadonlySet<string> {
  const paths = written.map(canonicalPath)
  const spellings = keyInstances(paths, rows).flatMap(({ section, path, definition }) => [
    path,
    ...definition.aliases.map(alias => keyPath(section, alias)),
  ])
  return new Set([...spellings, ...paths])
}
