/** The health port serves clients that close their half early, and no slow client keeps the others away. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
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
  const listener = await startHealthListener('127.0.0.1', 0, 10, SOURCES, undefined, { requestMs: 300 })
  t.after(() => listener.close())
  const slow = connect(listener.port, '127.0.0.1')
  const drip = setInterval(() => slow.write('G'), 20)
  t.after(() => clearInterval(drip))
  // Bytes that come behind the end make it a reset, which would reject the wait of `once`.
  await new Promise(closed => slow.on('error', () => {}).on('close', closed))
  clearInterval(drip)
  const half = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true })
  half.end('GET /healthz HTTP/1.1\r\n')
  half.resume()
  await once(half, 'close')
})

/** Sends a request over `from` and reads nothing of the response. */
async function scrapeSlowly(port: number, from = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from })
  socket.on('error', () => {})
  socket.pause().write('GET /metrics HTTP/1.1\r\n\r\n')
  await once(socket, 'connect')
  return socket
}

async function check(port: number, from: string, path = '/readyz'): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from })
  let received = ''
  socket.setEncoding('latin1').on('data', piece => (received += piece))
  socket.write(`GET ${path} HTTP/1.1\r\n\r\n`)
  await once(socket, 'close')
  return received
}

const MAX = 8
/** More than the sockets of both sides hold, and MAX of them less than all scrapers may leave untaken. */
const LONG = 'sluice_requests_total 1\n'.repeat(300_000)

test('a health check is answered while slow scrapers hold every connection, and closes one of theirs', async t => {
  const sources = { ...SOURCES, metrics: () => Promise.resolve(LONG) }
  const listener = await startHealthListener('127.0.0.1', 0, MAX, sources)
  t.after(() => listener.close())
  const bystander = await scrapeSlowly(listener.port, '127.0.0.3')
  const scrapers: Socket[] = []
  for (let n = 0; n < MAX - 1; n++) scrapers.push(await scrapeSlowly(listener.port))
  for (const from of ['127.0.0.2', '127.0.0.1']) {
    assert.match(await check(listener.port, from), /^HTTP\/1\.1 200 OK\r\n/, from)
  }
  for (const socket of scrapers) socket.resume()
  let bytes = 0
  bystander.on('data', piece => (bytes += piece.length)).resume()
  await once(bystander, 'close')
  assert.ok(bytes > LONG.length, 'the address with one connection keeps it')
  await Promise.all(scrapers.filter(({ closed }) => !closed).map(socket => once(socket, 'close')))
})

test('a scraper that takes its response in pieces loses it at its time', async t => {
  const sources = { ...SOURCES, metrics: () => Promise.resolve(LONG) }
  const listener = await startHealthListener('127.0.0.1', 0, MAX, sources, undefined, { responseMs: 300 })
  t.after(() => listener.close())
  const socket = await scrapeSlowly(listener.port)
  let bytes = 0
  socket.on('data', piece => {
    bytes += piece.length
    socket.pause()
    setTimeout(() => socket.resume(), 20)
  })
  socket.resume()
  await once(socket, 'close')
  assert.ok(bytes < LONG.length)
})

test('scrapers that ask together share one rendering, which begins behind the request of each', async t => {
  let rendered = 0
  let running = 0
  const metrics = async () => {
    assert.equal(++running, 1, 'one at a time')
    const text = `sluice_requests_total ${++rendered}\n`
    await pause(50)
    running--
    return text
  }
  const listener = await startHealthListener('127.0.0.1', 0, 64, { ...SOURCES, metrics })
  t.after(() => listener.close())
  const texts = await Promise.all(Array.from({ length: 40 }, () => check(listener.port, '127.0.0.1', '/metrics')))
  for (const text of texts) assert.match(text, /^HTTP\/1\.1 200 OK\r\n[\s\S]*\nsluice_requests_total \d+\n$/)
  assert.ok(rendered < 20, String(rendered))
})

test('pages that scrapers leave untaken have a limit of bytes: the oldest ones are closed', async t => {
  const text = 'x'.repeat(30 * 1024 * 1024)
  const listener = await startHealthListener('127.0.0.1', 0, 64, { ...SOURCES, metrics: () => Promise.resolve(text) })
  t.after(() => listener.close())
  const first = await scrapeSlowly(listener.port)
  await once(first, 'readable')
  const others: Socket[] = []
  for (let n = 0; n < 3; n++) {
    const socket = await scrapeSlowly(listener.port)
    await once(socket, 'readable')
    others.push(socket)
  }
  let bytes = 0
  first.on('data', piece => (bytes += piece.length)).resume()
  await once(first, 'close')
  assert.ok(bytes < text.length)
  for (const socket of others) socket.destroy()
})

test('a rendering that fails is 500 and ends nothing', async t => {
  const listener = await startHealthListener('127.0.0.1', 0, 64, {
    ...SOURCES,
    metrics: () => Promise.reject(new Error('no memory')),
  })
  t.after(() => listener.close())
  assert.match(await check(listener.port, '127.0.0.1', '/metrics'), /^HTTP\/1\.1 500 [\s\S]*no memory/)
  assert.match(await check(listener.port, '127.0.0.1'), /^HTTP\/1\.1 200 /)
})
