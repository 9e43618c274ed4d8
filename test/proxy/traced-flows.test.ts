/** `stat.tracer.*`: what a trace of a request shows of the messages of its flows. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { flowsOf, type FlowTexts } from '../harness/flows.ts'
import { connectPeer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { says, startBackend, startCallsOf } from '../harness/sequence-calls.ts'

const ID = '0123456789abcdef0123456789abcdef'
const WATCH_MS = 60_000
const BOTH = { payloads: true, properties: true }
const READS = '<property name="name" expression="json-eval($.name)"/>'

interface Sent {
  readonly body?: string
  readonly lines?: string
  readonly collects?: typeof BOTH
}

/** The notes about messages, of a request to an API with these flows. */
async function notes(t: TestContext, texts: FlowTexts, { body = '', lines = '', collects }: Sent) {
  const backend = await startBackend(t, { '/x': says(200, '{"own":1}') })
  const { gateway } = await startCallsOf(t, await flowsOf(texts), backend.port)
  const { inspector } = gateway.reactor
  const watch = { kind: 'watch', correlationId: ID, waitMs: WATCH_MS } as const
  assert.equal(inspector.serve(collects === undefined ? watch : { ...watch, collects }), true)
  const traced = inspector.serve({ kind: 'trace', correlationId: ID }) as Promise<{
    readonly steps: readonly { readonly what: string; readonly detail: string }[]
  }>
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  const type = body === '' ? '' : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
  client.send(
    `POST /a/x HTTP/1.1\r\nHost: h\r\nactivityid: ${ID}\r\n${lines}${type}\r\n${Buffer.from(body).toString('latin1')}`,
  )
  await takeResponse(client)
  const { steps } = await traced
  const shown = steps.filter(({ what }) => what === 'payload' || what === 'properties')
  return shown.map(({ what, detail }) => `${what} ${detail}`)
}

test('a trace keeps nothing of messages unless the configuration says so', async t => {
  assert.deepEqual(await notes(t, { request: READS }, { body: '{"name":"Ada"}' }), [])
})

test('payloads before and after each flow on a worker, and the properties that it leaves', async t => {
  const fresh = '<payloadFactory media-type="json"><format>{"n":2}</format><args/></payloadFactory>'
  const shown = await notes(t, { request: READS + fresh }, { body: '{"name":"Ada"}', collects: BOTH })
  assert.deepEqual(
    shown.filter(note => note.startsWith('payload')),
    ['payload before the request flow: {"name":"Ada"}', 'payload after the request flow: {"n":2}'],
  )
  assert.match(shown.join('\n'), /^properties after the request flow: .*default name = Ada/m)
})

test('properties of a flow on the reactor', async t => {
  const response = '<property name="seen" expression="$axis2:HTTP_SC"/>'
  const shown = await notes(t, { response }, { collects: { payloads: false, properties: true } })
  assert.match(shown.join('\n'), /^properties after the response flow: .*default seen = 200/m)
  assert.equal(shown.length, 1)
})

const ON_WORKER = '<property name="b" expression="json-eval($)"/>'
const OF_MESSAGE =
  '<property name="messageType" value="text/plain" scope="axis2"/><property name="X-A" value="1" scope="transport"/>'
const NOT_CONSTANT = '<property name="a" expression="$axis2:HTTP_METHOD"/>'
const SENT = '<property name="X-A" value="1" scope="transport"/>'
const WITH_TYPE = ['axis2 messageType = text/plain', 'axis2 ContentType = text/plain', 'transport X-A = 1']
/** [where, flow, properties that must be shown]. */
const SET: readonly (readonly [where: string, steps: string, shown: readonly string[]])[] = [
  ['on a worker', ON_WORKER + OF_MESSAGE, WITH_TYPE],
  ['on a worker that drops the message', `${ON_WORKER}${OF_MESSAGE}<drop/>`, WITH_TYPE],
  ['on a worker that fails', `${ON_WORKER}${OF_MESSAGE}<throwError type="T" errorMessage="m"/>`, WITH_TYPE],
  ['on the reactor', NOT_CONSTANT + SENT, ['transport X-A = 1']],
  ['of constants', SENT, ['transport X-A = 1']],
  ['on a worker with a secret field', `${ON_WORKER}${SENT.replace('X-A', 'Authorization')}`, ['Authorization = ***']],
]
for (const flow of ['request', 'response'] as const) {
  for (const [where, steps, expected] of SET) {
    test(`properties of message and transport that a ${flow} flow ${where} sets`, async t => {
      const sent = { body: '{"name":"Ada"}', collects: { payloads: false, properties: true } }
      const shown = await notes(t, { [flow]: steps }, sent)
      const note = shown.find(each => each.startsWith(`properties after the ${flow} flow: `)) ?? ''
      for (const each of expected) assert.ok(note.includes(each), note)
      assert.equal(shown.length, 1)
    })
  }
}

const LONG = 'é'.repeat(5000)
/** [body, fields, what must be shown, what must not] */
const HIDDEN: readonly (readonly [body: string, lines: string, shown: string, hidden: string])[] = [
  ['{"name":"Ada","password":"hunter2"}', '', '"name":"Ada"', 'hunter2'],
  ['{"name":"Ada","apiKey": 48151623}', '', '"name":"Ada"', '48151623'],
  ['{"name":"x","list":[{"client_secret":"hun\\"ter2"}]}', '', '"name":"x"', 'ter2'],
  ['{"name":"a-field"}', 'Authorization: Basic a-field-that-is-secret\r\n', 'a-field', 'that-is-secret'],
  ['{"name":"\\u001b[31m","raw":"\u009b"}', '', 'raw', '\u009b'],
  [JSON.stringify({ name: LONG }), '', 'éé…', LONG],
]
for (const [body, lines, visible, hidden] of HIDDEN) {
  test(`a trace of ${body.slice(0, 40)} masks secrets and control characters, and has a limit`, async t => {
    const copies = '<property name="copy" expression="$trp:Authorization"/>'
    const shown = (await notes(t, { request: READS + copies }, { body, lines, collects: BOTH })).join('\n')
    assert.ok(shown.includes(visible), shown)
    assert.ok(!shown.includes(hidden), shown)
    assert.ok(shown.length < 10_000)
  })
}
