/** Bodies of messages on their way through a worker: read lazily, written in the format of messageType, coded again. */
import assert from 'node:assert/strict'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { loadCustomFormats, NO_CUSTOM_FORMATS } from '../../../src/mediation/formats/custom-format.ts'
import { DEFAULT_FORMATS } from './default-formats.ts'
import { MessageFormats } from '../../../src/mediation/formats/message-formats.ts'
import { MediationFault } from '../../../src/mediation/mediation-fault.ts'
import type { Message } from '../../../src/mediation/message.ts'
import { element } from '../../../src/mediation/xml-tree.ts'
import { fromTransfer, toTransfer } from '../../../src/mediation/message-transfer.ts'
import { NO_STATE, type TransferredBody, type TransferredMessage } from '../../../src/mediation/worker-task.ts'
import { DEFAULT_LIMITS } from '../../../src/mediation/formats/body-limits.ts'

const FORMATS = new MessageFormats(DEFAULT_FORMATS, NO_CUSTOM_FORMATS)

interface Given {
  readonly body: string | Uint8Array | TransferredBody
  readonly fields: Readonly<Record<string, string>>
  /** 0 for a request. */
  readonly status?: number
  readonly formats?: MessageFormats
}

interface Passed {
  readonly fields: ReadonlyMap<string, string>
  readonly body: TransferredBody
  readonly bytes: Buffer
}

/** Runs the changes on a message, and returns it as it goes on. */
function pass({ body, fields, status = 0, formats = FORMATS }: Given, change: (message: Message) => void): Passed {
  const isTransferred = typeof body === 'object' && !(body instanceof Uint8Array)
  const transferred: TransferredMessage = {
    method: 'POST',
    target: '/a',
    status,
    reason: '',
    fields: Object.entries(fields),
    body: isTransferred ? body : { kind: 'bytes', bytes: Buffer.from(body) },
    state: NO_STATE,
  }
  const message = fromTransfer(transferred, formats.sourceOf(transferred))
  change(message)
  const sent = toTransfer(
    message,
    message => formats.format(message),
    () => undefined,
  )
  return {
    fields: new Map(sent.fields.map(([name, value]) => [name.toLowerCase(), value])),
    body: sent.body,
    bytes: sent.body.kind === 'bytes' ? Buffer.from(sent.body.bytes) : Buffer.alloc(0),
  }
}

/** The fault that the work raises. */
function faultOf(work: () => unknown): MediationFault['raised'] {
  try {
    work()
  } catch (error) {
    if (error instanceof MediationFault) return error.raised
    throw error
  }
  throw new Error('no fault')
}

const JSON_TYPE = { 'Content-Type': 'application/json' }

test('a body that nothing reads stays untouched, even with an unknown coding', () => {
  const passed = pass({ body: 'x', fields: { ...JSON_TYPE, 'Content-Encoding': 'compress' } }, () => undefined)
  assert.equal(passed.body.kind, 'untouched')
  assert.equal(passed.fields.get('content-encoding'), 'compress')
})

test('a body that a sequence only reads stays untouched', () => {
  const passed = pass({ body: '{"a": 1}', fields: JSON_TYPE }, message => assert.deepEqual(message.json, { a: 1 }))
  assert.equal(passed.body.kind, 'untouched')
})

test('numbers beyond a double stay exact when a sequence replaces the member beside them', () => {
  const passed = pass({ body: '{"id":12345678901234567890,"a":1}', fields: JSON_TYPE }, message => {
    message.json = { ...(message.json as object), a: 2 }
  })
  assert.equal(passed.bytes.toString(), '{"id":12345678901234567890,"a":2}')
})

test('a property with numbers beyond a double keeps its digits on its way to another thread', () => {
  const message = fromTransfer(
    { method: 'POST', target: '/', status: 0, reason: '', fields: [], body: { kind: 'none' }, state: NO_STATE },
    null,
  )
  message.payload = { kind: 'json', text: '{"a":{"id":12345678901234567890}}' }
  message.set('default', 'it', { kind: 'json', value: message.json! })
  message.set('default', 'plain', { kind: 'json', value: { a: 1 } })
  const { default: own } = structuredClone(message.state())
  assert.deepEqual(own, [
    ['it', '{"a":{"id":12345678901234567890}}'],
    ['plain', { kind: 'json', value: { a: 1 } }],
  ])
})

test('messageType makes XML of JSON, names its type, and drops digests of the old bytes', () => {
  const fields = { ...JSON_TYPE, 'Content-MD5': 'x', Digest: 'y' }
  const passed = pass({ body: '{"a":1}', fields }, message => message.set('axis2', 'messageType', 'application/xml'))
  assert.equal(passed.bytes.toString(), '<?xml version="1.0" encoding="UTF-8"?><jsonObject><a>1</a></jsonObject>')
  assert.equal(passed.fields.get('content-type'), 'application/xml; charset=UTF-8')
  assert.equal(passed.fields.has('content-md5') || passed.fields.has('digest'), false)
})

test('REST becomes SOAP 1.1 with SOAPAction, and its SOAP response becomes JSON', () => {
  const request = pass({ body: '{"get":{"id":7}}', fields: JSON_TYPE }, message => {
    message.set('axis2', 'messageType', 'text/xml')
    message.set('transport', 'SOAPAction', 'urn:get')
  })
  assert.match(
    request.bytes.toString(),
    /<soapenv:Body><jsonObject><get><id>7<\/id><\/get><\/jsonObject><\/soapenv:Body>/,
  )
  assert.equal(request.fields.get('content-type'), 'text/xml; charset=UTF-8')
  assert.equal(request.fields.get('soapaction'), '"urn:get"')
  const response = pass({ body: request.bytes, fields: { 'Content-Type': 'text/xml' }, status: 200 }, message =>
    message.set('axis2', 'messageType', 'application/json'),
  )
  assert.equal(response.bytes.toString(), '{"get":{"id":7}}')
  assert.equal(response.fields.get('content-type'), 'application/json; charset=UTF-8')
})

test('SOAP 1.2 carries the SOAPAction of SOAP 1.1 in its type', () => {
  const body = '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><a/></s:Body></s:Envelope>'
  const fields = { 'Content-Type': 'text/xml', SOAPAction: '"urn:x"' }
  const passed = pass({ body, fields }, message => message.set('axis2', 'messageType', 'application/soap+xml'))
  assert.equal(passed.fields.get('content-type'), 'application/soap+xml; charset=UTF-8; action="urn:x"')
  assert.equal(passed.fields.has('soapaction'), false)
})

const SOAP12 = '<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Body><a/></s:Body></s:Envelope>'

/** Properties of the sequence, and the SOAPAction of the SOAP 1.1 that SOAP 1.2 with the action urn:x becomes. */
const ACTIONS: readonly (readonly [set: string, change: (message: Message) => void, action: string])[] = [
  ['nothing', () => undefined, '"urn:x"'],
  ['ContentType', message => message.set('axis2', 'ContentType', 'text/xml; action="urn:y"'), '"urn:y"'],
  ['SOAPAction', message => message.set('transport', 'SOAPAction', 'urn:z'), '"urn:z"'],
  ['Content-Type', message => message.remove('transport', 'Content-Type'), '"urn:x"'],
]

for (const [set, change, action] of ACTIONS) {
  test(`SOAP 1.1 carries the action that SOAP 1.2 had in its type, where the sequence sets ${set}`, () => {
    const fields = { 'Content-Type': 'application/soap+xml; charset=utf-8; action="urn:x"' }
    const passed = pass({ body: SOAP12, fields }, message => {
      message.set('axis2', 'messageType', 'text/xml')
      change(message)
    })
    assert.equal(passed.fields.get('soapaction'), action)
    assert.match(passed.fields.get('content-type')!, /^text\/xml;/)
  })
}

test('SOAP 1.2 that is changed keeps its action', () => {
  const fields = { 'Content-Type': 'application/soap+xml; action="urn:x"' }
  const passed = pass({ body: SOAP12, fields }, message => {
    message.set('axis2', 'messageType', 'application/soap+xml')
    message.payload = { kind: 'xml', root: element('a', []) }
  })
  assert.equal(passed.fields.get('content-type'), 'application/soap+xml; charset=UTF-8; action="urn:x"')
})

for (const [type, messageType, sent] of [
  ['application/soap+xml; action="urn:x"', 'application/soap+xml', 'application/soap+xml; action="urn:x"'],
  ['text/plain; charset=iso-8859-1', 'text/plain', 'text/plain; charset=iso-8859-1'],
  ['text/plain; charset=iso-8859-1', 'text/plain; charset=us-ascii', 'text/plain; charset=us-ascii'],
] as const) {
  test(`a body of ${type} that messageType ${messageType} leaves untouched is sent as ${sent}`, () => {
    const passed = pass({ body: 'x', fields: { 'Content-Type': type } }, message =>
      message.set('axis2', 'messageType', messageType),
    )
    assert.deepEqual([passed.body.kind, passed.fields.get('content-type')], ['untouched', sent])
  })
}

test('a SOAP 1.1 request without an action has an empty SOAPAction', () => {
  const fields = { 'Content-Type': 'application/xml; action="urn:other"' }
  const passed = pass({ body: '<a/>', fields }, message => message.set('axis2', 'messageType', 'text/xml'))
  assert.equal(passed.fields.get('soapaction'), '""')
})

test('a coded body is read decoded, and goes on changed with its coding', () => {
  const fields = { ...JSON_TYPE, 'Content-Encoding': 'gzip' }
  const passed = pass({ body: gzipSync('{"a":1}'), fields }, message => {
    assert.deepEqual(message.json, { a: 1 })
    message.json = { a: 2 }
  })
  assert.equal(passed.fields.get('content-encoding'), 'gzip')
  assert.equal(gunzipSync(passed.bytes).toString(), '{"a":2}')
})

for (const [accepted, isCoded] of [
  ['gzip', true],
  ['br', false],
  ['', false],
] as const) {
  test(`a response that a request becomes is ${isCoded ? '' : 'not '}coded for Accept-Encoding "${accepted}"`, () => {
    const fields = { ...JSON_TYPE, 'Content-Encoding': 'gzip', 'Accept-Encoding': accepted }
    const passed = pass({ body: gzipSync('{"a":1}'), fields }, message => {
      message.json = { a: 2 }
      message.set('transport', 'Content-Encoding', 'gzip')
      message.outcome = 'responded'
    })
    assert.equal(passed.fields.get('content-encoding'), isCoded ? 'gzip' : undefined)
    assert.equal((isCoded ? gunzipSync(passed.bytes) : passed.bytes).toString(), '{"a":2}')
  })
}

test('a body in a file is read in pieces, with characters that two pieces share', () => {
  const folder = mkdtempSync(join(tmpdir(), 'formats-'))
  const formats = new MessageFormats({ ...DEFAULT_FORMATS, pieceSize: 7 }, NO_CUSTOM_FORMATS)
  const contents = [
    ['application/xml', `<a>${'é😀'.repeat(50)}</a>`],
    ['application/json', JSON.stringify({ a: 'é😀'.repeat(50) })],
  ] as const
  for (const [type, text] of contents) {
    const path = join(folder, 'body')
    writeFileSync(path, text)
    const body = { kind: 'file', path, length: Buffer.byteLength(text) } as const
    const passed = pass({ body, fields: { 'Content-Type': type }, formats }, message => {
      message.set('axis2', 'messageType', type === 'application/xml' ? 'application/json' : 'application/xml')
    })
    assert.ok(passed.bytes.toString().includes('é😀'.repeat(50)))
  }
  const body = { kind: 'file', path: join(folder, 'none'), length: 5 } as const
  const fault = faultOf(() => pass({ body, fields: JSON_TYPE, formats }, message => message.json))
  assert.deepEqual([fault.code, fault.cause], [500, 'the file of the body cannot be read (ENOENT)'])
})

/** Body, fields, status, and the code of the fault. */
const FAULTS: readonly (readonly [body: string, fields: Record<string, string>, status: number, code: number])[] = [
  ['{"a":', JSON_TYPE, 0, 102520],
  ['{"a":', JSON_TYPE, 200, 101510],
  ['['.repeat(300), JSON_TYPE, 0, 102521],
  ['x', { ...JSON_TYPE, 'Content-Encoding': 'compress' }, 0, 102522],
  ['x', { 'Content-Type': 'text/plain; charset=koi8-r' }, 0, 102522],
]

for (const [body, fields, status, code] of FAULTS) {
  const side = status === 0 ? 'request' : 'response'
  test(`${body.slice(0, 10)} in a ${side} with ${JSON.stringify(fields)} raises ${code}`, () => {
    assert.equal(faultOf(() => pass({ body, fields, status }, message => message.payload)).code, code)
  })
}

const OWN = `
export function build(bytes, contentType) {
  const text = Buffer.from(bytes).toString()
  if (text === 'bad') throw new Error('bad ' + text)
  if (text === 'xml') return { xml: '<a>1</a>' }
  if (text === 'none') return 7
  return { json: text.split(',') }
}
export function format(payload, contentType) {
  return 'json' in payload ? payload.json.join(';') : payload.xml
}
`

test('ES modules of the configuration folder build and format their content types', async () => {
  const home = mkdtempSync(join(tmpdir(), 'formats-'))
  writeFileSync(join(home, 'own.mjs'), OWN)
  const named = { 'application/x-own': 'own.mjs', 'application/x-java': 'org.example.Builder' }
  const settings = { ...DEFAULT_FORMATS, limits: DEFAULT_LIMITS, builders: named, formatters: named }
  const formats = new MessageFormats(settings, await loadCustomFormats(home, settings))
  const fields = { 'Content-Type': 'application/x-own' }
  const toOwn = (message: Message) => {
    assert.deepEqual(message.json, ['a', 'b'])
    message.json = ['c', 'd']
  }
  assert.equal(pass({ body: 'a,b', fields, formats }, toOwn).bytes.toString(), 'c;d')
  const toJson = (message: Message) => message.set('axis2', 'messageType', 'application/json')
  assert.equal(pass({ body: 'a,b', fields, formats }, toJson).bytes.toString(), '["a","b"]')
  assert.equal(pass({ body: 'xml', fields, formats }, toJson).bytes.toString(), '{"a":1}')
  for (const [body, cause] of [
    ['bad', 'the builder of the operator refused the body (Error)'],
    ['none', 'the builder of the operator returned no payload'],
  ] as const) {
    assert.equal(faultOf(() => pass({ body, fields, formats }, message => message.payload)).cause, cause)
  }
})
