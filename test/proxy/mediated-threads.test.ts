/** Sequences on worker threads, from a request to the backend and back: the whole way of a mediated exchange. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { flowsOf, startFlows } from '../harness/flows.ts'
import { connectPeer, type Peer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'

const JSON_TYPE = 'Content-Type: application/json\r\n'

function post(path: string, body: string): string {
  return `POST ${path} HTTP/1.1\r\nHost: h\r\n${JSON_TYPE}Content-Length: ${body.length}\r\n\r\n${body}`
}

/** Takes a request with a body from the peer of the backend, and responds with JSON. */
async function answer(peer: Peer, body: string): Promise<{ readonly head: string; readonly body: string }> {
  await peer.untilText('\r\n\r\n')
  const head = peer.take(peer.text.indexOf('\r\n\r\n') + 4)
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0)
  await peer.untilLength(length)
  const received = peer.take(length)
  peer.send(`HTTP/1.1 200 OK\r\n${JSON_TYPE}Content-Length: ${body.length}\r\n\r\n${body}`)
  return { head, body: received }
}

test('payloads are rebuilt in both directions, and a property of the request reaches the response', async t => {
  const mediation = await flowsOf({
    request: `<property name="who" expression="json-eval($.name)"/>
      <payloadFactory media-type="json"><format>{"greeting":"hello $1"}</format>
      <args><arg evaluator="json" expression="$.name"/></args></payloadFactory>`,
    response: `<payloadFactory media-type="json"><format>{"for":"$1","is":$2}</format>
      <args><arg expression="get-property('who')"/><arg evaluator="json" expression="$.count"/></args></payloadFactory>
      <property name="X-Built" value="yes" scope="transport"/>`,
  })
  const { gateway, backend } = await startFlows(t, [mediation])
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send(post('/a/x', '{"name":"Ada"}'))
  const peer = await backend.next()
  const first = await answer(peer, '{"count":3}')
  assert.deepEqual(JSON.parse(first.body), { greeting: 'hello Ada' })
  const response = await takeResponse(client)
  assert.deepEqual(JSON.parse(response.body), { for: 'Ada', is: 3 })
  assert.deepEqual(response.fields.get('x-built'), ['yes'])
  client.send(post('/a/x', '{"name":"Bob"}'))
  const second = await answer(peer, '{"count":4}')
  assert.deepEqual(JSON.parse(second.body), { greeting: 'hello Bob' })
  assert.deepEqual(JSON.parse((await takeResponse(client)).body), { for: 'Bob', is: 4 })
})

test('a body that no mediator can build is 400 with its code; a long one goes through a file', async t => {
  const mediation = await flowsOf({
    request: `<payloadFactory media-type="json"><format>{"length":"$1"}</format>
      <args><arg evaluator="json" expression="$.text"/></args></payloadFactory>`,
  })
  const bodies = { bytesMax: 10_000_000, memoryMax: 1000, pieceBytes: 3072 }
  const { gateway, backend } = await startFlows(t, [mediation], { bodies })
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send(post('/a/x', '{"text":'))
  const refused = await takeResponse(client)
  assert.equal(refused.status, 400)
  assert.match(refused.body, /"code":102520/)
  const text = 'x'.repeat(500_000)
  client.send(post('/a/x', JSON.stringify({ text })))
  const { body } = await answer(await backend.next(), '{}')
  assert.deepEqual(JSON.parse(body), { length: text })
  assert.equal((await takeResponse(client)).status, 200)
})

test('a flow responds in place of the backend, and the fault flow words what the backend does not answer', async t => {
  const responds = await flowsOf({
    request: `<payloadFactory media-type="json"><format>{"mock":true}</format><args/></payloadFactory>
      <property name="HTTP_SC" value="203" scope="axis2"/><respond/>`,
  })
  const faults = await flowsOf({
    fault: `<payloadFactory media-type="json"><format>{"oops":"$1"}</format>
      <args><arg expression="get-property('ERROR_CODE')"/></args></payloadFactory>`,
  })
  const { gateway, backend } = await startFlows(t, [responds, faults])
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send(post('/a/x', '{}'))
  const mock = await takeResponse(client)
  assert.deepEqual([mock.status, JSON.parse(mock.body)], [203, { mock: true }])
  client.send(post('/b/x', '{}'))
  const peer = await backend.next()
  await peer.untilText('{}')
  peer.reset()
  const fault = await takeResponse(client)
  assert.equal(fault.status, 502)
  // The base code of a failed read, 101501, and the state of the connection.
  assert.deepEqual(JSON.parse(fault.body), { oops: '101504' })
})
