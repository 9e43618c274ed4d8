/** Passwords, client secrets and tokens at rest, and guesses at them. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { LoginGuard } from '../../src/registry/login-guard.ts'
import { hashPassword, verifyPassword } from '../../src/registry/password-hash.ts'
import type { Registry } from '../../src/registry/registry.ts'
import { TokenVault } from '../../src/registry/token-vault.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { type RealDatabase, realDatabase } from './real-databases.ts'
import { clientOf, TENANT, tokenOf } from './registry-facts.ts'

let database: RealDatabase
let registry: Registry
before(async () => {
  database = (await realDatabase('h2')) as RealDatabase
  registry = await database.open('[oauth]\nlockout.failures = 1\n[apim.oauth_config]\nenable_token_encryption = true')
})
after(async () => {
  await registry.close()
  await database.remove()
})

test('a password is kept as argon2id with a salt of its own, and whatever its composition', async () => {
  const [one, other] = [await hashPassword('Crème-brûlée'), await hashPassword('Crème-brûlée')]
  assert.match(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
  assert.notEqual(one, other)
  assert.deepEqual(await verifyPassword('Crème-brûlée'.normalize('NFD'), one), { isRight: true, isOld: false })
  assert.equal((await verifyPassword('creme-brulee', one)).isRight, false)
})

test('a hash of another program is read, and one that is weaker is said to be old', async () => {
  // Of the reference implementation's command: `echo -n password | argon2 somesalt -id -t 1 -k 8192 -p 1 -l 32`.
  const weaker = `$argon2id$v=19$m=8192,t=1,p=1$c29tZXNhbHQ$${await weakHash()}`
  assert.deepEqual(await verifyPassword('password', weaker), { isRight: true, isOld: true })
})

async function weakHash(): Promise<string> {
  const { argon2Sync } = await import('node:crypto')
  const terms = { nonce: Buffer.from('somesalt'), parallelism: 1, tagLength: 32, memory: 8192, passes: 1 }
  return argon2Sync('argon2id', { message: 'password', ...terms })
    .toString('base64')
    .replace(/=+$/, '')
}

test('what is no hash, or asks for too much memory, is wrong and not an error', async () => {
  const greedy = `$argon2id$v=19$m=4194304,t=2,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`
  for (const phc of ['', 'plain', greedy, '$2b$10$abcdefghijklmnopqrstuv']) {
    assert.equal((await verifyPassword('password', phc)).isRight, false)
  }
})

test('more passwords than can wait for their check are refused, and those that wait are checked', async () => {
  const asked = Array.from({ length: 140 }, () =>
    verifyPassword('x', '$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA'),
  )
  const outcomes = await Promise.allSettled(asked)
  assert.equal(outcomes.filter(({ status }) => status === 'rejected').length, 10)
})

test('a name is locked after wrong passwords, whether or not there is such a user', async () => {
  const user = { name: 'guessed', tenant: TENANT, roles: [], claims: {} }
  const { id } = await registry.users.create(user, 'a-good-password')
  for (const name of ['guessed', 'nobody-at-all']) {
    const guesses = Array.from({ length: 8 }, () => registry.users.authenticate(name, TENANT, 'wrong'))
    // Five wrong ones for each failure of an address, and all that come at once are no more than that.
    assert.deepEqual(await Promise.all(guesses), [...Array(5).fill(null), ...Array(3).fill('locked')])
  }
  assert.equal(await registry.users.authenticate('guessed', TENANT, 'a-good-password'), 'locked')
  await registry.users.setPassword(id, 'another-password')
  assert.equal(typeof (await registry.users.authenticate('guessed', TENANT, 'another-password')), 'object')
})

test('a lock ends after its time, and a right password forgets the wrong ones before', async () => {
  let nowMs = 0
  const guard = new LoginGuard({ failuresMax: 2, lockMs: 1000 }, { nowMs: () => nowMs })
  const attempt = (answer: true | null) => guard.attempt('name', async () => answer, 'place')
  assert.deepEqual([await attempt(null), await attempt(true), await attempt(null)], [null, true, null])
  assert.deepEqual([await attempt(null), await attempt(true)], [null, 'locked'])
  nowMs = 1000
  assert.equal(await attempt(true), true)
})

/** A guard whose locks are listed, and guesses at one name. `answer`: whether the password is right. */
function guarded(nowMs = () => 0) {
  const locks: string[] = []
  const locked = (name: string, place: string) => locks.push(`${name} ${place}`)
  const guard = new LoginGuard({ failuresMax: 2, lockMs: 1000 }, { nowMs, locked })
  const attempt = (answer: true | null, place: string) => guard.attempt('name', async () => answer, place)
  return { guard, locks, attempt }
}

test('wrong passwords from one place lock the name there, are told, and never elsewhere, however long', async () => {
  let nowMs = 0
  const { locks, attempt } = guarded(() => nowMs)
  for (let round = 0; round < 20; round++) {
    const outcomes = [await attempt(null, 'bad'), await attempt(null, 'bad'), await attempt(true, 'bad')]
    assert.deepEqual(outcomes, [null, null, 'locked'])
    nowMs += 1000
  }
  assert.deepEqual([locks.length, locks[0]], [20, 'name bad'])
  assert.equal(await attempt(true, 'new'), true)
})

test('wrong passwords from many places lock the name, and nobody out of where the right one was used', async () => {
  const { guard, locks, attempt } = guarded()
  assert.equal(await attempt(true, 'home'), true)
  for (let guess = 0; guess < 10; guess++) assert.equal(await attempt(null, `bad ${guess}`), null)
  const outcomes = [await attempt(true, 'elsewhere'), await attempt(true, ''), await attempt(true, 'home')]
  assert.deepEqual([locks, outcomes], [['name '], ['locked', 'locked', true]])
  // Such a place is no way around the lock.
  assert.deepEqual([await attempt(null, 'home'), await attempt(null, 'home')], [null, null])
  assert.equal(await attempt(true, 'home'), 'locked')
  guard.forget('name')
  assert.deepEqual([await attempt(true, 'home'), await attempt(true, 'elsewhere')], [true, true])
})

test('a reload of oauth.lockout.failures holds for the next guess', async () => {
  await registry.users.create({ name: 'reloaded', tenant: TENANT, roles: [], claims: {} }, 'a-good-password')
  const guess = (password: string) => registry.users.authenticate('reloaded', TENANT, password, '192.0.2.1')
  assert.deepEqual([await guess('wrong'), await guess('a-good-password')], [null, 'locked'])
  const { configuration } = loadConfiguration(database.dataDir, ['oauth.lockout.failures=-1'])
  registry.reload(configuration)
  assert.equal(await guess('wrong'), null)
  assert.equal(typeof (await guess('a-good-password')), 'object')
})

test('a weaker hash is replaced at the next login', async () => {
  const user = { name: 'early-user', tenant: TENANT, roles: [], claims: {} }
  const { id } = await registry.users.create(user, 'password-1')
  const weaker = `$argon2id$v=19$m=8192,t=1,p=1$c29tZXNhbHQ$${await weakHash()}`
  await database.run(`update sluice_users set password_hash = '${weaker}' where id = '${id}'`)
  assert.equal(typeof (await registry.users.authenticate('early-user', TENANT, 'password')), 'object')
  const [row] = await database.run(`select password_hash from sluice_users where id = '${id}'`)
  assert.match(String(row?.password_hash), /m=19456,t=2/)
})

test('enable_token_encryption keeps the token sealed with a key that nobody else reads, bound to its row', async () => {
  const { client } = await registry.clients.create(clientOf(null))
  const issued = tokenOf(client.consumerKey)
  await registry.tokens.add('a-token-to-keep', issued)
  assert.equal(await registry.tokens.kept(issued.id), 'a-token-to-keep')
  const file = join(database.dataDir, 'token-encryption-key')
  assert.deepEqual([statSync(file).mode & 0o777, readFileSync(file).length], [0o600, 32])
  assert.ok(!readFileSync(join(database.dataDir, 'registry.db-wal')).includes('a-token-to-keep'))
  const other = tokenOf(client.consumerKey)
  await registry.tokens.add('another', other)
  await database.run(
    `update sluice_tokens set kept = (select kept from sluice_tokens where id = '${issued.id}')` +
      ` where id = '${other.id}'`,
  )
  assert.equal(await registry.tokens.kept(other.id), '')
})

test('the key of kept tokens is the same after a restart, and a damaged one is no new one', t => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-vault-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const kept = TokenVault.encrypting(folder).keep('token', 'id')
  assert.equal(TokenVault.encrypting(folder).open(kept, 'id'), 'token')
  assert.equal(TokenVault.hashesOnly().open(kept, 'id'), '')
  rmSync(join(folder, 'token-encryption-key'))
  assert.equal(TokenVault.encrypting(folder).open(kept, 'id'), '')
})
