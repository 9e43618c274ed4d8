/** Requests to HTTP providers, byte by byte, and what each response or failure means for the message. */
import assert from 'node:assert/strict'
import { after, beforeEach, suite, test } from 'node:test'
import { AddressGuard } from '../../src/delivery/address-guard.ts'
import type { AttemptResult } from '../../src/delivery/attempt.ts'
import { type HttpMessage, HttpSender } from '../../src/delivery/http-sender.ts'
import { retryAfterMs } from '../../src/delivery/retry-after.ts'
import { CA, EXPIRED, OTHER_CA, SERVER, VIRTUAL } from '../harness/certificates.ts'
import { ConnectProxy } from '../harness/connect-proxy.ts'
import { type Answer, ScriptedProvider, status } from './scripted-provider.ts'

const NEVER = new AbortController().signal
const provider = await ScriptedProvider.listen()
const secured = await ScriptedProvider.listen(SERVER)
const guard = new AddressGuard(['127.0.0.0/8'])
const sender = new HttpSender({ guard, ca: [CA.cert] })
/** For peers that never end what they begin. */
const impatient = new HttpSender({ guard, limits: { connectMs: 300, headMs: 300, bodyMs: 300, attemptMs: 300 } })

beforeEach(() => {
  for (const one of [provider, secured]) {
    one.requests.length = 0
    one.answer = status(202)
  }
})
after(() => {
  sender.close()
  impatient.close()
  provider.close()
  secured.close()
})

function message(given: Partial<HttpMessage> = {}): HttpMessage {
  return {
    url: `http://127.0.0.1:${provider.port}/send?v=2&key=s3cret`,
    method: 'POST',
    fields: [],
    contentType: 'application/json',
    body: '{"text":"hé \\"quoted\\" 👋"}',
    credentials: null,
    proxy: null,
    idempotencyKey: 'd-1',
    ...given,
  }
}

const send = (given: Partial<HttpMessage> = {}): Promise<AttemptResult> => sender.send(message(given), NEVER)

suite('what the provider receives', () => {
  const HOST = `host: 127.0.0.1:${provider.port}`
  const OWN = 'User-Agent: sluice\r\nAccept: */*\r\nIdempotency-Key: d-1'
  const BODY = Buffer.from('{"text":"hé \\"quoted\\" 👋"}').toString('latin1')
  const CASES: Readonly<Record<string, readonly [Partial<HttpMessage>, string]>> = {
    'POST with UTF-8': [
      {},
      `POST /send?v=2&key=s3cret HTTP/1.1\r\n${HOST}\r\nconnection: keep-alive\r\n` +
        `Content-Type: application/json\r\n${OWN}\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`,
    ],
    'PUT with fields and a Content-Type of its own': [
      {
        method: 'PUT',
        fields: [
          ['X-Api-Key', 'k'],
          ['content-type', 'text/plain'],
        ],
        body: 'a',
      },
      `PUT /send?v=2&key=s3cret HTTP/1.1\r\n${HOST}\r\nX-Api-Key: k\r\ncontent-type: text/plain\r\n` +
        `connection: keep-alive\r\n${OWN}\r\ncontent-length: 1\r\n\r\na`,
    ],
    'GET without a body': [
      { method: 'GET' },
      `GET /send?v=2&key=s3cret HTTP/1.1\r\n${HOST}\r\nconnection: keep-alive\r\n${OWN}\r\n\r\n`,
    ],
    'Basic of RFC 7617 in UTF-8': [
      { method: 'GET', credentials: { username: 'Jörg', password: 'p:w' } },
      `GET /send?v=2&key=s3cret HTTP/1.1\r\n${HOST}\r\nconnection: keep-alive\r\n` +
        `Authorization: Basic ${Buffer.from('Jörg:p:w').toString('base64')}\r\n${OWN}\r\n\r\n`,
    ],
    'an Authorization field instead of Basic': [
      { method: 'GET', fields: [['Authorization', 'Bearer t']], credentials: { username: 'u', password: 'p' } },
      `GET /send?v=2&key=s3cret HTTP/1.1\r\n${HOST}\r\nAuthorization: Bearer t\r\nconnection: keep-alive\r\n` +
        `${OWN}\r\n\r\n`,
    ],
  }
  const sorted = (request: string): readonly string[] => request.split('\r\n').toSorted()
  for (const [title, [given, expected]] of Object.entries(CASES)) {
    test(title, async () => {
      assert.deepEqual(await send(given), { kind: 'delivered', detail: 'HTTP 202' })
      assert.deepEqual(provider.requests.map(sorted), [sorted(expected)])
      assert.equal(provider.requests[0]!.split('\r\n')[0], expected.split('\r\n')[0])
    })
  }

  test('one connection serves messages in turn', async () => {
    await send()
    const before = provider.connections
    for (let turn = 0; turn < 5; turn++) await send()
    assert.equal(provider.connections, before)
  })

  test('the connections to one origin are limited', async t => {
    const limited = new HttpSender({ guard, connectionsMax: 8 })
    t.after(() => limited.close())
    const before = provider.connections
    const results = await Promise.all(Array.from({ length: 50 }, () => limited.send(message(), NEVER)))
    assert.ok(results.every(({ kind }) => kind === 'delivered'))
    assert.equal(provider.connections - before, 8)
  })
})

suite('what a response means', () => {
  const soon = new Date(Date.now() + 90_000).toUTCString()
  const retry = (code: number, afterMs: number | null = null): AttemptResult => {
    return { kind: 'retry', cause: `the provider responds with HTTP ${code}`, afterMs }
  }
  const CASES: readonly (readonly [number, readonly string[], AttemptResult])[] = [
    ...[200, 201, 202, 204].map(
      code => [code, [], { kind: 'delivered', detail: `HTTP ${code}` }] as [number, string[], AttemptResult],
    ),
    ...[400, 401, 403, 404, 409, 413, 422].map(
      code =>
        [code, [], { kind: 'failed', cause: `the provider responds with HTTP ${code}` }] as [
          number,
          string[],
          AttemptResult,
        ],
    ),
    ...[408, 425, 429, 500, 502, 503, 504].map(code => [code, [], retry(code)] as [number, string[], AttemptResult]),
    [429, ['Retry-After: 7'], retry(429, 7000)],
    [503, ['Retry-After: 999999'], retry(503, 3_600_000)],
    [503, ['Retry-After: soon'], retry(503)],
    ...[301, 302, 303, 307, 308].map(
      code =>
        [
          code,
          ['Location: http://127.0.0.1:1/'],
          { kind: 'failed', cause: `the provider responds with HTTP ${code}, a redirect, which is not followed` },
        ] as [number, string[], AttemptResult],
    ),
  ]
  for (const [code, fields, expected] of CASES) {
    test(`${code} ${fields.join(' ')}`, async () => {
      provider.answer = status(code, ...fields)
      assert.deepEqual(await send(), expected)
      assert.equal(provider.requests.length, 1)
    })
  }

  test('Retry-After as a date (RFC 9110 10.2.3)', async () => {
    provider.answer = status(503, `Retry-After: ${soon}`)
    const result = await send()
    assert.ok(result.kind === 'retry' && result.afterMs! > 60_000 && result.afterMs! <= 90_000)
  })

  test('each form of Retry-After, and what is none', () => {
    const nowMs = Date.UTC(1994, 10, 6, 8, 49, 0)
    const FORMS: Readonly<Record<string, number | null>> = {
      '0': 0,
      '120': 120_000,
      '99999999999999999999': 3_600_000,
      'Sun, 06 Nov 1994 08:49:37 GMT': 37_000,
      'Sunday, 06-Nov-94 08:49:37 GMT': 37_000,
      'Sun Nov  6 08:49:37 1994': 37_000,
      'Sun, 06 Nov 1994 08:00:00 GMT': 0,
      'Sun, 06 Nov 2094 08:00:00 GMT': 3_600_000,
      '': null,
      '-1': null,
      '1.5': null,
      '1994-11-06': null,
      'Sun, nonsense GMT': null,
    }
    for (const [value, expected] of Object.entries(FORMS)) assert.equal(retryAfterMs(value, nowMs), expected, value)
  })
})

suite('bodies of responses', () => {
  const withBody = (head: string, ...parts: readonly string[]): Answer => {
    return socket => void [`HTTP/1.1 200 OK\r\n${head}\r\n\r\n`, ...parts].every(part => socket.write(part) || true)
  }

  test('a body is drained, and its connection serves the next message', async () => {
    provider.answer = withBody('Content-Length: 60000', 'x'.repeat(60_000))
    assert.equal((await send()).kind, 'delivered')
    const before = provider.connections
    assert.equal((await send()).kind, 'delivered')
    assert.equal(provider.connections, before)
  })

  test('a body beyond the limit is not read to its end: delivered, the connection is closed', async t => {
    const fresh = new HttpSender({ guard })
    t.after(() => fresh.close())
    const { promise: isClosed, resolve } = Promise.withResolvers<void>()
    provider.answer = socket => {
      socket.once('close', resolve)
      withBody('Content-Length: 10000000', 'x'.repeat(70_000))(socket)
    }
    assert.deepEqual(await fresh.send(message(), NEVER), { kind: 'delivered', detail: 'HTTP 200' })
    await isClosed
  })

  test('a body that stalls or breaks off does not undo the delivery', async () => {
    provider.answer = withBody('Content-Length: 100', 'x')
    assert.deepEqual(await impatient.send(message(), NEVER), { kind: 'delivered', detail: 'HTTP 200' })
    provider.answer = socket => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx')
    assert.deepEqual(await send(), { kind: 'delivered', detail: 'HTTP 200' })
  })
})

suite('failures of the connection', () => {
  const FAILURES: Readonly<Record<string, readonly [Answer, RegExp]>> = {
    'no response': [() => {}, /no response within 300 ms|Headers Timeout/],
    'a head that trickles': [socket => void socket.write('HTTP/1.1 200 OK\r\n'), /no response|Headers Timeout/],
    'the connection is closed before a response': [socket => socket.end(), /other side closed/],
    'the connection is reset': [socket => socket.resetAndDestroy(), /ECONNRESET|other side closed/],
    'no HTTP': [socket => socket.end('220 smtp.example.test\r\n'), /Expected HTTP/],
    'a head beyond the limit': [
      socket => void socket.write(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`),
      /Headers Overflow/,
    ],
  }
  for (const [title, [answer, cause]] of Object.entries(FAILURES)) {
    test(`${title}: tried again`, async () => {
      provider.answer = answer
      const result = await impatient.send(message(), NEVER)
      assert.equal(result.kind, 'retry')
      assert.match(result.kind === 'retry' ? result.cause : '', cause)
    })
  }

  test('a port without a listener, and a name without an address: tried again', async () => {
    const gone = await ScriptedProvider.listen()
    gone.close()
    assert.equal((await send({ url: `http://127.0.0.1:${gone.port}/` })).kind, 'retry')
    assert.equal((await send({ url: 'http://does-not-exist.invalid/' })).kind, 'retry')
  })

  test('an aborted attempt ends at once, and is tried again', async () => {
    const stop = new AbortController()
    provider.answer = () => stop.abort()
    const expected = { kind: 'retry', cause: 'the attempt was interrupted', afterMs: null }
    assert.deepEqual(await sender.send(message(), stop.signal), expected)
    assert.deepEqual(await sender.send(message(), stop.signal), expected)
  })
})

suite('TLS', () => {
  const urlOf = ({ port }: ScriptedProvider, host = 'localhost'): string => `https://${host}:${port}/a`

  test('a certificate of a trusted authority, by name and by address', async () => {
    for (const host of ['localhost', '127.0.0.1']) {
      assert.deepEqual(await send({ url: urlOf(secured, host) }), { kind: 'delivered', detail: 'HTTP 202' })
    }
  })

  test('no request goes to a server with a certificate that is unknown, expired or of another name', async t => {
    const expired = await ScriptedProvider.listen(EXPIRED)
    const other = await ScriptedProvider.listen(VIRTUAL)
    const distrustful = new HttpSender({ guard, ca: [OTHER_CA.cert] })
    t.after(() => {
      for (const one of [expired, other, distrustful]) one.close()
    })
    const attempts = [
      sender.send(message({ url: urlOf(expired) }), NEVER),
      sender.send(message({ url: urlOf(other) }), NEVER),
      distrustful.send(message({ url: urlOf(secured) }), NEVER),
    ]
    for (const attempt of attempts) assert.equal((await attempt).kind, 'retry')
    assert.deepEqual([...expired.requests, ...other.requests, ...secured.requests], [])
  })

  test('a server that says nothing during the handshake ends with the time-out', async t => {
    const deaf = await ScriptedProvider.listen()
    t.after(() => deaf.close())
    assert.equal((await impatient.send(message({ url: urlOf(deaf, '127.0.0.1') }), NEVER)).kind, 'retry')
  })
})

suite('proxies', () => {
  test('https goes through CONNECT, and the proxy sees no more than the authority', async t => {
    const proxy = await ConnectProxy.listen()
    t.after(() => proxy.close())
    const given = { url: `https://localhost:${secured.port}/a`, proxy: { host: '127.0.0.1', port: proxy.port } }
    assert.deepEqual(await send(given), { kind: 'delivered', detail: 'HTTP 202' })
    const authority = `localhost:${secured.port}`
    assert.deepEqual(proxy.heads, [`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`])
    assert.match(secured.requests[0]!, /^POST \/a HTTP\/1\.1\r\nhost: localhost:/)
  })

  test('http goes in absolute form (RFC 9112 3.2.2)', async () => {
    const proxy = { host: '127.0.0.1', port: provider.port }
    await send({ url: 'http://127.0.0.9:8080/a?b', proxy })
    assert.match(
      provider.requests[0]!,
      /^POST http:\/\/127\.0\.0\.9:8080\/a\?b HTTP\/1\.1\r\nhost: 127\.0\.0\.9:8080\r\n/,
    )
  })

  test('a proxy that refuses CONNECT: 4xx fails, 5xx is tried again', async t => {
    const proxy = await ScriptedProvider.listen()
    t.after(() => proxy.close())
    const given = { url: 'https://127.0.0.1:1/', proxy: { host: '127.0.0.1', port: proxy.port } }
    proxy.answer = status(407)
    const failed = { kind: 'failed', cause: 'the proxy responds to CONNECT with HTTP 407' }
    assert.deepEqual(await send(given), failed)
    proxy.answer = status(502)
    assert.equal((await send(given)).kind, 'retry')
    for (const answer of ['SSH-2.0-x\r\n\r\n', 'HTTP/1.1 200 OK\r\n\r\nearly bytes', '']) {
      proxy.answer = socket => socket.end(answer)
      assert.equal((await send(given)).kind, 'retry', answer)
    }
  })
})

suite('addresses that tenants may not reach', () => {
  const closed = new HttpSender({ guard: new AddressGuard([]) })
  after(() => closed.close())
  const proxy = { host: '127.0.0.1', port: provider.port }
  const CASES: Readonly<Record<string, Partial<HttpMessage>>> = {
    'the provider': {},
    'the provider by name': { url: `http://localhost:${provider.port}/` },
    'a spelling of loopback': { url: `http://0x7f.1:${provider.port}/` },
    'the proxy': { url: 'http://8.8.8.8/', proxy },
    'the proxy of https': { url: 'https://8.8.8.8/', proxy },
  }
  for (const [title, given] of Object.entries(CASES)) {
    test(`${title}: fails without a connection`, async () => {
      const before = provider.connections
      const result = await closed.send(message(given), NEVER)
      assert.match(result.kind === 'failed' ? result.cause : '', /senders may not reach/)
      assert.equal(provider.connections, before)
    })
  }

  test('a private provider behind an allowed proxy fails', async t => {
    const half = new HttpSender({ guard: new AddressGuard(['127.0.0.1']) })
    t.after(() => half.close())
    for (const url of ['http://169.254.169.254/', 'https://10.0.0.1/', 'http://[fd00::1]/']) {
      assert.equal((await half.send(message({ url, proxy }), NEVER)).kind, 'failed', url)
    }
    assert.deepEqual(provider.requests, [])
  })
})

suite('messages that cannot be sent', () => {
  const REFUSED: Readonly<Record<string, Partial<HttpMessage>>> = {
    'an address that is no URL': { url: 'provider' },
    'another scheme': { url: 'file:///etc/passwd' },
    'credentials in the address': { url: 'http://u:s3cret@127.0.0.1/' },
    'a user name with a colon': { credentials: { username: 'a:b', password: 's3cret' } },
    'a line break in a value': { fields: [['X', 's3cret\r\nY: 1']] },
    'a line break in a name': { fields: [['X\r\nY', '1']] },
    'a character beyond ASCII': { fields: [['X', 's3cret é']] },
    ...Object.fromEntries(
      ['Host', 'Content-Length', 'transfer-encoding', 'Connection', 'Upgrade', 'Expect', 'Idempotency-Key'].map(
        name => [`the field ${name}`, { fields: [[name, '1']] as const }],
      ),
    ),
  }
  for (const [title, given] of Object.entries(REFUSED)) {
    test(`${title}: fails without a request and without its secret in the cause`, async () => {
      const result = await send(given)
      assert.equal(result.kind, 'failed')
      assert.doesNotMatch(JSON.stringify(result), /s3cret/)
      assert.deepEqual(provider.requests, [])
    })
  }

  test('no cause of a failure holds the query or the body', async () => {
    provider.answer = status(400)
    for (const given of [{}, { url: 'http://127.0.0.1:1/?key=s3cret' }, { url: 'http://[::1]:1/?key=s3cret' }]) {
      assert.doesNotMatch(JSON.stringify(await send({ ...given, body: 's3cret' })), /s3cret/)
    }
  })
})
