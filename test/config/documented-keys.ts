/** Facts about documented keys from `spec-keys.json`, which `scripts/spec-keys.ts` extracts from the specification. */
import { readFileSync } from 'node:fs'
import type { SpecKey } from '../../scripts/spec-keys/extract.ts'
import { FREE_NAME, keyPath } from '../../src/config/key.ts'

export interface DocumentedKey extends SpecKey {
  /** `section.key`; the key alone above every table. */
  readonly path: string
}

const UNSAID = {
  section: '',
  repeated: false,
  type: '',
  unit: '',
  defaultValue: '',
  described: '',
  required: false,
  choices: [],
  exampleOnly: false,
  aliasOf: '',
} as const

const LISTED: readonly (Partial<SpecKey> & Pick<SpecKey, 'key' | 'line'>)[] = JSON.parse(
  readFileSync(new URL('spec-keys.json', import.meta.url), 'utf8'),
)

export const DOCUMENTED: readonly DocumentedKey[] = LISTED.map(listed => {
  const key = { ...UNSAID, ...listed }
  return { ...key, path: keyPath(key.section, key.key) }
})

/** Tables that are written `[[name]]`, once per row. */
export const REPEATED: readonly string[] = [
  ...new Set(DOCUMENTED.filter(({ repeated }) => repeated).map(({ section }) => section)),
]

/** The innermost of `tables` that a path is in; '' for none. */
export function innermost(path: string, tables: readonly string[]): string {
  return tables.filter(table => path.startsWith(`${table}.`)).reduce((a, b) => (b.length > a.length ? b : a), '')
}

/** A path with a sample name for the one that operators choose. */
export function withName(path: string): string {
  return path.replace(FREE_NAME, 'example')
}

/** A file with these keys and TOML values, sections in documented order. */
export function fileOf(keys: readonly DocumentedKey[], writtenValue: (key: DocumentedKey) => string): string {
  const bySection = Map.groupBy(keys, ({ section }) => section)
  const top = bySection.get('') ?? []
  bySection.delete('')
  const lines = (listed: readonly DocumentedKey[]): readonly string[] =>
    listed.map(key => `"${withName(key.key)}" = ${writtenValue(key)}`)
  const tables = [...bySection].map(([section, listed]) => {
    const header = REPEATED.includes(section) ? `[[${section}]]` : `[${withName(section)}]`
    return [header, ...lines(listed), ''].join('\n')
  })
  return [...lines(top), ...tables].join('\n')
}
