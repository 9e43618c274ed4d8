/** Every documented content type is read and written, in the charsets that it names. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { element, elementsOf } from '../../../src/mediation/xml-tree.ts'
import { build, errorOf, shown, write } from './build-body.ts'

const SOAP11 =
  '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header><h:id xmlns:h="urn:h">7</h:id></s:Header><s:Body><a>1</a></s:Body></s:Envelope>'
const SOAP12 = SOAP11.replace('http://schemas.xmlsoap.org/soap/envelope/', 'http://www.w3.org/2003/05/soap-envelope')
const MULTIPART =
  '--B\r\nContent-Disposition: form-data; name="a"\r\n\r\none\r\n--B\r\nContent-Disposition: form-data; name="f"; filename="x.bin"\r\nContent-Type: image/png\r\n\r\n\u0001\u0002\r\n--B--\r\n'

/** Content type, body, and the payload that it becomes. */
const READ: readonly (readonly [type: string, body: string, payload: string])[] = [
  ['application/json', '{"a":[1,2.50]}', 'json {"a":[1,2.50]}'],
  ['application/problem+json; charset=utf-8', '{"a":1}', 'json {"a":1}'],
  ['text/javascript', '[true]', 'json [true]'],
  ['application/json', '\ufeff{}', 'json {}'],
  ['application/json/badgerfish', '{"a":{"@b":"1","$":"x","c":[{"$":"1"},{}]}}', 'xml <a b="1">x<c>1</c><c/></a>'],
  ['application/xml', '<?xml version="1.0"?><a x="1"><!-- c -->t<b/></a>', 'xml <a x="1">t<b/></a>'],
  ['application/atom+xml', '<a>&lt;<![CDATA[&]]></a>', 'xml <a>&lt;&amp;</a>'],
  ['text/xml', SOAP11, `xml ${SOAP11}`],
  ['application/soap+xml; action="urn:x"', SOAP12, `xml ${SOAP12}`],
  [
    'application/x-www-form-urlencoded',
    'a=1&b+c=%C3%A9&a=',
    'xml <xformValues><a>1</a><b_JsonReader_32_c>é</b_JsonReader_32_c><a/></xformValues>',
  ],
  [
    'multipart/form-data; boundary=B',
    MULTIPART,
    'xml <mediate><a>one</a><f filename="x.bin" content-type="image/png">AQI=</f></mediate>',
  ],
  ['text/plain', 'héllo', 'text héllo'],
  ['text/csv', 'a,b', 'text a,b'],
  ['application/octet-stream', '\u0001\u0002', 'binary 0102'],
  ['application/binary', 'a', 'binary 61'],
  ['image/png', 'a', 'binary 61'],
  ['', 'a', 'binary 61'],
  ['application/json', '', 'none'],
]

for (const [type, body, payload] of READ) {
  test(`a body of type ${type || 'none'} becomes the payload ${payload.slice(0, 40)}`, () => {
    assert.equal(shown(build(body, type)), payload)
  })
}

/** Content type, and the bytes of the body, which are `é` in a document or text of the type. */
const CHARSETS: readonly (readonly [type: string, bytes: Buffer])[] = [
  ['text/plain; charset=ISO-8859-1', Buffer.from('é', 'latin1')],
  ['text/plain; charset="utf-16le"', Buffer.from('é', 'utf16le')],
  ['text/plain; charset=UTF-16', Buffer.from('\ufeffé', 'utf16le')],
  ['text/plain; charset=UTF-16', Buffer.from('\ufeffé', 'utf16le').swap16()],
  ['text/plain; charset=UTF-16BE', Buffer.from('é', 'utf16le').swap16()],
  ['application/json; charset=iso-8859-1', Buffer.from('"é"', 'latin1')],
  ['application/xml', Buffer.from('<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>', 'latin1')],
  ['application/xml', Buffer.from('\ufeff<a>é</a>', 'utf16le')],
  ['application/xml', Buffer.from('<a>é</a>', 'utf16le')],
]

for (const [type, bytes] of CHARSETS) {
  test(`${bytes.toString('hex')} of type ${type} is read in its charset`, () => {
    assert.match(shown(build(bytes, type)), /^(?:text é|json "é"|xml <a>é<\/a>)$/)
  })
}

const OF_ONE = '--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--B--\r\n'

/** Content type, bytes that are not of the type, and the error. */
const REFUSED: readonly (readonly [type: string, bytes: Buffer, error: RegExp])[] = [
  ['application/json', Buffer.from([0x22, 0xc3, 0x28, 0x22]), /^malformed: the body is not UTF-8 at or after byte 0$/],
  ['text/plain', Buffer.from([0xff]), /^malformed: the body is not UTF-8/],
  ['text/plain; charset=us-ascii', Buffer.from('aé'), /^malformed: the body is not US-ASCII at byte 1$/],
  ['text/plain; charset=utf-16le', Buffer.from([0x00, 0xd8, 0x41, 0x00]), /^malformed: the body is not UTF-16LE/],
  ['text/plain; charset=koi8-r', Buffer.from('a'), /^charset: the charset of the body is not supported$/],
  ['application/json', Buffer.from('{"a":01}'), /^malformed: the body is not JSON at character 6$/],
  ['application/json', Buffer.from('{"a":'), /^malformed: the body is not JSON: it ends too early$|at character 5$/],
  ['application/xml', Buffer.from('<a><b></a>'), /^malformed: the body is not XML: .* at line 1, column \d+$/],
  ['application/xml', Buffer.from('<a x="1" x="2"/>'), /^malformed: the body is not XML: /],
  ['application/xml', Buffer.from('<p:a/>'), /^malformed: the body is not XML: /],
  ['application/xml', Buffer.from('text'), /^malformed: the body is not XML: /],
  ['application/x-www-form-urlencoded', Buffer.from('a=%GG'), /^malformed: the form has a malformed escape/],
  ['multipart/form-data', Buffer.from('--B--'), /^malformed: the form has no valid boundary$/],
  ['multipart/form-data; boundary=B', Buffer.from('--B\r\nx'), /^malformed: the form ends within a part/],
  ['multipart/form-data; boundary=B', Buffer.from('none'), /^malformed: the form does not begin with its boundary$/],
  ...[
    'multipart/form-data; boundary=B; boundary=C',
    "multipart/form-data; boundary*=UTF-8''C; boundary=B",
    'multipart/form-data; boundary*0=C; boundary=B',
    'multipart/form-data; x="; boundary=C"; boundary=B',
  ].map(type => [type, Buffer.from(OF_ONE), /^malformed: the form has no valid boundary$/] as const),
  ...[
    [`x--B\r\n${OF_ONE}`, 'a boundary in front of its first part'],
    [`${OF_ONE}${OF_ONE}`, 'a boundary behind its last one'],
    [OF_ONE.replace('--B--', '--B--x\r\n--B--'), 'a malformed boundary at byte'],
    [OF_ONE.replace('1\r\n', '1\n--B\r\n'), 'a boundary within the part at byte'],
    [OF_ONE.replace('1\r\n', '1\r--B\r\n'), 'a boundary within the part at byte'],
    [OF_ONE.replace('--B\r\n', '--B\v\r\n'), 'a malformed boundary at byte'],
  ].map(
    ([body, error]) =>
      [
        'multipart/form-data; boundary=B',
        Buffer.from(body!),
        new RegExp(`^malformed: the form has ${error!}`),
      ] as const,
  ),
]

for (const [type, bytes, error] of REFUSED) {
  test(`${JSON.stringify(bytes.toString('latin1'))} of type ${type} is refused without its text`, () => {
    assert.match(
      errorOf(() => build(bytes, type)),
      error,
    )
  })
}

const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'
const TEXT = '<text xmlns="http://ws.apache.org/commons/ns/payload">hi</text>'
const BINARY = '<binary xmlns="http://ws.apache.org/commons/ns/payload">AQ==</binary>'
const ENVELOPE =
  '<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body>' +
  '<jsonObject><a>1</a></jsonObject></soapenv:Body></soapenv:Envelope>'

/** Source type and body, wanted type, written body. */
const WRITTEN: readonly (readonly [from: string, body: string, to: string, written: string])[] = [
  [
    'application/json',
    '{"a":{"b":[1,2]}}',
    'application/xml',
    `${DECLARATION}<jsonObject><a><b>1</b><b>2</b></a></jsonObject>`,
  ],
  ['application/xml', '<a><b>1</b><b>x</b></a>', 'application/json', '{"a":{"b":[1,"x"]}}'],
  ['application/xml', '<a c="1">x</a>', 'text/javascript', '{"a":{"@c":"1","$":"x"}}'],
  ['text/xml', SOAP11, 'application/json', '{"a":1}'],
  ['application/json', '{"a":1}', 'text/xml', DECLARATION + ENVELOPE],
  ['text/xml', SOAP11, 'text/xml', DECLARATION + SOAP11],
  ['application/x-www-form-urlencoded', 'a=1&b=x', 'application/json', '{"xformValues":{"a":1,"b":"x"}}'],
  [
    ...(['application/x-www-form-urlencoded', 'roles%5B%5D=a&roles[]=b&p:q=1', 'application/json'] as const),
    '{"xformValues":{"roles[]":["a","b"],"p:q":1}}',
  ],
  ['application/json', '{"a b":"é&","c":2}', 'application/x-www-form-urlencoded', 'a_b=%C3%A9%26&c=2'],
  ['application/x-www-form-urlencoded', 'a+b=1', 'application/x-www-form-urlencoded', 'a+b=1'],
  [
    'application/xml',
    '<a b="1"><c>x</c><c/></a>',
    'application/json/badgerfish',
    '{"a":{"@b":"1","c":[{"$":"x"},{}]}}',
  ],
  ['text/plain', 'hi', 'application/json', '{"text":"hi"}'],
  ['text/plain', 'hi', 'application/xml', DECLARATION + TEXT],
  ['application/xml', TEXT, 'text/plain', 'hi'],
  ['application/octet-stream', '\u0001', 'application/xml', DECLARATION + BINARY],
  ['application/xml', BINARY, 'application/binary', '\u0001'],
  ['application/octet-stream', '\u0001', 'application/json', '{"binary":"AQ=="}'],
  ['application/json', '{"a":1}', 'text/plain', '{"a":1}'],
]

for (const [from, body, to, written] of WRITTEN) {
  test(`${body.slice(0, 40)} of type ${from} is written as ${to}`, () => {
    assert.equal(Buffer.from(write(build(body, from)!, to).bytes).toString(), written)
  })
}

test('SOAP 1.1 becomes SOAP 1.2 with its header blocks, and a fault takes the form of the version', () => {
  const written = Buffer.from(write(build(SOAP11, 'text/xml')!, 'application/soap+xml').bytes).toString()
  assert.match(
    written,
    /<soapenv:Envelope xmlns:soapenv="http:\/\/www.w3.org\/2003\/05\/soap-envelope"><soapenv:Header>/,
  )
  assert.match(written, /<h:id xmlns:h="urn:h">7<\/h:id><\/soapenv:Header><soapenv:Body>/)
  const fault = SOAP11.replace(
    '<a>1</a>',
    '<s:Fault><faultcode>s:Client</faultcode><faultstring>no</faultstring></s:Fault>',
  )
  const written12 = Buffer.from(write(build(fault, 'text/xml')!, 'application/soap+xml').bytes).toString()
  assert.match(written12, /<soapenv:Value>soapenv:Sender<\/soapenv:Value>/)
})

const FORM = 'application/x-www-form-urlencoded'

/** Charset of a form, its bytes, and the value of its field. */
const FORM_CHARSETS: readonly (readonly [charset: string, bytes: Buffer, value: string])[] = [
  ['iso-8859-1', Buffer.from('a=%E9+%A3&b=1'), 'é £'],
  ['iso-8859-1', Buffer.from('a=\u00e9%E9', 'latin1'), 'éé'],
  ['utf-8', Buffer.from('a=é%C3%A9%EF%BB%BF'), 'éé\ufeff'],
  ['us-ascii', Buffer.from('a=%41'), 'A'],
  ['utf-16be', Buffer.from('a=%20%AC', 'utf16le').swap16(), '€'],
]

for (const [charset, bytes, value] of FORM_CHARSETS) {
  test(`escapes of a form in ${charset} are bytes of ${charset}; it is written in UTF-8, as its type says`, () => {
    const type = `${FORM}; charset=${charset}`
    const payload = build(bytes, type)!
    assert.match(shown(payload), new RegExp(`<a>${value}</a>`))
    const written = write(payload, type)
    assert.equal(written.contentType, `${FORM}; charset=UTF-8`)
    assert.equal(shown(build(written.bytes, written.contentType)), shown(payload))
  })
}

for (const [charset, text] of [
  ['us-ascii', 'a=%E9'],
  ['utf-8', 'a=%E9'],
  ['iso-8859-1', 'a=%4'],
  ['iso-8859-1', 'a=%'],
] as const) {
  test(`the form ${text} is malformed in ${charset}`, () => {
    assert.match(
      errorOf(() => build(text, `${FORM}; charset=${charset}`)),
      /^malformed: the form has a malformed escape/,
    )
  })
}

test('a form whose type names no charset is written with that type', () => {
  assert.equal(write(build('a=1', FORM)!, FORM).contentType, FORM)
})

/** Charset and bytes of a part, its text, another text, and the bytes of the part with that one. */
const PART_CHARSETS: readonly (readonly [charset: string, part: Buffer, text: string, to: string, type: string])[] = [
  ['iso-8859-1', Buffer.from([0xe9]), 'é', 'é€', 'UTF-8'],
  ['utf-16', Buffer.from([0xfe, 0xff, 0x00, 0xe9]), 'é', 'é€', 'utf-16'],
  ['utf-16le', Buffer.from([0xe9, 0x00]), 'é', 'é€', 'utf-16le'],
  ['us-ascii', Buffer.from('e'), 'e', 'é', 'UTF-8'],
  ['utf-8', Buffer.from('é'), 'é', '€', 'utf-8'],
]

for (const [charset, part, text, to, type] of PART_CHARSETS) {
  test(`a part in ${charset} is read and written in ${charset}; ${to} makes it ${type}`, () => {
    const lines = `Content-Disposition: form-data; name="a"\r\nContent-Type: text/plain; charset=${charset}\r\n`
    const bytes = Buffer.concat([Buffer.from(`--B\r\n${lines}\r\n`), part, Buffer.from('\r\n--B--\r\n')])
    const payload = build(bytes, 'multipart/form-data; boundary=B')!
    assert.match(shown(payload), new RegExp(`>${text}</a>`))
    const written = write(payload, 'multipart/form-data')
    assert.ok(Buffer.from(written.bytes).includes(Buffer.concat([Buffer.from('\r\n\r\n'), part, Buffer.from('\r\n')])))
    assert.equal(shown(build(written.bytes, written.contentType)), shown(payload))
    assert.ok(payload.kind === 'xml')
    const [field] = elementsOf(payload.root)
    const changed = write(
      { kind: 'xml', root: element('mediate', [{ ...field!, children: [to] }]) },
      'multipart/form-data',
    )
    const again = shown(build(changed.bytes, changed.contentType))
    assert.match(again, new RegExp(`charset=${type}"[^>]*>${to}</a>`))
  })
}

test('a part in an unknown charset is refused', () => {
  const body =
    '--B\r\nContent-Disposition: form-data; name="a"\r\nContent-Type: text/plain; charset=koi8-r\r\n\r\nx\r\n--B--'
  assert.match(
    errorOf(() => build(body, 'multipart/form-data; boundary=B')),
    /^charset: /,
  )
})

test('multipart forms are written with a boundary of their own and read again', () => {
  const payload = build(MULTIPART, 'multipart/form-data; boundary=B')!
  const written = write(payload, 'multipart/form-data; boundary=B')
  assert.notEqual(written.contentType, 'multipart/form-data; boundary=B')
  assert.deepEqual(build(written.bytes, written.contentType), payload)
})

test('a text is written in the charset of its type, and in UTF-8 where the charset lacks a character', () => {
  const latin = write({ kind: 'text', text: 'é' }, 'text/plain; charset=ISO-8859-1')
  assert.deepEqual([...latin.bytes], [0xe9])
  assert.equal(latin.contentType, 'text/plain; charset=ISO-8859-1')
  const wide = write({ kind: 'text', text: '€' }, 'text/plain; charset=ISO-8859-1')
  assert.equal(wide.contentType, 'text/plain; charset=UTF-8')
  assert.equal(Buffer.from(wide.bytes).toString(), '€')
  const json = write({ kind: 'json', text: '"€😀"' }, 'application/json; charset=us-ascii')
  assert.equal(Buffer.from(json.bytes).toString(), '"\\u20ac\\ud83d\\ude00"')
})

test('numbers beyond a double keep their digits, in JSON that is parsed and written, and through XML', () => {
  const text = '{"a":12345678901234567890,"b":1e400,"c":-0,"d":0.1,"e":1.0,"f":[0.12345678901234567890]}'
  const payload = build(text, 'application/json')!
  const xml = build(write(payload, 'application/xml').bytes, 'application/xml')!
  assert.equal(
    Buffer.from(write(xml, 'application/json').bytes).toString(),
    '{"a":12345678901234567890,"b":1e400,"c":-0,"d":0.1,"e":1.0,"f":0.12345678901234567890}',
  )
})
