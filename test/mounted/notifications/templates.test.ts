/** Body templates: exact bodies of each provider and form, hostile values, and the template file with its reloads. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { BodyTemplate, type ContentType } from '../../../src/mounted/notifications/body-template.ts'
import { ProviderFile, readProviders } from '../../../src/mounted/notifications/provider-file.ts'
import { type NotificationEvent, readEvent } from '../../../src/mounted/notifications/notification-event.ts'
import { readSender } from '../../../src/mounted/notifications/sender-request.ts'
import { SHIPPED_PROVIDERS } from '../../../src/mounted/notifications/shipped-providers.ts'
import { smsMessage } from '../../../src/mounted/notifications/sms-message.ts'
import { Random } from '../../harness/random.ts'

const PROVIDERS = readProviders(SHIPPED_PROVIDERS)
const EVENT: NotificationEvent = {
  ...{ recipient: '+15550100', text: 'Hi', isTemplate: false, subject: '', properties: {} },
}

function messageOf(sender: object, event: Partial<NotificationEvent> = {}) {
  const base = { providerURL: 'https://sms.example/send', key: 'KEY', secret: 'SEC', sender: 'Acme' }
  const configuration = readSender('sms', { ...base, ...sender }, null)
  return smsMessage(
    configuration,
    PROVIDERS.get(configuration.fields.get('provider')!)!,
    { ...EVENT, ...event },
    'id-1',
  )
}

const property = (key: string, value: string) => ({ key, value })

test('a template that repeats a value makes no message beyond 1 MiB, and the rest of it is not made', () => {
  const long = 'x'.repeat(60_000)
  const sender = { provider: 'Vonage', properties: [property('body', `["${'{{body}}'.repeat(1000)}"]`)] }
  assert.throws(() => messageOf(sender, { text: long }), /more than 1048576 characters/)
  const event = { template: '{{a}}'.repeat(5000), properties: [property('a', long)], recipient: '1' }
  assert.throws(() => readEvent(event, 'sms'), /more than 1048576 characters/)
  const subject = { recipient: 'a@b.example', template: 'x', subject: '{{a}}{{a}}', properties: event.properties }
  assert.throws(() => readEvent(subject, 'email'), /more than 998 characters/)
})

describe('each provider gets exactly its bytes', () => {
  const HOSTILE = 'say "hi"\\\n\u{1f600} & = + %41 {{mobile}} $key'
  const CASES = [
    ['Vonage', '{"api_key":"KEY","api_secret":"SEC","from":"Acme","to":"+15550100","text":"Hi"}'],
    ['Twilio', 'Body=Hi&To=%2B15550100&From=Acme'],
    ['Bulksms', '{"from":"Acme","to":"+15550100","body":"Hi"}'],
    ['Plivo', '{"src":"Acme","dst":"+15550100","text":"Hi"}'],
    ['Clickatell', '{"from":"Acme","to":["+15550100"],"content":"Hi"}'],
  ] as const
  const FORM_HOSTILE = 'say+%22hi%22%5C%0A%F0%9F%98%80+%26+%3D+%2B+%2541+%7B%7Bmobile%7D%7D+%24key'
  for (const [provider, body] of CASES) {
    test(provider, () => {
      const message = messageOf({ provider })
      const isForm = provider === 'Twilio'
      assert.equal(message.body, body)
      assert.equal(message.contentType, isForm ? 'application/x-www-form-urlencoded' : 'application/json')
      assert.deepEqual(
        [message.method, message.url, message.idempotencyKey],
        ['POST', 'https://sms.example/send', 'id-1'],
      )
      const hasLogin = ['Twilio', 'Bulksms', 'Plivo'].includes(provider)
      assert.deepEqual(message.credentials, hasLogin ? { username: 'KEY', password: 'SEC' } : null)
      assert.deepEqual(message.fields, provider === 'Clickatell' ? [['Authorization', 'KEY']] : [])
      const hostile = messageOf({ provider }, { text: HOSTILE }).body
      assert.equal(
        hostile,
        body.replace('Hi', () => (isForm ? FORM_HOSTILE : JSON.stringify(HOSTILE).slice(1, -1))),
      )
    })
  }
})

describe('placeholders', () => {
  type Case = readonly [what: string, type: ContentType, template: string, body: string]
  const CASES: readonly Case[] = [
    ['a value within a string', 'JSON', '{"a":"<{{body}}>"}', '{"a":"<V\\">"}'],
    ['a value outside of strings becomes one', 'JSON', '{"a":{{body}}}', '{"a":"V\\""}'],
    ['a number of a property outside of strings stays one', 'JSON', '{"a":$body.n}', '{"a":12}'],
    ['a number within a string is text', 'JSON', '{"a":"$body.n"}', '{"a":"12"}'],
    ['a literal that is none becomes a string', 'JSON', '{"a":$body.x}', '{"a":"1,\\"b\\":2"}'],
    ['a field of the sender', 'JSON', '["$sender","$key"]', '["SENDER","KEY"]'],
    ['a name that is no field stays', 'JSON', '["$senders","$5","$body","$"]', '["$senders","$5","$body","$"]'],
    ['the longest name of a property', 'JSON', '["$body.n-x","$body.n-","$body.n."]', '["NX","12-","12."]'],
    ['an escaped quote before a placeholder', 'JSON', '{"a":"\\"{{body}}"}', '{"a":"\\"V\\""}'],
    ['another placeholder stays', 'JSON', '["{{name}}"]', '["{{name}}"]'],
    ['a form', 'FORM', 'a={{body}}&b=$body.x&$body.n=1', 'a=V%22&b=1%2C%22b%22%3A2&12=1'],
  ]
  const values = {
    attribute: (name: string) => name.toUpperCase(),
    property: (name: string) => ({ n: '12', x: '1,"b":2', 'n-x': 'NX' })[name] ?? '',
    ...{ mobile: 'M', body: 'V"' },
  }
  for (const [what, type, template, body] of CASES) {
    test(`${what}: ${template}`, () => assert.equal(new BodyTemplate(template, type).fill(values), body))
  }
  const REFUSED = [
    ['no JSON', 'JSON', '{"a":{{body}}'],
    ['a backslash before a placeholder', 'JSON', '{"a":"\\{{body}}"}'],
    ['a placeholder within an escape', 'JSON', '{"a":"\\u00{{body}}"}'],
    ['a placeholder within a number', 'JSON', '{"a":1{{body}}}'],
    ['a property as a key outside of strings', 'JSON', '{$body.n:1}'],
    ['an empty template', 'JSON', ''],
    ['white space in a form', 'FORM', 'a=1 &b={{body}}'],
    ['characters beyond ASCII in a form', 'FORM', 'ä={{body}}'],
  ] as const
  for (const [what, type, template] of REFUSED) {
    test(`${what} is refused: ${template}`, () => {
      assert.throws(() => new BodyTemplate(template, type), { name: 'InvalidTemplate' })
    })
  }
})

describe('random values keep to their places', () => {
  const random = new Random(19)
  const SPECIAL = [
    ...[
      '"',
      '\\',
      '\n',
      '\r',
      '\0',
      '\u2028',
      '{{body}}',
      '{{mobile}}',
      '$key',
      '$body.a',
      '&',
      '=',
      '%',
      '+',
      ';',
      ' ',
    ],
    ...['\ud800', '\udc00', '\u{1f600}', '</', '{', '}', '[', ']', ',', ':', '\\u0022', '%22', "'", '\ufeff'],
  ]
  const value = (): string => {
    const length = random.below(12)
    return Array.from({ length }, () => {
      return random.below(3) === 0 ? String.fromCharCode(random.below(0x10000)) : SPECIAL[random.below(SPECIAL.length)]!
    }).join('')
  }
  test('2,000 bodies of JSON and of forms are read back as they were meant', () => {
    const json = new BodyTemplate('{"k":"$key","t":["x{{mobile}}y",{{body}}],"p":"$body.a$body.b"}', 'JSON')
    const form = new BodyTemplate('k=$key&m={{mobile}}&b=x{{body}}y&$body.a=$body.b', 'FORM')
    for (let round = 0; round < 2000; round++) {
      const [key, mobile, body, a, b] = [value(), value(), value(), value(), value()]
      const values = { attribute: () => key, property: (name: string) => (name === 'a' ? a : b), mobile, body }
      const bytes = Buffer.from(json.fill(values))
      assert.deepEqual(JSON.parse(bytes.toString()), { k: key, t: [`x${mobile}y`, body], p: `${a}${b}` })
      const pairs = [...new URLSearchParams(form.fill(values))]
      const wellFormed = [
        ['k', key],
        ['m', mobile],
        ['b', `x${body}y`],
        [a, b],
      ].map(pair => pair.map(text => text.toWellFormed()))
      assert.deepEqual(pairs, wellFormed)
    }
  })
})

describe('senders and their requests', () => {
  test('the property body takes the place of the template, with its placeholders', () => {
    const body = '{"to":"{{mobile}}","text":"{{body}}","from":"$sender","code":"$body.code"}'
    const message = messageOf({
      provider: 'Twilio',
      contentType: 'JSON',
      properties: [property('body', body), property('body.code', '7"')],
    })
    assert.equal(message.body, '{"to":"+15550100","text":"Hi","from":"Acme","code":"7\\""}')
    assert.equal(message.contentType, 'application/json')
  })

  test('properties of the adaptor make the request', () => {
    const message = messageOf({
      ...{ provider: 'Vonage', providerURL: undefined },
      properties: [
        ...[property('http.url', 'http://other.example'), property('http.client.method', 'httpPut')],
        ...[property('http.username', 'u'), property('http.password', 'p:q')],
        ...[property('http.proxy.host', 'proxy.example'), property('http.proxy.port', '3128')],
        property('http.headers', 'X-Version: 1, Accept: a/b, c/d;q=0.1,Authorization: bearer x'),
      ],
    })
    assert.deepEqual([message.url, message.method], ['http://other.example/', 'PUT'])
    assert.deepEqual(message.credentials, { username: 'u', password: 'p:q' })
    assert.deepEqual(message.proxy, { host: 'proxy.example', port: 3128 })
    assert.deepEqual(message.fields, [
      ['X-Version', '1'],
      ['Accept', 'a/b, c/d;q=0.1'],
      ['Authorization', 'bearer x'],
    ])
  })

  test('HttpGet sends a form as the query', () => {
    const message = messageOf({
      ...{ provider: 'Twilio', providerURL: 'https://sms.example/send?a=1' },
      properties: [property('http.client.method', 'HttpGet')],
    })
    const url = 'https://sms.example/send?a=1&Body=Hi&To=%2B15550100&From=Acme'
    assert.deepEqual([message.method, message.url, message.body], ['GET', url, ''])
  })

  test('a key cannot add a field to the request', () => {
    const { fields } = messageOf({ provider: 'Clickatell', key: 'a, X-Other: b' })
    assert.deepEqual(fields, [['Authorization', 'a, X-Other: b']])
  })

  test('a template of an event is filled with its properties, whose values are not read again', () => {
    const properties = { name: '{{code}} $key', code: '"7"' }
    const { body } = messageOf({ provider: 'Plivo' }, { text: 'Hi {{name}}: {{ code }}', isTemplate: true, properties })
    assert.equal(JSON.parse(body).text, 'Hi {{code}} $key: "7"')
  })
})

describe('the template file', () => {
  const log: string[] = []
  const providerFile = (file: string) =>
    new ProviderFile(file, (_, event, fields) => void log.push(`${event} ${fields?.CAUSE}`))

  test('that of the package is the text of the gateway', () => {
    const file = new URL('../../../conf/sms-providers.xml', import.meta.url)
    assert.equal(readFileSync(file, 'utf8'), SHIPPED_PROVIDERS)
  })

  test('a change is in force at once; an error keeps the last good state, and is logged with its line', t => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-providers-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'sms-providers.xml')
    const providers = providerFile(file)
    assert.equal(providers.find('Vonage').contentType, 'JSON')
    writeFileSync(file, '<x><one provider="Own" contentType="FORM"><body>a={{body}}</body></one></x>')
    assert.equal(providers.find('Own').body, 'a={{body}}')
    assert.throws(() => providers.find('Vonage'), /Own$/)
    writeFileSync(file, '<x>\n<one provider="Own"><body>{{{</body></one></x>')
    assert.equal(providers.find('Own').body, 'a={{body}}')
    assert.deepEqual(log.splice(0), [
      'template file of SMS providers refused line 2: Own: the template is no JSON text with values in its places',
    ])
    rmSync(file)
    assert.equal(providers.find('Vonage').contentType, 'JSON')
  })

  test('without a good state there is none: 500 NSM-65003', t => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-providers-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'sms-providers.xml')
    writeFileSync(file, '<x>')
    assert.throws(() => providerFile(file).find('Vonage'), { name: 'Refused', situation: 'template-file' })
  })

  const REFUSED = [
    ['<x', /line 1/],
    ['<x><y provider="A"/></x>', /element body/],
    ['<x><y provider=""><body>{}</body></y></x>', /attribute provider/],
    ['<x><y provider="A"><body>{}</body><body>{}</body></y></x>', /one element, body/],
    ['<x><y provider="A"><body><b/></body></y></x>', /<b> stands in a body/],
    ['<x><y provider="A"><body>{}</body></y><y provider="A"><body>{}</body></y></x>', /two entries/],
    ['<x><y provider="A" contentType="XML"><body>{}</body></y></x>', /contentType of A/],
    ['<x><y provider="A" url="x"><body>{}</body></y></x>', /attribute other than/],
    ['<x><y provider="A" concurrency="0"><body>{}</body></y></x>', /concurrency of A is a number from 1 to 100/],
    ['<x><y provider="A" rate="fast"><body>{}</body></y></x>', /rate of A is a number/],
    ['<x><y provider="A" rate=""><body>{}</body></y></x>', /rate of A is a number/],
    ['<x>text</x>', /outside of a body/],
    ['<!DOCTYPE x [<!ENTITY a "b">]><x><y provider="A"><body>"&a;"</body></y></x>', /line 1/],
  ] as const
  for (const [xml, cause] of REFUSED) {
    test(`refused: ${xml}`, () => assert.throws(() => readProviders(xml), { name: 'InvalidTemplate', message: cause }))
  }
})
