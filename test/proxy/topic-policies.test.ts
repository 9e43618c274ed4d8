/** Policies of topics: they run on the handshake that opens the topic. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, ScriptedBackend } from '../harness/peers.ts'
import { loadProject } from '../harness/project-flows.ts'
import { takeResponse } from '../harness/responses.ts'
import { switchingProtocols, takeHead, upgradeRequest } from '../harness/tunnels.ts'

function topic(target: string, verb: string, value = '') {
  const use = {
    policyName: 'setHeader',
    policyVersion: 'v1',
    parameters: { headerName: 'X-Topic', headerValue: value },
  }
  return { target, verb, operationPolicies: value === '' ? {} : { request: [use], response: [use] } }
}
const OPERATIONS = [
  topic('/news/{id}', 'SUBSCRIBE', 'news'),
  topic('/chat', 'PUBLISH', 'chat'),
  topic('/bare', 'SUBSCRIBE'),
]

test('D721: policies of a topic run on the handshake that opens it, and other paths are refused', async t => {
  const endpointConfig = { endpoint_type: 'ws', production_endpoints: { url: 'ws://backend.example' } }
  const { api, said, mediation } = await loadProject(t, { type: 'WS', endpointConfig, operations: OPERATIONS })
  assert.deepEqual(said, [])
  const overrides = { mediation, resources: api!.resources }
  const backend = await ScriptedBackend.listen()
  const gateway = await startGateway([{ context: '/a', port: backend.port, overrides }], {
    kinds: ['ws'],
    hasFilterChain: true,
  })
  t.after(() => {
    gateway.stop()
    backend.close()
  })
  const open = async (path: string) => {
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    client.send(upgradeRequest('websocket').replace('/echo/x', path))
    return client
  }
  for (const [path, value] of [
    ['/a/news/7', 'news'],
    ['/a/chat', 'chat'],
    ['/a/bare', undefined],
  ] as const) {
    const client = await open(path)
    const peer = await backend.next()
    await peer.untilText('\r\n\r\n')
    assert.equal(/^x-topic: (.*)\r$/im.exec(peer.take())?.[1], value, path)
    peer.send(switchingProtocols('websocket', ''))
    assert.equal(/^x-topic: (.*)\r$/im.exec(await takeHead(client))?.[1], value, path)
  }
  assert.equal((await takeResponse(await open('/a/other'))).status, 403)
})
