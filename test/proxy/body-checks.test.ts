/** `force_json_validation` and `force_xml_validation`: requests whose body does not parse never reach a backend. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { BODY_CHECK } from '../../src/mediation/policies/well-formed-body.ts'
import { DEFAULT_FAULTS } from '../harness/default-sequences.ts'
import { flowsOf, set } from '../harness/flows.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, ScriptedBackend } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'

const backend = await ScriptedBackend.listen()
const gateway = await startGateway(
  [
    { context: '/plain', port: backend.port },
    {
      context: '/heads',
      port: backend.port,
      overrides: { mediation: await flowsOf({ request: set('X-Flow', 'ran') }) },
    },
  ],
  {
    http: { force_json_validation: true },
    faults: { ...DEFAULT_FAULTS, sequences: [...DEFAULT_FAULTS.sequences, BODY_CHECK] },
  },
)
after(() => {
  gateway.stop()
  backend.close()
})

const request = (path: string, type: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`

for (const [type, body] of [
  ['application/json', '{"a":'],
  ['application/vnd.own+json; charset=utf-8', '[1,]'],
  ['APPLICATION/JSON', '{"a":1}{'],
] as const) {
  for (const path of ['/plain/a', '/heads/a']) {
    test(`${body} of type ${type} to ${path} is 102520 and reaches no backend`, async () => {
      const client = await connectPeer(gateway.port)
      client.send(request(path, type, body))
      const response = await takeResponse(client)
      assert.equal(response.status, 400)
      const { code, message } = JSON.parse(response.body).fault
      assert.deepEqual([code, message], [102520, 'Malformed payload'])
      client.destroy()
    })
  }
}

for (const [type, body] of [
  ['application/json', '{"n":12345678901234567890}'],
  ['application/xml', '<a>'],
  ['text/plain', '{"a":'],
  ['application/json', ''],
] as const) {
  for (const path of ['/plain/a', '/heads/a']) {
    test(`${body || 'no body'} of type ${type} to ${path} reaches the backend as it is`, async () => {
      const client = await connectPeer(gateway.port)
      const served = backend.next()
      client.send(request(path, type, body))
      const peer = await served
      await peer.untilText(`\r\n\r\n${body}`)
      assert.equal(/x-flow: ran/i.test(peer.text), path === '/heads/a')
      peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      assert.equal((await takeResponse(client)).body, 'ok')
      client.destroy()
      peer.destroy()
    })
  }
}
