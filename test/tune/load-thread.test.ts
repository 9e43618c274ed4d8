/** The load generator of `tune` on real sockets: what counts, and from when on. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import type { LoadOutcome, LoadPlan } from '../../src/tune/load-thread.ts'

const LOAD_THREAD = new URL('../../src/tune/load-thread.ts', import.meta.url)
const STALL_MS = 500
const SHORT = { seconds: 0.2, warmUpSeconds: 0.05 }

async function loadOn(server: Server, changes: Partial<LoadPlan>): Promise<LoadOutcome> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const request = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
  const plan = { port, request, clients: 1, seconds: 1, warmUpSeconds: 0.2, ratePerSecond: 0, ...changes }
  const worker = new Worker(LOAD_THREAD, { workerData: plan satisfies LoadPlan })
  try {
    const [outcome] = (await once(worker, 'message')) as [LoadOutcome]
    return outcome
  } finally {
    await worker.terminate()
    server.close().closeAllConnections()
  }
}

/** Answers nothing for a while, once, in the middle of the measured time. */
function stalling(): Server {
  const held: ServerResponse[] = []
  let begunMs = 0
  return createServer((_, response) => {
    begunMs ||= performance.now()
    const sinceMs = performance.now() - begunMs
    if (sinceMs < STALL_MS || sinceMs > 2 * STALL_MS) return void response.end('ok')
    const release = (): void => {
      for (const one of held) one.end('ok')
    }
    if (held.push(response) === 1) setTimeout(release, 2 * STALL_MS - sinceMs)
  })
}

test('open loop: a stall counts for every request that was due in it (coordinated omission)', async () => {
  const open = await loadOn(stalling(), { ratePerSecond: 100 })
  // About fifty requests were due while one connection waited; each of the first forty was late by 100 ms or more.
  const late = open.latenciesMs.filter(ms => ms >= 100).length
  assert.ok(late >= 20, `${late} of ${open.latenciesMs.length}`)
})

test('closed loop: the next request follows the response, so a stall counts once for each client', async () => {
  const server = createServer((_, response) => void setTimeout(() => response.end('ok'), 100))
  const closed = await loadOn(server, { clients: 3 })
  assert.equal(closed.errors, 0)
  assert.ok(closed.succeeded > 0 && closed.succeeded <= 3 * 11, String(closed.succeeded))
})

test('a response of another class is an error, and counts no throughput', async () => {
  const server = createServer((_, response) => response.writeHead(503).end())
  const { succeeded, errors, failures, latenciesMs } = await loadOn(server, { seconds: 1 })
  assert.equal(succeeded, 0)
  assert.ok(errors > 0)
  assert.deepEqual([failures, latenciesMs.length], [{ 503: errors }, 0], 'a refusal is no fast response')
})

test('the code of a fault is part of the kind of failure', async () => {
  for (const body of ['{"code":"900902","type":"x"}', '<am:fault><am:code>900902</am:code></am:fault>']) {
    const { failures } = await loadOn(
      createServer((_, response) => response.writeHead(401).end(body)),
      {},
    )
    assert.deepEqual(Object.keys(failures), ['401 (900902)'])
  }
})

test('a response to HEAD ends with its head', async () => {
  const server = createServer((_, response) => response.writeHead(200, { 'Content-Length': 9 }).end())
  const { succeeded, errors } = await loadOn(server, { ...SHORT, request: 'HEAD / HTTP/1.1\r\nHost: a\r\n\r\n' })
  assert.ok(succeeded > 0 && errors === 0)
})

test('closed loop: a client that never gets a response counts once', async () => {
  const { succeeded, failures } = await loadOn(
    createServer(() => {}),
    { ...SHORT, clients: 2, firstMs: 50 },
  )
  assert.deepEqual([succeeded, failures], [0, { 'no response': 2 }])
})

test('the measured time begins after the first response: a cold start does not count', async () => {
  let isCold = true
  const server = createServer((_, response) => {
    setTimeout(() => response.end('ok'), isCold ? 500 : 0)
    isCold = false
  })
  const { succeeded, latenciesMs } = await loadOn(server, SHORT)
  assert.ok(succeeded > 1 && Math.max(...latenciesMs) < 500, String(succeeded))
})

test('connections that are reset at once are failures', async () => {
  const server = createServer((_, response) => response.end('ok'))
  server.on('connection', socket => server.listening && accepted++ > 0 && socket.resetAndDestroy())
  let accepted = 0
  const { succeeded, failures } = await loadOn(server, { ...SHORT, clients: 2 })
  assert.ok(succeeded > 0)
  const kinds = Object.keys(failures)
  assert.ok(kinds.length > 0 && kinds.every(kind => / connection$/.test(kind)), kinds.join())
})

test('connections that never open end the load with the reason', async () => {
  const worker = new Worker(LOAD_THREAD, {
    workerData: { port: 1, request: '', clients: 1, seconds: 1, warmUpSeconds: 0, ratePerSecond: 0, openMs: 50 },
  })
  const [error] = (await once(worker, 'error')) as [Error]
  assert.match(error.message, /^0 of 1 connections opened \(ECONNREFUSED\)$/)
})

test('open loop: requests that never get a response are errors', async () => {
  const { succeeded, errors } = await loadOn(
    createServer(() => {}),
    { ratePerSecond: 20 },
  )
  assert.equal(succeeded, 0)
  assert.ok(errors >= 15, String(errors))
})
