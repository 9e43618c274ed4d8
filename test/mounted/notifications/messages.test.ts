/** Messages on the wire: what a provider receives for each entry of the template file; mails of senders. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { mailMessage } from '../../../src/mounted/notifications/mail-message.ts'
import type { NotificationEvent } from '../../../src/mounted/notifications/notification-event.ts'
import { readSender } from '../../../src/mounted/notifications/sender-request.ts'
import { MAIL, type NotificationFixture, openNotifications } from './notification-fixture.ts'
import { type Provider, startProvider } from './stand-ins.ts'

const property = (key: string, value: string) => ({ key, value })

describe('each provider receives exactly these bytes', () => {
  let fixture: NotificationFixture
  let provider: Provider
  before(async () => {
    provider = await startProvider()
    fixture = (await openNotifications('h2', { allowed_addresses: ['127.0.0.0/8'] })) as NotificationFixture
  })
  after(async () => {
    provider.close()
    await fixture.remove()
  })

  const TEXT = 'It\'s "ok" \\ & 100 % \u{1f600}\nBye {{mobile}}'
  const JSON_TEXT = 'It\'s \\"ok\\" \\\\ & 100 % \u{1f600}\\nBye {{mobile}}'
  const FORM_TEXT = 'It%27s+%22ok%22+%5C+%26+100+%25+%F0%9F%98%80%0ABye+%7B%7Bmobile%7D%7D'
  const BASIC = `Basic ${Buffer.from('K:S').toString('base64')}`
  const FORM = 'application/x-www-form-urlencoded'
  const CASES = [
    ['Vonage', `{"api_key":"K","api_secret":"S","from":"Acme","to":"+15550100","text":"${JSON_TEXT}"}`, undefined],
    ['Twilio', `Body=${FORM_TEXT}&To=%2B15550100&From=Acme`, BASIC],
    ['Bulksms', `{"from":"Acme","to":"+15550100","body":"${JSON_TEXT}"}`, BASIC],
    ['Plivo', `{"src":"Acme","dst":"+15550100","text":"${JSON_TEXT}"}`, BASIC],
    ['Clickatell', `{"from":"Acme","to":["+15550100"],"content":"${JSON_TEXT}"}`, 'K'],
  ] as const
  for (const [name, body, authorization] of CASES) {
    test(name, async () => {
      const sender = { name, provider: name, providerURL: provider.url, key: 'K', secret: 'S', sender: 'Acme' }
      assert.equal((await fixture.ask('POST', '/sms', { body: sender })).status, 201)
      const event = { recipient: '+15550100', text: TEXT }
      assert.equal((await fixture.ask('POST', `/sms/${name}/test`, { body: event })).json.delivered, true)
      const received = provider.received.at(-1)!
      assert.deepEqual([received.method, received.url, received.body], ['POST', '/send', body])
      const type = name === 'Twilio' ? FORM : 'application/json'
      assert.deepEqual([received.fields['content-type'], received.fields.authorization], [type, authorization])
      assert.equal(received.fields['content-length'], String(Buffer.byteLength(body)))
    })
  }
})

describe('a mail is made from fields and properties of its sender', () => {
  const EVENT: NotificationEvent = {
    ...{ recipient: 'bob@example.net', text: 'Hi', isTemplate: false, subject: '', properties: {} },
  }
  const mailOf = (changes: object, event: Partial<NotificationEvent> = {}) =>
    mailMessage(readSender('email', { ...MAIL, ...changes }, null), { ...EVENT, ...event }, '<id@example.com>')
  const props = (...pairs: readonly (readonly [string, string])[]) => ({
    properties: pairs.map(([key, value]) => property(key, value)),
  })

  const SERVERS = [
    ['by default', {}, { port: 587, startTls: 'offered', implicitTls: false, isAuthenticated: false }],
    ['without a port', { smtpPort: null }, { port: 587 }],
    ['with port 465', { smtpPort: 465 }, { port: 465, implicitTls: true }],
    ['with a user', { userName: 'u', password: 'p' }, { isAuthenticated: true, user: 'u', password: 'p' }],
    ['with auth switched off', { userName: 'u', ...props(['mail.smtp.auth', 'false']) }, { isAuthenticated: false }],
    ['with starttls required', props(['mail.smtp.starttls.enable', 'TRUE']), { startTls: 'required' }],
    ['with starttls switched off', props(['mail.smtp.starttls.enable', 'false']), { startTls: 'off' }],
    [
      'with properties in place of fields',
      {
        ...{ smtpServerHost: null, smtpPort: null },
        ...props(
          ['mail.smtp.host', 'h'],
          ['mail.smtp.port', '25'],
          ['mail.smtp.user', 'u'],
          ['mail.smtp.password', 'p'],
        ),
      },
      { host: 'h', port: 25, user: 'u', password: 'p', isAuthenticated: true },
    ],
  ] as const
  for (const [what, changes, expected] of SERVERS) {
    test(`the server ${what}`, () => {
      const { server } = mailOf(changes)
      const found = Object.fromEntries(Object.keys(expected).map(name => [name, server[name as keyof typeof server]]))
      assert.deepEqual(found, expected)
    })
  }

  const MAILS = [
    ['the event has all', {}, { subject: 'S' }, { to: 'bob@example.net', subject: 'S', from: MAIL.fromAddress }],
    [
      'the sender has recipient and subject',
      props(['email.address', 'all@example.net'], ['email.subject', 'News']),
      { recipient: '' },
      { to: 'all@example.net', subject: 'News' },
    ],
    [
      'the event wins',
      props(['email.address', 'all@example.net'], ['email.subject', 'N']),
      { subject: 'S' },
      { subject: 'S' },
    ],
    [
      'a name and a reply address',
      props(['mail.smtp.signature', 'A'], ['mail.smtp.replyTo', 'r@b.example']),
      {},
      { from: 'A <acme@example.com>', replyTo: 'r@b.example' },
    ],
    [
      'values in HTML are escaped, its template is not',
      props(['email.type', 'text/html']),
      { text: '<b>{{a}}</b>', isTemplate: true, subject: '{{a}}', properties: { a: '<i>&"\'</i>{{b}}' } },
      { type: 'html', body: '<b>&lt;i&gt;&amp;&quot;&#39;&lt;/i&gt;{{b}}</b>', subject: '<i>&"\'</i>{{b}}' },
    ],
    [
      'values in plain text are as they are',
      {},
      { text: 'x {{a}}', isTemplate: true, properties: { a: '<i>' } },
      { type: 'text', body: 'x <i>' },
    ],
  ] as const
  for (const [what, changes, event, expected] of MAILS) {
    test(what, () => {
      const mail = mailOf(changes, event)
      const found = Object.fromEntries(Object.keys(expected).map(name => [name, mail[name as keyof typeof mail]]))
      assert.deepEqual(found, expected)
    })
  }

  test('without any recipient it is refused', () => {
    assert.throws(() => mailOf({}, { recipient: '' }), { name: 'Refused', message: /recipient, and email\.address/ })
  })
})
