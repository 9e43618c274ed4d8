/** The sample backend of `start --sample`: its resources, its limits, and its thread. */
import assert from 'node:assert/strict'
import { get, type IncomingMessage, request } from 'node:http'
import { after, before, test } from 'node:test'
import { startSampleBackend, startSampleThread, type SampleBackend } from '../../src/cli/sample-backend.ts'

let backend: SampleBackend
let base: string
before(async () => {
  backend = await startSampleBackend({ host: '127.0.0.1', port: 0 })
  base = `http://127.0.0.1:${backend.port}`
})
after(() => backend.close())

/** Length and text of a body, and the code of the error that truncated it. */
function bodyOf(response: IncomingMessage): Promise<{ bytes: number; text: string; error: string | undefined }> {
  return new Promise(resolve => {
    let text = ''
    let bytes = 0
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes < 100_000) text += chunk.toString('latin1')
    })
    response.on('error', (failure: NodeJS.ErrnoException) => resolve({ bytes, text, error: failure.code }))
    response.on('end', () => resolve({ bytes, text, error: undefined }))
  })
}

function fetched(path: string, options = {}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) =>
    get(`${base}${path}`, { agent: false, ...options }, resolve).on('error', reject),
  )
}

test('/ lists the paths, and so does a 404', async () => {
  const list = (await (await fetch(`${base}/`)).json()) as { paths: Record<string, string> }
  assert.ok(Object.keys(list.paths).includes('/delay/<ms>'))
  const missing = await fetch(`${base}/nowhere?x=1`)
  assert.equal(missing.status, 404)
  assert.deepEqual(await missing.json(), { error: 'the sample backend has no /nowhere', paths: list.paths })
})

const OUT_OF_BOUNDS = [
  '/delay/60001',
  '/bytes/4294967297',
  '/status/199',
  '/status/600',
  '/stream/0/1',
  '/stream/1/60001',
]
for (const path of OUT_OF_BOUNDS) {
  test(`${path} is refused with the bounds`, async () => {
    const response = await fetch(`${base}${path}`)
    assert.equal(response.status, 400)
    assert.match(((await response.json()) as { error: string }).error, /go from \d+ to \d+$/)
  })
}
for (const path of ['/delay', '/delay/', '/delay/x', '/delay/-1', '/delay/1/2', '/bytes/1e3', '//echo', '/echoes']) {
  test(`${path} is not found`, async () => assert.equal((await fetch(`${base}${path}`)).status, 404))
}

test('/echo returns a body with its type and length', async () => {
  const response = await fetch(`${base}/echo?x=1`, {
    method: 'PUT',
    body: 'péng',
    headers: { 'content-type': 'text/x' },
  })
  assert.equal(response.headers.get('content-type'), 'text/x')
  assert.equal(response.headers.get('content-length'), '5')
  assert.equal(await response.text(), 'péng')
})

test('/echo returns a chunked body chunked', async () => {
  const response = await new Promise<IncomingMessage>(resolve => {
    const sending = request(`${base}/echo`, { method: 'POST' }, resolve)
    sending.write('one')
    sending.end('two')
  })
  assert.equal(response.headers['transfer-encoding'], 'chunked')
  assert.equal((await bodyOf(response)).text, 'onetwo')
})

for (const path of ['/echo', '/echo/', '/echo/items/7']) {
  test(`${path} without a body returns method, URL and headers`, async () => {
    const response = await fetch(`${base}${path}?x=1`, { method: 'DELETE', headers: { 'x-a': 'b' } })
    const seen = (await response.json()) as { method: string; url: string; headers: Record<string, string> }
    assert.deepEqual([seen.method, seen.url, seen.headers['x-a']], ['DELETE', `${path}?x=1`, 'b'])
  })
}

test('/delay responds after the delay', async () => {
  assert.deepEqual(await (await fetch(`${base}/delay/5`)).json(), { delayedMs: 5 })
})

for (const bytes of [0, 1, 65_536, 65_537, 20_000_000]) {
  test(`/bytes/${bytes} sends that many bytes`, async () => {
    const response = await fetched(`/bytes/${bytes}`)
    assert.equal(response.headers['content-length'], `${bytes}`)
    assert.deepEqual((await bodyOf(response)).bytes, bytes)
  })
}

test('HEAD of the largest size sends no body', async () => {
  const response = await fetched('/bytes/4294967296', { method: 'HEAD' })
  assert.equal(response.headers['content-length'], '4294967296')
  assert.equal((await bodyOf(response)).bytes, 0)
})

test('/stream sends its chunks, chunked', async () => {
  const response = await fetched('/stream/3/1')
  assert.equal(response.headers['transfer-encoding'], 'chunked')
  assert.equal((await bodyOf(response)).text, 'chunk 1 of 3\nchunk 2 of 3\nchunk 3 of 3\n')
})

for (const status of [200, 204, 205, 304, 404, 503, 599]) {
  test(`/status/${status} sends that status`, async () =>
    assert.equal((await fetched(`/status/${status}`)).statusCode, status))
}

test('/trailers sends trailer fields', async () => {
  const response = await fetched('/trailers')
  assert.equal((await bodyOf(response)).text, 'one\ntwo\n')
  assert.deepEqual({ ...response.trailers }, { 'x-lines': '2', 'x-checksum': 'ab12' })
})

test('/early-hints sends 103 before 200', async () => {
  const interim: number[] = []
  const response = await new Promise<IncomingMessage>(resolve => {
    get(`${base}/early-hints`, resolve).on('information', ({ statusCode }) => interim.push(statusCode))
  })
  assert.deepEqual([interim, response.statusCode], [[103], 200])
  await bodyOf(response)
})

test('/close closes the connection after half of its Content-Length', async () => {
  const response = await fetched('/close')
  assert.equal(response.headers['content-length'], '2000')
  const { bytes, error } = await bodyOf(response)
  assert.deepEqual([bytes, error], [1000, 'ECONNRESET'])
})

test('/drip sends its first byte at once', async () => {
  const response = await fetched('/drip')
  assert.equal(response.headers['content-length'], '20')
  assert.equal(await new Promise(resolve => response.once('data', chunk => resolve(String(chunk)))), '.')
  response.destroy()
})

test('a client that disconnects does no harm', async () => {
  for (const path of ['/delay/60000', '/stream/1000/1', '/bytes/1000000000']) {
    const leaving = get(`${base}${path}`, response => response.once('data', () => response.destroy()))
    leaving.on('error', () => {})
    if (path.startsWith('/delay')) setTimeout(() => leaving.destroy(), 20)
    await new Promise(resolve => leaving.once('close', resolve))
  }
  assert.equal((await fetch(`${base}/`)).status, 200)
})

test('a taken port is an error that names the port, in this thread and in another', async () => {
  const expected = { message: `the sample backend cannot listen on 127.0.0.1:${backend.port}: the port is taken` }
  const address = { host: '127.0.0.1', port: backend.port }
  await assert.rejects(startSampleBackend(address), expected)
  await assert.rejects(startSampleThread(address), expected)
})

test('the thread serves until it is closed', async () => {
  const threaded = await startSampleThread({ host: '127.0.0.1', port: 0 })
  assert.equal((await fetch(`http://127.0.0.1:${threaded.port}/status/201`)).status, 201)
  await threaded.close()
  await assert.rejects(fetch(`http://127.0.0.1:${threaded.port}/`))
})
