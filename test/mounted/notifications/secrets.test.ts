/** Secrets of senders on each database: encrypted at rest, in no response, dry run or log line, kept by a PUT. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { KINDS } from '../../control/registry/real-databases.ts'
import { type Answer, MAIL, type NotificationFixture, openNotifications } from './notification-fixture.ts'
import { type Provider, startProvider } from './stand-ins.ts'

const SECRETS = {
  ...{ key: 'KEY-1x', secret: 'SECRET-2x', password: 'PASS-3x', bearer: 'BEARER-4x', token: 'TOKEN-5x' },
  ...{ mailOne: 'MAIL-6x', mailTwo: 'MAIL-7x' },
}
const EVENT = { recipient: '1', text: 'x' }
const property = (key: string, value: string) => ({ key, value })

function smsSender(providerURL: string) {
  const { key, secret, password, bearer, token } = SECRETS
  const body = '{"k":"$key","s":"$secret","t":"$body.api_token","text":"{{body}}"}'
  const properties = [
    ...[property('http.username', 'user'), property('http.password', password), property('body.api_token', token)],
    ...[property('http.headers', `X-Auth: ${bearer}, Accept: text/plain`), property('body', body)],
  ]
  return { provider: 'Bulksms', providerURL, key, secret, properties }
}

/** Every text of the database about the senders. */
async function storedText({ database }: NotificationFixture): Promise<string> {
  if (database.kind !== 'h2') return JSON.stringify(await database.run('select * from notification_senders'))
  const { dataDir } = database
  return readdirSync(dataDir)
    .map(file => readFileSync(join(dataDir, file), 'latin1'))
    .join('')
}

function assertNoSecrets(where: string, text: string): void {
  for (const secret of Object.values(SECRETS)) {
    assert.ok(!text.includes(secret), `${secret} in ${where}`)
    assert.ok(!text.includes(Buffer.from(secret).toString('base64').slice(0, 8)), `${secret} in ${where}`)
  }
}

/** Responses about senders, in which secrets might be. */
async function answersOf(fixture: NotificationFixture): Promise<readonly Answer[]> {
  const twin = { ...MAIL, userName: 'ann', properties: [property('mail.smtp.password', SECRETS.mailTwo)] }
  const answers = [await fixture.ask('PUT', '/email/EmailPublisher', { body: twin })]
  for (const path of ['/sms', '/sms/SMSPublisher', '/email/EmailPublisher']) {
    answers.push(await fixture.ask('GET', path))
  }
  for (const name of ['sms/SMSPublisher', 'email/EmailPublisher']) {
    const recipient = name.startsWith('sms') ? '1' : 'bob@example.net'
    answers.push(await fixture.ask('POST', `/${name}/dry-run`, { body: { ...EVENT, recipient } }))
  }
  return answers
}

for (const kind of KINDS) {
  describe(`secrets in ${kind}`, () => {
    let fixture: NotificationFixture
    let provider: Provider
    let unavailable: string | false = false
    let created: Answer
    before(async () => {
      provider = await startProvider()
      const opened = await openNotifications(kind, { allowed_addresses: ['127.0.0.1'] })
      if (typeof opened === 'string') unavailable = opened
      else {
        fixture = opened
        created = await fixture.ask('POST', '/sms', { body: smsSender(provider.url) })
        await fixture.ask('POST', '/email', { body: { ...MAIL, userName: 'ann', password: SECRETS.mailOne } })
      }
    })
    after(async () => {
      provider.close()
      await fixture?.remove()
    })

    test('they are in no response, and neither in the database nor in the log', async t => {
      if (unavailable !== false) return t.skip(unavailable)
      const answers = [created, ...(await answersOf(fixture))]
      assert.deepEqual(
        answers.map(({ status }) => status),
        [201, 200, 200, 200, 200, 200, 200],
      )
      assertNoSecrets('responses', answers.map(({ text }) => text).join('\n'))
      const stored = await storedText(fixture)
      assert.match(stored, /SMSPublisher/)
      assertNoSecrets('the database', stored)
      assertNoSecrets('the log', JSON.stringify(fixture.logged))
    })

    test('a dry run shows the exact request with its secrets masked', async t => {
      if (unavailable !== false) return t.skip(unavailable)
      const { json } = await fixture.ask('POST', '/sms/SMSPublisher/dry-run', { body: EVENT })
      const fields = (json.fields as readonly { name: string; value: string }[]).map(({ name, value }) => [name, value])
      assert.deepEqual(fields, [
        ['Host', new URL(provider.url).host],
        ['X-Auth', '********'],
        ['Accept', 'text/plain'],
        ['Content-Type', 'application/json'],
        ['Authorization', 'Basic ********'],
        ['User-Agent', 'sluice'],
        ['Idempotency-Key', '00000000-0000-7000-8000-000000000000'],
      ])
      assert.deepEqual([json.method, json.url, json.proxy], ['POST', provider.url, null])
      assert.equal(json.body, '{"k":"********","s":"********","t":"********","text":"x"}')
    })

    test('a PUT without them keeps them, and one with "" or null removes them', async t => {
      if (unavailable !== false) return t.skip(unavailable)
      const { key, secret, token, bearer, password } = SECRETS
      const put = await fixture.ask('PUT', '/sms/SMSPublisher', { body: created.json })
      assert.equal(put.status, 200, put.text)
      const sent = await fixture.ask('POST', '/sms/SMSPublisher/test', { body: EVENT })
      assert.deepEqual(sent.json, { delivered: true, detail: 'HTTP 202' })
      const { body, fields } = provider.received.at(-1)!
      assert.deepEqual(JSON.parse(body), { k: key, s: secret, t: token, text: 'x' })
      const basic = `Basic ${Buffer.from(`user:${password}`).toString('base64')}`
      assert.deepEqual([fields['x-auth'], fields.authorization], [bearer, basic])

      await fixture.ask('PUT', '/sms/SMSPublisher', { body: { ...created.json, key: '', secret: null } })
      await fixture.ask('POST', '/sms/SMSPublisher/test', { body: EVENT })
      assert.deepEqual(JSON.parse(provider.received.at(-1)!.body), { k: '', s: '', t: token, text: 'x' })
    })
  })
}

test('under another key a sender is 500 NSM-65004, until a PUT gives its secrets again', async t => {
  const fixture = (await openNotifications('h2', { allowed_addresses: ['127.0.0.1'] })) as NotificationFixture
  const provider = await startProvider()
  t.after(async () => {
    provider.close()
    await fixture.remove()
  })
  await fixture.ask('POST', '/sms', { body: smsSender(provider.url) })
  writeFileSync(join(fixture.database.dataDir, 'encryption-key'), `${'ab'.repeat(32)}\n`)
  const api = await fixture.another()
  const read = await fixture.ask('GET', '/sms/SMSPublisher', { api })
  assert.equal(read.status, 200)
  const dryRun = await fixture.ask('POST', '/sms/SMSPublisher/dry-run', { api, body: EVENT })
  assert.deepEqual([dryRun.status, dryRun.json.code], [500, 'NSM-65004'])
  const sent = await fixture.ask('POST', '/sms/SMSPublisher/test', { api, body: EVENT })
  assert.match(String(sent.json.detail), /encrypted with another key/)
  assert.equal((await fixture.ask('PUT', '/sms/SMSPublisher', { api, body: smsSender(provider.url) })).status, 200)
  const mended = await fixture.ask('POST', '/sms/SMSPublisher/test', { api, body: EVENT })
  assert.deepEqual(mended.json, { delivered: true, detail: 'HTTP 202' })
})
