import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createWebSocketBackend } from '../../bench/backends/websocket-backend.ts'
import type { LoadOutcome, TunnelPlan } from '../../bench/load/load-plan.ts'
import { verifyWebSocket } from '../../bench/verify.ts'
import { acceptValue, maskedFrame, unmaskedFrame, readFrame } from '../../bench/websocket.ts'

const GENERATOR = fileURLToPath(new URL('../../bench/load/tunnel-generator.ts', import.meta.url))

let backend: Server
let port = 0

before(async () => {
  backend = createWebSocketBackend().listen(0, '127.0.0.1')
  await once(backend, 'listening')
  port = (backend.address() as AddressInfo).port
})

after(() => backend.close())

async function generate(changes: Partial<TunnelPlan>): Promise<LoadOutcome> {
  const plan: TunnelPlan = { port, traffic: 'echo', connections: 4, messageBytes: 128, seconds: 0.2, ...changes }
  const { stdout } = await promisify(execFile)(process.execPath, [GENERATOR, JSON.stringify(plan)])
  return JSON.parse(stdout) as LoadOutcome
}

test('the value of Sec-WebSocket-Accept is that of the example in RFC 6455 1.3', () =>
  assert.equal(acceptValue(), 's3pPLMBiTxaQ9kYGzzhZRbK+xOo='))

// RFC 6455 5.7: "Hello" masked, here as a binary frame.
test('a masked frame equals the example in RFC 6455 5.7', () => {
  assert.equal(maskedFrame(Buffer.from('Hello')).toString('hex'), '828537fa213d7f9f4d5158')
})

for (const bytes of [0, 125, 126, 65_535, 65_536]) {
  test(`frames of ${bytes} bytes are read once they are complete`, () => {
    const payload = Buffer.alloc(bytes, 'x')
    for (const frame of [maskedFrame(payload), unmaskedFrame(payload)]) {
      assert.equal(readFrame(frame, 0)?.end, frame.length)
      assert.equal(readFrame(frame.subarray(0, -1), 0), undefined)
    }
  })
}

test('the WebSocket backend echoes a message unchanged', () => verifyWebSocket(port))

test('verification fails for a peer that refuses the upgrade', async () => {
  const refusing = createServer(socket => socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n'))
  refusing.listen(0, '127.0.0.1')
  await once(refusing, 'listening')
  await assert.rejects(verifyWebSocket((refusing.address() as AddressInfo).port), /returned status 404 instead of 101/)
  refusing.close()
})

test('echo traffic counts messages with their latencies', async () => {
  const { requests, errors, p50Ms } = await generate({})
  assert.ok(requests > 0 && p50Ms! > 0)
  assert.equal(errors, 0)
})

test('stream traffic counts the messages of all connections', async () => {
  assert.ok((await generate({ traffic: 'stream', messageBytes: 65_536 })).requests > 4)
})
