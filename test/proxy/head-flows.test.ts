/**
 * Flows that need only heads: conditions, state from request to response, answers in place of messages, failures,
 * reloads, WebSocket handshakes, and random changes against a model.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NO_FLOW } from '../../src/mediation/flow-plan.ts'
import type { WorkerService } from '../../src/mediation/worker-service.ts'
import type { Filter } from '../../src/proxy/exchange/contract.ts'
import { faultsWith } from '../harness/default-sequences.ts'
import {
  type FlowGateway,
  flowsOf,
  type FlowTexts,
  remove,
  set,
  setAxis2,
  startFlows,
  takeHead,
} from '../harness/flows.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, quiet, turn } from '../harness/peers.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'
import { takeResponse } from '../harness/responses.ts'
import { connectSecured, serverPlan } from '../harness/secured-peers.ts'
import { switchingProtocols, upgradeRequest } from '../harness/tunnels.ts'

// ---- flows that decide ----------------------------------------------------------------------------------------------

const NO_OTHERS = { response: NO_FLOW, fault: NO_FLOW }

async function exchange(
  { gateway, backend }: FlowGateway,
  request: string,
  response = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
): Promise<{ readonly sent: string; readonly received: Awaited<ReturnType<typeof takeResponse>> }> {
  const client = await connectPeer(gateway.port)
  client.send(request)
  const peer = await backend.next()
  const sent = await takeHead(peer)
  peer.send(response)
  const received = await takeResponse(client)
  client.destroy()
  peer.destroy()
  return { sent, received }
}

const OF_TRANSPORT = '<property name="X-Transport" expression="get-property(\'TRANSPORT_IN_NAME\')" scope="transport"/>'

test('TRANSPORT_IN_NAME is http, and https for a client on TLS', async t => {
  const mediation = await flowsOf({ request: OF_TRANSPORT })
  const plain = await startFlows(t, [mediation])
  const request = 'GET /a/it HTTP/1.1\r\nHost: a\r\n\r\n'
  assert.match((await exchange(plain, request)).sent, /X-Transport: http\r\n/)
  const secured = await startGateway([{ context: '/a', port: plain.backend.port, overrides: { mediation } }], {
    kinds: ['https'],
    tlsServer: serverPlan(),
  })
  t.after(() => secured.stop())
  const { peer: client } = await connectSecured(secured.port)
  client.send(request)
  const peer = await plain.backend.next()
  assert.match(await takeHead(peer), /X-Transport: https\r\n/)
  client.destroy()
  peer.destroy()
})

const DECIDING: FlowTexts = {
  request: `<property name="kind" expression="$trp:X-Kind"/>
    <filter source="get-property('kind')" regex="gold"><then>${set('X-Tier', 'first')}</then>
    <else>${set('X-Tier', 'second')}</else></filter>
    <switch source="get-property('axis2', 'HTTP_METHOD')"><case regex="GET">${set('X-Way', 'read')}</case>
    <default>${set('X-Way', 'write')}</default></switch>
    <sequence key="called"/>`,
  response: `<property name="X-Kind-Back" expression="get-property('kind')" scope="transport"/>`,
  others: { called: set('X-Called', 'yes') },
}

test('a flow decides by fields and method, runs another sequence, and its properties reach the response', async t => {
  const ends = await startFlows(t, [await flowsOf(DECIDING)])
  for (const [kind, method, tier, way] of [
    ['gold', 'GET', 'first', 'read'],
    ['tin', 'POST', 'second', 'write'],
  ] as const) {
    const { sent, received } = await exchange(ends, `${method} /a/r HTTP/1.1\r\nHost: h\r\nX-Kind: ${kind}\r\n\r\n`)
    assert.match(sent, new RegExp(`X-Tier: ${tier}\r\nX-Way: ${way}\r\nX-Called: yes\r\n`))
    assert.deepEqual(received.fields.get('x-kind-back'), [kind])
    assert.equal(received.body, 'ok')
  }
})

test('drop in a request flow acknowledges with 202 without a body, and the backend gets nothing', async t => {
  const { gateway, backend } = await startFlows(t, [await flowsOf({ request: '<drop/>' })])
  const client = await connectPeer(gateway.port)
  for (const [method, rest] of [
    ['GET', '\r\n'],
    ['DELETE', '\r\n'],
    ['POST', 'Content-Length: 3\r\n\r\nabc'],
  ]) {
    client.send(`${method} /a/r HTTP/1.1\r\nHost: h\r\n${rest}`)
    const { status, body } = await takeResponse(client)
    assert.deepEqual([status, body], [202, ''])
  }
  assert.equal(backend.peers.length, 0)
})

const ENDLESS = 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'
for (const [title, rest] of [
  ['with a short body', 'Content-Length: 3\r\n\r\nabc'],
  ['without a body', 'Content-Length: 0\r\n\r\n'],
  ['with a body that has no end', ENDLESS],
] as const) {
  test(`drop in a response flow: 202 in place of a response ${title}, and the client goes on`, async t => {
    const flow = `<filter source="$trp:X-Drop" regex="yes"><then><drop/></then></filter>`
    const { gateway, backend } = await startFlows(t, [await flowsOf({ response: flow })])
    const client = await connectPeer(gateway.port)
    client.send('GET /a/r HTTP/1.1\r\nHost: h\r\n\r\n')
    const first = await backend.next()
    await takeHead(first)
    first.send(`HTTP/1.1 200 OK\r\nX-Drop: yes\r\n${rest}`)
    const { status, body } = await takeResponse(client)
    assert.deepEqual([status, body], [202, ''])
    client.send('GET /a/r HTTP/1.1\r\nHost: h\r\n\r\n')
    const second = rest === ENDLESS ? await backend.next() : first
    await takeHead(second)
    second.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    assert.equal((await takeResponse(client)).body, 'ok')
  })
}

test('drop in a response flow while the client still sends: 202, and the connection ends', async t => {
  const { gateway, backend } = await startFlows(t, [await flowsOf({ response: '<drop/>' })])
  const client = await connectPeer(gateway.port)
  client.send('POST /a/r HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc')
  const peer = await backend.next()
  await peer.untilText('abc')
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  const { status, fields } = await takeResponse(client)
  assert.deepEqual([status, fields.get('connection')], [202, ['close']])
  await client.untilEnd()
})

test('a client that waits for 100 (Continue) gets it, and the final response has the edits', async t => {
  const flow = '<property name="X-Saw" expression="$axis2:HTTP_SC" scope="transport"/>'
  const { gateway, backend } = await startFlows(t, [await flowsOf({ response: flow })])
  const client = await connectPeer(gateway.port)
  client.send('POST /a/r HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n')
  const peer = await backend.next()
  await takeHead(peer)
  peer.send('HTTP/1.1 100 Continue\r\n\r\n')
  assert.equal(await takeHead(client), 'HTTP/1.1 100 Continue\r\n\r\n')
  client.send('abc')
  await peer.untilText('abc')
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  assert.deepEqual((await takeResponse(client)).fields.get('x-saw'), ['200'])
})

test('the longest heads have room for the longest edit, in both directions', async t => {
  const long = set('X-Long-1', 'v'.repeat(4000)) + set('X-Long-2', 'w'.repeat(4000))
  const { gateway, backend } = await startFlows(t, [await flowsOf({ request: long, response: long })])
  const client = await connectPeer(gateway.port)
  const longest = (start: string) => {
    const rest = 16_384 - start.length - '\r\n'.length
    const lines = Array.from({ length: 4 }, (_, at) => `X-${at}: ${'x'.repeat((rest >> 2) - 7)}\r\n`)
    return `${start}${lines.join('')}\r\n`
  }
  client.send(longest('GET /a/r HTTP/1.1\r\nHost: h\r\n'))
  const peer = await backend.next()
  const sent = await takeHead(peer)
  peer.send(longest('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n'))
  for (const head of [sent, await takeHead(client)]) {
    assert.ok(head.length > 24_000, `${head.length} bytes`)
    assert.match(head, /\r\nX-3: x+\r\n[\s\S]*X-Long-1: v{4000}\r\nX-Long-2: w{4000}\r\n/)
  }
})

test('the first flow of a reactor comes by a reload', async t => {
  const ends = await startFlows(t, [null])
  const { gateway } = ends
  assert.doesNotMatch((await exchange(ends, 'GET /a/r HTTP/1.1\r\nHost: h\r\n\r\n')).sent, /X-A/)
  const mediation = await flowsOf({ request: `${set('X-A', '1')}<log/>` })
  await gateway.deploy({ planned: [{ ...gateway.plan.apis[0]!, mediation }] })
  assert.match((await exchange(ends, 'GET /a/r HTTP/1.1\r\nHost: h\r\n\r\n')).sent, /X-A: 1\r\n/)
})

test('a reload of the APIs replaces the edits', async t => {
  const ends = await startFlows(t, [await flowsOf({ request: set('X-A', '1') })])
  const { gateway } = ends
  assert.match((await exchange(ends, 'GET /a/r HTTP/1.1\r\nHost: h\r\n\r\n')).sent, /X-A: 1\r\n/)
  await gateway.deploy({
    planned: [{ ...gateway.plan.apis[0]!, mediation: await flowsOf({ request: set('X-A', '2') }) }],
  })
  assert.match((await exchange(ends, 'GET /a/r HTTP/1.1\r\nHost: h\r\n\r\n')).sent, /X-A: 2\r\n/)
  await gateway.deploy({ planned: [{ ...gateway.plan.apis[0]!, mediation: null }] })
  assert.doesNotMatch((await exchange(ends, 'GET /a/r HTTP/1.1\r\nHost: h\r\n\r\n')).sent, /X-A/)
})

test('a changed sequence of the home acts at once, in constant and in other flows', async t => {
  const name = 'WSO2AM--Ext--In'
  const ends = await startFlows(t, [
    { sequences: [], flows: { request: { sequences: [name], needs: 'constant' }, ...NO_OTHERS }, byOperation: {} },
    { sequences: [], flows: { request: { sequences: [name], needs: 'heads' }, ...NO_OTHERS }, byOperation: {} },
  ])
  for (const value of ['1', '2']) {
    await ends.gateway.deploy({ faults: await faultsWith({ [name]: set('X-A', value) }) })
    for (const api of ['a', 'b']) {
      const { sent } = await exchange(ends, `GET /${api}/r HTTP/1.1\r\nHost: h\r\n\r\n`)
      assert.match(sent, new RegExp(`X-A: ${value}\r\n`))
    }
  }
})

test('a flow sees the whole head behind a filter that waits, however the request is cut', async t => {
  const waiting: Filter = { name: 'waiting', request: () => turn().then(() => undefined) }
  const flow = '<property name="X-Saw" expression="fn:concat($trp:X-One, $trp:X-Two)" scope="transport"/>'
  const { gateway, backend } = await startFlows(t, [await flowsOf({ request: flow })], { filters: [waiting] })
  const client = await connectPeer(gateway.port)
  const request = 'POST /a/r HTTP/1.1\r\nHost: h\r\nX-One: 1\r\nX-Two: 2\r\nContent-Length: 3\r\n\r\nabc'
  let peer: Awaited<ReturnType<typeof backend.next>> | undefined
  for (const cut of [10, 50, request.length - 5, request.length - 1]) {
    await client.sendCut(request, [cut])
    peer ??= await backend.next()
    assert.match(await takeHead(peer), /\r\nX-Saw: 12\r\n/)
    await peer.untilLength(3)
    assert.equal(peer.take(), 'abc')
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    await takeResponse(client)
  }
})

test('bodies of both directions stream past flows, and a client that does not read holds its backend back', async t => {
  const flow = '<property name="X-Saw" expression="$trp:X-One" scope="transport"/>'
  const { gateway, backend } = await startFlows(t, [await flowsOf({ request: flow, response: flow })])
  const client = await connectPeer(gateway.port)
  const bytes = 'x'.repeat(32 << 20)
  client.send(`POST /a/r HTTP/1.1\r\nHost: h\r\nContent-Length: ${bytes.length}\r\n\r\n`)
  const peer = await backend.next()
  await takeHead(peer)
  client.send(bytes)
  await peer.untilLength(bytes.length)
  peer.take()
  client.pause()
  peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${bytes.length}\r\n\r\n${bytes}`)
  await quiet()
  assert.ok(peer.unsent > 0, 'the gateway has taken the whole body')
  client.resume()
  assert.equal((await takeResponse(client)).body.length, bytes.length)
})

// ---- flows that fail ------------------------------------------------------------------------------------------------

const FAILURES: Readonly<Record<string, FlowTexts>> = {
  'a mediator that raises a fault': { request: '<throwError type="T" errorMessage="no such thing"/>' },
  'a sequence that calls itself for ever': {
    request: '<sequence key="again"/>',
    others: { again: '<log/><sequence key="again"/>' },
  },
}

for (const [title, { request: failing = '', ...others }] of Object.entries(FAILURES)) {
  test(`${title} in a request flow: the client gets a fault, and the backend nothing`, async t => {
    const { gateway, backend } = await startFlows(t, [await flowsOf({ request: failing, ...others })])
    const client = await connectPeer(gateway.port)
    client.send('GET /a/r HTTP/1.1\r\nHost: h\r\n\r\n')
    const { status, body } = await takeResponse(client)
    assert.equal(status, 500)
    assert.match(body, /"type":"Status report"/)
    assert.equal(backend.peers.length, 0)
  })

  test(`${title} in a response flow: the client gets a fault, and nothing of the response`, async t => {
    const ends = await startFlows(t, [await flowsOf({ response: failing, ...others })])
    const { received } = await exchange(ends, 'GET /a/r HTTP/1.1\r\nHost: h\r\n\r\n')
    assert.equal(received.status, 500)
    assert.match(received.body, /"type":"Status report"/)
  })
}

test('a mediator that fails runs onError, which may go on by itself', async t => {
  const handled = `${set('X-Handled', 'yes')}<send/>`
  const plan = await flowsOf({ request: '<throwError type="T" errorMessage="m"/>', others: { handler: handled } })
  const sequences = plan.sequences.map(each => (each.name === 'handler' ? each : { ...each, onError: 'handler' }))
  const ends = await startFlows(t, [{ ...plan, sequences }])
  assert.match((await exchange(ends, 'GET /a/r HTTP/1.1\r\nHost: h\r\n\r\n')).sent, /X-Handled: yes\r\n/)
})

// ---- handshakes -----------------------------------------------------------------------------------------------------

const HANDSHAKE = upgradeRequest('websocket').replace('/echo/', '/a/').replace('Host: a', 'Host: h')

test('flows run on the request and on the 101 of a handshake, and frames pass', async t => {
  const flow = {
    request: `${set('X-A', '1')}<property name="X-Saw" expression="$trp:Origin" scope="transport"/>`,
    response: `${set('X-B', '2')}${setAxis2('HTTP_SC', '200')}`,
  }
  const { gateway, backend } = await startFlows(t, [await flowsOf(flow)])
  const client = await connectPeer(gateway.port)
  client.send(HANDSHAKE.replace('\r\n\r\n', '\r\nOrigin: there\r\n\r\n'))
  const peer = await backend.next()
  const sent = await takeHead(peer)
  assert.match(sent, /\r\nX-A: 1\r\nX-Saw: there\r\n/)
  assert.match(sent, /\r\nUpgrade: websocket\r\n/i)
  peer.send(switchingProtocols('websocket', 'X-B: 1'))
  const received = await takeHead(client)
  assert.match(received, /^HTTP\/1\.1 101 Switching Protocols\r\n/)
  assert.deepEqual(received.match(/^X-B: .*$/gm), ['X-B: 2'])
  client.send('to')
  await peer.untilText('to')
  peer.send('back')
  await client.untilText('back')
})

test('constant flows edit a handshake', async t => {
  const { gateway, backend } = await startFlows(t, [
    await flowsOf({ request: set('X-A', '1'), response: set('X-B', '2') }),
  ])
  const client = await connectPeer(gateway.port)
  client.send(HANDSHAKE)
  const peer = await backend.next()
  assert.match(await takeHead(peer), /\r\nX-A: 1\r\n/)
  peer.send(switchingProtocols())
  assert.match(await takeHead(client), /^HTTP\/1\.1 101 [\s\S]*\r\nX-B: 2\r\n/)
})

for (const [title, flow, status] of [
  ['drops', '<drop/>', 202],
  ['fails on', '<throwError type="T" errorMessage="m"/>', 500],
] as const) {
  test(`a request flow that ${title} a handshake answers it, and the backend gets nothing`, async t => {
    const { gateway, backend } = await startFlows(t, [await flowsOf({ request: flow })])
    const client = await connectPeer(gateway.port)
    client.send(HANDSHAKE)
    assert.equal((await takeResponse(client)).status, status)
    assert.equal(backend.peers.length, 0)
  })

  test(`a response flow that ${title} a 101 answers the client, and the backend's connection is closed`, async t => {
    const { gateway, backend } = await startFlows(t, [await flowsOf({ response: flow })])
    const client = await connectPeer(gateway.port)
    client.send(HANDSHAKE)
    const peer = await backend.next()
    await takeHead(peer)
    peer.send(switchingProtocols())
    assert.equal((await takeResponse(client)).status, status)
    await peer.untilEnd()
  })
}

const NEEDS_WORKER = '<payloadFactory media-type="json"><format>{}</format><args/></payloadFactory>'

/** A worker that sets a field and leaves the body alone. */
function settingWorker(name: string, flows: string[]): Pick<WorkerService, 'mediate'> {
  return {
    async mediate({ flow, message }) {
      flows.push(flow)
      const fields = [...message.fields, [name, 'worker'] as const]
      return { kind: 'continues', message: { ...message, fields, body: { kind: 'untouched' } }, endpoint: '' }
    },
  }
}

test('D269: a handshake waits for a request flow on a worker, and a 101 passes such a response flow', async t => {
  const flows: string[] = []
  const plan = await flowsOf({ request: NEEDS_WORKER, response: NEEDS_WORKER })
  const { gateway, backend } = await startFlows(t, [plan], { worker: settingWorker('X-W', flows) })
  const client = await connectPeer(gateway.port)
  client.send(HANDSHAKE)
  const peer = await backend.next()
  const sent = await takeHead(peer)
  assert.match(sent, /\r\nX-W: worker\r\n/)
  assert.match(sent, /\r\nUpgrade: websocket\r\n/i)
  peer.send(switchingProtocols())
  assert.match(await takeHead(client), /^HTTP\/1\.1 101 /)
  assert.deepEqual(flows, ['request'])
  client.send('to')
  await peer.untilText('to')
  peer.send('back')
  await client.untilText('back')
})

const OPENING = ['Sec-WebSocket-Key: AQIDBA==', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Extensions: x']

test('D845: a flow that replaces all fields leaves a handshake those of RFC 6455 4.1, and sees none', async t => {
  const seen: string[] = []
  const worker: Pick<WorkerService, 'mediate'> = {
    async mediate({ message }) {
      seen.push(...message.fields.map(([name]) => name.toLowerCase()))
      const fields = [['X-Answer', 'yes']] as const
      return { kind: 'continues', message: { ...message, fields, body: { kind: 'untouched' } }, endpoint: '' }
    },
  }
  const { gateway, backend } = await startFlows(t, [await flowsOf({ request: NEEDS_WORKER })], { worker })
  const client = await connectPeer(gateway.port)
  client.send(HANDSHAKE.replace('\r\n\r\n', `\r\n${OPENING.join('\r\n')}\r\n\r\n`))
  const sent = await takeHead(await backend.next())
  for (const line of ['X-Answer: yes', ...OPENING]) assert.ok(sent.includes(`\r\n${line}\r\n`), sent)
  assert.deepEqual(
    seen.filter(name => name.startsWith('sec-websocket-')),
    [],
  )
})

test('D846: the body that a request flow makes does not follow the head of a handshake', async t => {
  const worker: Pick<WorkerService, 'mediate'> = {
    async mediate({ message }) {
      const fields = [...message.fields, ['Content-Type', 'application/json'] as const]
      const body = { kind: 'bytes', bytes: Buffer.from('{}') } as const
      return { kind: 'continues', message: { ...message, fields, body }, endpoint: '' }
    },
  }
  const { gateway, backend } = await startFlows(t, [await flowsOf({ request: NEEDS_WORKER })], { worker })
  const client = await connectPeer(gateway.port)
  client.send(HANDSHAKE)
  const peer = await backend.next()
  assert.doesNotMatch(await takeHead(peer), /content-/i)
  peer.send(switchingProtocols())
  await takeHead(client)
  client.send('frame')
  await peer.untilText('frame')
  assert.equal(peer.text, 'frame')
})

// ---- random flows against a model -----------------------------------------------------------------------------------

interface Edit {
  readonly name: string
  /** Null: removed. */
  readonly value: string | null
}

const NAMES = ['X-A', 'x-b', 'X-Long-Name', 'Accept', 'Cookie', 'ETag', 'Authorization', 'X-A-B']

/** Changes of fields, in XML: plain ones, or in the branch of a filter, so that the flow is not constant. */
function flowXml(edits: readonly Edit[], isConstant: boolean): string {
  const steps = edits.map(({ name, value }) => (value === null ? remove(name) : set(name, value))).join('')
  return isConstant ? steps : `<filter xpath="true()"><then>${steps}</then></filter>`
}

function randomEdits(random: Random): readonly Edit[] {
  return Array.from({ length: random.between(0, 5) }, () => ({
    name: random.pick(NAMES),
    value: random.once(3) ? null : random.text(random.between(0, 20), 'abc 019;=,'),
  }))
}

/** The lines behind those of `lines` that pass: the last change of each name, in the order of the first. */
function model(
  lines: readonly string[],
  edits: readonly Edit[],
): { readonly kept: string[]; readonly added: string[] } {
  const changes = new Map<string, Edit>()
  for (const edit of edits) changes.set(edit.name.toLowerCase(), edit)
  const kept = lines.filter(line => !changes.has(line.slice(0, line.indexOf(':')).toLowerCase()))
  const added = [...changes.values()].filter(({ value }) => value !== null)
  return { kept, added: added.map(({ name, value }) => `${name}: ${value}`) }
}

const OWN_LINES = /^(?:via|x-forwarded-|host|content-length|transfer-encoding|connection)/i

/** Lines of a head without those that the gateway writes itself. */
function linesOf(head: string): string[] {
  return head
    .split('\r\n')
    .slice(1, -2)
    .filter(line => !OWN_LINES.test(line))
    .map(line => line.trimEnd())
}

test(`random changes of fields are those of the model, seed ${SEED}`, async t => {
  const random = new Random(SEED)
  const edits = Array.from({ length: 6 }, () => ({ request: randomEdits(random), response: randomEdits(random) }))
  const plans = edits.map(({ request, response }, index) =>
    flowsOf({ request: flowXml(request, index % 2 === 0), response: flowXml(response, index % 3 === 0) }),
  )
  const { gateway, backend } = await startFlows(t, await Promise.all(plans))
  const heads = Array.from({ length: 4 }, () =>
    Array.from({ length: random.between(0, 8) }, () => {
      const name = random.pick([...NAMES, 'Other', 'x-a', 'ACCEPT'])
      return `${name}: ${random.text(random.between(0, 9), 'xyz')}`
    }).map(line => line.trimEnd()),
  )
  const client = await connectPeer(gateway.port)
  let peer: Awaited<ReturnType<typeof backend.next>> | undefined
  for (let turn = 0; turn < (IS_LONG ? 20_000 : 300); turn++) {
    const api = random.below(edits.length)
    const [asked, answered] = [random.pick(heads), random.pick(heads)]
    const text = (lines: readonly string[]) => lines.map(line => `${line}\r\n`).join('')
    client.send(`GET /${'abcdef'[api]}/r HTTP/1.1\r\nHost: h\r\n${text(asked)}\r\n`)
    peer ??= await backend.next()
    const ofRequest = model(asked, edits[api]!.request)
    const expected = [...ofRequest.kept, ...ofRequest.added.map(line => line.trimEnd())]
    assert.deepEqual(linesOf(await takeHead(peer)), expected, `request ${turn}`)
    peer.send(`HTTP/1.1 200 OK\r\n${text(answered)}Content-Length: 0\r\n\r\n`)
    const ofResponse = model(answered, edits[api]!.response)
    const received = [...ofResponse.kept, ...ofResponse.added.map(line => line.trimEnd())]
    assert.deepEqual(linesOf(await takeHead(client)), received, `response ${turn}`)
  }
})
