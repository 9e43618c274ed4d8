/** Events on each database: accepted, delivered to a provider and a mail server, dead letters, limits. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { MountedApi } from '../../../src/mounted/interface.ts'
import { KINDS } from '../../control/registry/real-databases.ts'
import { type Answer, MAIL, type NotificationFixture, openNotifications, VONAGE } from './notification-fixture.ts'
import { type MailServer, type Provider, startMailServer, startProvider } from './stand-ins.ts'

const LOCAL = { allowed_addresses: ['127.0.0.1'] }
const property = (key: string, value: string) => ({ key, value })

/** Runs what is due until nothing is. */
async function work({ work }: MountedApi): Promise<void> {
  for (let turn = 0; turn < 50; turn++) {
    const { jobs } = await work!.due()
    if (jobs.length === 0) return
    for (const job of jobs) await work!.run(job, new AbortController().signal)
  }
  assert.fail('there is always more to do')
}

function idsOf({ json }: Answer): readonly string[] {
  return (json.deliveries as readonly { readonly id: string }[]).map(({ id }) => id)
}

for (const kind of KINDS) {
  describe(`events in ${kind}`, () => {
    let fixture: NotificationFixture
    let provider: Provider
    let mail: MailServer
    let unavailable: string | false = false
    before(async () => {
      provider = await startProvider()
      mail = await startMailServer()
      const opened = await openNotifications(kind, LOCAL)
      if (typeof opened === 'string') unavailable = opened
      else fixture = opened
    })
    after(async () => {
      provider.close()
      mail.close()
      await fixture?.remove()
    })

    test('an event is stored, delivered to each sender of its stream, and its status is readable', async t => {
      if (unavailable !== false) return t.skip(unavailable)
      const sms = { ...VONAGE, providerURL: provider.url }
      for (const name of ['one', 'two']) await fixture.ask('POST', '/sms', { body: { ...sms, name } })
      const wakes = fixture.wakes()
      const answer = await fixture.ask('POST', '/events', {
        body: { type: 'sms', recipient: '+15550100', template: 'Code {{code}}', properties: [property('code', '1"2')] },
      })
      assert.equal(answer.status, 202, answer.text)
      assert.equal(fixture.wakes(), wakes + 1)
      const [one = '', two = ''] = idsOf(answer)
      assert.deepEqual(answer.json.deliveries, [
        { id: one, channel: 'sms', sender: 'one' },
        { id: two, channel: 'sms', sender: 'two' },
      ])
      const waiting = await fixture.ask('GET', `/deliveries/${one}`)
      assert.deepEqual([waiting.json.state, waiting.json.attempts, waiting.json.recipient], ['waiting', 0, '+15550100'])
      assert.deepEqual(waiting.json.event, { template: 'Code {{code}}', properties: [property('code', '1"2')] })
      await work(fixture.api)
      assert.deepEqual(
        provider.received.map(({ body, fields }) => [JSON.parse(body).text, fields['idempotency-key']]).toSorted(),
        [one, two].map(id => ['Code 1"2', id]).toSorted(),
      )
      const page = await fixture.ask('GET', '/deliveries?channel=sms&state=delivered&limit=1')
      const [newest] = page.json.deliveries as readonly Record<string, unknown>[]
      assert.deepEqual([newest?.state, newest?.detail], ['delivered', 'HTTP 202'])
      const next = new URL(String(page.json.next)).search
      const rest = idsOf(await fixture.ask('GET', `/deliveries${next}`))
      assert.deepEqual([newest?.id, ...rest].toSorted(), [one, two].toSorted())
      const counts = (await fixture.ask('GET', '/deliveries/counts')).list
      assert.deepEqual(
        counts.map(({ sender, delivered }) => [sender, delivered]),
        [
          ['one', 1],
          ['two', 1],
        ],
      )
      const other = await fixture.ask('GET', `/deliveries/${one}`, { tenant: 'other' })
      assert.deepEqual([other.status, other.json.code], [404, 'NSM-61013'])
      for (const name of ['one', 'two']) await fixture.ask('DELETE', `/sms/${name}`)
    })

    test('an event of one sender becomes a mail with its Message-ID; HTML values are escaped', async t => {
      if (unavailable !== false) return t.skip(unavailable)
      const sender = {
        ...{ ...MAIL, smtpServerHost: '127.0.0.1', smtpPort: mail.port, userName: 'ann', password: 'mail-secret' },
        properties: [
          ...[property('email.type', 'text/html'), property('mail.smtp.signature', 'Acme Care')],
          ...[property('mail.smtp.starttls.enable', 'false'), property('mail.smtp.replyTo', 'help@example.com')],
        ],
      }
      assert.equal((await fixture.ask('POST', '/email', { body: sender })).status, 201)
      const body = {
        ...{ type: 'email', sender: 'EmailPublisher', recipient: 'bob@example.net', subject: 'Hello {{name}}' },
        ...{ template: '<p>{{name}}</p>', properties: [property('name', '<b>Bob & Co</b>')] },
      }
      const answer = await fixture.ask('POST', '/events', { body })
      const [id = ''] = idsOf(answer)
      await work(fixture.api)
      assert.equal((await fixture.ask('GET', `/deliveries/${id}`)).json.state, 'delivered')
      const [received] = mail.received.slice(-1)
      assert.deepEqual([received!.from, received!.to, received!.user], ['acme@example.com', ['bob@example.net'], 'ann'])
      assert.match(received!.text, /^From: Acme Care <acme@example\.com>\r$/m)
      assert.match(received!.text, /^Reply-To: help@example\.com\r$/m)
      assert.match(received!.text, /^Subject: Hello <b>Bob & Co<\/b>\r$/m)
      assert.match(received!.text, new RegExp(`^Message-ID: <${id}@example\\.com>\r$`, 'm'))
      assert.match(received!.text, /&lt;b&gt;Bob &amp; Co&lt;\/b&gt;/)
    })

    test('what a provider refuses is a dead letter, which a corrected sender and a replay mend', async t => {
      if (unavailable !== false) return t.skip(unavailable)
      const tenant = 'mend'
      const sms = { ...VONAGE, providerURL: provider.url }
      await fixture.ask('POST', '/sms', { tenant, body: sms })
      provider.statuses.push(400)
      const [id = ''] = idsOf(
        await fixture.ask('POST', '/events', { tenant, body: { type: 'sms', recipient: '1', text: 'x' } }),
      )
      const early = await fixture.ask('POST', `/deliveries/${id}/replay`, { tenant })
      assert.deepEqual([early.status, early.json.code], [409, 'NSM-61014'])
      await work(fixture.api)
      const dead = await fixture.ask('GET', `/deliveries/${id}`, { tenant })
      assert.deepEqual([dead.json.state, dead.json.attempts], ['dead', 1])
      assert.match(String(dead.json.detail), /HTTP 400/)
      await fixture.ask('PUT', '/sms/SMSPublisher', { tenant, body: { ...sms, sender: 'Mended' } })
      const replayed = await fixture.ask('POST', `/deliveries/${id}/replay`, { tenant })
      assert.deepEqual([replayed.status, replayed.json.state], [202, 'waiting'])
      await work(fixture.api)
      assert.equal(JSON.parse(provider.received.at(-1)!.body).from, 'Mended')
      const late = await fixture.ask('DELETE', `/deliveries/${id}`, { tenant })
      assert.deepEqual([late.status, late.json.code], [409, 'NSM-61014'])
    })

    test('a sender that another thread changes counts for each event accepted or replayed afterwards', async t => {
      if (unavailable !== false) return t.skip(unavailable)
      const [tenant, api] = ['changing', await fixture.another()]
      const body = { ...VONAGE, providerURL: provider.url }
      await fixture.ask('POST', '/sms', { tenant, body })
      const publish = async () => {
        const event = { type: 'sms', recipient: '1', text: 'x' }
        const [id = ''] = idsOf(await fixture.ask('POST', '/events', { tenant, api, body: event }))
        return id
      }
      const sent = () => {
        const { from, api_secret } = JSON.parse(provider.received.at(-1)!.body) as Readonly<Record<string, string>>
        return [from, api_secret]
      }
      provider.statuses.push(400)
      const refused = await publish()
      await work(fixture.api)
      assert.deepEqual(sent(), ['Acme', 's'])
      for (let round = 1; round <= 3; round++) {
        const changed = { ...body, sender: `Acme ${round}`, secret: `s${round}` }
        await fixture.ask('PUT', '/sms/SMSPublisher', { tenant, api, body: changed })
        await (round === 2 ? fixture.ask('POST', `/deliveries/${refused}/replay`, { tenant, api }) : publish())
        await work(fixture.api)
        assert.deepEqual(sent(), [`Acme ${round}`, `s${round}`])
      }
      await publish()
      await fixture.ask('DELETE', '/sms/SMSPublisher?force=true', { tenant, api })
      const count = provider.received.length
      await work(fixture.api)
      assert.equal(provider.received.length, count)
    })

    test('dead letters of a sender are replayed and dropped together, one is dropped alone', async t => {
      if (unavailable !== false) return t.skip(unavailable)
      const tenant = 'letters'
      await fixture.ask('POST', '/sms', { tenant, body: { ...VONAGE, providerURL: provider.url } })
      const publish = async () => {
        provider.statuses.push(400)
        return idsOf(await fixture.ask('POST', '/events', { tenant, body: { type: 'sms', recipient: '1', text: 'x' } }))
      }
      const ids = [...(await publish()), ...(await publish()), ...(await publish())]
      await work(fixture.api)
      assert.equal((await fixture.ask('DELETE', `/deliveries/${ids[0]}`, { tenant })).status, 204)
      provider.statuses.push(400, 400)
      const replayed = await fixture.ask('POST', '/deliveries/replay?channel=sms&sender=SMSPublisher', { tenant })
      assert.deepEqual([replayed.status, replayed.json], [202, { replayed: 2 }])
      await work(fixture.api)
      assert.deepEqual((await fixture.ask('DELETE', '/deliveries?channel=email', { tenant })).json, { dropped: 0 })
      assert.deepEqual((await fixture.ask('DELETE', '/deliveries', { tenant })).json, { dropped: 2 })
      assert.deepEqual(idsOf(await fixture.ask('GET', '/deliveries', { tenant })), [])
    })

    test('a repeated idempotency key gets the first ids, and 422 NSM-61012 with another event', async t => {
      if (unavailable !== false) return t.skip(unavailable)
      const tenant = 'keys'
      await fixture.ask('POST', '/sms', { tenant, body: { ...VONAGE, providerURL: provider.url } })
      const body = { type: 'sms', recipient: '1', text: 'x', idempotencyKey: 'order-7' }
      const first = await fixture.ask('POST', '/events', { tenant, body })
      const fields = [
        ['Content-Type', 'application/json'],
        ['Idempotency-Key', '"order-7"'],
      ] as const
      const again = await fixture.ask('POST', '/events', {
        tenant,
        body: { ...body, idempotencyKey: undefined },
        fields,
      })
      assert.deepEqual([again.status, again.json], [202, first.json])
      await fixture.ask('POST', '/sms', { tenant, body: { ...VONAGE, name: 'later', providerURL: provider.url } })
      assert.deepEqual((await fixture.ask('POST', '/events', { tenant, body })).json, first.json)
      const other = await fixture.ask('POST', '/events', { tenant, body: { ...body, text: 'y' } })
      assert.deepEqual([other.status, other.json.code], [422, 'NSM-61012'])
      const removed = await fixture.ask('DELETE', '/sms/SMSPublisher', { tenant })
      assert.deepEqual([removed.status, removed.json.code], [409, 'NSM-60008'])
      assert.equal((await fixture.ask('DELETE', '/sms/SMSPublisher?force=true', { tenant })).status, 204)
      const [id] = idsOf(first)
      assert.equal((await fixture.ask('GET', `/deliveries/${id}`, { tenant })).json.state, 'dead')
    })
  })
}

describe('refusals of events', () => {
  let fixture: NotificationFixture
  const full = { waiting_per_sender_max: 1, waiting_per_tenant_max: 3, waiting_max: 2, event_bytes_max: 256 }
  before(async () => {
    fixture = (await openNotifications('h2', full)) as NotificationFixture
    for (const name of ['a', 'b', 'c']) await fixture.ask('POST', '/sms', { body: { ...VONAGE, name } })
    await fixture.ask('POST', '/email', { body: MAIL })
  })
  after(() => fixture.remove())

  const SMS = { type: 'sms', recipient: '1', text: 'x' }
  const EMAIL = { type: 'email', recipient: 'a@b.example', text: 'x' }
  const CASES = [
    ['no type', { ...SMS, type: undefined }, '400 NSM-65022', /type is one of sms, email/],
    ['an unknown member', { ...SMS, to: '1' }, '400 NSM-65022', /"to" is none of/],
    ['no recipient', { ...SMS, recipient: undefined }, '400 NSM-65022', /recipient is missing/],
    ['a recipient with a line end', { ...SMS, recipient: '1\n2' }, '400 NSM-65022', /control characters/],
    ['a recipient that is no mail address', { ...EMAIL, recipient: 'a' }, '400 NSM-65022', /no mail address/],
    ['no recipient of a mail at all', { ...EMAIL, recipient: undefined }, '400 NSM-65022', /email.address of EmailPub/],
    ['a subject with a line end', { ...EMAIL, subject: 'a\r\nBcc: x' }, '400 NSM-65022', /subject has control/],
    ['a subject of an SMS', { ...SMS, subject: 'x' }, '400 NSM-65022', /no subject/],
    ['no text', { ...SMS, text: undefined }, '400 NSM-65022', /text, or template/],
    ['text and template', { ...SMS, template: 'y' }, '400 NSM-65022', /exclude/],
    [
      ...(['missing properties of the template'] as const),
      ...([{ ...SMS, text: undefined, template: '{{a}} {{b.c}}' }, '400 NSM-65022', /properties a, b\.c$/] as const),
    ],
    ['properties as an object', { ...SMS, properties: {} }, '400 NSM-65022', /array/],
    ['an unknown stream', { ...SMS, streamName: 'other' }, '404 NSM-60006', /no sender picks.*other/],
    ['another version of the stream', { ...SMS, version: '2.0.0' }, '404 NSM-60006', /2\.0\.0/],
    ['an unknown sender', { ...SMS, sender: 'z' }, '404 NSM-60006', /no sender "z"/],
    ['a long key', { ...SMS, idempotencyKey: 'x'.repeat(256) }, '400 NSM-65022', /255/],
    ['a long event', { ...SMS, text: 'x'.repeat(300) }, '413 NSM-61004', /at most 256 bytes/],
    ['a long body', { ...SMS, text: 'x'.repeat(600) }, '413 NSM-61004', /longer/],
    ['more events than may wait in all', SMS, '503 NSM-61011', /already 2 events/],
  ] as const
  for (const [what, body, code, description] of CASES) {
    test(`${what}: ${code}`, async () => {
      const { status, json } = await fixture.ask('POST', '/events', { body })
      assert.equal(`${status} ${json.code}`, code, JSON.stringify(json))
      assert.match(String(json.description), description)
    })
  }

  test('more events of a sender than may wait: 429 NSM-61010 with Retry-After', async () => {
    assert.equal((await fixture.ask('POST', '/events', { body: { ...SMS, sender: 'a' } })).status, 202)
    const { status, json, fields } = await fixture.ask('POST', '/events', { body: { ...SMS, sender: 'a' } })
    assert.deepEqual([status, json.code, fields.get('Retry-After')], [429, 'NSM-61010', '5'])
  })

  test('more events of a tenant than may wait: 429 NSM-61016 with Retry-After', async () => {
    const api = await fixture.another({ ...full, waiting_per_tenant_max: 1, waiting_max: 100 })
    const [tenant, body] = ['crowd', { ...SMS, sender: 'a' }]
    for (const name of ['a', 'b']) await fixture.ask('POST', '/sms', { api, tenant, body: { ...VONAGE, name } })
    assert.equal((await fixture.ask('POST', '/events', { api, tenant, body })).status, 202)
    const answer = await fixture.ask('POST', '/events', { api, tenant, body: { ...body, sender: 'b' } })
    assert.deepEqual([answer.status, answer.json.code, answer.fields.get('Retry-After')], [429, 'NSM-61016', '5'])
    assert.match(String(answer.json.description), /already 1 events of the tenant/)
  })

  const QUERIES = ['?state=lost', '?limit=0', '?limit=501', '?before=x', '?channel=fax', '?page=2']
  for (const query of QUERIES) {
    test(`deliveries${query}: 400 NSM-65022`, async () => {
      const { status, json } = await fixture.ask('GET', `/deliveries${query}`)
      assert.deepEqual([status, json.code], [400, 'NSM-65022'])
    })
  }

  const PATHS = [
    ['GET', '/deliveries/x', '404 NSM-61013'],
    ['POST', '/deliveries/00000000-0000-7000-8000-000000000000/replay', '404 NSM-61013'],
    ['DELETE', '/deliveries/00000000-0000-7000-8000-000000000000', '404 NSM-61013'],
    ['GET', '/events', '404 NSM-61000'],
    ['DELETE', '/deliveries?state=dead', '400 NSM-65022'],
  ] as const
  for (const [method, path, code] of PATHS) {
    test(`${method} ${path}: ${code}`, async () => {
      const { status, json } = await fixture.ask(method, path)
      assert.equal(`${status} ${json.code}`, code)
    })
  }

  test('a sender cannot reach a private address that the operator does not allow', async () => {
    const provider = await startProvider()
    await fixture.ask('POST', '/sms', { tenant: 'wall', body: { ...VONAGE, providerURL: provider.url } })
    const { json } = await fixture.ask('POST', '/sms/SMSPublisher/test', {
      tenant: 'wall',
      body: { recipient: '1', text: 'x' },
    })
    assert.equal(json.delivered, false)
    assert.match(String(json.detail), /may not reach/)
    assert.deepEqual(provider.received, [])
    provider.close()
  })

  const SETTINGS = [
    { allowed_addresses: ['10.0.0.0/99'] },
    { allowed_addresses: 'all' },
    { senders_max: 0 },
    { sms_stream: 'x' },
    { sms_providers: '../x.xml' },
    { unknown: 1 },
  ]
  for (const settings of SETTINGS) {
    test(`the setting ${JSON.stringify(settings)} keeps the API from opening, and is named`, async () => {
      await assert.rejects(fixture.another(settings), {
        name: 'RangeError',
        message: new RegExp(Object.keys(settings)[0]!),
      })
    })
  }
})
