/** Flows of APIs on real worker threads: what goes in, what comes back. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerFailure } from '../../src/mediation/worker-service.ts'
import { set } from '../harness/flows.ts'
import { eventually } from '../harness/peers.ts'
import { json, messageOf, startWorker, textOf } from './started-worker.ts'

test('a body that no sequence reads is not sent back', async t => {
  const worker = await startWorker(t, { request: set('X-Set', 'yes') })
  const result = await worker.run({ body: json('{"a":1}') })
  assert.equal(result.kind, 'continues')
  const message = messageOf(result)
  assert.deepEqual(message.body, { kind: 'untouched' })
  assert.deepEqual(message.fields, [
    ['Content-Type', 'application/json'],
    ['X-Set', 'yes'],
  ])
})

const REWRITE =
  '<payloadFactory media-type="json"><format>{"b": $1}</format><args><arg evaluator="json" expression="$.a"/></args></payloadFactory>'

test('a sequence reads and replaces a body', async t => {
  const worker = await startWorker(t, { request: REWRITE })
  for (const value of ['1', '"x"', '[1,2]']) {
    const message = messageOf(await worker.run({ body: json(`{"a":${value}}`) }))
    assert.deepEqual(JSON.parse(textOf(message)), { b: JSON.parse(value) })
  }
})

test('a malformed body is a fault with its code, not a failed task', async t => {
  const worker = await startWorker(t, { request: REWRITE })
  const result = await worker.run({ body: json('{"a":') })
  assert.ok(result.kind === 'faults', result.kind)
  assert.equal(result.fault.code, 102520)
})

test('respond and drop end the flow', async t => {
  const worker = await startWorker(t, { request: `${REWRITE}<respond/>`, others: { gone: '<drop/>' } })
  const result = await worker.run({ body: json('{"a":1}') })
  assert.deepEqual([result.kind, textOf(messageOf(result))], ['responds', '{"b": 1}'])
  assert.deepEqual(await worker.run({}, ['gone']), { kind: 'drops' })
})

test('log lines of a sequence come through the reactor', async t => {
  const worker = await startWorker(t, { request: '<log level="custom"><property name="K" value="V"/></log>' })
  await worker.run()
  // The line comes by another channel than the result.
  await eventually('the line of the sequence', () =>
    worker.reports.some(({ fields }) => JSON.stringify(fields).includes('V')),
  )
})

test('the body of a response to a call goes back, although no sequence has read it', async t => {
  const worker = await startWorker(t, {
    request: '<call><endpoint><http uri-template="http://127.0.0.1:9/"/></endpoint></call>',
  })
  const message = messageOf(await worker.run({ body: json('{"a":1}') }))
  assert.equal(textOf(message), '{"from":"backend"}')
  assert.equal(worker.calls.length, 1)
})

test('a task with what no thread can get fails alone', async t => {
  const worker = await startWorker(t, { request: set('X-Set', 'yes') })
  const state = { default: [['X', (() => '') as unknown as string]], axis2: [], operation: [], variables: [] } as const
  const broken = { state }
  const reason = await worker.run(broken).then(
    () => 'done',
    (error: WorkerFailure) => error.reason,
  )
  assert.equal(reason, 'failed')
  assert.equal((await worker.run()).kind, 'continues')
})

for (const [steps, expected] of [
  ['<call/>', ['chat']],
  ['<call/><respond/>', []],
  [`<call/>${set('Sec-WebSocket-Protocol', 'own')}<respond/>`, ['own']],
] as const) {
  test(`D845: behind ${steps} the subprotocols are "${expected.join()}"`, async t => {
    const worker = await startWorker(t, { request: steps })
    const { fields } = messageOf(await worker.run({ fields: [['Sec-WebSocket-Protocol', 'chat']] }))
    const found = fields.filter(([name]) => name === 'Sec-WebSocket-Protocol').map(([, value]) => value)
    assert.deepEqual(found, expected)
  })
}
