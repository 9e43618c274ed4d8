/** The catalogue has every key of the specification, as documented. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type CatalogueKey, allKeys, RULES, SECTIONS } from '../../src/config/catalogue.ts'
import { FREE_NAME, keyPath } from '../../src/config/key.ts'
import { examine } from '../../src/config/load.ts'
import type { Resolution } from '../../src/config/resolve.ts'
import { withoutIndexes } from '../../src/config/setting.ts'
import { DOCUMENTED, type DocumentedKey, fileOf, innermost, REPEATED, withName } from './documented-keys.ts'
import { OWN_KEYS } from './own-keys.ts'
import { temporaryHome } from './temporary-home.ts'

const KEYS = DOCUMENTED.filter(({ aliasOf }) => aliasOf === '')
const CATALOGUE: ReadonlyMap<string, CatalogueKey> = new Map(allKeys().map(key => [key.path, key]))
const CATALOGUE_REPEATED = SECTIONS.filter(({ repeated }) => repeated).map(({ name }) => name)

const FREE: readonly (readonly [RegExp, CatalogueKey])[] = allKeys()
  .filter(key => key.path.includes(FREE_NAME))
  .map(key => [new RegExp(`^${key.path.split(FREE_NAME).map(RegExp.escape).join('[^.]+')}$`), key])

/** The key itself, or the key with a free name that matches it. */
function knownKey(path: string): CatalogueKey | undefined {
  return CATALOGUE.get(path) ?? FREE.find(([pattern]) => pattern.test(path))?.[1]
}

function examined(t: TestContext, toml: string): Resolution {
  const home = temporaryHome(t, { 'deployment.toml': toml })
  return examine(home, [], join(home, 'data'))
}

/** One test per section. `objection`: what is wrong with a key, or ''. */
function testSections(clause: string, keys: readonly DocumentedKey[], objection: (key: DocumentedKey) => string): void {
  for (const [section, listed] of Map.groupBy(keys, key => key.section)) {
    test(`${section === '' ? 'no section' : `[${section}]`} ${clause}`, () => {
      const objections = listed.flatMap(key => {
        const said = objection(key)
        return said === '' ? [] : [`${key.path} (line ${key.line} of the specification): ${said}`]
      })
      assert.deepEqual(objections, [])
    })
  }
}

testSections('has every documented key, in a table repeated as documented', KEYS, ({ path }) => {
  if (knownKey(path) === undefined) return 'is not in the catalogue'
  const documented = innermost(path, REPEATED)
  const own = innermost(path, CATALOGUE_REPEATED)
  // Documented as a single table, and also written in rows.
  if (SECTIONS.some(({ name, alternativeForm }) => name === own && alternativeForm === 'table')) return ''
  return documented === own ? '' : `is in a row of "${own}", and documented in one of "${documented}"`
})

test('all undocumented keys of the catalogue are rows of test/config/own-keys.ts, with default and kind', () => {
  const documented = new Set(KEYS.map(({ path }) => knownKey(path)?.path))
  const own = allKeys().filter(({ path }) => !documented.has(path))
  assert.deepEqual(
    own.map(({ path, definition }) => [path, definition.defaultValue, definition.kind]).sort(),
    OWN_KEYS.toSorted(),
  )
})

const KNOWN = KEYS.filter(({ path }) => knownKey(path) !== undefined)

/** Possible readings of a documented default: text, number, list; durations in their documented unit. */
function readings(text: string, { unit }: DocumentedKey): readonly unknown[] {
  const minutes = /^(\d+) minutes$/.exec(text)?.[1]
  if (minutes !== undefined) return [`${minutes}m`]
  if (text.startsWith('[')) return [JSON.parse(text)]
  const number = /^-?\d+(\.\d+)?$/.test(text) ? [Number(text)] : []
  const list = text.includes(', ') ? [text.split(', ')] : []
  // With its unit first, so that a key with another unit differs in value.
  return [...(unit === '' || number.length === 0 ? [] : [`${text}${unit}`]), ...number, ...list, text]
}

function isNothing(value: unknown, { definition }: CatalogueKey): boolean {
  if (Array.isArray(value)) return value.length === 0
  return value === '' || value === false || definition.specialValues[String(value)] !== undefined
}

const ADMIN = { username: 'root', password: 'geheim' }
const AS_ADMIN = `[super_admin]\nusername = "${ADMIN.username}"\npassword = "${ADMIN.password}"\n`
const CREDENTIALS = ['super admin credentials', 'value of username/password']

/** Undefined where the specification describes the default without giving a value. */
function isAsDocumented(key: DocumentedKey, known: CatalogueKey, value: unknown): boolean | undefined {
  // There are no built-in credentials: a key that follows no other has an empty default.
  const admin = /pass(?:word)?$/.test(known.path) ? ADMIN.password : ADMIN.username
  if (CREDENTIALS.includes(key.described)) return value === '' || value === admin
  if (key.defaultValue === 'none') return isNothing(value, known)
  if (key.defaultValue === '') return undefined
  const expected = readings(key.defaultValue, key).map(known.definition.read)
  return isDeepEqual(
    expected.find(reading => reading !== undefined),
    value,
  )
}

function isDeepEqual(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

test('every documented default applies where the key is not set', async t => {
  const rows = fileOf(KNOWN, () => '').replace(/^(?!\[\[).*\n/gm, '')
  const { keys } = examined(t, `${AS_ADMIN}${rows}`)
  const values = new Map(keys.map(({ path, value }) => [withoutIndexes(path), value]))
  for (const [section, listed] of Map.groupBy(KNOWN, key => key.section)) {
    await t.test(section || 'no section', () => {
      const differing = listed.flatMap(key => {
        const known = knownKey(key.path)!
        const value = values.has(key.path) ? values.get(key.path) : known.definition.defaultValue
        if (isAsDocumented(key, known, value) !== false) return []
        return [`${key.path}: ${JSON.stringify(value)}, documented is ${key.defaultValue || key.described}`]
      })
      assert.deepEqual(differing, [])
    })
  }
})

const NUMBERS = ['integer', 'number', 'port', 'duration']
/** Documented type -> matching kinds of key; many booleans and numbers are documented as strings. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  boolean: ['boolean'],
  'boolean or string': ['boolean', 'string'],
  integer: NUMBERS,
  int: NUMBERS,
  number: NUMBERS,
  float: ['number'],
}

/** A TOML value of the documented type; undefined where no type is documented. */
function written({ type, defaultValue }: DocumentedKey): unknown {
  if (defaultValue === '' || defaultValue === 'none' || type === '') return undefined
  if (/^(?:array|list|string array)/.test(type)) return defaultValue.split(',')
  return /^(?:boolean|integer|int|number|float)$/.test(type) ? JSON.parse(defaultValue) : defaultValue
}

testSections('has the documented types, and takes defaults as they are written', KNOWN, key => {
  const { kind, defaultValue, read } = knownKey(key.path)!.definition
  if (KINDS[key.type]?.includes(kind) === false) return `is of the kind ${kind}, documented is ${key.type}`
  if (/array|list/.test(key.type) && !Array.isArray(defaultValue)) return `is no list, documented is ${key.type}`
  const value = written(key)
  return value !== undefined && read(value) === undefined ? `does not take ${JSON.stringify(value)}` : ''
})

/** A value of a wrong type: a list of numbers, which no key accepts, or one that fits the type less obviously. */
function wrongValue({ type, defaultValue }: DocumentedKey): string {
  if (type === 'boolean' || (type === '' && /^(?:true|false)$/.test(defaultValue))) return '"perhaps"'
  return /^(?:int|integer|number|float)$/.test(type) || (type === '' && /^-?\d+$/.test(defaultValue)) ? '"many"' : '[1]'
}

test('a value of a wrong type is an error with its line, for every documented key', async t => {
  const toml = fileOf(KNOWN, wrongValue)
  const { errors, unknown } = examined(t, toml)
  assert.deepEqual(unknown, [])
  const places = new Map(errors.map(({ key, where }) => [withoutIndexes(key), where]))
  const lines = new Map<string, number>()
  let section = ''
  toml.split('\n').forEach((line, index) => {
    section = /^\[+(.*?)\]+$/.exec(line)?.[1] ?? section
    const key = /^"(.*)" = /.exec(line)?.[1]
    if (key !== undefined) lines.set(keyPath(section, key), index + 1)
  })
  for (const [name, listed] of Map.groupBy(KNOWN, key => key.section)) {
    await t.test(name || 'no section', () => {
      const paths = listed.map(({ path }) => withName(path))
      const misjudged = paths.filter(path => !places.get(path)?.endsWith(`:${lines.get(path)}`))
      assert.deepEqual(misjudged, [])
    })
  }
})

const CHOOSING = KNOWN.filter(({ choices }) => choices.length > 0)
testSections('takes every value that is documented by name', CHOOSING, ({ path, choices }) => {
  const refused = choices.filter(choice => knownKey(path)!.definition.read(choice) === undefined)
  return refused.length === 0 ? '' : `refuses ${refused.join(', ')}`
})

/** Required, without a documented default. */
const DEMANDED = KNOWN.filter(
  ({ required, defaultValue, described }) =>
    required && (defaultValue === '' || defaultValue === 'none') && described === '',
)
testSections('demands what is required and has no default', DEMANDED, ({ path }) => {
  const known = knownKey(path)!
  const isRuled = RULES.some(({ keys, severity }) => severity === 'error' && keys.includes(known.path))
  return known.definition.required || isRuled ? '' : 'may be left out'
})

for (const { path, section, aliasOf } of DOCUMENTED.filter(key => key.aliasOf !== '')) {
  test(`${path} is an alias of ${aliasOf}`, t => {
    const { keys, errors, unknown } = examined(t, `[${section}]\n${path.slice(section.length + 1)} = ["a"]\n`)
    assert.deepEqual([...errors, ...unknown], [])
    assert.deepEqual(keys.find(key => key.path === `${section}.${aliasOf}`)?.value, ['a'])
  })
}
