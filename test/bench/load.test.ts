import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createHttpBackend } from '../../bench/backends/http-backend.ts'
import type { LoadOutcome, LoadPlan } from '../../bench/load/load-plan.ts'
import { BODY_BYTES } from '../../bench/scenarios.ts'
import { sendRequest, verify } from '../../bench/verify.ts'

const GENERATOR = fileURLToPath(new URL('../../bench/load/load-generator.ts', import.meta.url))

let backend: Server
let port = 0

before(async () => {
  backend = createHttpBackend().listen(0, '127.0.0.1')
  await once(backend, 'listening')
  port = (backend.address() as AddressInfo).port
})

after(() => backend.close())

function plan(changes: Partial<LoadPlan>): LoadPlan {
  return {
    port,
    certificate: undefined,
    path: '/bench/1k',
    connections: 4,
    seconds: 0.2,
    uploadBytes: 0,
    downloadBytes: BODY_BYTES['1k'],
    connectionPerRequest: false,
    ratePerSecond: 0,
    warmUpSeconds: 0,
    ...changes,
  }
}

async function generate(changes: Partial<LoadPlan>): Promise<LoadOutcome> {
  const { stdout } = await promisify(execFile)(process.execPath, [GENERATOR, JSON.stringify(plan(changes))])
  return JSON.parse(stdout) as LoadOutcome
}

const CHUNKED = 'POST /upload HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n'

for (const [name, bytes] of Object.entries(BODY_BYTES)) {
  test(`the HTTP backend serves ${name} with and without the context`, async () => {
    await verify(plan({ path: `/${name}`, downloadBytes: bytes }))
    await verify(plan({ path: `/bench/${name}`, downloadBytes: bytes }))
  })
}

test('the HTTP backend reads an upload to its end before it responds', async () => {
  await verify(plan({ path: '/upload/1m', uploadBytes: BODY_BYTES['1m'], downloadBytes: 0 }))
  const response = await sendRequest(port, Buffer.from(CHUNKED), false)
  assert.equal(response.status, 200)
})

test('verification fails for a peer that returns the wrong number of bytes', async () => {
  await assert.rejects(verify(plan({ downloadBytes: 999 })), /returned 1024 of 999/)
})

test('verification fails for a peer that ignores Connection: close', { timeout: 120_000 }, async () => {
  await assert.rejects(verify(plan({ connectionPerRequest: true })), /kept the connection open/)
})

test('the closed loop counts requests without errors', async () => {
  const outcome = await generate({})
  assert.ok(outcome.requests > 0)
  assert.equal(outcome.errors, 0)
})

test('the open loop offers no more requests than are due', async () => {
  const outcome = await generate({ ratePerSecond: 100, seconds: 0.5, connections: 2 })
  // The number of responses depends on the machine.
  assert.ok(outcome.requests > 0 && outcome.requests <= 50, `${outcome.requests} requests`)
  assert.equal(outcome.errors, 0)
})

test('the load generator uploads complete bodies', async () => {
  const outcome = await generate({ path: '/upload/1m', uploadBytes: 100_000, downloadBytes: 0, connections: 2 })
  assert.ok(outcome.requests > 0)
  assert.equal(outcome.errors, 0)
})
