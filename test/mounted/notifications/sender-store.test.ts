/** Senders for messages: how often they are read and decrypted, and when what was read holds no longer. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { SecretBox, SecretCipher } from '../../../src/database/secret-cipher.ts'
import { Database } from '../../../src/mounted/database-access.ts'
import type { SenderConfiguration } from '../../../src/mounted/notifications/sender-configuration.ts'
import { SenderStore, type SenderTables } from '../../../src/mounted/notifications/sender-store.ts'
import { embeddedSettings } from '../healthcare/storage-databases.ts'

const STREAM = { streamName: 'stream', version: '1', type: 'sms' } as const

class CountingBox extends SecretBox {
  decrypted = 0

  override decrypt(text: string, context: string): string | undefined {
    this.decrypted++
    return super.decrypt(text, context)
  }
}

function senderWith(secret: string, name = 'texts'): SenderConfiguration {
  return { channel: 'sms', name, fields: new Map([['secret', secret]]), properties: new Map() }
}

async function fixture(t: { after(done: () => void): void }) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-senders-'))
  const database = new Database<SenderTables>({ ...embeddedSettings(), file: join(folder, 'senders.db') })
  t.after(async () => {
    await database.kysely.destroy()
    rmSync(folder, { recursive: true })
  })
  const box = new CountingBox({ ciphers: [new SecretCipher('a secret of the test')], source: '' })
  const [store, other] = [await SenderStore.open(database, box, 1000), await SenderStore.open(database, box, 1000)]
  const secretFor = async (claimedAt: number, name = 'texts') =>
    (await store.findForClaim('acme', 'sms', name, claimedAt)).fields.get('secret')
  await store.create('acme', STREAM, senderWith('one'))
  return { store, other, box, secretFor, database }
}

test('messages of one claim share a reading; a later claim reads again, and decrypts what has changed', async t => {
  const { other, box, secretFor } = await fixture(t)
  const first = performance.now()
  assert.deepEqual(await Promise.all(Array.from({ length: 20 }, () => secretFor(first))), Array(20).fill('one'))
  assert.equal(box.decrypted, 1)
  assert.equal(await secretFor(performance.now()), 'one')
  assert.equal(box.decrypted, 1, 'the row is the same')
  await other.update('acme', 'sms', 'texts', () => senderWith('two'))
  const decrypted = box.decrypted
  assert.equal(await secretFor(performance.now()), 'two')
  assert.equal(box.decrypted, decrypted + 1)
})

test('a sender that is gone or undecryptable is refused, and found once it is there again', async t => {
  const { store, other, secretFor } = await fixture(t)
  const claimedAt = performance.now()
  await other.remove('acme', 'sms', 'texts')
  await assert.rejects(secretFor(claimedAt), { name: 'Refused' })
  await store.create('acme', STREAM, senderWith('again'))
  assert.equal(await secretFor(claimedAt), 'again')
})

test('a thread remembers a limited number of senders', async t => {
  const { store, box, secretFor } = await fixture(t)
  const names = Array.from({ length: 300 }, (_, at) => `texts${at}`)
  for (const name of names) await store.create('acme', STREAM, senderWith(name, name))
  const claimedAt = performance.now()
  for (const name of names) assert.equal(await secretFor(claimedAt, name), name)
  assert.equal(await secretFor(claimedAt, 'texts299'), 'texts299')
  assert.equal(box.decrypted, 300)
  assert.equal(await secretFor(claimedAt, 'texts0'), 'texts0')
  assert.equal(box.decrypted, 301)
})
