/** `advise` names the one limit that was made too small: real gateways, one for each limit, with real clients. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { availableParallelism } from 'node:os'
import { after, test } from 'node:test'
import { advise } from '../../src/cli/advise.ts'
import { backend, dial, home, inProcess, leave, SILENT, start } from '../harness/operator.ts'
import { pollPause } from '../harness/peers.ts'
import { ask, freePort, type Home, type RunningGateway } from '../harness/program.ts'
import { put } from '../harness/reloading.ts'

const SERVICE_MS = 50
/** Called by flows. */
const service = createServer((request, response) => {
  request.resume()
  if (request.url !== SILENT) setTimeout(() => response.end('ok'), SERVICE_MS)
}).listen(0, '127.0.0.1')

after(async () => {
  service.close().closeAllConnections()
  await leave()
})

const LONG = 'x'.repeat(600)
const GET = 'GET /t/ HTTP/1.1\r\nHost: a\r\n'
const HELD = `GET /t${SILENT} HTTP/1.1\r\nHost: a\r\n\r\n`
const post = (bytes: number): string =>
  `POST /t/ HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`
const POST = post(600)

type Load = (gateway: RunningGateway) => Promise<void>

/** One request, until its response has this text. */
function request(text: string, expected: string): Load {
  return async gateway => {
    const client = await dial(gateway)
    client.send(text)
    await client.untilText(expected)
  }
}

/** A request that the backend holds, then others one after another until one of them is answered with the text. */
function behindHeld(expected: string): Load {
  return async gateway => {
    const first = await dial(gateway)
    backend.skip()
    first.send(HELD)
    // Another reactor could read a later request first, which would take the only connection.
    const held = await backend.next()
    await held.untilText(SILENT)
    while (!(await ask(gateway.port, 'GET', '/t/')).includes(expected)) await pollPause()
  }
}

/** A client that stays, and others until one of them is reset. */
async function clientBehindClient(gateway: RunningGateway): Promise<void> {
  const first = await dial(gateway)
  first.send(HELD)
  await dial(gateway).then(
    second => second.untilEnd(),
    () => undefined,
  )
}

/** Requests at once; waits for all responses, or, with a text, for the first one with it. */
function atOnce(count: number, text: string, expected = ''): Load {
  return async gateway => {
    const clients = await Promise.all(Array.from({ length: count }, () => dial(gateway)))
    for (const client of clients) client.send(text)
    if (expected === '') await Promise.all(clients.map(client => client.untilText('\r\n\r\n')))
    else await Promise.any(clients.map(client => client.untilText(expected)))
  }
}

/** Makes all requests pass a flow on a worker, which calls the service. */
function calling(path: string): (at: Home) => void {
  return at => {
    const { port } = service.address() as AddressInfo
    const endpoint = `<http method="post" uri-template="http://127.0.0.1:${port}${path}"/>`
    const call = `<call blocking="true"><endpoint>${endpoint}</endpoint></call>`
    const text = `<sequence xmlns="http://ws.apache.org/ns/synapse" name="WSO2AM--Ext--In">${call}</sequence>`
    put(at, 'synapse-configs/default/sequences/WSO2AM--Ext--In.xml', text)
  }
}

const PROCESSORS = availableParallelism()
const MANY = 2 * PROCESSORS
const pool = (size: number, queue: number): readonly string[] => [
  ...[`worker_pool_size_core=${size}`, `worker_pool_size_max=${size}`, `worker_pool_queue_length=${queue}`],
]

interface SetUp {
  /** Keys of `[transport.passthru_http]`. */
  readonly sets: readonly string[]
  readonly prepare?: (at: Home) => void
  readonly load: Load
  readonly key: string
  readonly proposed: number | null
}

/** Several reactors need a port that is known beforehand. */
const REACTORS = ['reactors=2', `listener.parameters.port=${await freePort()}`]

const SET_UPS: readonly SetUp[] = [
  { sets: ['max_open_connections=1'], load: clientBehindClient, key: 'max_open_connections', proposed: 2 },
  { sets: ['max_connections_per_client=1'], load: clientBehindClient, key: 'max_connections_per_client', proposed: 2 },
  {
    sets: ['http.max.connection.per.host.port=1'],
    ...{ load: behindHeld('101600'), key: 'http.max.connection.per.host.port', proposed: 2 },
  },
  {
    sets: [...REACTORS, 'http.max.connection.per.host.port=1'],
    ...{ load: behindHeld('101600'), key: 'http.max.connection.per.host.port', proposed: 2 },
  },
  {
    sets: ['target.max_bytes=100'],
    ...{ load: request(`GET /t/${LONG} HTTP/1.1\r\nHost: a\r\n\r\n`, ' 414 '), key: 'target.max_bytes', proposed: 200 },
  },
  {
    sets: ['header.max_bytes=512', 'target.max_bytes=512'],
    ...{ load: request(`${GET}X: ${LONG}\r\n\r\n`, ' 431 '), key: 'header.max_bytes', proposed: 1024 },
  },
  { sets: ['body.max_bytes=10'], load: request(POST, '102511'), key: 'body.max_bytes', proposed: 20 },
  {
    sets: ['http.socket.timeout=300'],
    ...{ load: request(HELD, ' 504 '), key: 'http.socket.timeout', proposed: null },
  },
  {
    sets: ['header.read_timeout=200'],
    ...{ load: request('GET /t/ HTTP/1.1\r\n', ' 408 '), key: 'header.read_timeout', proposed: null },
  },
  {
    sets: pool(1, 2),
    ...{ prepare: calling(SILENT), load: atOnce(6, POST, '102540'), key: 'worker_pool_size_max', proposed: MANY },
  },
  {
    sets: pool(1, -1),
    ...{ prepare: calling('/'), load: atOnce(6, POST), key: 'worker_pool_size_core', proposed: MANY },
  },
  {
    sets: pool(MANY, 2),
    ...{
      prepare: calling(SILENT),
      load: atOnce(MANY + 4, POST, '102540'),
      ...{ key: 'worker_pool_queue_length', proposed: 4 },
    },
  },
  {
    sets: [...pool(MANY, -1), 'worker_pool_queue_bytes=70000'],
    ...{
      prepare: calling(SILENT),
      load: atOnce(MANY + 4, post(30_000), '102541'),
      ...{ key: 'worker_pool_queue_bytes', proposed: 140_000 },
    },
  },
]

function advised(at: Home, ...words: string[]): Promise<string> {
  return inProcess(at, ['advise', ...words], ({ args }, ...outputs) => advise(args, ...outputs))
}

async function hitsOf(at: Home) {
  const { findings } = JSON.parse(await advised(at, '--json')) as {
    findings: { verdict: string; key: string; proposed: number | null }[]
  }
  return findings.filter(({ verdict }) => verdict === 'hit')
}

const HTTP = 'transport.passthru_http'
for (const { sets, prepare, load, key, proposed } of SET_UPS) {
  test(`advise names ${key}: ${sets.join(', ')}`, async () => {
    const at = home(backend.port, 'kept')
    prepare?.(at)
    const gateway = await start(
      at,
      sets.map(set => `${HTTP}.${set}`),
    )
    assert.match(await advised(at), /^no limit was hit since the start \(0 requests in \d+ s\): too few to tell/)
    await load(gateway)
    let hits = await hitsOf(at)
    // A response may leave before its request is counted.
    while (hits.length === 0) {
      await pollPause()
      hits = await hitsOf(at)
    }
    assert.deepEqual(
      hits.map(finding => [finding.key, finding.proposed]),
      [[`${HTTP}.${key}`, proposed]],
    )
    await gateway.program.kill()
  })
}
