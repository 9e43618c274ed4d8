/** Readiness on the traffic port: `readiness_path`. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, ScriptedBackend } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'

const backend = await ScriptedBackend.listen(async peer => {
  await peer.untilRequest()
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\napi')
})
const gateway = await startGateway([{ context: '/t', port: backend.port }], { http: { readiness_path: '/ready' } })
after(() => {
  gateway.stop()
  backend.close()
})

async function ask(line: string): ReturnType<typeof takeResponse> {
  const client = await connectPeer(gateway.port)
  client.send(`${line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
  const response = await takeResponse(client)
  client.destroy()
  return response
}

for (const [line, status, body] of [
  ['GET /ready', 200, ''],
  ['HEAD /ready', 200, ''],
  ['POST /ready', 404, 'fault'],
  ['GET /ready/', 404, 'fault'],
  ['GET /t/ready', 200, 'api'],
] as const) {
  test(`${line} gets ${status}`, async () => {
    const response = await ask(line)
    assert.equal(response.status, status)
    if (body === 'fault') assert.match(response.body, /404/)
    else assert.equal(response.body, body)
  })
}

test('a path that an API has is that of the API, and a reload changes or removes the path', async () => {
  await gateway.deploy({ http: { readiness_path: '/t/ready' } })
  assert.equal((await ask('GET /t/ready')).body, 'api')
  assert.equal((await ask('GET /ready')).status, 404)
  await gateway.deploy({ http: { readiness_path: '/alive' } })
  assert.equal((await ask('GET /alive')).status, 200)
  await gateway.deploy({ http: { readiness_path: '' } })
  assert.equal((await ask('GET /alive')).status, 404)
  await gateway.deploy({ http: { readiness_path: '/ready' } })
})

test('from the start of a drain it is 503, and the connection ends', async () => {
  const client = await connectPeer(gateway.port)
  client.send('GET /ready HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeResponse(client)).status, 200)
  // Half a head keeps the connection.
  client.send('GET /ready HT')
  const probe = await ask('GET /ready')
  assert.equal(probe.status, 200)
  gateway.reactor.drain()
  client.send('TP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeResponse(client)).status, 503)
  await client.untilEnd()
})
