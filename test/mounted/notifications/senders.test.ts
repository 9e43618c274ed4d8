/** Senders over REST on each database: what each method does, tenants, every refusal with its code; the project. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import * as yaml from 'js-yaml'
import { KINDS } from '../../control/registry/real-databases.ts'
import { type AskOptions, MAIL, type NotificationFixture, openNotifications, VONAGE } from './notification-fixture.ts'

const property = (key: string, value: string) => ({ key, value })

for (const kind of KINDS) {
  describe(`senders in ${kind}`, () => {
    let fixture: NotificationFixture
    let unavailable: string | false = false
    before(async () => {
      const opened = await openNotifications(kind, { senders_max: 3 })
      if (typeof opened === 'string') unavailable = opened
      else fixture = opened
    })
    after(() => fixture?.remove())

    test('a created sender is 201 with Location and entity; it is listed, read, replaced and removed', async t => {
      if (unavailable !== false) return t.skip(unavailable)
      const created = await fixture.ask('POST', '/sms', { body: { ...VONAGE, properties: [property('body.a', 'x')] } })
      const entity = {
        ...{ name: 'SMSPublisher', provider: 'Vonage', providerURL: 'https://sms.example/json', sender: 'Acme' },
        properties: [{ key: 'body.a', value: 'x' }],
      }
      assert.equal(created.status, 201)
      const location = 'https://gw.example/t/acme/api/server/v1/notification-senders/sms/SMSPublisher'
      assert.equal(created.fields.get('Location'), location)
      assert.deepEqual(created.json, entity)
      assert.deepEqual((await fixture.ask('GET', '/sms')).list, [entity])
      const read = await fixture.ask('GET', '/sms/SMSPublisher')
      assert.deepEqual([read.status, read.json], [200, entity])

      const changed = { ...VONAGE, providerURL: 'https://other.example/', contentType: 'JSON' }
      const replaced = await fixture.ask('PUT', '/sms/SMSPublisher', { body: changed })
      assert.equal(replaced.status, 200)
      assert.deepEqual(replaced.json, {
        ...{ name: 'SMSPublisher', provider: 'Vonage', providerURL: 'https://other.example/', sender: 'Acme' },
        ...{ contentType: 'JSON', properties: [] },
      })
      assert.deepEqual((await fixture.ask('GET', '/sms/SMSPublisher')).json, replaced.json)
      const removed = await fixture.ask('DELETE', '/sms/SMSPublisher')
      assert.deepEqual([removed.status, removed.text], [204, ''])
      assert.deepEqual((await fixture.ask('GET', '/sms')).list, [])
    })

    test('e-mail senders have the name EmailPublisher by default, and their port is a number', async t => {
      if (unavailable !== false) return t.skip(unavailable)
      const body = {
        ...MAIL,
        smtpPort: '2525',
        userName: 'u',
        password: 'p',
        properties: [property('email.type', 'text/html')],
      }
      const created = await fixture.ask('POST', '/email', { body })
      assert.equal(created.status, 201, created.text)
      assert.deepEqual(created.json, {
        ...{ name: 'EmailPublisher', smtpServerHost: 'mail.example', smtpPort: 2525, fromAddress: 'acme@example.com' },
        ...{ userName: 'u', properties: [{ key: 'email.type', value: 'text/html' }] },
      })
      assert.equal((await fixture.ask('GET', '/sms/EmailPublisher')).status, 404)
      assert.equal((await fixture.ask('DELETE', '/email/EmailPublisher')).status, 204)
    })

    test('a list is in the order of names, and has the senders of its tenant and channel only', async t => {
      if (unavailable !== false) return t.skip(unavailable)
      for (const [tenant, name] of [
        ['one', 'b'],
        ['one', 'B'],
        ['one', 'a'],
        ['two', 'c'],
      ] as const) {
        assert.equal((await fixture.ask('POST', '/sms', { tenant, body: { ...VONAGE, name } })).status, 201)
      }
      const names = async (tenant: string, path: string) =>
        (await fixture.ask('GET', path, { tenant })).list.map(({ name }) => name)
      assert.deepEqual(await names('one', '/sms'), ['B', 'a', 'b'])
      assert.deepEqual(await names('two', '/sms'), ['c'])
      assert.deepEqual(await names('two', '/email'), [])
      const full = await fixture.ask('POST', '/sms', { tenant: 'one', body: { ...VONAGE, name: 'd' } })
      assert.deepEqual([full.status, full.json.code], [409, 'NSM-61003'])
    })

    test('of concurrent creations with one name one succeeds, and the others are 409 NSM-60002', async t => {
      if (unavailable !== false) return t.skip(unavailable)
      const apis = await Promise.all([fixture.another(), fixture.another(), fixture.another()])
      const options = { tenant: 'race', body: VONAGE }
      const answers = await Promise.all(apis.map(api => fixture.ask('POST', '/sms', { ...options, api })))
      assert.deepEqual(answers.map(({ status }) => status).toSorted(), [201, 409, 409])
      assert.deepEqual(answers.map(({ json }) => json.code ?? '').toSorted(), ['', 'NSM-60002', 'NSM-60002'])
    })
  })
}

describe('refusals', () => {
  let fixture: NotificationFixture
  before(async () => {
    fixture = (await openNotifications('h2')) as NotificationFixture
    assert.equal((await fixture.ask('POST', '/sms', { body: { ...VONAGE, name: 'known' } })).status, 201)
  })
  after(() => fixture.remove())

  const sms = (changes: object): AskOptions => ({ body: { ...VONAGE, ...changes } })
  const mail = (changes: object): AskOptions => ({ body: { ...MAIL, ...changes } })
  const props = (...pairs: readonly (readonly [string, unknown])[]) => ({
    properties: pairs.map(([key, value]) => ({ key, value })),
  })

  type Case = readonly [
    what: string,
    method: string,
    path: string,
    options: AskOptions,
    code: string,
    description: RegExp,
  ]
  const CASES: readonly Case[] = [
    ['a name that exists', 'POST', '/sms', sms({ name: 'known' }), '409 NSM-60002', /sender known/],
    ['no provider', 'POST', '/sms', { body: {} }, '400 NSM-60003', /provider/],
    ['an empty provider', 'POST', '/sms', sms({ provider: ' ' }), '400 NSM-60003', /provider/],
    [
      ...(['an unknown provider', 'POST', '/sms', sms({ provider: 'Nobody' }), '400 NSM-60004'] as const),
      /Vonage, Twilio, Bulksms, Plivo, Clickatell$/,
    ],
    [
      ...([
        'a name of a provider in another case',
        'POST',
        '/sms',
        sms({ provider: 'vonage' }),
        '400 NSM-60004',
      ] as const),
      /Vonage/,
    ],
    [
      ...(['an unknown provider beside a body', 'POST', '/sms'] as const),
      ...([sms({ provider: 'Nobody', ...props(['body', '{}']) }), '400 NSM-60004', /Vonage/] as const),
    ],
    ['no URL', 'POST', '/sms', sms({ providerURL: undefined }), '400 NSM-60005', /providerURL/],
    ['an empty URL', 'POST', '/sms', sms({ providerURL: '' }), '400 NSM-60005', /providerURL/],
    ['an unknown sender', 'GET', '/sms/nobody', {}, '404 NSM-60006', /nobody/],
    ['an unknown sender in a PUT', 'PUT', '/sms/nobody', sms({}), '404 NSM-60006', /nobody/],
    ['an unknown sender in a DELETE', 'DELETE', '/email/known', {}, '404 NSM-60006', /known/],
    ['an unknown resource', 'GET', '/fax', {}, '404 NSM-61000', /GET/],
    ['an unknown action', 'POST', '/sms/known/fly', {}, '404 NSM-61000', /POST/],
    ['the super tenant', 'POST', '/sms', { ...sms({}), tenant: 'carbon.super' }, '403 NSM-61001', /carbon\.super/],
    ['e-mail of the super tenant', 'GET', '/email', { tenant: 'carbon.super' }, '403 NSM-61001', /carbon\.super/],
    ['a token of another tenant', 'GET', '/sms', { callerTenant: 'other' }, '403 NSM-61002', /tenant of the token/],
    ['a token of the super tenant', 'GET', '/sms', { callerTenant: 'carbon.super' }, '403 NSM-61002', /tenant/],
    ['a caller without a tenant', 'GET', '/sms', { callerTenant: '' }, '403 NSM-61002', /tenant/],
    ['a body that is too long', 'POST', '/sms', { body: 'x'.repeat(131_073) }, '413 NSM-61004', /longer/],
    ['no JSON type', 'POST', '/sms', { ...sms({}), fields: [] }, '415 NSM-61005', /application\/json/],
    ['no JSON', 'POST', '/sms', { body: '{' }, '400 NSM-65022', /JSON/],
    ['no object', 'POST', '/sms', { body: [] }, '400 NSM-65022', /object/],
    ['an unknown member', 'POST', '/sms', sms({ providerUrl: 'x' }), '400 NSM-65022', /"providerUrl" is none of/],
    ['a member of another channel', 'POST', '/email', mail({ provider: 'x' }), '400 NSM-65022', /"provider" is none/],
    ['a name with a slash', 'POST', '/sms', sms({ name: 'a/b' }), '400 NSM-65022', /name has/],
    ['a name of 101 characters', 'POST', '/sms', sms({ name: 'x'.repeat(101) }), '400 NSM-65022', /name has/],
    ['another name in a PUT', 'PUT', '/sms/known', sms({ name: 'other' }), '400 NSM-65022', /keeps its name/],
    ['a number as key', 'POST', '/sms', sms({ key: 7 }), '400 NSM-65022', /key is no text/],
    ['a line end in a value', 'POST', '/sms', sms({ sender: 'a\nb' }), '400 NSM-65022', /sender has control/],
    ['a long value', 'POST', '/sms', sms({ sender: 'x'.repeat(2049) }), '400 NSM-65022', /more than 2048/],
    ['another content type', 'POST', '/sms', sms({ contentType: 'XML' }), '400 NSM-65022', /JSON or FORM/],
    ['a URL of another scheme', 'POST', '/sms', sms({ providerURL: 'ftp://x/' }), '400 NSM-65022', /http or https/],
    ['a URL with credentials', 'POST', '/sms', sms({ providerURL: 'https://u:p@x/' }), '400 NSM-65022', /credentials/],
    ['two URLs', 'POST', '/sms', sms(props(['http.url', 'https://y/'])), '400 NSM-65022', /providerURL and http.url/],
    ...(['streamName', 'version', 'type'] as const).map(
      key =>
        [
          ...([`the reserved key ${key}`, 'POST', '/sms', sms(props([key, 'x'])), '400 NSM-65022'] as const),
          new RegExp(`property key ${key} is reserved`),
        ] as const,
    ),
    ['a reserved key of e-mail', 'POST', '/email', mail(props(['type', 'x'])), '400 NSM-65022', /type is reserved/],
    ['an unknown key', 'POST', '/sms', sms(props(['http.uri', 'x'])), '400 NSM-65022', /"http.uri" is none of/],
    ['a key of the other adaptor', 'POST', '/email', mail(props(['http.url', 'x'])), '400 NSM-65022', /none of/],
    ['body. without a name', 'POST', '/sms', sms(props(['body.', 'x'])), '400 NSM-65022', /none of/],
    ['a key twice', 'POST', '/sms', sms(props(['body.a', 'x'], ['body.a', 'y'])), '400 NSM-65022', /twice/],
    ['a value that is no text', 'POST', '/sms', sms(props(['body.a', 1])), '400 NSM-65022', /no text/],
    ['properties as an object', 'POST', '/sms', sms({ properties: {} }), '400 NSM-65022', /no array/],
    ['a property that is none', 'POST', '/sms', sms({ properties: ['a'] }), '400 NSM-65022', /no \{key, value\}/],
    [
      ...(['too many properties', 'POST', '/sms'] as const),
      ...([
        sms(props(...Array.from({ length: 51 }, (_, n) => [`body.p${n}`, ''] as const))),
        '400 NSM-65022',
        /50/,
      ] as const),
    ],
    [
      'a template that is no JSON',
      'POST',
      '/sms',
      sms(props(['body', '{"a":'])),
      '400 NSM-65022',
      /property body.*no JSON/,
    ],
    [
      ...(['missing properties of the template', 'POST', '/sms'] as const),
      ...([
        sms(props(['body', '{"a":"$body.one","b":"$body.two"}'])),
        '400 NSM-65022',
        /body\.one, body\.two$/,
      ] as const),
    ],
    ['headers that are none', 'POST', '/sms', sms(props(['http.headers', 'x'])), '400 NSM-65022', /K: V/],
    ['a field of framing', 'POST', '/sms', sms(props(['http.headers', 'Host: x'])), '400 NSM-65022', /Host/],
    [
      'a method that is none',
      'POST',
      '/sms',
      sms(props(['http.client.method', 'HttpPatch'])),
      '400 NSM-65022',
      /HttpPost/,
    ],
    ['HttpGet with JSON', 'POST', '/sms', sms(props(['http.client.method', 'HttpGet'])), '400 NSM-65022', /FORM/],
    [
      ...(['a proxy that is no host', 'POST', '/sms'] as const),
      ...([sms(props(['http.proxy.host', 'a/b'], ['http.proxy.port', '1'])), '400 NSM-65022', /no host/] as const),
    ],
    ['a proxy without a port', 'POST', '/sms', sms(props(['http.proxy.host', 'x'])), '400 NSM-65022', /together/],
    [
      ...(['a port that is none', 'POST', '/sms'] as const),
      ...([sms(props(['http.proxy.host', 'x'], ['http.proxy.port', '0'])), '400 NSM-65022', /no port/] as const),
    ],
    [
      ...(['two content types', 'POST', '/sms'] as const),
      ...([
        sms({ contentType: 'JSON', ...props(['http.headers', 'Content-Type: application/x-www-form-urlencoded']) }),
        '400 NSM-65022',
        /contentType and Content-Type/,
      ] as const),
    ],
    [
      ...(['a content type without escapes', 'POST', '/sms'] as const),
      ...([sms(props(['http.headers', 'Content-Type: text/xml'])), '400 NSM-65022', /no JSON or form/] as const),
    ],
    ['no fromAddress', 'POST', '/email', mail({ fromAddress: undefined }), '400 NSM-65022', /fromAddress is missing/],
    ['a fromAddress that is none', 'POST', '/email', mail({ fromAddress: 'x' }), '400 NSM-65022', /no mail address/],
    ['no mail server', 'POST', '/email', mail({ smtpServerHost: '' }), '400 NSM-65022', /smtpServerHost/],
    ['a port of 70000', 'POST', '/email', mail({ smtpPort: 70_000 }), '400 NSM-65022', /smtpPort is no port/],
    ['auth that is none', 'POST', '/email', mail(props(['mail.smtp.auth', 'yes'])), '400 NSM-65022', /true or false/],
    ['auth without a user', 'POST', '/email', mail(props(['mail.smtp.auth', 'true'])), '400 NSM-65022', /userName/],
    ['a type of mail that is none', 'POST', '/email', mail(props(['email.type', 'x'])), '400 NSM-65022', /text\/html/],
  ]
  for (const [what, method, path, options, code, description] of CASES) {
    test(`${what}: ${code}`, async () => {
      const { status, json, fields } = await fixture.ask(method, path, options)
      assert.deepEqual(Object.keys(json), ['code', 'message', 'description', 'traceId'])
      assert.deepEqual([`${status} ${json.code}`, json.traceId], [code, 'trace-1'], JSON.stringify(json))
      assert.match(String(json.description), description)
      assert.equal(fields.get('Content-Type'), 'application/json')
    })
  }

  test('without its tables the API is 500 NSM-65001, with a log line that names the cause', async () => {
    const broken = (await openNotifications('h2')) as NotificationFixture
    const { DatabaseSync } = await import('node:sqlite')
    const { readdirSync } = await import('node:fs')
    const [file] = readdirSync(broken.database.dataDir).filter(name => name.endsWith('.db'))
    const database = new DatabaseSync(`${broken.database.dataDir}/${file}`)
    database.exec('drop table notification_senders')
    database.close()
    const { status, json } = await broken.ask('GET', '/sms')
    assert.deepEqual([status, json.code], [500, 'NSM-65001'])
    const { event, fields } = broken.logged.at(-1)!
    assert.equal(event, 'notification request failed')
    assert.match(String(fields.CAUSE), /no such table/)
    await broken.remove()
  })
})

interface Operation {
  readonly target: string
  readonly verb: string
  readonly scopes: readonly string[]
}

describe('the project of the package', () => {
  const text = readFileSync(new URL('../../../conf/apis/NotificationSenders/api.yaml', import.meta.url), 'utf8')
  const { data } = yaml.load(text) as {
    readonly data: {
      readonly endpointConfig: { readonly settings: Readonly<Record<string, unknown>> }
      readonly operations: readonly Operation[]
      readonly scopes: readonly { readonly scope: { readonly name: string } }[]
    }
  }
  let fixture: NotificationFixture
  before(async () => {
    fixture = (await openNotifications('h2', data.endpointConfig.settings)) as NotificationFixture
  })
  after(() => fixture.remove())

  for (const { target, verb, scopes } of data.operations) {
    test(`${verb} ${target} is an operation of the module, and needs one declared scope`, async () => {
      const id = '00000000-0000-7000-8000-000000000000'
      const path = target.replace('{name}', 'x').replace('{id}', id)
      const { json } = await fixture.ask(verb, path, { body: {} })
      assert.notEqual(json.code, 'NSM-61000')
      const declared = data.scopes.map(({ scope }) => scope.name)
      assert.deepEqual([scopes.length, declared.includes(scopes[0]!)], [1, true])
    })
  }
})

test('four test messages of a tenant may be on the way, a fifth is 429 NSM-61015', async t => {
  const fixture = (await openNotifications('h2', { allowed_addresses: ['127.0.0.1'] })) as NotificationFixture
  t.after(() => fixture.remove())
  const asked: ServerResponse[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const provider = createServer((_, response) => {
    if (asked.push(response) === 4) resolve()
  })
  await once(provider.listen(0, '127.0.0.1'), 'listening')
  t.after(() => provider.close())
  const { port } = provider.address() as AddressInfo
  const body = { recipient: '1', text: 'x' }
  for (const tenant of ['one', 'two']) {
    await fixture.ask('POST', '/sms', { tenant, body: { ...VONAGE, providerURL: `http://127.0.0.1:${port}/` } })
  }
  const tried = () => fixture.ask('POST', '/sms/SMSPublisher/test', { tenant: 'one', body })
  const under = Array.from({ length: 4 }, tried)
  await promise
  const refused = await tried()
  assert.deepEqual([refused.status, refused.json.code], [429, 'NSM-61015'])
  const other = fixture.ask('POST', '/sms/SMSPublisher/test', { tenant: 'two', body })
  for (const response of asked) response.end()
  for (const { json } of await Promise.all(under)) assert.equal(json.delivered, true)
  provider.on('request', (_, response) => response.end())
  asked.at(4)?.end()
  assert.equal((await other).json.delivered, true)
  assert.equal((await tried()).json.delivered, true)
})
