/** JWK sets of issuers (RFC 7517) that rotate, are down, or respond with anything. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, test } from 'node:test'
import type { IssuerKeys } from '../../../src/auth/records.ts'
import { HttpClient } from '../../../src/control/remote/http-client.ts'
import { KeySets } from '../../../src/control/remote/key-sets.ts'
import { allocateMetrics, MetricsColumn } from '../../../src/observe/metrics.ts'
import { json, MISBEHAVIOURS, MisbehavingServer } from './misbehaving-server.ts'

const ISSUER = 'https://issuer.example'
/** Longer than the test takes. */
const INTERVAL_MS = 3_600_000
const SETTINGS = { requestsMax: 100, perHostMax: 50, idleMax: 100, waitingMax: 1024, trust: {}, ownCertificates: [] }
const server = await MisbehavingServer.listen()
const client = new HttpClient(SETTINGS, { requestMs: 1000 })
const started: KeySets[] = []

after(async () => {
  for (const sets of started) sets.stop()
  server.close()
  await client.close()
})

function publicKey(kid?: string, more: object = {}): Record<string, unknown> {
  const { publicKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { ...key.export({ format: 'jwk' }), ...(kid === undefined ? {} : { kid }), ...more }
}

function keySets(times: ConstructorParameters<typeof KeySets>[1] = {}) {
  const published: IssuerKeys[] = []
  const reports: string[] = []
  const report = (_: string, event: string, fields: object) => reports.push(`${event} ${JSON.stringify(fields)}`)
  const metrics = new MetricsColumn(allocateMetrics(1), 0)
  const sets = new KeySets({ client, metrics, report, publish: keys => published.push(keys) }, times)
  started.push(sets)
  server.received.length = 0
  const kids = () => published.map(({ keys }) => keys.map(({ kid }) => kid).join())
  return { sets, published, reports, kids }
}

const SOURCES = [{ issuer: ISSUER, url: `${server.origin}/jwks` }]

test('a key set is fetched at the start, and refreshes meanwhile wait for that fetch', async () => {
  server.answer = json({ keys: [publicKey('a')] })
  const { sets, published } = keySets()
  sets.configure(SOURCES)
  await Promise.all([sets.refresh(ISSUER), sets.refresh(ISSUER)])
  assert.deepEqual([server.received.length, published.length, published[0]!.issuer], [1, 1, ISSUER])
  assert.deepEqual(Object.keys(published[0]!.keys[0]!).sort(), ['alg', 'crv', 'kid', 'kty', 'x', 'y'])
})

test('an unknown kid fetches the set again, at most once per interval', async t => {
  server.answer = json({ keys: [publicKey('old')] })
  let aheadMs = 0
  const now = performance.now.bind(performance)
  t.mock.method(performance, 'now', () => now() + aheadMs)
  const { sets, kids } = keySets({ unknownKeyMs: INTERVAL_MS })
  sets.configure(SOURCES)
  await sets.refresh(ISSUER)
  server.answer = json({ keys: [publicKey('new')] })
  await Promise.all(Array.from({ length: 20 }, () => sets.refresh(ISSUER)))
  for (let i = 0; i < 20; i++) await sets.refresh(ISSUER)
  assert.deepEqual([kids(), server.received.length], [['old', 'new'], 2])
  aheadMs = INTERVAL_MS
  await sets.refresh(ISSUER)
  assert.equal(server.received.length, 3)
})

test('the key set is fetched periodically', async () => {
  server.answer = json({ keys: [publicKey('old')] })
  const { sets, kids } = keySets({ refreshMs: 10 })
  sets.configure(SOURCES)
  await sets.refresh(ISSUER)
  server.answer = json({ keys: [publicKey('old'), publicKey('new')] })
  while (kids().at(-1) !== 'old,new') await new Promise(resolve => setTimeout(resolve, 5))
  assert.ok(server.received.length >= 2)
})

for (const [what, answer, cause] of [
  ...MISBEHAVIOURS,
  ['sends keys that are no list', json({ keys: {} }), /no list of keys/],
  ['sends no keys', json({ keys: [] }), /it is empty/],
  ['sends a thousand keys', json({ keys: Array.from({ length: 1000 }, () => ({})) }), /more than 64/],
  ['sends only symmetric keys', json({ keys: [{ kty: 'oct', k: 'AAAA', kid: 'a' }] }), /not a public key/],
] as const) {
  test(`an issuer that ${what} fails the fetch in bounded time, and the last good keys stay in use`, async () => {
    server.answer = json({ keys: [publicKey('good')] })
    const { sets, kids, reports } = keySets({ unknownKeyMs: 0 })
    sets.configure(SOURCES)
    await sets.refresh(ISSUER)
    server.answer = answer
    const begun = performance.now()
    await assert.rejects(sets.refresh(ISSUER), { name: 'ControlCallFailed', message: cause })
    assert.ok(performance.now() - begun < 2000)
    assert.match(reports.at(-1)!, /the last set stays in use/)
    server.answer = json({ keys: [publicKey('better')] })
    await sets.refresh(ISSUER)
    assert.deepEqual(kids(), ['good', 'better'])
  })
}

test('an issuer that is down from the start is retried, and other issuers do not wait for it', async () => {
  const other = await MisbehavingServer.listen()
  other.answer = json({ keys: [publicKey('b')] })
  server.answer = () => {}
  const { sets, kids } = keySets({ retryMs: 1 })
  sets.configure([...SOURCES, { issuer: 'other', url: other.origin }])
  await sets.refresh('other')
  assert.deepEqual(kids(), ['b'])
  await assert.rejects(sets.refresh(ISSUER), /no response within/)
  server.answer = json({ keys: [publicKey('a')] })
  while (kids().length < 2) await new Promise(resolve => setTimeout(resolve, 5))
  other.close()
})

test('only public signature keys with a unique kid are accepted', async () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' })
  const same = publicKey('same')
  const keys = [
    { ...privateKey.export({ format: 'jwk' }), kid: 'private' },
    { kty: 'oct', k: 'AAAA', kid: 'symmetric' },
    { ...small, kid: 'small' },
    publicKey('for encryption', { use: 'enc' }),
    publicKey('twice'),
    publicKey('twice'),
    publicKey('x'.repeat(300)),
    same,
    same,
    publicKey(),
    publicKey('sound', { alg: 'ES256', use: 'sig', x5u: 'https://elsewhere.example' }),
    'a text',
    null,
  ]
  server.answer = json({ keys }, 200, 'application/jwk-set+json')
  const { sets, kids, reports } = keySets()
  sets.configure(SOURCES)
  await sets.refresh(ISSUER)
  assert.deepEqual(kids(), ['same,,sound'])
  assert.match(reports.at(-1)!, /not a public key.*1024 bits.*same kid/)
})

test('an issuer that a reload removes is fetched no more, and one that stays keeps its keys', async () => {
  server.answer = json({ keys: [publicKey('a')] })
  const { sets, published } = keySets({ refreshMs: 5 })
  sets.configure([...SOURCES, { issuer: 'goes', url: `${server.origin}/goes` }])
  await Promise.all([sets.refresh(ISSUER), sets.refresh('goes')])
  sets.configure(SOURCES)
  server.received.length = 0
  while (server.received.length < 5) await new Promise(resolve => setTimeout(resolve, 5))
  assert.deepEqual([new Set(server.received.map(({ path }) => path)), published.length], [new Set(['/jwks']), 2])
})
