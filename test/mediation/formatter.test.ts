/** Messages as responses: status, fields, content types, and bodies in each format. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatResponse } from '../../src/mediation/formatter.ts'
import { Message, type Payload, type Scope } from '../../src/mediation/message.ts'
import type { Value } from '../../src/mediation/value.ts'
import { element } from '../../src/mediation/xml-tree.ts'

type Properties = readonly (readonly [Scope, string, Value])[]

interface Formatted extends ReturnType<typeof formatResponse> {
  readonly said: readonly string[]
}

function format(payload: Payload | null, ...properties: Properties): Formatted {
  const message = new Message(() => undefined)
  message.payload = payload
  for (const [scope, name, value] of properties) message.set(scope, name, value)
  const said: string[] = []
  const response = formatResponse(message, (_, event, fields) => {
    assert.equal(event, 'response of a sequence')
    said.push(`${fields.FIELD} ${fields.CAUSE_OF_ERROR}`)
  })
  return { ...response, said }
}

const json = (value: unknown): Payload => ({ kind: 'json', text: JSON.stringify(value) })
const xml = (...[name, children, attributes]: Parameters<typeof element>): Payload => ({
  kind: 'xml',
  root: element(name, children, attributes),
})
const text = (plain: string): Payload => ({ kind: 'text', text: plain })
const SOAP = (version: string) => [['xmlns:s', version]] as const
const S11 = 'http://schemas.xmlsoap.org/soap/envelope/'
const S12 = 'http://www.w3.org/2003/05/soap-envelope'

/** HTTP_SC and the status; undefined: 500 with a warning. */
const STATUSES: readonly (readonly [Value, number | undefined])[] = [
  [404, 404],
  ['503', 503],
  ['', 200],
  [200, 200],
  [599, 599],
  [600, undefined],
  [100, undefined],
  [101, undefined],
  [199, undefined],
  ['4o4', undefined],
  ['404 ', undefined],
  ['0404', undefined],
  [404.5, undefined],
  [Number.NaN, undefined],
  [{ kind: 'json', value: [404] }, undefined],
]

for (const [given, status] of STATUSES) {
  test(`HTTP_SC ${JSON.stringify(given)} gives ${status ?? '500 with a warning'}`, () => {
    const response = format(null, ['axis2', 'HTTP_SC', given])
    assert.equal(response.status, status ?? 500)
    assert.deepEqual(response.said, status === undefined ? ['HTTP_SC is not a status from 200 to 599'] : [])
  })
}

test('without HTTP_SC the status is 200, or 500 for a SOAP fault', () => {
  assert.equal(format(json({})).status, 200)
  assert.equal(format(xml('s:Fault', [], SOAP(S11))).status, 500)
  const within = element('s:Body', [element('s:Fault', [])])
  assert.equal(format(xml('s:Envelope', [within], SOAP(S11))).status, 500)
  assert.equal(format(xml('s:Envelope', [element('s:Body', [])], SOAP(S11))).status, 200)
})

test('HTTP_SC_DESC is the reason phrase, if it is valid', () => {
  assert.equal(format(null, ['axis2', 'HTTP_SC_DESC', 'All Well']).reason, 'All Well')
  assert.equal(format(null).reason, undefined)
  const broken = format(null, ['axis2', 'HTTP_SC_DESC', 'a\r\nSet-Cookie: b'])
  assert.equal(broken.reason, undefined)
  assert.deepEqual(broken.said, ['HTTP_SC_DESC has characters that a reason phrase cannot have'])
})

test('there is no body and no content type with NO_ENTITY_BODY or a status without body', () => {
  for (const property of [
    ['axis2', 'NO_ENTITY_BODY', true],
    ['axis2', 'NO_ENTITY_BODY', 'true'],
    ['axis2', 'HTTP_SC', 204],
    ['axis2', 'HTTP_SC', 304],
  ] as const) {
    const { body, lines } = format(json({}), property, ['axis2', 'messageType', 'application/json'])
    assert.deepEqual([body, lines], ['', ''])
  }
  assert.equal(format(json({}), ['axis2', 'NO_ENTITY_BODY', false]).body, '{}')
})

/** Properties of axis2 or the field Content-Type, in order; the header line; the body of {"a":{"b":1}}. */
const TYPES: readonly (readonly [Properties, string, RegExp])[] = [
  [[], 'application/json; charset=UTF-8', /^\{/],
  [[['axis2', 'messageType', 'application/xml']], 'application/xml; charset=UTF-8', /^<\?xml/],
  [[['axis2', 'ContentType', 'application/xml']], 'application/xml; charset=UTF-8', /^<\?xml/],
  [[['transport', 'content-type', 'application/xml']], 'application/xml; charset=UTF-8', /^<\?xml/],
  [
    [
      ['axis2', 'messageType', 'application/json'],
      ['axis2', 'ContentType', 'application/problem+json; profile=a'],
    ],
    'application/problem+json; profile=a; charset=UTF-8',
    /^\{/,
  ],
  [
    [
      ['axis2', 'ContentType', 'text/plain'],
      ['axis2', 'messageType', 'application/xml'],
    ],
    'application/xml; charset=UTF-8',
    /^<\?xml/,
  ],
  [[['axis2', 'messageType', 'application/problem+json']], 'application/problem+json; charset=UTF-8', /^\{/],
  [[['axis2', 'messageType', 'application/atom+xml']], 'application/atom+xml; charset=UTF-8', /^<\?xml/],
  [[['axis2', 'messageType', 'TEXT/HTML; charset=ISO-8859-1']], 'TEXT/HTML; charset=UTF-8', /^\{/],
  [[['axis2', 'messageType', 'application/json;charset="utf-16";a=b']], 'application/json;a=b; charset=UTF-8', /^\{/],
  [[['axis2', 'messageType', 'text/xml']], 'text/xml; charset=UTF-8', /^<\?xml.*<soapenv:Envelope/],
  [
    [['axis2', 'messageType', 'application/soap+xml']],
    'application/soap+xml; charset=UTF-8',
    /^<\?xml.*<soapenv:Envelope/,
  ],
  [[['axis2', 'messageType', 'application/octet-stream']], 'application/octet-stream; charset=UTF-8', /^\{/],
]

for (const [properties, line, start] of TYPES) {
  test(`content type with ${JSON.stringify(properties)}`, () => {
    const { lines, body, said } = format(json({ a: { b: 1 } }), ...properties)
    assert.equal(lines, `Content-Type: ${line}\r\n`)
    assert.match(body, start)
    assert.deepEqual(said, [])
  })
}

const NIL = '<a xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/>'
/** Payload, format, body. */
const BODIES: readonly (readonly [Payload | null, string, string])[] = [
  // JSON as XML.
  [
    json({ fault: { code: 404, message: 'a<b' } }),
    'application/xml',
    '<jsonObject><fault><code>404</code><message>a&lt;b</message></fault></jsonObject>',
  ],
  [json({ a: 1, b: [1, 'x'] }), 'application/xml', '<jsonObject><a>1</a><b>1</b><b>x</b></jsonObject>'],
  [json({ a: [1, 2] }), 'application/xml', '<jsonObject><a>1</a><a>2</a></jsonObject>'],
  [
    json([1, [2]]),
    'application/xml',
    '<jsonArray><jsonElement>1</jsonElement><jsonElement><jsonArray><jsonElement>2</jsonElement></jsonArray></jsonElement></jsonArray>',
  ],
  [json('x'), 'application/xml', '<jsonValue>x</jsonValue>'],
  [json({ a: null }), 'application/xml', `<jsonObject>${NIL}</jsonObject>`],
  [json({ a: {}, b: '' }), 'application/xml', '<jsonObject><a/><b/></jsonObject>'],
  [
    json({ '1 b:c<': true }),
    'application/xml',
    '<jsonObject><_JsonReader_PD_1_b_c_>true</_JsonReader_PD_1_b_c_></jsonObject>',
  ],
  [json({ '': 1 }), 'application/xml', '<jsonObject><_JsonReader_PD_>1</_JsonReader_PD_></jsonObject>'],
  // As bodies that pass: attributes, text beside members, and the digits of long numbers.
  [json({ a: { '@id': 7, $: 'x', b: '' } }), 'application/xml', '<jsonObject><a id="7">x<b/></a></jsonObject>'],
  [
    { kind: 'json', text: '{"a":12345678901234567890}' },
    'application/xml',
    '<jsonObject><a>12345678901234567890</a></jsonObject>',
  ],
  // XML as JSON: without prefixes and namespaces, repeated names as arrays, numbers and booleans typed.
  [
    xml('am:fault', [element('am:code', ['404']), element('am:ok', ['true'])], [['xmlns:am', 'urn:am']]),
    'application/json',
    '{"fault":{"code":404,"ok":true}}',
  ],
  [
    xml('a', [element('b', ['1']), element('c', ['x']), element('b', ['y'])]),
    'application/json',
    '{"a":{"b":[1,"y"],"c":"x"}}',
  ],
  [xml('a', ['007']), 'application/json', '{"a":"007"}'],
  [xml('a', ['1e5']), 'application/json', '{"a":"1e5"}'],
  [xml('a', ['-1.5']), 'application/json', '{"a":-1.5}'],
  [xml('a', ['12345678901234567890']), 'application/json', '{"a":"12345678901234567890"}'],
  [xml('a', []), 'application/json', '{"a":""}'],
  [xml('a', [], [['x:nil', 'true']]), 'application/json', '{"a":null}'],
  [xml('a', ['x', element('b', [])], [['id', '7']]), 'application/json', '{"a":{"@id":"7","b":"","$":"x"}}'],
  [xml('jsonObject', [element('a', ['1'])]), 'application/json', '{"a":1}'],
  [xml('jsonObject', []), 'application/json', '{}'],
  [xml('jsonArray', [element('jsonElement', ['1'])]), 'application/json', '[1]'],
  [xml('a', [element('jsonElement', ['1']), element('jsonElement', ['x'])]), 'application/json', '{"a":[1,"x"]}'],
  [xml('jsonValue', ['x']), 'application/json', '"x"'],
  [xml('__proto__', [element('__proto__', ['1'])]), 'application/json', '{"__proto__":{"__proto__":1}}'],
  // Text.
  [text('a<b'), 'text/plain', 'a<b'],
  [text('a<b'), 'application/json', '{"text":"a<b"}'],
  [text('a<b'), 'application/xml', '<text xmlns="http://ws.apache.org/commons/ns/payload">a&lt;b</text>'],
  [json({ a: 1 }), 'text/html', '{"a":1}'],
  [xml('a', ['<']), 'text/plain', '<a>&lt;</a>'],
  // Content of an Envelope.
  [xml('s:Envelope', [element('s:Body', [element('b', ['1'])])], SOAP(S11)), 'application/json', '{"b":1}'],
  [
    xml('s:Envelope', [element('s:Body', [element('s:b', ['1'])])], SOAP(S11)),
    'application/xml',
    `<s:b xmlns:s="${S11}">1</s:b>`,
  ],
  [null, 'application/json', ''],
  [null, 'application/xml', ''],
  [null, 'text/xml', ''],
]

for (const [payload, type, expected] of BODIES) {
  test(`${JSON.stringify(payload).slice(0, 80)} as ${type}`, () => {
    const { body } = format(payload, ['axis2', 'messageType', type])
    assert.equal(body.replace(/^<\?xml version="1.0" encoding="UTF-8"\?>/, ''), expected)
  })
}

const ENVELOPE = (version: string, body: string) =>
  `<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="${version}">` +
  `<soapenv:Body>${body}</soapenv:Body></soapenv:Envelope>`
const FAULT11 = (code: string, detail: string) =>
  ENVELOPE(
    S11,
    `<soapenv:Fault xmlns:soapenv="${S11}"><faultcode>soapenv:${code}</faultcode>` +
      `<faultstring>m</faultstring>${detail}</soapenv:Fault>`,
  )
const FAULT12 = (code: string, detail: string) =>
  ENVELOPE(
    S12,
    `<soapenv:Fault xmlns:soapenv="${S12}">` +
      `<soapenv:Code><soapenv:Value>soapenv:${code}</soapenv:Value></soapenv:Code>` +
      `<soapenv:Reason><soapenv:Text xml:lang="en">m</soapenv:Text></soapenv:Reason>${detail}</soapenv:Fault>`,
  )
const JSON_DETAIL = '<soapenv:Detail><jsonObject><a>1</a></jsonObject></soapenv:Detail>'
const OWN = xml(
  's:Fault',
  [element('faultcode', ['s:Client']), element('faultstring', ['m']), element('detail', ['d'])],
  SOAP(S11),
)

/** Payload, status, type, body; ERROR_MESSAGE is m. */
const SOAPS: readonly (readonly [Payload | null, number, string, string])[] = [
  [xml('a', ['1']), 200, 'text/xml', ENVELOPE(S11, '<a>1</a>')],
  [json({ a: 1 }), 200, 'application/soap+xml', ENVELOPE(S12, '<jsonObject><a>1</a></jsonObject>')],
  [xml('a', ['1']), 404, 'text/xml', FAULT11('Client', '<detail><a>1</a></detail>')],
  [xml('a', ['1']), 500, 'text/xml', FAULT11('Server', '<detail><a>1</a></detail>')],
  [json({ a: 1 }), 401, 'application/soap+xml', FAULT12('Sender', JSON_DETAIL)],
  [json({ a: 1 }), 503, 'application/soap+xml', FAULT12('Receiver', JSON_DETAIL)],
  [null, 503, 'text/xml', FAULT11('Server', '')],
  [
    OWN,
    500,
    'text/xml',
    ENVELOPE(
      S11,
      `<s:Fault xmlns:s="${S11}"><faultcode>s:Client</faultcode><faultstring>m</faultstring>` +
        '<detail>d</detail></s:Fault>',
    ),
  ],
  [OWN, 500, 'application/soap+xml', FAULT12('Sender', '<soapenv:Detail>d</soapenv:Detail>')],
  [
    xml('s:Envelope', [element('s:Body', [])], SOAP(S12)),
    500,
    'application/soap+xml',
    `<?xml version="1.0" encoding="UTF-8"?><s:Envelope xmlns:s="${S12}"><s:Body/></s:Envelope>`,
  ],
  // Header blocks stay in the other version.
  [
    xml('s:Envelope', [element('s:Header', [element('h', [])]), element('s:Body', [element('a', [])])], SOAP(S12)),
    200,
    'text/xml',
    `<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="${S11}">` +
      `<soapenv:Header><h/></soapenv:Header><soapenv:Body><a xmlns:s="${S12}"/></soapenv:Body></soapenv:Envelope>`,
  ],
]

for (const [payload, status, type, expected] of SOAPS) {
  test(`${JSON.stringify(payload).slice(0, 80)} with ${status} as ${type}`, () => {
    const given: Properties = [
      ['axis2', 'messageType', type],
      ['axis2', 'HTTP_SC', status],
      ['default', 'ERROR_MESSAGE', 'm'],
    ]
    assert.equal(format(payload, ...given).body, expected)
  })
}

/** Name and value of a field, and the warning if it is dropped. */
const FIELDS: readonly (readonly [string, Value, string | undefined])[] = [
  ['X-A', 'a\tb c', undefined],
  ['X-A', 42, undefined],
  ['X-A', '', undefined],
  ['X-A', 'a\u00f1', undefined],
  ['X-A', 'a\r\nX-B: b', 'X-A has characters that a header field cannot have'],
  ['X-A', 'a\nb', 'X-A has characters that a header field cannot have'],
  ['X-A', 'a\rb', 'X-A has characters that a header field cannot have'],
  ['X-A', 'a\0b', 'X-A has characters that a header field cannot have'],
  ['X-A', 'a\u007f', 'X-A has characters that a header field cannot have'],
  ['X-A', 'a\u010ab', 'X-A has characters that a header field cannot have'],
  ['X-A', 'a'.repeat(8193), 'X-A is longer than 8192 characters'],
  ['X A', 'a', 'x a is not a valid header field name'],
  ['X-A:b\r\nX', 'a', 'x-a:b\r\nx is not a valid header field name'],
  ['', 'a', ' is not a valid header field name'],
  ...['Content-Length', 'TRANSFER-ENCODING', 'Connection', 'Keep-Alive', 'Upgrade', 'Trailer', 'TE', 'Date'].map(
    name => [name, '1', `${name.toLowerCase()} is set by the gateway alone`] as const,
  ),
]

for (const [name, value, expected] of FIELDS) {
  test(`field ${JSON.stringify(name)} with ${JSON.stringify(value).slice(0, 40)}`, () => {
    const { lines, said } = format(null, ['transport', name, value])
    assert.equal(lines, expected === undefined ? `${name}: ${value}\r\n` : '')
    assert.deepEqual(said, expected === undefined ? [] : [expected])
  })
}

test('an invalid content type is dropped', () => {
  const { lines, said } = format(json({}), ['axis2', 'ContentType', 'a/b\r\nX: y'])
  assert.deepEqual([lines, said], ['', ['Content-Type has characters that a header field cannot have']])
})

test('fields and bodies are limited in size', () => {
  const many = Array.from({ length: 10 }, (_, at) => ['transport', `X-${at}`, 'a'.repeat(8000)] as const)
  const { lines, said } = format(null, ...many)
  assert.equal(said[0], 'X-8 the fields have more than 65536 bytes')
  assert.ok(lines.length <= 65_536)
  const long = format(text('ñ'.repeat(600_000)))
  assert.deepEqual([long.body, long.lines, long.said], ['', '', ['body the body has more than 1048576 bytes']])
})

test('JSON nested too deep is cut when it becomes XML', () => {
  let deep: unknown = 1
  for (let depth = 0; depth < 150; depth++) deep = [deep]
  const { body } = format(json({ a: 1, deep }), ['axis2', 'messageType', 'application/xml'])
  assert.equal(body.match(/<json(?:Element|Array)/g)?.length, 99)
})
