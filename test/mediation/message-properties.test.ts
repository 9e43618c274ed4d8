/** Properties that describe a message itself, and JSONPath and XPath over payloads of the other kind. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { textFrom } from './test-sequences.ts'
import { CompiledSequences } from '../../src/mediation/compiled-sequences.ts'
import { Message, type Payload } from '../../src/mediation/message.ts'
import { envelope } from '../../src/mediation/soap.ts'
import { element } from '../../src/mediation/xml-tree.ts'
import { textOf } from '../../src/mediation/value.ts'
import { planOf } from './test-sequences.ts'

/** Text of an expression over a message with that payload. */
async function over(expression: string, payload: Payload | null, fields: Readonly<Record<string, string>> = {}) {
  const message = new Message(name => fields[name])
  message.payload = payload
  const reports: unknown[] = []
  const sequences = new CompiledSequences(
    [await planOf(`<property name="it" expression="${expression}"/>`)],
    (...said) => reports.push(said),
  )
  assert.equal(sequences.runToEnd(['one'], message), 'continues')
  assert.deepEqual(reports, [])
  return textOf(message.get('default', 'it'))
}

test('MessageID is one UUID of a message, its copies and its later flows', async () => {
  assert.match(await textFrom("get-property('MessageID')"), /^urn:uuid:[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/)
  assert.equal(await textFrom("get-property('MessageID') = get-property('MessageID')"), 'true')
  const message = new Message(() => undefined)
  const id = message.get('default', 'MessageID')
  const later = new Message(() => undefined)
  later.restore(message.stateForNextFlow())
  assert.deepEqual([message.copy().get('default', 'MessageID'), later.get('default', 'MessageID')], [id, id])
})

test('D845: a message that becomes the response to a call keeps the subprotocols of its handshake', () => {
  const message = new Message(name => (name === 'sec-websocket-protocol' ? 'chat' : 'of the request'))
  message.becomeResponse(new Message(name => (name === 'x-a' ? 'of the response' : undefined)))
  const fields = ['Sec-WebSocket-Protocol', 'X-A', 'X-B'].map(name => message.get('transport', name))
  assert.deepEqual(fields, ['chat', 'of the response', undefined])
})

for (const [type, format] of [
  ['text/xml; charset=utf-8', 'soap11'],
  ['application/soap+xml', 'soap12'],
  ['application/json', 'pox'],
  ['', 'pox'],
] as const) {
  test(`MESSAGE_FORMAT of ${type || 'no content type'} is ${format}`, async () => {
    assert.equal(await over("get-property('MESSAGE_FORMAT')", null, { 'content-type': type }), format)
  })
}

test('Action is the field SOAPAction without its quotes', async () => {
  assert.equal(await over("get-property('Action')", null, { soapaction: '"urn:do"' }), 'urn:do')
})

const FAULT = element('s:Fault', [], [['xmlns:s', 'http://schemas.xmlsoap.org/soap/envelope/']])
const ORDER = element('order', [element('id', ['7']), element('name', ['b'])])
for (const [what, payload, expected] of [
  ['a SOAP Fault in its Envelope', { kind: 'xml', root: envelope('soap11', [FAULT]) }, 'TRUE'],
  ['a SOAP Fault alone', { kind: 'xml', root: FAULT }, 'TRUE'],
  ['another Envelope', { kind: 'xml', root: envelope('soap11', [ORDER]) }, ''],
  ['JSON', { kind: 'json', text: '{}' }, ''],
] as const satisfies readonly (readonly [string, Payload, string])[]) {
  test(`FAULT of ${what} is "${expected}"`, async () => {
    assert.equal(await over("get-property('FAULT')", payload), expected)
    assert.equal(await over("fn:concat(get-property('FAULT'), string(//none))", payload), expected)
  })
}

const views: readonly (readonly [what: string, expression: string, payload: Payload, expected: string])[] = [
  ['JSONPath over XML', 'json-eval($.order.id)', { kind: 'xml', root: ORDER }, '7'],
  ['JSONPath over SOAP', 'json-eval($.order.name)', { kind: 'xml', root: envelope('soap12', [ORDER]) }, 'b'],
  ['JSONPath within XPath', 'concat(//id, json-eval($.order.name))', { kind: 'xml', root: ORDER }, '7b'],
  ['XPath over JSON', '//order/id', { kind: 'json', text: '{"order":{"id":7}}' }, '7'],
  ['JSONPath over text', 'json-eval($.order)', { kind: 'text', text: 'order' }, ''],
]
for (const [what, expression, payload, expected] of views) {
  test(`${what} sees the other form`, async () => assert.equal(await over(expression, payload), expected))
}
