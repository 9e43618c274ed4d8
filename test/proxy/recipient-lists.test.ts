/** Lists of recipients, end to end: real worker threads, scripted backends. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Peer } from '../harness/peers.ts'
import {
  address,
  endpointOfFile,
  type Reaction,
  refusing,
  says,
  startBackend,
  startCalls,
} from '../harness/sequence-calls.ts'

const ANSWERS = {
  '/a/x': says(200, '{"from":"a"}'),
  '/b/x': says(200, '{"from":"b"}'),
  '/c/x': says(200, '{"from":"c"}'),
}
const AGGREGATE = `<aggregate><completeCondition><messageCount min="2" max="-1"/></completeCondition>
  <onComplete expression="json-eval($.from)"/></aggregate>`
const list = (members: string) => `<endpoint><recipientlist>${members}</recipientlist></endpoint>`
const listed = (value: string) => list(`<endpoints value="${value}" max-cache="20"/>`)
const of = (port: number, ...paths: readonly string[]) => paths.map(path => address(port, path)).join('')

/** Flows for a backend at the port, and their answer. */
const GATHERED: readonly (readonly [what: string, flows: (port: number) => Record<string, string>, body: string])[] = [
  [
    '<call> to endpoints of the list',
    port => ({ request: `<call>${list(of(port, '/a', '/b', '/c'))}</call>${AGGREGATE}<respond/>` }),
    '["a","b","c"]',
  ],
  [
    '<call> to the addresses of an expression',
    port => ({
      request: `<property name="to" value="http://127.0.0.1:${port}/b, ,http://127.0.0.1:${port}/a"/>
        <call>${listed("{get-property('to')}")}</call>${AGGREGATE}<respond/>`,
    }),
    '["b","a"]',
  ],
  [
    '<call> to members',
    port => {
      const member = `<member hostName="127.0.0.1" httpPort="${port}"/>`
      const path = '<property name="REST_URL_POSTFIX" scope="axis2" value="/a/x"/>'
      return { request: `${path}<call>${list(member + member)}</call>${AGGREGATE}<respond/>` }
    },
    '["a","a"]',
  ],
  [
    '<call>, with steps in front of the aggregate',
    port => ({
      request: `<call>${list(of(port, '/a', '/b'))}</call>
        <payloadFactory media-type="json"><format>{"from":"its $1"}</format>
          <args><arg expression="json-eval($.from)"/></args></payloadFactory>${AGGREGATE}<respond/>`,
    }),
    '["its a","its b"]',
  ],
  [
    '<send>, with the aggregate in the response flow',
    port => ({ request: `<send>${list(of(port, '/a', '/b'))}</send>`, response: AGGREGATE }),
    '["a","b"]',
  ],
  [
    '<call> to a list of a file, which names files',
    () => ({ request: `<call><endpoint key="all"/></call>${AGGREGATE}<respond/>` }),
    '["a","c"]',
  ],
  [
    '<call> to a list that the message chooses',
    () => ({
      request: `<property name="to" value="all"/>
        <call><endpoint key-expression="$ctx:to"/></call>${AGGREGATE}<respond/>`,
    }),
    '["a","c"]',
  ],
]

for (const [what, flows, body] of GATHERED) {
  test(`an aggregate gathers the responses of all recipients: ${what}`, async t => {
    const backend = await startBackend(t, ANSWERS)
    const named = {
      all: await endpointOfFile(`<recipientlist><endpoint key="a"/>${address(backend.port, '/c')}</recipientlist>`),
      a: `http://127.0.0.1:${backend.port}/a`,
    }
    const { ask } = await startCalls(t, flows(backend.port), backend.port, named)
    assert.deepEqual(await ask(), [200, body])
  })
}

test('without an aggregate every recipient gets a copy, and the first one in the list answers', async t => {
  for (const [request, response] of [
    ['<call>LIST</call><respond/>', ''],
    ['<send>LIST</send>', '<property name="X-Flow" value="response" scope="transport"/>'],
  ] as const) {
    const backend = await startBackend(t, ANSWERS)
    const flows = { request: request.replace('LIST', list(of(backend.port, '/b', '/a'))), response }
    const { ask } = await startCalls(t, response === '' ? { request: flows.request } : flows, backend.port)
    assert.deepEqual(await ask('POST /a/x', '{"n":1}'), [200, '{"from":"b"}'])
    assert.deepEqual(backend.received.map(({ method, target, body }) => `${method} ${target} ${body}`).sort(), [
      'POST /a/x {"n":1}',
      'POST /b/x {"n":1}',
    ])
  }
})

test('receive runs on the response of each recipient', async t => {
  const backend = await startBackend(t, ANSWERS)
  const request = `<send receive="mark">${list(of(backend.port, '/a', '/b'))}</send>`
  const mark = `<payloadFactory media-type="json"><format>{"seen":"$1"}</format>
    <args><arg expression="json-eval($.from)"/></args></payloadFactory>`
  const { ask } = await startCalls(t, { request, others: { mark } }, backend.port)
  assert.deepEqual(await ask(), [200, '{"seen":"a"}'])
  assert.equal(backend.received.length, 2)
})

test('properties of the list and of its endpoints are in the requests', async t => {
  const fields: string[] = []
  const seen = ({ head }: { readonly head: string }) => {
    fields.push([...head.matchAll(/^x-(?:list|own): (.*)\r$/gim)].map(([, value]) => value).join())
    return [200, '{"from":"x"}'] as const
  }
  const backend = await startBackend(t, { '/a/x': seen, '/b/x': seen })
  const set = (name: string, value: string) => `<property name="${name}" value="${value}" scope="transport"/>`
  const own = `<endpoint><address uri="http://127.0.0.1:${backend.port}/a"/>${set('X-Own', 'two')}</endpoint>`
  const all = `<endpoint><recipientlist>${own}<endpoint key="b"/></recipientlist>${set('X-List', 'one')}</endpoint>`
  const named = {
    b: await endpointOfFile(`<address uri="http://127.0.0.1:${backend.port}/b"/>${set('X-Own', 'three')}`),
  }
  const { ask } = await startCalls(t, { request: `<call>${all}</call><respond/>` }, backend.port, named)
  assert.deepEqual(await ask(), [200, '{"from":"x"}'])
  assert.deepEqual(fields.sort(), ['one,three', 'one,two'])
})

test('a recipient that fails is logged with its cause, and the others answer', async t => {
  const backend = await startBackend(t, ANSWERS)
  const members = of(await refusing(t), '/a') + of(backend.port, '/b', '/c')
  const request = `<call>${list(members)}</call>${AGGREGATE}<respond/>`
  const { ask, gateway } = await startCalls(t, { request }, backend.port)
  assert.deepEqual(await ask(), [200, '["b","c"]'])
  const causes = gateway.reports.map(({ fields }) => String(fields.CAUSE_OF_ERROR))
  assert.ok(
    causes.some(cause => /^the recipient inline-[0-9a-f]{16}\/1 has failed: /.test(cause)),
    causes.join('\n'),
  )
})

/** Values of a dynamic list, and the code of the fault for each. */
const FAULTS: readonly (readonly [what: string, value: string, code: string])[] = [
  ['without recipients', ' , ', '102551'],
  ['of what is no URL', 'ftp://127.0.0.1/x', '102551'],
  ['with more recipients than copies', Array(1001).fill('http://127.0.0.1:1').join(), '102553'],
]
for (const [what, value, code] of FAULTS) {
  test(`a list ${what} is a fault with the code ${code}`, async t => {
    const request = `<call>${listed('{json-eval($.to)}')}</call><respond/>`
    const { ask } = await startCalls(t, { request }, 1)
    const [status, body] = await ask('POST /a/x', JSON.stringify({ to: value }))
    assert.deepEqual([status, /"code":"?(\d+)/.exec(body)?.[1]], [500, code])
  })
}

test('all recipients fail: the fault is that of the first one', async t => {
  const port = await refusing(t)
  const { ask } = await startCalls(t, { request: `<send>${list(of(port, '/a', '/b'))}</send>` }, port)
  const [, body] = await ask()
  assert.match(body, /101503/)
})

test('max-cache closes the idle connections to addresses beyond it', async t => {
  const peers = [new Set<Peer>(), new Set<Peer>(), new Set<Peer>()]
  const start = (seen: Set<Peer>) => {
    const react: Reaction = (_, peer) => {
      seen.add(peer)
      return [200, '{}']
    }
    return startBackend(t, { '/a/x': react })
  }
  const backends = await Promise.all(peers.map(start))
  const request = `<call>${list('<endpoints value="{json-eval($.to)}" max-cache="2"/>')}</call><respond/>`
  const { ask } = await startCalls(t, { request }, 1)
  for (const at of [0, 1, 2, 2, 0]) {
    const to = `http://127.0.0.1:${backends[at]!.port}/a`
    assert.deepEqual(await ask('POST /a/x', JSON.stringify({ to })), [200, '{}'])
  }
  assert.deepEqual(
    peers.map(({ size }) => size),
    [2, 1, 1],
  )
})
