/** Documents generated from the catalogue: up to date in the repository, and every line of the sample file valid. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { before, test } from 'node:test'
import { reference } from '../../src/cli/reference.ts'
import { allKeys, SECTIONS } from '../../src/config/catalogue.ts'
import { readDocument } from '../../src/config/document.ts'
import { examine } from '../../src/config/load.ts'
import { referencePage } from '../../src/config/reference-page.ts'
import { schemaPage } from '../../src/config/reference-schema.ts'
import { tomlPage } from '../../src/config/reference-toml.ts'
import { argumentsFor, Transcript, temporaryHome } from './temporary-home.ts'

const CONF = resolve(import.meta.dirname, '../../conf')
const PAGES = {
  'reference.md': referencePage,
  'deployment.schema.json': schemaPage,
  'deployment.toml': tomlPage,
} as const

for (const [file, page] of Object.entries(PAGES)) {
  test(`conf/${file} is up to date with the catalogue`, () => {
    const isFresh = readFileSync(join(CONF, file), 'utf8') === page()
    assert.ok(isFresh, `conf/${file} is out of date: run \`npm run reference\``)
  })
}

test('reference prints the page, or writes files whose kind follows from their extension', async t => {
  const home = temporaryHome(t, {})
  const output = new Transcript()
  assert.equal(await reference(argumentsFor(home), output, output), 0)
  assert.equal(output.text, referencePage())
  const rest = Object.keys(PAGES).map(file => join(home, file))
  assert.equal(await reference(argumentsFor(home, { rest }), output, output), 0)
  for (const [file, page] of Object.entries(PAGES)) assert.equal(readFileSync(join(home, file), 'utf8'), page())
  const json = new Transcript()
  await reference(argumentsFor(home, { json: true }), json)
  assert.ok(JSON.parse(json.text).keys.length > 80)
})

test('reference refuses a file with an unknown extension', async t => {
  const complaints = new Transcript()
  const rest = [join(temporaryHome(t, {}), 'page')]
  assert.equal(await reference(argumentsFor('.', { rest }), new Transcript(), complaints), 2)
  assert.match(complaints.text, /^Usage:/)
})

for (const kept of ['[server]\noffset = 1\n', '[[transport.http.proxy_profile]]\n', 'not = toml = at all\n']) {
  test(`reference does not overwrite a configuration with ${JSON.stringify(kept)}`, async t => {
    const home = temporaryHome(t, { 'deployment.toml': kept })
    const complaints = new Transcript()
    const rest = [join(home, 'deployment.toml'), join(home, 'reference.md')]
    assert.equal(await reference(argumentsFor(home, { rest }), new Transcript(), complaints), 1)
    assert.match(complaints.text, /deployment\.toml sets keys and is not overwritten/)
    assert.equal(readFileSync(rest[0]!, 'utf8'), kept)
    assert.equal(readFileSync(rest[1]!, 'utf8'), referencePage())
  })
}

/** The sections of the sample file: headers, and keys without their `#`. */
interface Part {
  readonly header: string
  readonly keys: readonly string[]
}

const PARTS = partsOf(tomlPage())

// Secrets come from the environment: empty, as their default, unless the key is required.
before(() => {
  for (const [, name, must] of tomlPage().matchAll(/"\$env\{(\w+)\}"(.*Must be set)?/g)) {
    process.env[name!] = must === undefined ? '' : 'a secret'
  }
})

function partsOf(page: string): readonly Part[] {
  const parts: { header: string; keys: string[] }[] = [{ header: '', keys: [] }]
  for (const line of page.split('\n')) {
    if (/^#?\[/.test(line)) parts.push({ header: line.replace('#', ''), keys: [] })
    else if (/^#["\w]/.test(line)) parts.at(-1)!.keys.push(line.slice(1))
  }
  return parts
}

/** A group of traffic managers requires this key of another section. */
const BROKER = 'apim.throttling.throttle_decision_endpoints'

/** Errors and unknown keys, and the values that differ from the default. */
function judged(t: Parameters<typeof temporaryHome>[0], text: string): readonly unknown[] {
  const home = temporaryHome(t, { 'deployment.toml': text })
  const sets = [`${BROKER}=["tcp://broker:5672"]`]
  const { errors, unknown, keys } = examine(home, sets, join(home, 'data'))
  const defaults = new Map(allKeys().map(({ path, definition }) => [path, definition]))
  const changed = keys.filter(({ path, value, secret, definition }) => {
    const { defaultValue, required, follows } = defaults.get(path) ?? definition
    const isText = typeof defaultValue === 'string' && defaultValue.includes('$')
    return (
      path !== BROKER &&
      !secret &&
      !required &&
      follows === '' &&
      !isText &&
      JSON.stringify(value) !== JSON.stringify(defaultValue)
    )
  })
  return [...errors, ...unknown, ...changed.map(({ path, value }) => ({ path, value }))]
}

/** The row, with its required keys, that a part within a row needs above it. */
function rowAround({ header }: Part): readonly string[] {
  const name = header.replace(/[[\]]/g, '')
  const outer = PARTS.find(part => part.header.startsWith('[[') && name.startsWith(`${part.header.slice(2, -2)}.`))
  return outer === undefined ? [] : [outer.header, ...outer.keys.filter(key => key.includes('Must be set.'))]
}

test('the sample file sets nothing, and has every section and key', () => {
  const { entries, rows, errors } = readDocument('deployment.toml', tomlPage())
  assert.deepEqual([entries, rows, errors], [[], [], []])
  assert.equal(PARTS.length, SECTIONS.length)
  assert.equal(PARTS.flatMap(({ keys }) => keys).length, allKeys().length)
  assert.match(tomlPage(), /^#:schema \.\/deployment\.schema\.json\n/)
})

test('every section of the sample file is valid without its # and changes nothing', t => {
  for (const part of PARTS) {
    const { header, keys } = part
    assert.deepEqual(judged(t, [...rowAround(part), header, ...keys].join('\n')), [], header)
  }
})

test('every line of the sample file is valid without its # and changes nothing', t => {
  for (const part of PARTS) {
    const { header, keys } = part
    const needed = keys.filter(key => key.includes('Must be set.'))
    for (const key of keys) {
      if (!needed.includes(key))
        assert.deepEqual(judged(t, [...rowAround(part), header, ...needed, key].join('\n')), [], key)
    }
  }
})

test('the whole sample file is valid without any # and changes nothing', t => {
  assert.deepEqual(judged(t, PARTS.map(({ header, keys }) => [header, ...keys].join('\n')).join('\n')), [])
})

test('the reference page has every default in full', () => {
  const page = referencePage()
  for (const { path, definition } of allKeys()) {
    const { defaultValue, secret, follows, required } = definition
    const isSaid = !secret && follows === '' && !required && Array.isArray(defaultValue) && defaultValue.length > 0
    if (isSaid) assert.ok(page.includes(` ${JSON.stringify(defaultValue)} `), path)
  }
})

test('the reference page explains once what an inert key is, before the first section', () => {
  const [introduction = '', ...sections] = referencePage().split('\n## server\n')
  assert.match(introduction, /\*inert\*.*Not built yet.*Not acted on/s)
  assert.doesNotMatch(sections.join(), /\binert\b/)
})

test('the sample file names choices and special values', () => {
  const page = tomlPage()
  assert.match(page, /^#mode = "single" .* One of "single", "ha"\.$/m)
  assert.match(page, /^#max_open_connections = -1 .* -1: unlimited\.$/m)
  assert.match(page, /^#reactors = 0 .* 0: one per processor\.$/m)
})
