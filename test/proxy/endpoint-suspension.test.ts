/**
 * Suspension of a lone endpoint: failures that one client can cause do not suspend it, while other clients are served;
 * failures in a row of several clients do.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, test, type TestContext } from 'node:test'
import { LEVEL } from '../harness/socket-level.ts'
import { takeResponse } from '../harness/responses.ts'
import { type EndpointGateway, startEndpoints } from '../harness/unreliable-backend.ts'
import { eventually, Peer, refusingPort, ScriptedBackend } from '../harness/peers.ts'

const TIMEOUT_MS = 300
const UPLOAD_BYTES = 8 * 1024 * 1024
const TOO_LARGE = 'HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig'
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** Reactions of the backend to the requests of the attacker, by path; it responds to every other request. */
const REACTIONS: Readonly<Record<string, (peer: Peer) => Promise<void> | void>> = {
  '/closes': peer => peer.end(),
  '/stalls': async peer => {
    await peer.untilText('hello')
    peer.end()
  },
  '/reflects': peer => {
    const field = /X-Mine: (\S*)/.exec(peer.take())?.[1] ?? ''
    peer.send(`HTTP/1.1 200 OK\r\nX-Yours: ${field}${field}\r\nContent-Length: 0\r\n\r\n`)
  },
  '/unread': peer => {
    peer.pause()
    peer.destroy()
  },
  '/refused': peer => {
    peer.pause()
    peer.send(TOO_LARGE)
    // The kernel sends a reset behind the response, because bytes of the upload are unread.
    peer.destroy()
  },
  '/late': () => {},
}

const backend = await ScriptedBackend.listen(peer => void serve(peer))
after(() => backend.close())

async function serve(peer: Peer): Promise<void> {
  while (!peer.isClosed && peer.ending === '') {
    await peer.untilRequest()
    const path = /^[A-Z]+ (\S*)/.exec(peer.text)?.[1] ?? ''
    if (path === '') return
    const react = REACTIONS[path]
    if (react === undefined) {
      peer.take()
      peer.send(OK)
    } else {
      await react(peer)
      return
    }
  }
}

async function begin(t: TestContext, http: Readonly<Record<string, unknown>> = {}): Promise<EndpointGateway> {
  const gateway = await startEndpoints(
    { kind: 'single', ports: [backend.port] },
    // The loss of a pooled connection never counts.
    {
      disable_connection_keepalive: true,
      'http.socket.timeout': 10_000,
      'header.max_bytes': 16_000,
      'response.header.max_bytes': 16_000,
      ...http,
    },
  )
  t.after(() => gateway.stop())
  return gateway
}

/** Connects from this address; each address of 127.0.0.0/8 is another client. */
async function dial({ port }: EndpointGateway, localAddress: string): Promise<Peer> {
  const socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true })
  const peer = new Peer(socket)
  await once(socket, 'connect')
  return peer
}

const ATTACKER = '127.0.0.2'

/** Checks that a request of another client is served. */
async function assertServed(gateway: EndpointGateway): Promise<void> {
  const client = await dial(gateway, '127.0.0.1')
  client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  const { status, body } = await takeResponse(client)
  client.destroy()
  assert.deepEqual([status, body], [200, 'ok'])
}

/** Request of the attacker, its bytes, and status and code of the fault. */
const ATTACKS: readonly (readonly [what: string, request: string, status: number, code: number])[] = [
  [
    'an upgrade at which the backend closes',
    'GET /t/closes HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n',
    502,
    101508,
  ],
  ['a request at which the backend closes', 'POST /t/closes HTTP/1.1\r\nHost: a\r\n\r\n', 502, 101508],
  [
    'an unfinished body at which the backend closes',
    'POST /t/stalls HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello',
    502,
    101507,
  ],
  [
    'a field that makes the response head too long',
    `GET /t/reflects HTTP/1.1\r\nHost: a\r\nX-Mine: ${'x'.repeat(10_000)}\r\n\r\n`,
    502,
    101509,
  ],
  [
    'an upload that the backend does not read',
    `POST /t/unread HTTP/1.1\r\nHost: a\r\nContent-Length: ${UPLOAD_BYTES}\r\n\r\n${'x'.repeat(UPLOAD_BYTES)}`,
    502,
    101502,
  ],
  ['a request without a response in time', 'GET /t/late HTTP/1.1\r\nHost: a\r\n\r\n', 504, 101507],
]

for (const [what, request, status, code] of ATTACKS) {
  test(`${what} does not suspend a lone endpoint, and other clients are served`, async t => {
    const gateway = await begin(t, status === 504 ? { 'http.socket.timeout': TIMEOUT_MS } : {})
    await assertServed(gateway)
    for (let round = 0; round < 2; round++) {
      const attacker = await dial(gateway, ATTACKER)
      attacker.send(request)
      const response = await takeResponse(attacker)
      attacker.destroy()
      assert.equal(response.status, status)
      assert.equal(JSON.parse(response.body).fault.code, code)
      assert.deepEqual(gateway.states, ['ACTIVE'])
      await assertServed(gateway)
    }
    assert.equal(gateway.table.read(0).failures, 2, 'each failure is counted')
    assert.equal(gateway.table.read(0).suspensions, 0)
  })
}

test('an upload that gets 413 and a reset does not suspend a lone endpoint, and the client gets 413', async t => {
  const gateway = await begin(t)
  for (let round = 0; round < 5; round++) {
    const attacker = await dial(gateway, ATTACKER)
    attacker.send(`POST /t/refused HTTP/1.1\r\nHost: a\r\nContent-Length: ${UPLOAD_BYTES}\r\n\r\n`)
    attacker.send('x'.repeat(UPLOAD_BYTES))
    const { status } = await takeResponse(attacker)
    attacker.destroy()
    // A stream of node:net closes itself when a write fails, and drops the unread response.
    assert.ok(status === 413 || (LEVEL === 'streams' && status === 502), `status ${status}`)
    assert.deepEqual(gateway.states, ['ACTIVE'])
    await assertServed(gateway)
  }
})

test('suspend.clients: any number of failures of one client does not suspend a lone endpoint', async t => {
  const gateway = await begin(t)
  for (let round = 0; round < 20; round++) {
    const attacker = await dial(gateway, ATTACKER)
    attacker.send('POST /t/closes HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.equal((await takeResponse(attacker)).status, 502)
    attacker.destroy()
  }
  assert.deepEqual([gateway.states, gateway.table.read(0).failures], [['ACTIVE'], 20])
  await assertServed(gateway)
})

/** Causes one failure from each of these addresses; returns the state after each failure. */
async function failAll(gateway: EndpointGateway, addresses: readonly string[]): Promise<readonly string[]> {
  const states: string[] = []
  for (const address of addresses) {
    const client = await dial(gateway, address)
    client.send('POST /t/closes HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.equal((await takeResponse(client)).status, 502)
    client.destroy()
    states.push(...gateway.states)
  }
  return states
}

test('suspend.failures: so many failures in a row of several clients suspend a lone endpoint', async t => {
  const gateway = await begin(t, { 'suspend.failures': 3 })
  const states = await failAll(gateway, [ATTACKER, ATTACKER, '127.0.0.3'])
  assert.deepEqual(states, ['ACTIVE', 'ACTIVE', 'SUSPENDED'])
  const { fields } = gateway.reports.find(({ event }) => event === 'endpoint suspended')!
  assert.equal(fields.CAUSE_OF_ERROR, '3 failures in a row, the last: connection closed by the backend')
  assert.equal(fields.RETRY_IN_MS, 1000)
})

test('suspend.failures: a response starts the count again', async t => {
  const gateway = await begin(t, { 'suspend.failures': 3 })
  assert.deepEqual(await failAll(gateway, [ATTACKER, '127.0.0.3']), ['ACTIVE', 'ACTIVE'])
  await assertServed(gateway)
  assert.deepEqual(await failAll(gateway, [ATTACKER, '127.0.0.3']), ['ACTIVE', 'ACTIVE'])
})

test('suspend.window: failures at a greater distance are not counted together', async t => {
  const gateway = await begin(t, { 'suspend.failures': 2, 'suspend.window': 100 })
  await failAll(gateway, [ATTACKER])
  await new Promise(resolve => setTimeout(resolve, 500))
  assert.deepEqual(await failAll(gateway, ['127.0.0.3']), ['ACTIVE'])
})

test('suspend.clients = 1: failures of one client suspend a lone endpoint', async t => {
  const gateway = await begin(t, { 'suspend.failures': 2, 'suspend.clients': 1 })
  assert.deepEqual(await failAll(gateway, [ATTACKER, ATTACKER]), ['ACTIVE', 'SUSPENDED'])
})

test('suspend.failures = 0: no number of failures suspends a lone endpoint', async t => {
  const gateway = await begin(t, { 'suspend.failures': 0 })
  const states = await failAll(gateway, [ATTACKER, '127.0.0.3', '127.0.0.4', '127.0.0.5', '127.0.0.6', '127.0.0.7'])
  assert.ok(states.every(state => state === 'ACTIVE'))
})

test('a lone endpoint that refuses connections is suspended for 1 s, then 2 s, with Retry-After', async t => {
  const refusing = await refusingPort()
  t.after(() => refusing.close())
  const gateway = await startEndpoints({ kind: 'single', ports: [refusing.port] })
  t.after(() => gateway.stop())
  const client = await dial(gateway, '127.0.0.1')
  t.after(() => client.destroy())
  for (const seconds of [1, 2, 4]) {
    // The second request follows the failure at once: the suspension is short.
    client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2))
    assert.equal((await takeResponse(client)).status, 502)
    const { status, fields } = await takeResponse(client)
    assert.equal(status, 503)
    const retryAfter = Number(fields.get('retry-after')?.[0])
    assert.ok(retryAfter >= 1 && retryAfter <= seconds + 1, `Retry-After: ${retryAfter}`)
    if (seconds < 4) await eventually('the end of the suspension', () => gateway.table.isReady(0))
  }
  const suspensions = gateway.reports.filter(({ event }) => event === 'endpoint suspended')
  const waits = suspensions.map(({ fields }) => fields.RETRY_IN_MS)
  assert.deepEqual(waits, [1000, 2000, 4000])
})

test('after a probe that fails within its exchange the next request is a probe at once', async t => {
  const gateway = await begin(t)
  gateway.table.failed(0, { ...gateway.settings[0]!, suspensionMs: 100 }, false, 101503, 0)
  await eventually('the end of the suspension', () => gateway.table.isReady(0))
  assert.deepEqual(await failAll(gateway, [ATTACKER]), ['SUSPENDED'])
  assert.equal(gateway.table.read(0).suspensions, 1, 'the suspension is not extended')
  await assertServed(gateway)
  assert.deepEqual(gateway.states, ['ACTIVE'])
})
