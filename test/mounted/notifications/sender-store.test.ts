/** Senders for messages: how often they are read and decrypted, and when what was read holds no longer. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { SecretBox, SecretCipher } from '../../../src/database/secret-cipher.ts'
import { Database } from '../../../src/mounted/database-access.ts'
import { Dispatcher } from '../../../src/mounted/notifications/dispatcher.ts'
import { ProviderFile } from '../../../src/mounted/notifications/provider-file.ts'
import type { Channel, SenderConfiguration } from '../../../src/mounted/notifications/sender-configuration.ts'
import { SenderStore, type SenderTables } from '../../../src/mounted/notifications/sender-store.ts'
import { readSettings } from '../../../src/mounted/notifications/settings.ts'
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

test('concurrency and rate of a sender are the lower ones of settings and provider', async t => {
  const { store } = await fixture(t)
  const file = join(mkdtempSync(join(tmpdir(), 'sluice-providers-')), 'providers.xml')
  t.after(() => rmSync(dirname(file), { recursive: true }))
  writeFileSync(
    file,
    `<x><y provider="Slow" concurrency="2" rate="0.5"><body>{}</body></y>
     <y provider="Fast" concurrency="100" rate="1000"><body>{}</body></y><y provider="Plain"><body>{}</body></y></x>`,
  )
  const providers = new ProviderFile(file, () => {})
  const paceOf = async (provider: string, settings: Readonly<Record<string, number>>, channel: Channel = 'sms') => {
    await store.update('acme', 'sms', 'texts', stored => ({ ...stored, fields: new Map([['provider', provider]]) }))
    const dispatcher = new Dispatcher(store, providers, readSettings(settings))
    const { concurrency, perSecond } = await dispatcher.pace({ tenant: 'acme', channel, name: 'texts' })
    return [concurrency, perSecond]
  }
  assert.deepEqual(await paceOf('Slow', {}), [2, 0.5])
  assert.deepEqual(await paceOf('Slow', { concurrency: 1, rate: 7 }), [1, 0.5])
  assert.deepEqual(await paceOf('Fast', { rate: 7 }), [8, 7])
  assert.deepEqual(await paceOf('Fast', {}), [8, 1000])
  assert.deepEqual(await paceOf('Plain', {}), [8, null])
  assert.deepEqual(await paceOf('Unknown', { rate: 7 }), [8, 7])
  assert.deepEqual(await paceOf('Slow', {}, 'email'), [8, null])
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
