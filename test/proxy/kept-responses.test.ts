/** Responses that `<cache>` keeps, end to end: real worker threads, scripted backends. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Reaction, says, startBackend, startCalls } from '../harness/sequence-calls.ts'
import { sharedBySuite } from '../harness/suite.ts'

const json = (value: unknown) => JSON.stringify(value)

const DATE = 'Sat, 28 Nov 2026 20:00:00 GMT'

const finder = (inner = '', attributes = '') => `<cache collector="false" timeout="60" ${attributes}>
  <protocol type="HTTP"><methods>GET</methods><headersToExcludeInHash>*</headersToExcludeInHash>
  <responseCodes>2..</responseCodes><enableCacheControl>true</enableCacheControl></protocol>${inner}</cache>`

const kept: readonly (readonly [what: string, reaction: Reaction, requests: readonly string[], seen: number])[] = [
  ['a response is kept', says(200, '{}'), ['GET /a/x', 'GET /a/x'], 1],
  ['another query has a response of its own', says(200, '{}'), ['GET /a/x', 'GET /a/x?a=1'], 2],
  ['another method is not kept', says(200, '{}'), ['DELETE /a/x', 'DELETE /a/x'], 2],
  ['another status is not kept', says(404, '{}'), ['GET /a/x', 'GET /a/x'], 2],
  ['no-store is obeyed', says(200, '{}', 'Cache-Control: no-store\r\n'), ['GET /a/x', 'GET /a/x'], 2],
  ['a longer response is not kept', says(200, json('x'.repeat(200))), ['GET /a/x', 'GET /a/x'], 2],
]
for (const [what, reaction, requests, seen] of kept) {
  test(`cache: ${what}`, async t => {
    const backend = await startBackend(t, { '/x': reaction })
    const flows = { request: finder('', 'maxMessageSize="100"'), response: '<cache collector="true"/>' }
    const { ask } = await startCalls(t, flows, backend.port)
    const answers = []
    for (const request of requests) answers.push(await ask(request))
    assert.deepEqual(answers[1], answers[0])
    assert.equal(backend.received.length, seen)
  })
}

/** [RFC 9111, fields of the response, fields of two requests, how many of them the backend gets]. */
const CONTROLLED: readonly (readonly [
  clause: string,
  response: string,
  first: string,
  second: string,
  seen: number,
])[] = [
  ['4.1: another value of a field that Vary names', 'Vary: X-User', 'X-User: alice', 'X-User: bob', 2],
  ['4.1: a field that Vary names is absent', 'Vary: x-user', 'X-User: alice', '', 2],
  ['4.1: the same value of it', 'Vary: X-Other, X-User', 'X-User: alice', 'X-User: alice', 1],
  ['4.1: several lines of Vary', 'Vary: X-Other\r\nVary: X-User', 'X-User: alice', 'X-User: bob', 2],
  ['4.1: Vary * matches nothing', 'Vary: *', '', '', 2],
  ['5.2.2.10: s-maxage wins', 'Cache-Control: max-age=100, s-maxage=0', '', '', 2],
  ['5.2.2.10: s-maxage wins in any order', 'Cache-Control: s-maxage=100, max-age=0', '', '', 1],
  ['5.2.2.1: max-age in a second line', 'Cache-Control: public\r\nCache-Control: max-age="0"', '', '', 2],
  ['4.2.1: a lifetime that is no number is none', 'Cache-Control: max-age=soon', '', '', 2],
  ['4.2.3: the age of a response counts', 'Cache-Control: max-age=10\r\nAge: 10', '', '', 2],
  ['5.2.2.7: private with names', 'Cache-Control: private="X-A"', '', '', 2],
  ['5.2: the value of another directive is none', 'Cache-Control: x="no-store, private"', '', '', 1],
  ['5.3: Expires that is no date', 'Expires: 0', '', '', 2],
  ['5.3: Expires in the past', 'Expires: Thu, 01 Jan 2026 00:00:00 GMT', '', '', 2],
  ['5.3: Expires behind Date', `Date: ${DATE}\r\nExpires: Sat, 28 Nov 2026 20:00:30 GMT`, '', '', 1],
  ['5.3: max-age wins over Expires', 'Cache-Control: max-age=10\r\nExpires: 0', '', '', 1],
  ['5.2.1.5: no-store of the request', '', 'Cache-Control: no-store', '', 2],
  ['5.2.1.4: no-cache of the request', '', '', 'Cache-Control: no-cache', 2],
  ['5.2.1.1: max-age=0 of the request', '', '', 'Cache-Control: max-age=0', 2],
  ['5.2.1.1: a max-age of the request that is not over', '', '', 'Cache-Control: max-age=50', 1],
  ['5.4: Pragma', '', '', 'Pragma: no-cache', 2],
]
for (const obeys of [true, false]) {
  describe(`enableCacheControl is ${obeys}`, () => {
    const lines = (text: string) => (text === '' ? '' : `${text}\r\n`)
    /** Each row has a path, which is the key of its response. */
    const shared = sharedBySuite(async owner => {
      const reactions = CONTROLLED.map(([, response], row) => [`/x${row}`, says(200, '{}', lines(response))])
      const backend = await startBackend(owner, Object.fromEntries(reactions))
      const request = finder().replace('<enableCacheControl>true', `<enableCacheControl>${obeys}`)
      const calls = await startCalls(owner, { request, response: '<cache collector="true"/>' }, backend.port)
      return { ask: calls.ask, received: backend.received }
    })
    for (const [row, [clause, , first, second, seen]] of CONTROLLED.entries()) {
      if (!obeys && seen === 1) continue
      test(`cache: ${clause}${obeys ? '' : ' counts only with enableCacheControl'}`, async () => {
        const { ask, received } = await shared
        for (const fields of [first, second]) {
          assert.deepEqual(await ask(`GET /a/x${row}`, '', lines(fields)), [200, '{}'])
        }
        assert.equal(received.filter(({ target }) => target === `/x${row}`).length, obeys ? seen : 1)
      })
    }
  })
}

test('cache: no-cache renews the response of others (RFC 9111 5.2.1.4), also where all fields count', async t => {
  let count = 0
  const backend = await startBackend(t, { '/x': () => [200, json(++count)] })
  const request = finder().replace('<headersToExcludeInHash>*</headersToExcludeInHash>', '')
  const { ask } = await startCalls(t, { request, response: '<cache collector="true"/>' }, backend.port)
  const answers = []
  for (const fields of ['', 'Cache-Control: no-cache\r\n', '']) answers.push((await ask('GET /a/x', '', fields))[1])
  assert.deepEqual(answers, ['1', '2', '2'])
})

test('cache: RFC 9111 3.5: a response to an Authorization that does not count is kept only on request', async t => {
  let lines = ''
  const backend = await startBackend(t, { '/x': () => [200, '{}', lines] })
  const { ask } = await startCalls(t, { request: finder(), response: '<cache collector="true"/>' }, backend.port)
  for (const given of ['', 'Cache-Control: public\r\n', '']) {
    lines = given
    assert.deepEqual(await ask('GET /a/x', '', 'Authorization: Basic YTpi\r\n'), [200, '{}'])
  }
  assert.equal(backend.received.length, 2)
})

test('cache: maxSize bounds the responses of one cache, of which the one that was asked for last stays', async t => {
  const backend = await startBackend(t, { '/x': says(200, '{}') })
  const flows = { request: finder('<implementation maxSize="2"/>'), response: '<cache collector="true"/>' }
  const { ask } = await startCalls(t, flows, backend.port)
  const seen = async (query: string) => {
    const before = backend.received.length
    assert.deepEqual(await ask(`GET /a/x?${query}`), [200, '{}'])
    return backend.received.length > before
  }
  const asked = ['1', '2', '1', '3', '1', '2']
  const atBackend = []
  for (const query of asked) atBackend.push(await seen(query))
  assert.deepEqual(atBackend, [true, true, false, true, false, true])
})

test('cache: fields that are named to count are the only ones, and an empty onCacheHit is none', async t => {
  const backend = await startBackend(t, { '/x': says(200, '{}') })
  const finding = finder('<onCacheHit/>').replace(
    '<responseCodes>',
    '<headersToIncludeInHash>X-A</headersToIncludeInHash>$&',
  )
  const flows = { request: finding, response: '<cache collector="true"/>' }
  const { ask } = await startCalls(t, flows, backend.port)
  for (const lines of ['', 'X-B: 1\r\n', 'X-A: 1\r\n', 'X-A: 1\r\nX-B: 2\r\n']) {
    assert.deepEqual(await ask('GET /a/x', '', lines), [200, '{}'])
  }
  assert.equal(backend.received.length, 2)
})

test('cache: the body of a GET counts too', async t => {
  const backend = await startBackend(t, { '/x': ({ body }) => [200, json(body)] })
  const { ask } = await startCalls(t, { request: finder(), response: '<cache collector="true"/>' }, backend.port)
  assert.deepEqual(await ask('GET /a/x', '1'), [200, '"1"'])
  assert.deepEqual(await ask('GET /a/x'), [200, '""'])
})

/** Request fields that ask for another form of the response, and what a backend answers then. */
const FORMS: readonly (readonly [field: string, status: number, body: string])[] = [
  ['Range: bytes=0-0', 206, '{'],
  ['If-None-Match: "a"', 304, ''],
  ['If-Modified-Since: Mon, 23 Nov 2026 19:00:00 GMT', 304, ''],
  ['If-Match: "b"', 412, ''],
  ['Accept-Encoding: br', 200, 'coded'],
]
for (const [field, status, body] of FORMS) {
  test(`cache: a response to ${field} is none to others, although no field counts`, async t => {
    const backend = await startBackend(t, { '/x': ({ head }) => (head.includes(field) ? [status, body] : [200, '{}']) })
    const flows = { request: finder().replace('2..', '.*'), response: '<cache collector="true"/>' }
    const { ask } = await startCalls(t, flows, backend.port)
    assert.deepEqual(await ask('GET /a/x', '', `${field}\r\n`), [status, body])
    assert.deepEqual(await ask('GET /a/x'), [200, '{}'])
    assert.deepEqual(await ask('GET /a/x'), [200, '{}'])
    assert.equal(backend.received.length, 2)
  })
}

/** [hash generator, requests in turn: start line, body, fields; how many of them the backend gets]. */
const HASHES: readonly (readonly [string, readonly (readonly [string, string, string])[], number])[] = [
  [
    'DOMHASHGenerator',
    [
      ['POST /a/x', '{"a":1}', ''],
      ['POST /a/y', '{"a":1}', 'X-A: 1\r\n'],
    ],
    1,
  ],
  [
    'DOMHASHGenerator',
    [
      ['POST /a/x', '{"a":1}', ''],
      ['POST /a/x', '{"a":2}', ''],
    ],
    2,
  ],
  [
    'DOMHASHGenerator',
    [
      ['GET /a/x', '', ''],
      ['GET /a/y', '', ''],
    ],
    2,
  ],
  [
    'DOMHASHGenerator',
    [
      ['POST /a/x', '{"a":1}', ''],
      ['PUT /a/x', '{"a":1}', ''],
    ],
    2,
  ],
  [
    'REQUESTHASHGenerator',
    [
      ['POST /a/x', '{"a":1}', ''],
      ['POST /a/y', '{"a":1}', ''],
    ],
    2,
  ],
  [
    'REQUESTHASHGenerator',
    [
      ['POST /a/x', '{"a":1}', ''],
      ['POST /a/x', '{"a":1}', 'X-A: 1\r\n'],
    ],
    2,
  ],
]
for (const [generator, requests, count] of HASHES) {
  test(`cache: ${generator} sends ${count} of ${requests.map(([start]) => start).join(', ')}`, async t => {
    const backend = await startBackend(t, { '/x': says(200, '{}'), '/y': says(200, '{}') })
    const finding = `<cache timeout="60"><protocol type="HTTP"><methods>*</methods>
      <hashGenerator>org.wso2.carbon.mediator.cache.digest.${generator}</hashGenerator></protocol></cache>`
    const { ask } = await startCalls(t, { request: finding, response: '<cache collector="true"/>' }, backend.port)
    for (const [start, body, lines] of requests) assert.equal((await ask(start, body, lines))[0], 200)
    assert.equal(backend.received.length, count)
  })
}

test('cache: with DOMHASHGenerator each finder of an API has responses of its own', async t => {
  const backend = await startBackend(t, { '/x': says(200, '{"of":"x"}'), '/y': says(200, '{"of":"y"}') })
  const finding = '<cache timeout="60" hashGenerator="org.wso2.carbon.mediator.cache.digest.DOMHASHGenerator"/>'
  const request = `<filter source="get-property('axis2', 'REST_URL_POSTFIX')" regex="/x">
    <then>${finding}</then>
    <else>${finding}</else></filter>`
  const { ask } = await startCalls(t, { request, response: '<cache collector="true"/>' }, backend.port)
  for (const path of ['x', 'y', 'x', 'y']) {
    assert.deepEqual(await ask(`POST /a/${path}`, '{"a":1}'), [200, json({ of: path })])
  }
  assert.equal(backend.received.length, 2)
})
