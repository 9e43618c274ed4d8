/** Passwords, client secrets and tokens at rest, and the lockout. */
import assert from 'node:assert/strict'
import { argon2Sync } from 'node:crypto'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { LoginGuard } from '../../../src/control/registry/login-guard.ts'
import { hashPassword, verifyPassword } from '../../../src/control/registry/password-hash.ts'
import type { Registry } from '../../../src/control/registry/registry.ts'
import { openCiphers, SecretCipher } from '../../../src/database/secret-cipher.ts'
import { check } from '../../../src/cli/check.ts'
import { argumentsFor, temporaryHome, Transcript } from '../../config/temporary-home.ts'
import { withRealHashes } from '../../harness/cheap-hashes.ts'
import { loadConfiguration } from '../../harness/configuration.ts'
import { type RealDatabase, realDatabase } from './real-databases.ts'
import { TENANT } from './registry-fixtures.ts'

let database: RealDatabase
let registry: Registry
before(async () => {
  database = (await realDatabase('h2')) as RealDatabase
  registry = await database.open('[oauth]\nlockout.failures = 1')
})
after(async () => {
  await registry.close()
  await database.remove()
})

test('a password is hashed with argon2id, its own salt and composed Unicode', () =>
  withRealHashes(async () => {
    const [one, other] = [await hashPassword('Crème-brûlée'), await hashPassword('Crème-brûlée')]
    assert.match(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    assert.notEqual(one, other)
    assert.deepEqual(await verifyPassword('Crème-brûlée'.normalize('NFD'), one), { isCorrect: true, isOutdated: false })
    assert.equal((await verifyPassword('creme-brulee', one)).isCorrect, false)
    const nonce = Buffer.from(one.split('$').at(-2)!, 'base64')
    const terms = { nonce, parallelism: 1, tagLength: 32, memory: 19_456, passes: 2 }
    const hash = argon2Sync('argon2id', { message: 'Crème-brûlée', ...terms })
    assert.equal(one.split('$').at(-1), hash.toString('base64').replace(/=+$/, ''))
  }))

test('a hash of another program is verified, and a weaker one is reported as outdated', async () => {
  // Made by the reference implementation: `echo -n password | argon2 somesalt -id -t 1 -k 8192 -p 1 -l 32`.
  const weaker = `$argon2id$v=19$m=8192,t=1,p=1$c29tZXNhbHQ$${weakHash()}`
  assert.deepEqual(await verifyPassword('password', weaker), { isCorrect: true, isOutdated: true })
})

function weakHash(): string {
  const terms = { nonce: Buffer.from('somesalt'), parallelism: 1, tagLength: 32, memory: 8192, passes: 1 }
  return argon2Sync('argon2id', { message: 'password', ...terms })
    .toString('base64')
    .replace(/=+$/, '')
}

test('a malformed or too expensive hash never matches and is no error', async () => {
  const greedy = `$argon2id$v=19$m=4194304,t=2,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`
  for (const phc of ['', 'plain', greedy, '$2b$10$abcdefghijklmnopqrstuv']) {
    assert.equal((await verifyPassword('password', phc)).isCorrect, false)
  }
})

test('password checks beyond the queue limit are refused, and queued ones complete', async () => {
  const asked = Array.from({ length: 140 }, () =>
    verifyPassword('x', '$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA'),
  )
  const outcomes = await Promise.allSettled(asked)
  assert.equal(outcomes.filter(({ status }) => status === 'rejected').length, 10)
})

test('wrong passwords lock a name, whether or not the user exists', async () => {
  const user = { name: 'guessed', tenant: TENANT, roles: [], claims: {} }
  const { id } = await registry.users.create(user, 'a-good-password')
  for (const name of ['guessed', 'nobody-at-all']) {
    const guesses = Array.from({ length: 8 }, () => registry.users.authenticate(name, TENANT, 'wrong'))
    // Without an address the limit is five times that of one address, also for concurrent guesses.
    assert.deepEqual(await Promise.all(guesses), [...Array(5).fill(null), ...Array(3).fill('locked')])
  }
  assert.equal(await registry.users.authenticate('guessed', TENANT, 'a-good-password'), 'locked')
  await registry.users.setPassword(id, 'another-password')
  assert.equal(typeof (await registry.users.authenticate('guessed', TENANT, 'another-password')), 'object')
})

test('a lock ends after its time, and a correct password resets the count', async () => {
  let nowMs = 0
  const guard = new LoginGuard({ failuresMax: 2, lockMs: 1000 }, { nowMs: () => nowMs })
  const attempt = (answer: true | null) => guard.attempt('name', async () => answer, 'address')
  assert.deepEqual([await attempt(null), await attempt(true), await attempt(null)], [null, true, null])
  assert.deepEqual([await attempt(null), await attempt(true)], [null, 'locked'])
  nowMs = 1000
  assert.equal(await attempt(true), true)
})

test('guesses from the addresses of one IPv6 network count as those of one client', async () => {
  const { locks, attempt } = guarded()
  for (let at = 1; at <= 20; at++) await attempt(null, `2001:db8:1:2::${at}`)
  assert.equal(await attempt(true, '2001:db8:1:2:3::'), 'locked')
  assert.equal(await attempt(true, '2001:db8:1:3::1'), true)
  assert.deepEqual(locks, ['name 2001:db8:1:2::2'])
})

/** A guard that records its locks, and guesses at one name. `answer`: true for the correct password. */
function guarded(nowMs = () => 0) {
  const locks: string[] = []
  const locked = (name: string, address: string) => locks.push(`${name} ${address}`)
  const guard = new LoginGuard({ failuresMax: 2, lockMs: 1000 }, { nowMs, locked })
  const attempt = (answer: true | null, address: string) => guard.attempt('name', async () => answer, address)
  return { guard, locks, attempt }
}

test('wrong passwords from one address lock the name for that address only, and are reported', async () => {
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

test('wrong passwords from many addresses lock the name, except for an address that logged in before', async () => {
  const { guard, locks, attempt } = guarded()
  assert.equal(await attempt(true, 'home'), true)
  for (let guess = 0; guess < 10; guess++) assert.equal(await attempt(null, `bad ${guess}`), null)
  const outcomes = [await attempt(true, 'elsewhere'), await attempt(true, ''), await attempt(true, 'home')]
  assert.deepEqual([locks, outcomes], [['name '], ['locked', 'locked', true]])
  // A familiar address has the lock of its own address.
  assert.deepEqual([await attempt(null, 'home'), await attempt(null, 'home')], [null, null])
  assert.equal(await attempt(true, 'home'), 'locked')
  guard.forget('name')
  assert.deepEqual([await attempt(true, 'home'), await attempt(true, 'elsewhere')], [true, true])
})

test('a reload of oauth.lockout.failures applies to the next guess', async () => {
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
  const weaker = `$argon2id$v=19$m=8192,t=1,p=1$c29tZXNhbHQ$${weakHash()}`
  await database.run(`update sluice_users set password_hash = '${weaker}' where id = '${id}'`)
  assert.equal(typeof (await registry.users.authenticate('early-user', TENANT, 'password')), 'object')
  const [row] = await database.run(`select password_hash from sluice_users where id = '${id}'`)
  assert.match(String(row?.password_hash), /m=19456,t=2/)
})

test('a secret is encrypted for its context, with a key file of mode 0600 that a later start reads', async () => {
  const { configuration } = loadConfiguration(database.dataDir, [])
  const [cipher] = openCiphers(configuration.encryption.key, database.dataDir, true).ciphers
  const encrypted = cipher!.encrypt('a private key', 'kid-1')
  assert.ok(!Buffer.from(encrypted, 'base64').includes('a private key'))
  assert.equal(statSync(join(database.dataDir, 'encryption-key')).mode & 0o777, 0o600)
  const [again] = openCiphers(configuration.encryption.key, database.dataDir, true).ciphers
  assert.deepEqual(
    [again!.decrypt(encrypted, 'kid-1'), again!.decrypt(encrypted, 'kid-2')],
    ['a private key', undefined],
  )
  const tampered = Buffer.from(encrypted, 'base64')
  tampered[tampered.length - 1]! ^= 1
  assert.equal(again!.decrypt(tampered.toString('base64'), 'kid-1'), undefined)
  assert.equal(again!.decrypt('', 'kid-1'), undefined)
  assert.equal(new SecretCipher('x'.repeat(32)).decrypt(encrypted, 'kid-1'), undefined)
})

test('a damaged key file refuses the start', t => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-cipher-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'encryption-key'), 'short')
  assert.throws(() => openCiphers(loadConfiguration(database.dataDir, []).configuration.encryption.key, folder, true), {
    name: 'ConfigurationErrors',
    message: /encryption-key.*is damaged.*restore it/,
  })
})

for (const key of ['enable_token_encryption', 'enable_token_hashing']) {
  test(`check says why ${key} has no effect: tokens are stored as hashes`, async t => {
    const home = temporaryHome(t, { 'deployment.toml': `[apim.oauth_config]\n${key} = true` })
    const output = new Transcript()
    assert.equal(await check(argumentsFor(home), output), 0)
    assert.match(output.text, new RegExp(`${key}.*not acted on.*keeps the SHA-256 of each token`))
  })
}
