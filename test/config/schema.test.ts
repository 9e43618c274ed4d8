/** The generated JSON Schema accepts and refuses the same files as `check`. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Ajv, type ValidateFunction } from 'ajv'
import { parse } from 'smol-toml'
import { allKeys, type CatalogueKey, SECTIONS } from '../../src/config/catalogue.ts'
import { FREE_NAME, keyPath } from '../../src/config/key.ts'
import { examine } from '../../src/config/load.ts'
import { schemaPage } from '../../src/config/reference-schema.ts'
import { temporaryHome } from './temporary-home.ts'

const SCHEMA = JSON.parse(schemaPage())
const ajv = new Ajv({
  allErrors: true,
  strict: true,
  allowUnionTypes: true,
  allowMatchingProperties: true,
  // Required keys of a section are in one of two alternatives, separate from its properties.
  strictRequired: false,
})
ajv.addSchema(SCHEMA, 'deployment')
const isValid = ajv.getSchema('deployment')!

/** Compiled once per schema, because compiling is far slower than validating. */
const compiled = new Map<string, ValidateFunction>()

function ofKey({ path }: CatalogueKey): ValidateFunction {
  const $ref = `deployment#/definitions/${path.replaceAll(FREE_NAME, 'NAME')}`
  const known = compiled.get($ref) ?? ajv.compile({ $ref })
  compiled.set($ref, known)
  return known
}

/** Values of every kind, valid for some keys and invalid for most. */
const VALUES: readonly unknown[] = [
  ...[true, false, 'true', 'false', 0, 1, -1, 5, 10, 25, 443, 5000, 65_535, 70_000, -7, 2 ** 40, 0.5, 1.5, 99.5],
  ...['', '0', '10', '-1', '1.5', '500ms', '30s', '15m', '2h', '1d', 'x', 'a b', 'a,b', '*', 'X-Field', 'host.example'],
  ...[
    'https://host.example/x',
    'http://[::1]:8080',
    'tcp://host.example:7611',
    'ssl://host.example:7711',
    '10.0.0.0/8',
  ],
  ...['wss://h:1', 'jdbc:mysql://h:3306/db', 'text\u0000with control', 'base64', 'default', 'production', 'SHA-256'],
  ...[[], ['a'], ['a', 'b'], ['10.0.0.0/8', '::1'], ['https://host.example'], [1], [true], [['a']], {}, { a: 1 }],
]
/** Types that a schema distinguishes; `check` validates the content of texts. */
const NOT_TEXT = VALUES.filter(value => typeof value !== 'string' && !isWords(value))

function isWords(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(word => typeof word === 'string')
}

test('the schema refuses no value that a key accepts, nor its default', () => {
  for (const key of allKeys()) {
    const accepts = ofKey(key)
    const { read, defaultValue, schema } = key.definition
    const choices = Array.isArray(schema.enum) ? schema.enum : []
    for (const value of [...VALUES, ...choices, defaultValue]) {
      if (read(value) !== undefined) assert.ok(accepts(value), `${key.path} = ${JSON.stringify(value)}`)
    }
  }
})

test('the schema refuses wrong types and numbers out of range, as the key does', () => {
  for (const key of allKeys()) {
    const accepts = ofKey(key)
    for (const value of NOT_TEXT) {
      const isTaken = key.definition.read(value) !== undefined
      assert.equal(accepts(value), isTaken, `${key.path} = ${JSON.stringify(value)}`)
    }
  }
})

test('the schema refuses text where the key accepts no text', () => {
  for (const key of allKeys().filter(({ definition }) => /^(boolean|integer|port|choice)$/.test(definition.kind))) {
    const accepts = ofKey(key)
    assert.equal(accepts('no such thing'), key.definition.read('no such thing') !== undefined, key.path)
  }
})

const NUMERALS = [
  '0',
  '1',
  '2',
  '10',
  '99',
  '100',
  '101',
  '443',
  '4095',
  '4096',
  '64535',
  '64536',
  '65535',
  '65536',
  '70000',
  '1e3',
]
const SPANS = [
  '1ms',
  '86400000ms',
  '86400001ms',
  '86400s',
  '86401s',
  '1440m',
  '1441m',
  '24h',
  '25h',
  '1d',
  '2d',
  '99d',
  '5y',
]

test('the schema refuses quoted numbers and durations as the key does', () => {
  for (const key of allKeys().filter(({ definition }) => /^(integer|port|duration)$/.test(definition.kind))) {
    const accepts = ofKey(key)
    // A value in a smaller unit must be a multiple of the key's unit, which patterns cannot express.
    const texts = key.definition.unit === 'ms' ? [...NUMERALS, ...SPANS] : NUMERALS
    for (const text of texts) {
      assert.equal(accepts(text), key.definition.read(text) !== undefined, `${key.path} = ${JSON.stringify(text)}`)
    }
  }
})

const NETWORKS = [['10.0.0.0/8', ' ::1 '], '10.0.0.0/8, ::1', '', [''], ['$ref{a.b}', '10.0.0.1'], '10.0.0.1,$env{A}']
const NO_NETWORKS = [['x'], 'x', ['10.0.0.0/8', 'host'], '10.0.0.0/8, host', ['10.0.0.0/8888'], [1]]

test('the schema refuses text that cannot be a network', () => {
  for (const key of allKeys().filter(({ definition }) => definition.kind === 'networks')) {
    const accepts = ofKey(key)
    for (const value of NETWORKS) assert.ok(accepts(value), JSON.stringify(value))
    for (const value of NO_NETWORKS) assert.ok(!accepts(value), JSON.stringify(value))
  }
})

const REFERENCES = [
  '$ref{server.offset}',
  '$conf{a.b}',
  '$env{NAME}',
  '$file{x/y}',
  `${'$'}{home}`,
  `http://${'$'}{host}:1/`,
]

test('the schema accepts text with a reference for any value', () => {
  for (const key of allKeys()) {
    const accepts = ofKey(key)
    for (const text of REFERENCES) assert.ok(accepts(text), `${key.path} = ${text}`)
  }
})

const ROW_TABLES = SECTIONS.filter(({ repeated }) => repeated).map(({ name }) => name)

/** A file with one nested key whose names from `start` to `end` are one quoted name. */
function written(path: string, value: unknown, start: number, end: number): unknown {
  const names = path.split('.')
  const runs = [
    ...names.slice(0, start).map(name => [name]),
    names.slice(start, end),
    ...names.slice(end).map(name => [name]),
  ]
  let length = names.length
  return runs.toReversed().reduce((inner, run) => {
    const isRow = ROW_TABLES.includes(names.slice(0, length).join('.'))
    length -= run.length
    return { [run.join('.')]: isRow ? [inner] : inner }
  }, value)
}

/** A quoted name cannot lead into a row. */
function isWritable(path: string, start: number, end: number): boolean {
  const rows = ROW_TABLES.filter(table => path.startsWith(`${table}.`)).map(table => table.split('.').length)
  return !rows.some(length => start < length && length < end)
}

function sampleOf({ read, defaultValue }: CatalogueKey['definition']): unknown {
  return [defaultValue, ...VALUES].find(value => read(value) !== undefined)
}

/** Errors without those about required keys of a row or section. */
const ABOUT_ALL_KEYS = /\/required$|\/anyOf(\/1\/(maxProperties|propertyNames.*))?$/

function errorsOf(document: unknown): readonly unknown[] {
  isValid(document)
  return (isValid.errors ?? []).filter(({ schemaPath }) => !ABOUT_ALL_KEYS.test(schemaPath))
}

test('the schema accepts every key and alias nested, or with any run of names quoted', () => {
  for (const { section, key, definition } of allKeys()) {
    for (const spelling of [key, ...definition.aliases]) {
      const path = keyPath(section, spelling.replaceAll(FREE_NAME, 'chosen'))
      const { length } = path.split('.')
      for (let start = 0; start < length; start++) {
        for (let end = start + 1; end <= length; end++) {
          if (!isWritable(path, start, end)) continue
          assert.deepEqual(errorsOf(written(path, sampleOf(definition), start, end)), [], `${path}, ${start}, ${end}`)
        }
      }
    }
  }
})

const RIGHT: Readonly<Record<string, string>> = {
  nothing: '',
  'a nested key': '[transport.passthru_http]\nhttp.socket.timeout = 1000',
  'a quoted key': '[transport.passthru_http]\n"http.socket.timeout" = "15m"',
  'a table of its own for the front of a key': '[transport.passthru_http.http.socket]\ntimeout = 1000',
  'a name that the operator chose': '[transport.ws]\nsender.parameter.mine = "x"\n"sender.parameter.other" = 1',
  'a row with what it must have':
    '[[transport.http.proxy_profile]]\ntarget_hosts = ["*"]\nproxy_host = "p.example"\nproxy_port = 3128',
  'keys above every table': 'enabled_global_handlers = ["a", "b"]',
  'secrets as the platform has them': '[secrets]\npw = "[x]"\n[super_admin]\npassword = "$secret{pw}"',
  'the only row as a table': '[health_checker]\nname = "a"\norder = 1',
  'rows by their names': '[synapse_handlers.mine]\nclass = "x"',
  'a quoted key above every table': '"transport.passthru_http.http.socket.timeout" = 1',
  'a quoted key above its section': '[transport]\n"ws.sender.enable" = true',
  'a quoted key of a section within one': '[oauth]\n"grant_type.kerberos.enable" = true',
  'a quoted header': '["transport.passthru_http"]\nhttp.socket.timeout = 1',
  'a quoted group of keys': '[transport.passthru_http]\n"http.socket".timeout = 1',
  'a header without the keys that its section must have': '[apim.notification]\n[apim.throttling]\n[web_app.listener]',
  'tables within a section that must have a key': '[apim.throttling.event_sync]\nport = 1',
  'a quoted key of a table within such a section': '[apim.throttling]\n"event_sync.port" = 1',
  'inline tables': 'server = { offset = 1, hostname = "h.example" }',
  'a reference in the place of a number': '[server]\noffset = "$env{NOT_TOLD_TO_EDITORS}"',
}

const WRONG: Readonly<Record<string, string>> = {
  'a section that is not there': '[sever]\noffset = 1',
  'a table within a transport that is not there': '[transport.passthru]\nx = 1',
  'a key that is not there': '[server]\nofset = 1',
  'a quoted key that is not there': '[transport.passthru_http]\n"http.sockt.timeout" = 1000',
  'a nested key that is not there': '[transport.passthru_http]\nhttp.sockt.timeout = 1000',
  'text for a number': '[server]\noffset = "one"',
  'a number for a text': '[server]\nhostname = 10',
  'a number out of range': '[transport.passthru_http]\nio_buffer_size = 1',
  'a choice that is none': '[logging]\nlevel = "loud"',
  'a table for a value': '[server.offset]\nx = 1',
  'rows for a table': '[[server]]\noffset = 1',
  'a table for rows': '[transport.http.proxy_profile]\nproxy_host = "p"',
  'a row without what it must have': '[[transport.http.proxy_profile]]\nproxy_host = "p.example"',
  'a section with some of its keys and without those it must have': '[apim.notification]\nport = 25',
  'such a row with a table within it':
    '[[apim.gateway.environment]]\ntype = "hybrid"\n[[apim.gateway.environment.virtual_host]]\nhttp_endpoint = "http://h"',
  'a quoted key of a section that is not there': '"transport.passthru.x" = 1',
  'a quoted header that is not there': '["transport.passthru"]\nx = 1',
  'a list of what is no text': '[transport.passthru_http]\ntrusted_proxies = [1, 2]',
}

for (const [what, text] of Object.entries(RIGHT)) {
  test(`the schema accepts ${what}`, t => {
    process.env.NOT_TOLD_TO_EDITORS = '1'
    isValid(parse(text))
    assert.deepEqual(isValid.errors ?? [], [])
    assert.deepEqual(complaints(t, text), [])
  })
}

for (const [what, text] of Object.entries(WRONG)) {
  test(`the schema refuses ${what}`, t => {
    assert.equal(isValid(parse(text)), false)
    assert.notDeepEqual(complaints(t, text), [])
  })
}

const HOMES = join(import.meta.dirname, 'reference-homes')

const FILES = existsSync(HOMES) ? readdirSync(HOMES, { recursive: true, encoding: 'utf8' }) : []

for (const file of FILES.filter(name => name.endsWith('.toml'))) {
  test(`the schema refuses only unknown keys of a file in the style of the reference platform: ${file}`, t => {
    const text = readFileSync(join(HOMES, file), 'utf8')
    const home = temporaryHome(t, { 'deployment.toml': text })
    const unknown = examine(home, [], join(home, 'data')).unknown.map(({ key }) => key)
    isValid(parse(text))
    const wrong = (isValid.errors ?? []).filter(({ keyword, params }) => {
      return keyword !== 'additionalProperties' || !unknown.some(key => key.includes(params.additionalProperty))
    })
    assert.deepEqual(wrong, [])
  })
}

function complaints(t: Parameters<typeof temporaryHome>[0], text: string): readonly unknown[] {
  const home = temporaryHome(t, { 'deployment.toml': text })
  const { errors, unknown } = examine(home, [], join(home, 'data'))
  return [...errors, ...unknown]
}

/** Validations that a schema cannot express, and the phrase for each in its description. */
const LEFT_TO_CHECK: readonly (readonly [text: string, isRight: boolean, phrase: string])[] = [
  ['[mediation]\nsynapse.core_threads = 200', false, 'rules across keys'],
  ['[server]\noffset = "$ref{server.hostname}"', false, 'the values of references'],
  ['[management]\nbind_address = "no host"', false, 'the syntax of hosts'],
  ['"server.offset" = "x"', false, 'values in tables with quoted names'],
  [
    '[server]\nserver_role = "gateway-worker"\n[apim.notification]\nport = 25',
    true,
    'only where the role of the node reads it',
  ],
  [
    '[mine]\nname = "h.example"\n[server]\nhostname = "$ref{mine.name}"',
    true,
    'accepts unknown keys that references use',
  ],
]

for (const [text, isRight, phrase] of LEFT_TO_CHECK) {
  test(`only \`check\` validates: ${phrase}`, t => {
    assert.equal(isValid(parse(text)), !isRight)
    assert.equal(complaints(t, text).length === 0, isRight)
    assert.ok(SCHEMA.description.includes(phrase))
  })
}

test('the schema describes every key, with its default where it is not secret', () => {
  for (const { path, definition } of allKeys()) {
    const { description, default: shown } = SCHEMA.definitions[path.replaceAll(FREE_NAME, 'NAME')]
    assert.ok(description.startsWith(definition.meaning), path)
    if (definition.inertReason !== '') assert.ok(description.includes(definition.inertReason.slice(1)), path)
    if (definition.secret) assert.equal(shown, undefined, path)
    else if (definition.follows === '' && definition.cappedBy === '' && !definition.required) {
      assert.deepEqual(shown, definition.defaultValue, path)
    }
  }
})
