/**
 * Every key of the catalogue is either acted on or says that it is not: a key that is not inert is read somewhere
 * outside of `src/config`, and an inert one nowhere. Read: taken from its section under its documented spelling, or
 * followed by a key that is acted on.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allKeys, type CatalogueKey } from '../../src/config/catalogue.ts'
import { readTree } from '../tidy/source-tree.ts'

/** Under which names the values of a section go outside of `src/config`. */
const OWNERS: Readonly<Record<string, string>> = {
  server: 'configuration\\.server',
  'transport.passthru_http': "(?:http|section|configuration\\['transport\\.passthru_http'\\])",
  'transport.passthru_https': "(?:https|section|configuration\\['transport\\.passthru_https'\\])",
  'transport.http.proxy_profile': 'profile',
  'transport.http.secured_proxy_profile': 'profile',
  'transport.ws': "(?:websocket|section|configuration\\['transport\\.ws'\\])",
  'transport.wss': "(?:wss|section|configuration\\['transport\\.wss'\\])",
  mediation: '(?:mediation|configuration\\.mediation)',
  'transport.listener': "configuration\\['transport\\.listener'\\]",
  management: 'configuration\\.management',
  access_log: '(?:accessLog|configuration\\.access_log)',
  logging: 'configuration\\.logging',
}

const READERS = [...readTree().values()].filter(
  ({ path }) =>
    path.startsWith('src/') &&
    (!path.startsWith('src/config/') || path === 'src/config/websocket-senders.ts') &&
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

/** Keys that decide what others come to which are acted on. */
const FOLLOWED: ReadonlySet<string> = new Set(
  allKeys()
    .filter(({ definition }) => definition.inertReason === '' && definition.follows !== '')
    .map(({ section, definition: { follows } }) => (follows.startsWith('.') ? `${section}${follows}` : follows)),
)

for (const row of allKeys()) {
  const { inertReason } = row.definition
  test(`${row.path} is ${inertReason === '' ? 'read' : 'read nowhere'}`, () => {
    const pattern = reading(row)
    const readers = READERS.filter(({ uncommented }) => pattern?.test(uncommented)).map(({ path }) => path)
    if (inertReason !== '') assert.deepEqual([readers, FOLLOWED.has(row.path)], [[], false])
    else if (!FOLLOWED.has(row.path)) assert.notDeepEqual(readers, [])
  })
}

test('sections without a reader hold nothing but inert keys', () => {
  const unread = allKeys().filter(
    ({ section, path, definition }) => !(section in OWNERS) && definition.inertReason === '' && !FOLLOWED.has(path),
  )
  assert.deepEqual(unread, [])
})
