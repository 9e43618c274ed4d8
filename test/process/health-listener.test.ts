/** The health port serves clients that close their half early, and no slow client keeps the others away. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { startHealthListener } from '../../src/primary/health-listener.ts'

const SOURCES = {
  readiness: () => ({ status: 'ready', reason: '', parts: [] }) as const,
  metrics: () => pause(50, 'sluice_requests_total 1\n'),
  version: '1',
  testHooks: null,
}

test('a client that half-closes behind its request gets the whole response (RFC 9112 9.6)', async t => {
  const listener = await startHealthListener('127.0.0.1', 0, 10, SOURCES)
  t.after(() => listener.close())
  for (const path of ['/healthz', '/readyz', '/metrics']) {
    const socket = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true })
    let received = ''
    socket.setEncoding('latin1').on('data', piece => (received += piece))
    socket.end(`GET ${path} HTTP/1.0\r\n\r\n`)
    await once(socket, 'close')
    assert.match(received, /^HTTP\/1\.1 200 OK\r\n/, path)
  }
})

test('a request that comes byte by byte ends at its time, and half a request at its end', async t => {
  const listener = await startHealthListener('127.0.0.1', 0, 10, SOURCES, undefined, 300)
  t.after(() => listener.close())
  const slow = connect(listener.port, '127.0.0.1')
  slow.on('error', () => {})
  const drip = setInterval(() => slow.write('G'), 20)
  await once(slow, 'close')
  clearInterval(drip)
  const half = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true })
  half.end('GET /healthz HTTP/1.1\r\n')
  half.resume()
  await once(half, 'close')
})
