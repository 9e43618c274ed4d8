/** Signing keys of the nodes of one database: creation, rotation, keys of earlier releases, nodes that are refused. */
import assert from 'node:assert/strict'
import { createPublicKey, generateKeyPairSync, randomUUID } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { decodeProtectedHeader, jwtVerify } from 'jose'
import { PUBLISHED_AHEAD_MS, SigningKeys, SigningKeysDamaged } from '../../../src/control/oauth/signing-keys.ts'
import type { Registry } from '../../../src/control/registry/registry.ts'
import { ENCRYPTION_KEY, KINDS, type RealDatabase, realDatabase } from '../registry/real-databases.ts'

const DAY_MS = 86_400_000
const START_MS = 1_800_000_000_000

/** The clock of both nodes. */
const clock = { ms: START_MS }
const nowMs = () => clock.ms

/** Two nodes of a database; the embedded one has one node, which stands for both. */
interface Nodes {
  readonly database: RealDatabase
  readonly folders: readonly [string, string]
  readonly one: Registry
  readonly other: Registry
}

type Clause = (nodes: Nodes) => Promise<void>

const CLAUSES: readonly (readonly [string, Clause])[] = [
  ['of nodes that start at the same time one creates the key, and both sign with it', firstKey],
  ['the private key is encrypted in the database', encrypted],
  ['a rotated key is published by every node before it signs, and by none after its last token', rotation],
  ['of nodes that rotate at the same time one adds a key, and only when it is due', rotateOnce],
  ['a key that is needed is never dropped: with a full set a rotation waits', fullSet],
  ['a signing-keys.json is taken in: its newest key signs where there is none, and verifies elsewhere', takenIn],
  ['a damaged signing-keys.json refuses the start and stays', damagedFile],
  ['a key that was removed while a node signs is replaced', removedKey],
  ['a row that the key of the nodes did not encrypt is refused', plantedRow],
]

for (const kind of KINDS) {
  describe(`item 4, in ${kind}`, () => {
    let nodes: Nodes | string = ''
    before(async () => {
      const database = await realDatabase(kind)
      if (typeof database === 'string') nodes = database
      else {
        const [one, second] = [await database.open(), kind === 'h2' ? null : await database.open()]
        const folders = [folder(), folder()] as const
        nodes = { database, folders, one, other: second ?? one }
      }
    })
    after(async () => {
      if (typeof nodes === 'string') return
      await nodes.one.close()
      if (nodes.other !== nodes.one) await nodes.other.close()
      for (const path of nodes.folders) rmSync(path, { recursive: true })
      await nodes.database.remove()
    })
    for (const [clause, body] of CLAUSES) {
      test(clause, async t => {
        if (typeof nodes === 'string') return t.skip(nodes)
        clock.ms = START_MS
        await nodes.one.signingKeys.update(keys => ({ removed: keys }))
        await body(nodes)
      })
    }
  })
}

function folder(): string {
  return mkdtempSync(join(tmpdir(), 'sluice-signing-'))
}

async function openBoth({ one, other, folders }: Nodes): Promise<readonly [SigningKeys, SigningKeys]> {
  const open = async (registry: Registry, at: number) =>
    (await SigningKeys.open(registry.signingKeys, folders[at]!, nowMs)).signingKeys
  return Promise.all([open(one, 0), open(other, 1)])
}

function token(keys: SigningKeys, lifeS = 3600): Promise<string> {
  return keys.sign('at+jwt', { iss: 'i', jti: randomUUID(), exp: Math.floor(clock.ms / 1000) + lifeS })
}

function kidOf(text: string): string {
  return decodeProtectedHeader(text).kid!
}

/** Verifies with the published keys. */
async function isAccepted(text: string, keys: SigningKeys): Promise<boolean> {
  const found = keys.published.find(({ kid }) => kid === kidOf(text))
  if (found === undefined) return false
  const key = createPublicKey({ key: found as never, format: 'jwk' })
  await jwtVerify(text, key, { currentDate: new Date(clock.ms) })
  return true
}

async function firstKey(nodes: Nodes): Promise<void> {
  const [one, other] = await openBoth(nodes)
  assert.equal(one.published.length, 1)
  assert.deepEqual(one.published, other.published)
  assert.ok(await isAccepted(await token(one), other))
  assert.ok(await isAccepted(await token(other), one))
  const [again] = await openBoth(nodes)
  assert.deepEqual(again.published, one.published)
}

async function encrypted(nodes: Nodes): Promise<void> {
  const [one] = await openBoth(nodes)
  const [row] = await nodes.database.run('select * from sluice_signing_keys')
  assert.equal(row?.kid, one.published[0]!.kid)
  const stored = JSON.stringify(row)
  const { pem } = (await nodes.one.signingKeys.list())[0]!
  assert.match(pem, /^-----BEGIN PRIVATE KEY-----/)
  for (const form of [stored, Buffer.from(String(row?.private_key), 'base64').toString('latin1')]) {
    assert.doesNotMatch(form, /PRIVATE KEY/)
    assert.ok(!form.includes(pem.split('\n')[3]!))
  }
}

async function rotation(nodes: Nodes): Promise<void> {
  const [one, other] = await openBoth(nodes)
  const told = new Promise<void>(resolve => {
    nodes.other.listener = { subscriptionsChanged: () => {}, tokensRevoked: () => {}, signingKeysChanged: resolve }
  })
  const early = await token(other)
  assert.equal(await one.rotate(), 'added')
  await told
  await other.refresh()
  nodes.other.listener = null
  const [fresh, old] = other.published.map(({ kid }) => kid)
  assert.equal(old, kidOf(early))
  for (const keys of [one, other]) {
    assert.deepEqual(
      keys.published.map(({ kid }) => kid),
      [fresh, old],
    )
    assert.equal(kidOf(await token(keys)), old)
  }
  clock.ms += PUBLISHED_AHEAD_MS - 1
  const late = await token(one)
  assert.equal(kidOf(late), old)
  clock.ms += 1
  for (const keys of [one, other]) assert.equal(kidOf(await token(keys)), fresh)
  assert.ok(await isAccepted(await token(one), other))
  // The old key stays until its last token and the largest skew are over.
  clock.ms = Number.parseInt(payload(late).exp, 10) * 1000 + DAY_MS - 1
  await other.removeExpired()
  assert.ok(other.published.some(({ kid }) => kid === old))
  clock.ms += 2 * DAY_MS
  assert.deepEqual(
    other.published.map(({ kid }) => kid),
    [fresh],
  )
  await other.removeExpired()
  const rows = await nodes.database.run('select kid from sluice_signing_keys')
  assert.deepEqual(
    rows.map(({ kid }) => kid),
    [fresh],
  )
}

function payload(text: string): { readonly exp: string } {
  return JSON.parse(Buffer.from(text.split('.')[1]!, 'base64url').toString())
}

async function rotateOnce(nodes: Nodes): Promise<void> {
  const [one, other] = await openBoth(nodes)
  clock.ms += DAY_MS - 1
  assert.deepEqual(await Promise.all([one.rotate(DAY_MS), other.rotate(DAY_MS)]), ['not due', 'not due'])
  clock.ms += 1
  const outcomes = await Promise.all([one.rotate(DAY_MS), other.rotate(DAY_MS)])
  assert.deepEqual([...outcomes].sort(), ['added', 'not due'])
  await one.refresh()
  assert.deepEqual([one.published.length, other.published.length], [2, 2])
}

async function fullSet(nodes: Nodes): Promise<void> {
  const [one] = await openBoth(nodes)
  const { pem } = (await nodes.one.signingKeys.list())[0]!
  const added = Array.from({ length: 31 }, (_, at) => ({
    ...{ kid: `kid-${at}`, createdMs: START_MS, signsFromMs: 1 + at, untilMs: START_MS + DAY_MS, pem },
  }))
  await nodes.one.signingKeys.update(() => ({ added }))
  await one.refresh()
  clock.ms += DAY_MS - 1
  assert.equal(await one.rotate(1000), 'full')
  assert.equal(one.published.length, 32)
  clock.ms += DAY_MS
  await one.removeExpired()
  assert.equal(await one.rotate(1000), 'added')
}

function keyFile(path: string, ages: readonly number[]): readonly string[] {
  const keys = ages.map((createdMs, age) => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
    return { createdMs, untilMs: age === 0 ? 0 : START_MS + (2 - age) * DAY_MS, pem }
  })
  writeFileSync(path, JSON.stringify({ format: 1, keys }))
  return keys.map(({ pem }) => String(pem))
}

async function takenIn({ one, other, folders }: Nodes): Promise<void> {
  const [mine, theirs] = folders.map(path => join(path, 'signing-keys.json')) as [string, string]
  const [newest] = keyFile(mine, [START_MS - 1000, START_MS - DAY_MS, START_MS - 9 * DAY_MS])
  const text = readFileSync(mine, 'utf8')
  const first = await SigningKeys.open(one.signingKeys, folders[0], nowMs)
  // The third key is over.
  assert.deepEqual([first.taken?.keys, first.signingKeys.published.length], [2, 2])
  assert.deepEqual([existsSync(mine), readFileSync(`${mine}.bak`, 'utf8')], [false, text])
  const signing = (await one.signingKeys.list()).filter(({ signsFromMs }) => signsFromMs > 0)
  assert.deepEqual(
    signing.map(({ pem }) => pem),
    [newest],
  )

  keyFile(theirs, [START_MS, START_MS - DAY_MS])
  const second = await SigningKeys.open(other.signingKeys, folders[1], nowMs)
  assert.equal(second.taken?.keys, 1)
  await first.signingKeys.refresh()
  assert.equal(first.signingKeys.published.length, 3)
  assert.equal(kidOf(await token(second.signingKeys)), kidOf(await token(first.signingKeys)))
  const again = await SigningKeys.open(other.signingKeys, folders[1], nowMs)
  assert.equal(again.taken, null)
}

async function damagedFile({ one, folders }: Nodes): Promise<void> {
  const file = join(folders[0], 'signing-keys.json')
  writeFileSync(file, '{"format":1}')
  await assert.rejects(SigningKeys.open(one.signingKeys, folders[0], nowMs), SigningKeysDamaged)
  assert.ok(existsSync(file))
  rmSync(file)
}

async function removedKey(nodes: Nodes): Promise<void> {
  const [one, other] = await openBoth(nodes)
  await nodes.one.signingKeys.update(keys => ({ removed: keys }))
  const text = await token(other)
  await one.refresh()
  assert.ok(await isAccepted(text, one))
}

/** Whoever can only write to the database adds no key, and moves none to another name. */
async function plantedRow(nodes: Nodes): Promise<void> {
  const [one] = await openBoth(nodes)
  const { kid } = one.published[0]!
  await nodes.database.run(`update sluice_signing_keys set kid = 'other' where kid = '${kid}'`)
  await assert.rejects(one.refresh(), { name: 'SigningKeysUnusable' })
  assert.deepEqual(
    one.published.map(key => key.kid),
    [kid],
  )
  await nodes.database.run(`update sluice_signing_keys set kid = '${kid}' where kid = 'other'`)
  await one.refresh()
}

for (const kind of ['postgre', 'mysql'] as const) {
  test(`a node with another encryption.key is refused with the remedy, in ${kind}`, async t => {
    const database = await realDatabase(kind)
    if (typeof database === 'string') return t.skip(database)
    const registry = await database.open()
    await SigningKeys.open(registry.signingKeys, database.dataDir, Date.now)
    const toml = database.toml.replace(ENCRYPTION_KEY, 'another key that is long enough, too')
    await assert.rejects(database.open('', Date.now, database.dataDir, toml), {
      name: 'SigningKeysUnusable',
      message: /^encryption\.key is not the key that encrypts the signing keys in .*: use the key of the other nodes/,
    })
    await registry.close()
    await database.remove()
  })
}

test('a key that is configured for the embedded database replaces the generated one', async t => {
  const database = await realDatabase('h2')
  if (typeof database === 'string') return t.skip(database)
  const generated = await database.open()
  const { signingKeys } = await SigningKeys.open(generated.signingKeys, database.dataDir, Date.now)
  await generated.close()
  const section = `[encryption]\nkey = "${ENCRYPTION_KEY}"`
  await (await database.open(section)).close()
  rmSync(join(database.dataDir, 'encryption-key'))
  const configured = await database.open(section)
  const again = await SigningKeys.open(configured.signingKeys, database.dataDir, Date.now)
  assert.deepEqual(again.signingKeys.published, signingKeys.published)
  await configured.close()
  await assert.rejects(database.open(), { name: 'SigningKeysUnusable', message: /encryption-key is not the key/ })
  await database.remove()
})
