/** Alternative forms of repeated tables are read as rows. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { examine } from '../../src/config/load.ts'
import type { Resolution } from '../../src/config/resolve.ts'
import { temporaryHome } from './temporary-home.ts'

function examined(t: TestContext, toml: string, sets: readonly string[] = []): Resolution {
  const home = temporaryHome(t, { 'deployment.toml': toml })
  return examine(home, sets, join(home, 'data'))
}

function strange({ errors, unknown }: Resolution): readonly string[] {
  return [...errors, ...unknown].map(diagnostic => formatDiagnostic(diagnostic).replace(/^.*deployment\.toml/, 'F'))
}

const A = { name: 'a', class: 'com.example.A', enabled: true }
const B = { name: 'b', class: 'com.example.B', enabled: true }

const HANDLERS: readonly (readonly [string, string, readonly unknown[]])[] = [
  ['an array of tables', '[[synapse_handlers]]\nname = "a"\nclass = "com.example.A"\n', [A]],
  [
    'a table of tables, dotted',
    '[synapse_handlers]\nx.name = "a"\nx.class = "com.example.A"\ny.name = "b"\ny.class = "com.example.B"\n',
    [A, B],
  ],
  [
    'a table of tables with headers, named by them',
    '[synapse_handlers.a]\nclass = "com.example.A"\n[synapse_handlers.b]\nclass = "com.example.B"\n',
    [A, B],
  ],
  ['one table', '[synapse_handlers]\nname = "a"\nclass = "com.example.A"\n', [A]],
  [
    'inline tables',
    'synapse_handlers = { a = { class = "com.example.A" }, b = { class = "com.example.B" } }\n',
    [A, B],
  ],
  ['a header and nothing below it', '[synapse_handlers]\n', []],
]

for (const [name, toml, rows] of HANDLERS) {
  test(`synapse_handlers is read as ${name}`, t => {
    const resolution = examined(t, toml)
    assert.deepEqual(strange(resolution), [])
    assert.deepEqual(resolution.configuration.synapse_handlers, rows)
  })
}

test('an error about a value has its line, and one about a row name has the line of its header', t => {
  const { keys } = examined(t, '\n[synapse_handlers.a]\nclass = "com.example.A"\n')
  const places = keys.filter(({ section }) => section === 'synapse_handlers[0]').map(({ where }) => where)
  assert.deepEqual(
    places.map(where => where.slice(where.lastIndexOf(':'))),
    [':2', ':3', ''],
  )
})

test('an error in such a row names the row and the line', t => {
  assert.deepEqual(strange(examined(t, '[synapse_handlers.a]\nclass = 5\nenable = true\n[synapse_handlers.b]\n')), [
    'F:2: synapse_handlers[0].class = 5: expected text in quotes, without control characters (write it in quotes: "5")',
    'F:4: synapse_handlers[1].class: is missing, and every row needs it (expected text in quotes, without control characters)',
    'F:3: synapse_handlers[0].enable: unknown key in [[synapse_handlers]] (did you mean enabled?)',
  ])
})

for (const header of ['[health_checker]', '[[health_checker]]']) {
  test(`a custom health check is a row of ${header}`, t => {
    const toml = `${header}\nname = "c"\norder = "90"\n[health_checker.properties]\nfirst = "value"\n"second.one" = 2\n`
    const resolution = examined(t, toml)
    assert.deepEqual(strange(resolution), [])
    assert.deepEqual(resolution.configuration.health_checker, [
      { name: 'c', order: 90, 'properties.first': 'value', 'properties.second.one': '2' },
    ])
  })
}

test('--set changes a row that the file opens in an alternative form', t => {
  const toml = '[synapse_handlers.a]\nclass = "com.example.A"\n'
  const { configuration } = examined(t, toml, ['synapse_handlers[0].class=com.example.B'])
  assert.deepEqual(configuration.synapse_handlers, [{ ...B, name: 'a' }])
})

test('a repeated table without an alternative form is an error in that form', t => {
  assert.deepEqual(strange(examined(t, '[custom_message_builders]\nclass = "a"\n')), [
    'F:1: custom_message_builders: is a list of rows (write [[custom_message_builders]] above the keys of each row)',
  ])
})
