/** D906: variables in the path of the endpoints of an API. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FlowTexts, flowsOf } from '../harness/flows.ts'
import { operation } from '../harness/filter-chain.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { says, startBackend } from '../harness/sequence-calls.ts'

const TEMPLATE = '/v-{uri.var.id}/details'
const READS_BODY = '<property name="b" expression="json-eval($.a)"/>'
const BARE = '<property name="REST_URL_POSTFIX" scope="axis2" action="remove"/>'
const SET = '<property name="uri.var.id" expression="$trp:X-Id"/>'
/** The value alone, behind `v-`, is no dot segment. */
const SET_WHOLE = '<property name="uri.var.id" expression="fn:concat(\'x/\', $trp:X-Id)"/>'
const ACCEPTED = '<property name="FORCE_SC_ACCEPTED" value="true" scope="axis2"/>'

/** [what, flows, target and lines of the client, path that the backend gets; a number: status of the client]. */
const ROWS: readonly (readonly [what: string, FlowTexts, target: string, lines: string, expected: string | number])[] =
  [
    ['a variable of the resource', {}, '/items/7?q=1', '', '/base/v-7/details/items/7?q=1'],
    ['a variable of the context', {}, '/other', '', '/base/v-acme/details/other'],
    ['one segment, percent-encoded', {}, "/items/a%20b'%3F", '', "/base/v-a%20b%27%3F/details/items/a%20b'%3F"],
    ...['', READS_BODY].flatMap((more): (typeof ROWS)[number][] => [
      ['a flow', { request: `<property name="p" value="v"/>${more}` }, '/items/7', '', '/base/v-7/details/items/7'],
      ['a flow that removes the path', { request: BARE + more }, '/items/7', '', '/base/v-7/details'],
      [
        'a property of a sequence',
        { request: SET + BARE + more },
        '/items/7',
        'X-Id: x/y?z\r\n',
        '/base/v-x%2Fy%3Fz/details',
      ],
      ['a property without a value', { request: SET + more }, '/items/7', '', 500],
      ...['..', '../../x', '..\\x', 'a/../../x', '%2e%2e/x', '..;x'].map((value): (typeof ROWS)[number] => {
        return [`a value ${value}`, { request: SET_WHOLE + more }, '/items/7', `X-Id: ${value}\r\n`, 500]
      }),
      ['a value beyond a head', { request: SET + more }, '/items/7', `X-Id: ${'"'.repeat(3000)}\r\n`, 500],
    ]),
    ['a response flow', { response: READS_BODY }, '/items/7', '', '/base/v-7/details/items/7'],
    ['a request in the background', { request: ACCEPTED + BARE }, '/items/7', '', '/base/v-7/details'],
    [
      'a property in the background',
      { request: SET + ACCEPTED },
      '/items/7',
      'X-Id: 8\r\n',
      '/base/v-8/details/items/7',
    ],
  ]
for (const [what, texts, target, lines, expected] of ROWS) {
  test(`D906: the endpoint of an API has ${what} in its path (${JSON.stringify(texts)})`, async t => {
    const path = typeof expected === 'string' ? expected.split('?')[0]! : ''
    const backend = await startBackend(t, { [path]: says(200, '{}') })
    const mediation = Object.keys(texts).length === 0 ? null : await flowsOf(texts)
    const overrides = { mediation, resources: [operation('GET /items/{id}'), operation('GET /other')] }
    const context = '/t/{id}/a'
    const gateway = await startGateway([
      { context, port: backend.port, basePath: '/base', template: TEMPLATE, overrides },
    ])
    t.after(() => gateway.stop())
    const client = await connectPeer(gateway.port)
    client.send(`GET /t/acme/a${target} HTTP/1.1\r\nHost: h\r\n${lines}\r\n`)
    const { status, body } = await takeResponse(client)
    if (typeof expected === 'number') {
      assert.deepEqual([status, backend.received.length], [expected, 0], body)
      assert.match(body, /102532/)
      return
    }
    assert.equal(status, texts.request?.includes(ACCEPTED) ? 202 : 200, `${body} ${JSON.stringify(backend.received)}`)
    await eventually('the request has come', () => backend.received.length === 1)
    assert.equal(backend.received[0]!.target, expected)
  })
}
