/** Key sets of issuers that rotate, are down, or answer anything. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, test } from 'node:test'
import type { IssuerKeys } from '../../src/identity/facts.ts'
import { HttpClient } from '../../src/remote/http-client.ts'
import { KeySets } from '../../src/remote/key-sets.ts'
import { json, MISBEHAVIOURS, MisbehavingServer } from './misbehaving-server.ts'

const ISSUER = 'https://issuer.example'
const SETTINGS = { requestsMax: 100, perHostMax: 50, idleMax: 100, trust: {}, ownCertificates: [] }
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
  const sets = new KeySets({ client, report, publish: keys => published.push(keys) }, times)
  started.push(sets)
  server.received.length = 0
  const kids = () => published.map(({ keys }) => keys.map(({ kid }) => kid).join())
  return { sets, published, reports, kids }
}

const SOURCES = [{ issuer: ISSUER, url: `${server.origin}/jwks` }]

test('a key set is fetched at the start, and whoever asks meanwhile waits for it', async () => {
  server.answer = json({ keys: [publicKey('a')] })
  const { sets, published } = keySets()
  sets.renew(SOURCES)
  await Promise.all([sets.look(ISSUER), sets.look(ISSUER)])
  assert.deepEqual([server.received.length, published.length, published[0]!.issuer], [1, 1, ISSUER])
  assert.deepEqual(Object.keys(published[0]!.keys[0]!).sort(), ['alg', 'crv', 'kid', 'kty', 'x', 'y'])
})

test('an unknown kid has the set fetched anew, at most once per interval', async () => {
  server.answer = json({ keys: [publicKey('old')] })
  const { sets, kids } = keySets({ unknownMs: 50 })
  sets.renew(SOURCES)
  await sets.look(ISSUER)
  server.answer = json({ keys: [publicKey('new')] })
  await Promise.all(Array.from({ length: 20 }, () => sets.look(ISSUER)))
  for (let i = 0; i < 20; i++) await sets.look(ISSUER)
  assert.deepEqual([kids(), server.received.length], [['old', 'new'], 2])
  await new Promise(resolve => setTimeout(resolve, 60))
  await sets.look(ISSUER)
  assert.equal(server.received.length, 3)
})

test('keys rotate without anybody asking', async () => {
  server.answer = json({ keys: [publicKey('old')] })
  const { sets, kids } = keySets({ rotationMs: 10 })
  sets.renew(SOURCES)
  await sets.look(ISSUER)
  server.answer = json({ keys: [publicKey('old'), publicKey('new')] })
  while (kids().at(-1) !== 'old,new') await new Promise(resolve => setTimeout(resolve, 5))
  assert.ok(server.received.length >= 2)
})

for (const [what, answer, cause] of [
  ...MISBEHAVIOURS,
  ['has no list of keys', json({ keys: {} }), /no list of keys/],
  ['has no keys', json({ keys: [] }), /there is none/],
  ['has a thousand keys', json({ keys: Array.from({ length: 1000 }, () => ({})) }), /more than 64/],
  ['has secrets alone', json({ keys: [{ kty: 'oct', k: 'AAAA', kid: 'a' }] }), /not a public key/],
] as const) {
  test(`an issuer that ${what} is a failure in bounded time, and takes no good keys away`, async () => {
    server.answer = json({ keys: [publicKey('good')] })
    const { sets, kids, reports } = keySets({ unknownMs: 0 })
    sets.renew(SOURCES)
    await sets.look(ISSUER)
    server.answer = answer
    const begun = performance.now()
    await assert.rejects(sets.look(ISSUER), { name: 'InquiryFailed', message: cause })
    assert.ok(performance.now() - begun < 2000)
    assert.match(reports.at(-1)!, /those fetched last go on/)
    server.answer = json({ keys: [publicKey('better')] })
    await sets.look(ISSUER)
    assert.deepEqual(kids(), ['good', 'better'])
  })
}

test('one that is down from the start is tried again, and other issuers do not wait for it', async () => {
  const other = await MisbehavingServer.listen()
  other.answer = json({ keys: [publicKey('b')] })
  server.answer = () => {}
  const { sets, kids } = keySets({ retryMs: 1 })
  sets.renew([...SOURCES, { issuer: 'other', url: other.origin }])
  await sets.look('other')
  assert.deepEqual(kids(), ['b'])
  await assert.rejects(sets.look(ISSUER), /no answer within/)
  server.answer = json({ keys: [publicKey('a')] })
  while (kids().length < 2) await new Promise(resolve => setTimeout(resolve, 5))
  other.close()
})

test('only public keys for signatures, each with a kid of its own, are taken', async () => {
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
  sets.renew(SOURCES)
  await sets.look(ISSUER)
  assert.deepEqual(kids(), ['same,,sound'])
  assert.match(reports.at(-1)!, /not a public key.*1024 bits.*same kid/)
})

test('an issuer that a reload takes away is fetched no more, one that stays keeps its keys', async () => {
  server.answer = json({ keys: [publicKey('a')] })
  const { sets, published } = keySets({ rotationMs: 5 })
  sets.renew([...SOURCES, { issuer: 'goes', url: `${server.origin}/goes` }])
  await Promise.all([sets.look(ISSUER), sets.look('goes')])
  sets.renew(SOURCES)
  server.received.length = 0
  while (server.received.length < 5) await new Promise(resolve => setTimeout(resolve, 5))
  assert.deepEqual([new Set(server.received.map(({ path }) => path)), published.length], [new Set(['/jwks']), 2])
})
