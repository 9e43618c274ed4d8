/** Mounted APIs: everything that ends a request otherwise than by its response, over real sockets. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PERMIT_ROWS } from '../../src/plan/worker-plan.ts'
import { SharedPermits } from '../../src/runtime/shared-permits.ts'
import type { TestGateway } from '../harness/gateway.ts'
import { mounted, mountedApi, startMounted } from '../harness/mounted.ts'
import { connectPeer, eventually, type Peer, pollPause } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'

const get = (path: string) => `GET /m/${path} HTTP/1.1\r\nHost: h\r\n\r\n`

async function connect(t: Parameters<typeof startMounted>[0], gateway: TestGateway): Promise<Peer> {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  return client
}

async function json(client: Peer, path: string): Promise<unknown> {
  client.send(get(path))
  return JSON.parse((await takeResponse(client)).body)
}

interface Failure {
  readonly name: string
  readonly request: string
  readonly status: number
  readonly code: number
  readonly cause: RegExp
}

const FAILURES: readonly Failure[] = [
  { name: 'throws', request: get('throws'), status: 500, code: 102570, cause: /^TypeError at / },
  { name: 'returns nothing', request: get('nothing'), status: 500, code: 102571, cause: /^there is no response$/ },
  { name: 'splits a field', request: get('split'), status: 500, code: 102571, cause: /^a field has / },
  { name: 'responds 100', request: get('status?100'), status: 500, code: 102571, cause: /^the status is not / },
  { name: 'responds 600', request: get('status?600'), status: 500, code: 102571, cause: /^the status is not / },
  {
    name: 'does not read so long a body',
    request: `POST /m/text HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n${'x'.repeat(1001)}`,
    status: 413,
    code: 102573,
    cause: /^BodyTooLong at /,
  },
]

for (const { name, request, status, code, cause } of FAILURES) {
  test(`an implementation that ${name} is ${status} with ${code} and a log line; the next one is served`, async t => {
    const gateway = await startMounted(t)
    const client = await connect(t, gateway)
    client.send(request)
    const response = await takeResponse(client)
    assert.equal(response.status, status)
    assert.match(response.body, new RegExp(`"code":${code},`))
    const [line] = gateway.reports.filter(({ event }) => event === 'mounted API failed')
    assert.equal(line!.fields.ERROR_CODE, code)
    assert.match(String(line!.fields.CAUSE_OF_ERROR), cause)
    assert.ok(!JSON.stringify(gateway.reports).includes('text of a client'))
    client.send(get('early'))
    assert.equal((await takeResponse(client)).status, 409)
  })
}

const BROKEN: readonly (readonly [path: string, what: string])[] = [
  ['breaks', 'whose body throws'],
  ['short', 'whose body is shorter than its length'],
  ['long', 'whose body is longer than its length'],
]

for (const [path, what] of BROKEN) {
  test(`a response ${what} is reset, never completed`, async t => {
    const gateway = await startMounted(t)
    const client = await connect(t, gateway)
    client.send(get(path))
    await client.untilEnd().catch(() => undefined)
    assert.ok(!client.text.endsWith('0\r\n\r\n'))
    const [line] = gateway.reports.filter(({ event }) => event === 'mounted API failed')
    assert.ok([102570, 102571].includes(Number(line!.fields.ERROR_CODE)))
  })
}

test('a module that cannot be opened is 503 with 102574, and the next request tries again', async t => {
  const apis = [mountedApi({ mounted: mounted({ settings: { fails: 'open' } }) })]
  const gateway = await startMounted(t, {}, apis)
  const client = await connect(t, gateway)
  for (let round = 0; round < 2; round++) {
    client.send(get('early'))
    const response = await takeResponse(client)
    assert.deepEqual([response.status, /"code":102574,/.test(response.body)], [503, true])
  }
  const causes = gateway.reports
    .filter(({ event }) => event === 'mounted API failed')
    .map(({ fields }) => fields.CAUSE_OF_ERROR)
  assert.match(String(causes[1]), /^RangeError at /)
})

test('a client that leaves aborts its request, and a response in pieces is produced no further', async t => {
  const gateway = await startMounted(t)
  const observer = await connect(t, gateway)
  for (const path of ['waits?left', 'gentle?gone']) {
    const client = await connect(t, gateway)
    client.send(get(path))
    await json(observer, 'aborted')
    client.reset()
  }
  const left = async () => (await json(observer, 'aborted')) as readonly string[]
  for (;;) {
    const all = await left()
    if (all.includes('left') && all.includes('gone')) break
    await pollPause()
  }
  const reader = await connect(t, gateway)
  reader.send(get('marked?stream'))
  await reader.untilLength(100_000)
  reader.reset()
  while (!(await left()).includes('stream')) await pollPause()
})

test('a client that does not read gets no more than a bounded number of bytes ahead', async t => {
  const gateway = await startMounted(t)
  const client = await connect(t, gateway)
  const observer = await connect(t, gateway)
  client.pause()
  client.send(get('marked?slow'))
  let before = -1
  let now = 0
  // Sockets and windows are full once nothing more is produced over several requests of another client.
  for (let same = 0; same < 20; ) {
    before = now
    now = (await json(observer, 'produced?slow')) as number
    same = now === before && now > 0 ? same + 1 : 0
  }
  assert.ok(now < 32 * 1024 * 1024, `${now} bytes`)
  client.reset()
})

test('global_timeout_interval answers 504 with 102572 and aborts the signal', async t => {
  const gateway = await startMounted(t, { responseTimeoutMs: 100 })
  const client = await connect(t, gateway)
  client.send(get('gentle?late'))
  const response = await takeResponse(client)
  assert.deepEqual([response.status, /"code":102572,/.test(response.body)], [504, true])
  assert.equal(gateway.metrics().counts.workerTimeouts, 1)
  for (;;) {
    const aborted = await json(client, 'aborted')
    // On a busy machine this request, too, may take too long.
    if (Array.isArray(aborted) && aborted.includes('late')) break
    await pollPause()
  }
})

test('a thread that dies costs its own requests 500 with 102543, and another one serves the next', async t => {
  const gateway = await startMounted(t)
  const client = await connect(t, gateway)
  client.send(get('dies'))
  const response = await takeResponse(client)
  assert.deepEqual([response.status, /"code":102543,/.test(response.body)], [500, true])
  client.send(get('early'))
  assert.equal((await takeResponse(client)).status, 409)
})

test('a response that is under way is reset where its thread dies', async t => {
  const gateway = await startMounted(t)
  const [reader, killer] = [await connect(t, gateway), await connect(t, gateway)]
  reader.pause()
  reader.send(get('marked?doomed'))
  while (((await json(killer, 'produced?doomed')) as number) === 0) await pollPause()
  killer.send(get('dies'))
  assert.equal((await takeResponse(killer)).status, 500)
  reader.resume()
  assert.equal(await reader.untilEnd(), 'RST')
})

test('requests under way end with the old implementation at a reload, further ones go to the new one', async t => {
  const gateway = await startMounted(t)
  const [old, client] = [await connect(t, gateway), await connect(t, gateway)]
  old.send('POST /m/text HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nab')
  await json(client, 'aborted')
  const next = mountedApi({ mounted: mounted({ settings: { edition: 'second' } }) })
  await gateway.deploy({ planned: [next] })
  const shown = (await json(client, 'show')) as { readonly settings: object }
  assert.deepEqual(shown.settings, { edition: 'second' })
  old.send('cd')
  assert.equal((await takeResponse(old)).body, 'abcd')
})

test('a pool with one permit and no queue refuses a second request with 102540', async t => {
  const http = { worker_pool_size_core: 1, worker_pool_size_max: 1, worker_pool_queue_length: 0 }
  const gateway = await startMounted(t, { http })
  const [first, second] = [await connect(t, gateway), await connect(t, gateway)]
  first.send(get('waits?permit'))
  let status = 0
  while (status !== 503) {
    second.send(get('early'))
    const response = await takeResponse(second)
    status = response.status
    if (status === 503) assert.match(response.body, /"code":102540,/)
  }
})

/** [what the implementation does, path, global_timeout_interval]. */
const ABANDONED: readonly (readonly [what: string, path: string, timeoutMs: number])[] = [
  ['ends at its abort', 'gentle?permit', 300_000],
  ['ignores its abort', 'waits?ignored', 1000],
]

for (const [what, path, responseTimeoutMs] of ABANDONED) {
  test(`a request whose client leaves gives its permit back where its implementation ${what}`, async t => {
    const http = { worker_pool_size_core: 1, worker_pool_size_max: 1, worker_pool_queue_length: 0 }
    const permits = SharedPermits.allocate(1, Object.keys(PERMIT_ROWS).length)
    const gateway = await startMounted(t, { http, permits, responseTimeoutMs })
    const client = await connect(t, gateway)
    const running = () => SharedPermits.counts(permits, 1, PERMIT_ROWS.plain).running
    client.send(get(path))
    await eventually('the permit of the request', () => running() === 1)
    client.reset()
    await eventually('the free permit', () => running() === 0)
    const next = await connect(t, gateway)
    next.send(get('early'))
    assert.equal((await takeResponse(next)).status, 409)
  })
}

test('the key type without an implementation is refused as one without endpoints', async t => {
  const only = mounted({ keyTypes: { production: false, sandbox: true } })
  const gateway = await startMounted(t, {}, [mountedApi({ mounted: only })])
  const client = await connect(t, gateway)
  client.send(get('early'))
  assert.equal((await takeResponse(client)).status, 401)
})
