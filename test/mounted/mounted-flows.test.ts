/** Mediation flows in front of a mounted API: on the reactor, on workers, and for its faults. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { flowsOf, set } from '../harness/flows.ts'
import { mountedApi, startMounted } from '../harness/mounted.ts'
import { connectPeer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'

const JSON_TYPE = 'Content-Type: application/json\r\n'

test('a flow of heads changes the fields that the implementation sees, and those of its response', async t => {
  const mediation = await flowsOf({ request: set('X-In', 'in'), response: set('X-Out', 'out') })
  const gateway = await startMounted(t, {}, [mountedApi({ mediation })])
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send('GET /m/show HTTP/1.1\r\nHost: h\r\nX-In: client\r\n\r\n')
  const { fields, body } = await takeResponse(client)
  const shown = JSON.parse(body) as { readonly fields: readonly (readonly [string, string])[] }
  assert.deepEqual(
    shown.fields.filter(([name]) => name === 'X-In'),
    [['X-In', 'in']],
  )
  assert.deepEqual(fields.get('x-out'), ['out'])
})

test('flows on workers make the body that the implementation reads, and the one that the client gets', async t => {
  const mediation = await flowsOf({
    request: `<payloadFactory media-type="json"><format>{"hello":"$1"}</format>
      <args><arg evaluator="json" expression="$.name"/></args></payloadFactory>`,
    response: `<payloadFactory media-type="json"><format>{"length":$1}</format>
      <args><arg evaluator="json" expression="$.length"/></args></payloadFactory>`,
  })
  const gateway = await startMounted(t, {}, [mountedApi({ mediation })])
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  for (let round = 0; round < 2; round++) {
    client.send(`POST /m/hash HTTP/1.1\r\nHost: h\r\n${JSON_TYPE}Content-Length: 14\r\n\r\n{"name":"Ada"}`)
    const { status, body } = await takeResponse(client)
    assert.deepEqual([status, JSON.parse(body)], [200, { length: '{"hello":"Ada"}'.length }])
  }
})

test('the fault flow of the API words what its implementation has thrown', async t => {
  const mediation = await flowsOf({
    fault: `<payloadFactory media-type="json"><format>{"oops":"$1"}</format>
      <args><arg expression="get-property('ERROR_CODE')"/></args></payloadFactory>`,
  })
  const gateway = await startMounted(t, {}, [mountedApi({ mediation })])
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send('GET /m/throws HTTP/1.1\r\nHost: h\r\n\r\n')
  const { status, body } = await takeResponse(client)
  assert.deepEqual([status, JSON.parse(body)], [500, { oops: '102570' }])
})

test('sequences read the variables of the context', async t => {
  const mediation = await flowsOf({
    request: `<property name="X-Tenant" expression="get-property('uri.var.tenant')" scope="transport"/>`,
  })
  const gateway = await startMounted(t, {}, [mountedApi({ paths: ['/t/{tenant}/m'], mediation })])
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send('GET /t/acme/m/show HTTP/1.1\r\nHost: h\r\n\r\n')
  const shown = JSON.parse((await takeResponse(client)).body) as { readonly fields: readonly unknown[] }
  assert.deepEqual(shown.fields.at(-1), ['X-Tenant', 'acme'])
})

/** [what, request, Host and Content-Length that the implementation sees]. */
const SEEN: readonly (readonly [string, string, readonly (readonly [string, string])[]])[] = [
  ['GET', 'GET /m/show HTTP/1.1\r\nHost: gw.example:8290\r\n\r\n', [['Host', 'gw.example:8290']]],
  ['GET without Host', 'GET /m/show HTTP/1.0\r\n\r\n', []],
  ['DELETE', 'DELETE /m/show HTTP/1.1\r\nHost: gw.example\r\n\r\n', [['Host', 'gw.example']]],
  [
    'POST without a body',
    'POST /m/show HTTP/1.1\r\nHost: gw.example\r\nContent-Length: 0\r\n\r\n',
    [
      ['Content-Length', '0'],
      ['Host', 'gw.example'],
    ],
  ],
]
for (const [where, request] of [
  ['no flow', ''],
  ['a flow on the reactor', set('X-In', 'in')],
  ['a flow on a worker', '<property name="a" expression="json-eval($.a)"/>'],
] as const) {
  test(`behind ${where} the implementation sees the Host of the client, and no length without a body`, async t => {
    const mediation = request === '' ? null : await flowsOf({ request })
    const gateway = await startMounted(t, {}, [mountedApi({ mediation })])
    for (const [what, sent, wanted] of SEEN) {
      const client = await connectPeer(gateway.port)
      t.after(() => client.destroy())
      client.send(sent)
      const { fields } = JSON.parse((await takeResponse(client)).body) as { fields: (readonly [string, string])[] }
      const seen = fields.filter(([name]) => /^(?:host|content-length)$/i.test(name)).sort()
      assert.deepEqual(seen, wanted, what)
    }
  })
}

test('a Host that a flow sets is the one that the implementation sees', async t => {
  for (const more of ['', '<property name="a" expression="json-eval($.a)"/>']) {
    const mediation = await flowsOf({ request: set('Host', 'set.example') + more })
    const gateway = await startMounted(t, {}, [mountedApi({ mediation })])
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    client.send('GET /m/show HTTP/1.1\r\nHost: gw.example\r\n\r\n')
    const { fields } = JSON.parse((await takeResponse(client)).body) as { fields: (readonly [string, string])[] }
    assert.deepEqual(
      fields.filter(([name]) => name.toLowerCase() === 'host').map(([, value]) => value),
      ['set.example'],
    )
  }
})
