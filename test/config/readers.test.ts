/**
 * Every key of the catalogue is either acted on or says that it is not: a key that is not inert is read in one of the
 * files that its section names, and an inert one nowhere. Read: taken from its section under its documented spelling,
 * or followed by a key that is acted on.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { type AnySection, allKeys, type CatalogueKey, SECTIONS } from '../../src/config/catalogue.ts'
import { FREE_NAME } from '../../src/config/key.ts'
import { examine } from '../../src/config/load.ts'
import { readTree } from '../tidy/source-tree.ts'
import { temporaryHome } from './temporary-home.ts'

/** Under which names the values of a section go outside of `src/config`. */
const OWNERS: Readonly<Record<string, string>> = {
  'apim.gateway.environment': 'environment',
  'apim.gateway.environment.virtual_host': 'virtualHost',
  'apim.sync_runtime_artifacts.gateway': "configuration\\['apim\\.sync_runtime_artifacts\\.gateway'\\]",
  server: '(?:server|configuration\\.server)',
  'transport.passthru_http': "(?:http|section|configuration\\['transport\\.passthru_http'\\])",
  'transport.passthru_https': "(?:https|section|configuration\\['transport\\.passthru_https'\\])",
  'transport.http.proxy_profile': 'profile',
  'transport.http.secured_proxy_profile': 'profile',
  'transport.ws': "(?:websocket|section|configuration\\['transport\\.ws'\\])",
  'transport.wss': "(?:wss|section|configuration\\['transport\\.wss'\\])",
  'apim.cors': 'cors',
  'apim.jwt': 'jwt',
  'apim.jwt.issuer': "(?:issuer|row(?=\\['jwks))",
  'apim.jwt.issuer.claim_mapping': 'mapping',
  'apim.cache.gateway_token': 'verdicts',
  'apim.cache.jwt_claim': 'claims',
  'keystore.primary': 'store',
  'apim.cache.resource': 'resourceCache',
  super_admin: 'super_admin',
  'database.apim_db': 'apimDb',
  'database.shared_db': 'sharedDb',
  'user_store.properties': 'userStoreProperties',
  'apim.ai': "configuration\\['apim\\.ai'\\]",
  mediation: '(?:mediation|configuration\\.mediation)',
  'apim.key_manager': "configuration\\['apim\\.key_manager'\\]",
  'apim.http_client': "configuration\\['apim\\.http_client'\\]",
  'apim.token.revocation': 'revocation',
  'apim.oauth_config': "configuration\\['apim\\.oauth_config'\\]",
  oauth: 'configuration\\.oauth',
  'oauth.grant_type': 'grants',
  'apim.cache.km_token': 'introspections',
  'transport.listener': "configuration\\['transport\\.listener'\\]",
  management: '(?:management|configuration\\.management)',
  'admin_console.control_access': 'access',
  'web_app.control_access': 'access',
  servlet_access_control_filter: 'filter',
  access_log: '(?:accessLog|configuration\\.access_log)',
  logging: 'configuration\\.logging',
  'apim.lifecycle': "configuration\\['apim\\.lifecycle'\\]",
}

/** Files of the rooms and the hallway; of the configuration, one that decides by it. Commands only show values. */
const FILES = [...readTree().values()].filter(
  ({ path }) =>
    path.startsWith('src/') &&
    (!/^src\/(config|cli)\//.test(path) || path === 'src/config/websocket-senders.ts') &&
    path !== 'src/plan.ts',
)

/** `owner.key`, `owner['key']`, or `{ key } = owner`. */
function reading({ section, key, definition }: CatalogueKey): RegExp | undefined {
  const owner = OWNERS[section]
  if (owner === undefined) return undefined
  const name = RegExp.escape(key)
  // The four stores have the same keys: `https[`${prefix}.file_name`]`.
  const last = definition.inertReason === '' ? RegExp.escape(key.slice(key.lastIndexOf('.'))) : '(?!)'
  const member = /^\w+$/.test(key) ? `\\.${name}\\b` : `\\[(?:'${name}'|\`\\$\\{prefix\\}${last}\`)\\]`
  return new RegExp(`\\b${owner}${member}|\\{[^{}]*(?<![.\\w:] ?)\\b${name}\\b[^{}]*\\} = (?:[\\w.#]+\\.)?${owner}\\b`)
}

const readersOfKeys = new Map(allKeys().map(key => [key.path, findReaders(key)]))

/** Below `src`, as sections name them. */
function findReaders(key: CatalogueKey): readonly string[] {
  const pattern = reading(key)
  if (pattern === undefined) return []
  // However it is read, the end of its name stands there.
  const end = key.key.slice(key.key.lastIndexOf('.') + 1)
  const likely = FILES.filter(({ uncommented }) => uncommented.includes(end))
  return likely.filter(({ uncommented }) => pattern.test(uncommented)).map(({ path }) => path.slice('src/'.length))
}

function readersOf({ path }: CatalogueKey): readonly string[] {
  return readersOfKeys.get(path)!
}

/** Keys that decide what others come to which are acted on. */
const FOLLOWED: ReadonlySet<string> = new Set(
  allKeys()
    .filter(({ definition }) => definition.inertReason === '' && definition.follows !== '')
    .map(({ section, definition: { follows } }) => (follows.startsWith('.') ? `${section}${follows}` : follows)),
)

function sectionOf({ section }: CatalogueKey): AnySection {
  return SECTIONS.find(({ name }) => name === section)!
}

for (const row of allKeys()) {
  const { inertReason } = row.definition
  test(`${row.path} is ${inertReason === '' ? 'read where its section says' : 'read nowhere'}`, () => {
    const readers = readersOf(row)
    if (inertReason !== '') assert.deepEqual([readers, FOLLOWED.has(row.path)], [[], false])
    else if (!FOLLOWED.has(row.path)) assert.notDeepEqual(readers, [])
    const unnamed = readers.filter(file => !sectionOf(row).readBy.includes(file))
    assert.deepEqual(unnamed, [], `name them in readBy of [${row.section}]`)
  })
}

test('every file that a section names reads a key of it', () => {
  for (const section of SECTIONS) {
    const keys = allKeys().filter(key => key.section === section.name)
    const idle = section.readBy.filter(file => !keys.some(key => readersOf(key).includes(file)))
    assert.deepEqual(idle, [], `take them out of readBy of [${section.name}]`)
  }
})

test('sections without a reader hold nothing but inert keys, and keys that others follow', () => {
  const unread = allKeys().filter(key => sectionOf(key).readBy.length === 0 && key.definition.inertReason === '')
  assert.deepEqual(
    unread.filter(({ path }) => !FOLLOWED.has(path)),
    [],
  )
})

test('setting an inert key warns once, with the reason', t => {
  for (const { section, key, definition } of allKeys()) {
    if (definition.inertReason === '' || definition.required) continue
    const { repeated, keys } = SECTIONS.find(({ name }) => name === section)!
    const needed = Object.entries(keys).filter(([name, { required }]) => required && !name.includes(FREE_NAME))
    const lines = [...needed, [key, definition] as const].map(
      ([name, { read, fallback }]) => `"${chosen(name)}" = ${JSON.stringify(sample(read, fallback))}`,
    )
    const header = section === '' ? '' : repeated ? `[[${section}]]` : `[${section}]`
    const home = temporaryHome(t, { 'deployment.toml': `${header}\n${lines.join('\n')}` })
    const { warnings } = examine(home, [], join(home, 'data'))
    const own = warnings.filter(warning => /not acted on/.test(warning.expected) && names(warning.key, chosen(key)))
    assert.deepEqual(
      own.map(({ remedy }) => remedy),
      [definition.inertReason],
      `${section}.${key}`,
    )
  }
})

function chosen(key: string): string {
  return key.replace(FREE_NAME, 'chosen')
}

/** `section.key`, or `section: key, other` where several of a section have the same reason. */
function names(warned: string, key: string): boolean {
  return warned === key || warned.endsWith(`.${key}`) || warned.split(/: |, /).slice(1).includes(key)
}

function sample(read: (given: unknown) => unknown, fallback: unknown): unknown {
  const samples = [fallback, 'x', ['x'], 1, 'https://h.example', 'ws://h.example', ['tcp://h.example:1'], ['ssl://h:1']]
  return samples.find(value => read(value) !== undefined)
}
