/** D862: the onError of the sequence whose `<send>` fails, on the reactor and on a worker. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlowTexts } from '../harness/flows.ts'
import { set, setAxis2 } from '../harness/flows.ts'
import { connectPeer, eventually } from '../harness/peers.ts'
import { address, type Reaction, refusing, says, startBackend, startCalls } from '../harness/sequence-calls.ts'

const made = (text: string) =>
  `<payloadFactory media-type="json"><format>{"by":"${text}","code":$1}</format>
   <args><arg expression="$ctx:ERROR_CODE"/></args></payloadFactory>`
const answers = (text: string) => `${made(text)}<respond/>`
const WITHIN = '<sequence key="sends"/>'
const breaksOff: Reaction = (_, peer) => {
  peer.destroy()
  return null
}

/** A sequence that `onError` handles, for `others`. */
const handled = (steps: string, onError: string) => `<sequence onError="${onError}">${steps}</sequence>`
const send = (port: number) => `<send>${address(port)}</send>`

/** [what, flows by the port that refuses, status, part of the body]. */
const FAILED: readonly (readonly [string, (port: number) => FlowTexts, number, string])[] = [
  [
    'answers the client',
    port => ({ request: WITHIN, others: { handler: answers('handler'), sends: handled(send(port), 'handler') } }),
    200,
    '{"by":"handler","code":101503}',
  ],
  [
    'may be that of the sequence around the one that sends',
    port => ({
      request: '<sequence key="outer"/>',
      others: { handler: answers('handler'), sends: send(port), outer: handled(WITHIN, 'handler') },
    }),
    200,
    '{"by":"handler","code":101503}',
  ],
  [
    'is the innermost one',
    port => ({
      request: '<sequence key="outer"/>',
      others: {
        handler: answers('handler'),
        other: answers('other'),
        sends: handled(send(port), 'handler'),
        outer: handled(WITHIN, 'other'),
      },
    }),
    200,
    '{"by":"handler","code":101503}',
  ],
  [
    'of a sequence that is over is not in force',
    port => ({
      request: `<sequence key="over"/>${send(port)}`,
      others: { handler: answers('handler'), over: handled('<log/>', 'handler') },
    }),
    502,
    '"code":101503',
  ],
  [
    'answers for a <send/> to the endpoint of the API',
    () => ({ request: WITHIN, others: { handler: answers('handler'), sends: handled('<send/>', 'handler') } }),
    200,
    '{"by":"handler","code":101503}',
  ],
  [
    'answers with the fault that it makes',
    port => ({
      request: WITHIN,
      others: {
        handler: '<makefault version="pox"><reason expression="$ctx:ERROR_MESSAGE"/></makefault><send/>',
        sends: handled(send(port), 'handler'),
      },
    }),
    200,
    'Error connecting to the backend',
  ],
  [
    'leaves the fault to the fault flow where it does not answer',
    port => ({
      request: WITHIN,
      fault: `<payloadFactory media-type="json"><format>{"seen":"$1"}</format><args><arg expression="$ctx:seen"/></args>
        </payloadFactory><respond/>`,
      others: { handler: '<property name="seen" value="yes"/>', sends: handled(send(port), 'handler') },
    }),
    502,
    '{"seen":"yes"}',
  ],
  [
    'leaves the fault to the default sequence where it does not answer',
    port => ({ request: WITHIN, others: { handler: '<log/>', sends: handled(send(port), 'handler') } }),
    502,
    '"code":101503',
  ],
  [
    'may drop the message',
    port => ({ request: WITHIN, others: { handler: '<drop/>', sends: handled(send(port), 'handler') } }),
    202,
    '',
  ],
  [
    'may throw another fault, for the fault flow',
    port => ({
      request: WITHIN,
      fault: answers('flow'),
      others: {
        handler: '<throwError type="777" errorMessage="m"/>',
        sends: handled(send(port), 'handler'),
      },
    }),
    500,
    '{"by":"flow","code":777}',
  ],
  [
    'runs on the reactor where flows need heads alone',
    () => ({
      request: WITHIN,
      others: {
        handler: `${set('X-By', 'handler')}${setAxis2('HTTP_SC', '499')}<respond/>`,
        sends: handled('<send/>', 'handler'),
      },
    }),
    499,
    '',
  ],
  [
    'leaves the fault to the default sequence on the reactor, too',
    () => ({ request: WITHIN, others: { handler: set('X-By', 'handler'), sends: handled('<send/>', 'handler') } }),
    502,
    '"code":101503',
  ],
  [
    'may drop the message on the reactor, too',
    () => ({ request: WITHIN, others: { handler: '<drop/>', sends: handled('<send/>', 'handler') } }),
    202,
    '',
  ],
  [
    'leaves the fault to a fault flow on a worker beside flows of heads',
    () => ({
      request: WITHIN,
      fault: answers('flow'),
      others: { handler: '<log/>', sends: handled('<send/>', 'handler') },
    }),
    502,
    '{"by":"flow","code":101503}',
  ],
]

for (const [what, flows, status, body] of FAILED) {
  for (const request of ['GET /a/x', 'POST /a/x'] as const) {
    test(`the onError of a <send> that fails ${what} (${request})`, async t => {
      const port = await refusing(t)
      const { ask } = await startCalls(t, flows(port), port)
      const [got, text] = await ask(request, request === 'GET /a/x' ? '' : '{"a":1}')
      assert.equal(got, status, text)
      assert.ok(text.includes(body), text)
    })
  }
}

test('a backend that breaks off before its response is a failed <send>', async t => {
  const backend = await startBackend(t, { '/x': breaksOff })
  const others = { handler: answers('handler'), sends: handled(send(backend.port), 'handler') }
  const { ask } = await startCalls(t, { request: WITHIN, others }, backend.port)
  const [status, body] = await ask('POST /a/x', '{"a":1}')
  assert.equal(status, 200)
  assert.match(body, /"by":"handler"/)
})

for (const response of ['', '<log level="full"/>']) {
  test(`a response that has begun ends the onError of its <send> (response flow: ${response})`, async t => {
    const cut: Reaction = (_, peer) => {
      peer.send('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"a":')
      peer.end()
      return null
    }
    const backend = await startBackend(t, { '/x': cut })
    const others = { handler: answers('handler'), sends: handled(send(backend.port), 'handler') }
    const { gateway } = await startCalls(t, { request: WITHIN, response, others }, backend.port)
    const client = await connectPeer(gateway.port)
    client.send('GET /a/x HTTP/1.1\r\nHost: gateway\r\n\r\n')
    await eventually('the exchange has ended', () => client.isClosed || client.text.includes('"fault"'))
    assert.doesNotMatch(client.text, /"by":"handler"/)
  })
}

test('the onError of a copy whose <send> fails answers for that copy', async t => {
  const port = await refusing(t)
  const backend = await startBackend(t, { '/x': says(200, '{"n":1}') })
  const target = (steps: string) => `<target><sequence>${steps}</sequence></target>`
  const request = `<clone>${target(WITHIN)}${target(send(backend.port))}</clone>`
  const others = { handler: answers('handler'), sends: handled(send(port), 'handler') }
  const { ask } = await startCalls(t, { request, others }, backend.port)
  assert.deepEqual(await ask(), [200, '{"by":"handler","code":101503}'])
})

/** [what, onError of the copy, answers that the aggregate gathers]. */
const GATHERED = [
  ['sends it to another endpoint', (other: number) => send(other), '[{"n":1},{"n":2}]'],
  ['sends it to an endpoint that fails, too, and is not run again', () => '', '[{"n":1}]'],
] as const

for (const [what, handler, gathered] of GATHERED) {
  test(`the onError of a copy that an aggregate gathers ${what}`, async t => {
    const port = await refusing(t)
    const first = await startBackend(t, { '/x': says(200, '{"n":1}') })
    const second = await startBackend(t, { '/x': says(200, '{"n":2}') })
    const target = (steps: string) => `<target><sequence>${steps}</sequence></target>`
    const request = `<clone>${target(send(first.port))}${target(WITHIN)}</clone>`
    const response = '<aggregate><onComplete expression="json-eval($)"/></aggregate>'
    const others = { handler: handler(second.port) || send(port), sends: handled(send(port), 'handler') }
    const { ask } = await startCalls(t, { request, response, others }, first.port)
    assert.deepEqual(await ask(), [200, gathered])
  })
}
