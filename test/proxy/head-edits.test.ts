/**
 * Flows that need only heads, as peers see them: each edit of a request and of a response by method and framing, on raw
 * bytes; retries and other endpoints; heads that repeat; what a flow may not touch.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OPEN_CORS } from '../harness/filter-chain.ts'
import { flowsOf, remove, set, setAxis2, startFlows, takeHead } from '../harness/flows.ts'
import { connectPeer, type Peer, refusingPort, ScriptedBackend } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'

const FORWARDING = 'Via: 1.1 sluice\r\nX-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: h\r\n'
const WITHOUT_BODY = { fields: '', body: '', received: '' }
const FRAMINGS = {
  none: WITHOUT_BODY,
  length: { fields: 'Content-Length: 3\r\n', body: 'abc', received: 'abc' },
  chunked: {
    fields: 'Transfer-Encoding: chunked\r\n',
    body: '3\r\nabc\r\n0\r\n\r\n',
    received: '3\r\nabc\r\n0\r\n\r\n',
  },
}

// ---- edits of requests ----------------------------------------------------------------------------------------------

interface RequestCase {
  readonly flow: string
  /** Fields of the client, behind Host. */
  readonly given?: string
  /** Path behind the context; `/r?q=1` by default. */
  readonly target?: string
  readonly start?: string
  readonly host?: string
  /** Fields of the client that pass. */
  readonly kept?: string
  readonly forwarding?: string
  readonly added?: string
}

const REQUESTS: Readonly<Record<string, RequestCase>> = {
  'a field is added': { flow: set('X-A', '1'), given: 'B: 2\r\n', kept: 'B: 2\r\n', added: 'X-A: 1\r\n' },
  'all fields of a name are replaced, in any case': {
    flow: set('X-A', 'new'),
    given: 'x-a: 1\r\nB: 2\r\nX-A: 3\r\n',
    kept: 'B: 2\r\n',
    added: 'X-A: new\r\n',
  },
  'a field is removed': { flow: remove('X-A'), given: 'B: 2\r\nX-A: 3\r\nC: 4\r\n', kept: 'B: 2\r\nC: 4\r\n' },
  'a name of the same length stays': { flow: remove('X-A'), given: 'X-B: 2\r\n', kept: 'X-B: 2\r\n' },
  'the last change of a field counts': { flow: set('X-A', '1') + remove('x-a') + set('X-a', '2'), added: 'X-a: 2\r\n' },
  'fields are added in the order of their first change': {
    flow: set('X-B', '1') + set('X-A', '2'),
    added: 'X-B: 1\r\nX-A: 2\r\n',
  },
  'ContentType alone replaces the field': {
    flow: setAxis2('ContentType', 'text/x'),
    given: 'Content-Type: text/plain\r\n',
    added: 'Content-Type: text/x\r\n',
  },
  'a forwarding field of the gateway is replaced': {
    flow: set('X-Forwarded-Host', 'public'),
    forwarding: FORWARDING.replace('X-Forwarded-Host: h\r\n', ''),
    added: 'X-Forwarded-Host: public\r\n',
  },
  'Host is replaced': { flow: set('Host', 'inner:81'), host: 'inner:81' },
  'framing fields are not removed': { flow: remove('Content-Length') + remove('Transfer-Encoding') },
  'the method is replaced': { flow: setAxis2('HTTP_METHOD', 'PATCH'), start: 'PATCH /base/r?q=1' },
  'the target is replaced behind the base path': { flow: setAxis2('REST_URL_POSTFIX', '/n?z'), start: '@ /base/n?z' },
  'the target may be a query alone': { flow: setAxis2('REST_URL_POSTFIX', '?z'), start: '@ /base?z' },
  'what a target cannot have is percent-encoded': {
    flow: setAxis2('REST_URL_POSTFIX', 'n x?\u00e4#'),
    start: '@ /base/n%20x?%C3%A4%23',
  },
  'slashes at the start of the target are one': { flow: setAxis2('REST_URL_POSTFIX', '//n'), start: '@ /base/n' },
  'dots that are no segment, and those of a query, pass': {
    flow: setAxis2('REST_URL_POSTFIX', '/a..b/...?x=/../y'),
    start: '@ /base/a..b/...?x=/../y',
  },
  'To replaces the target behind the context': {
    flow: '<header name="To" expression="fn:concat(get-property(\'To\'), \'&amp;x=2\')"/>',
    start: '@ /base/r?q=1&x=2',
  },
  'a method that no sequence computes stays': {
    flow: '<property name="HTTP_METHOD" expression="$trp:X-None" scope="axis2"/>',
    start: '@ /base/r?q=1',
  },
  'a method of WebDAV replaces the one of the client': {
    flow: setAxis2('HTTP_METHOD', 'PURGE'),
    start: 'PURGE /base/r?q=1',
  },
  'a value computed from the request cannot end a line': {
    flow: '<property name="X-A" expression="fn:concat(\'a\', base64Decode(\'DQpFdmlsOiAx\'))" scope="transport"/>',
    given: 'X-A: 1\r\n',
  },
}

for (const [title, row] of Object.entries(REQUESTS)) {
  test(`request flow: ${title}`, async t => {
    const { gateway, backend } = await startFlows(t, [await flowsOf({ request: row.flow })], {}, { basePath: '/base' })
    const client = await connectPeer(gateway.port)
    let peer: Peer | undefined
    for (const method of ['GET', 'POST', 'DELETE']) {
      for (const { fields, body, received } of Object.values(FRAMINGS)) {
        client.send(
          `${method} /a${row.target ?? '/r?q=1'} HTTP/1.1\r\nHost: h\r\n${row.given ?? ''}${fields}\r\n${body}`,
        )
        peer ??= await backend.next()
        const head = await takeHead(peer)
        const start = (row.start ?? '@ /base/r?q=1').replace('@', method)
        const own = fields.startsWith('Transfer') ? fields : ''
        const length = own === '' ? fields : ''
        const host = row.host ?? `127.0.0.1:${backend.port}`
        const passing = `${row.kept ?? ''}${length}${row.forwarding ?? FORWARDING}${row.added ?? ''}${own}`
        assert.equal(head, `${start} HTTP/1.1\r\nHost: ${host}\r\n${passing}\r\n`)
        await peer.untilLength(received.length)
        assert.equal(peer.take(), received)
        peer.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
        assert.equal((await takeResponse(client)).status, 200)
      }
    }
  })
}

for (const path of [
  ...['/a/../b', '..', '/.', '/./b', '/%2e%2E/b', '/a/.%2e/b', '/a%2f..%2fb', '/a/..;x/b', '/a/..%3bx/b', '/a\\..\\b'],
  ...['/a%5c..', '/%252e%252e/b', '/%%32e%%32e/b', '/a/..?q', '/a/..#f/..'],
]) {
  test(`RFC 3986 5.2.4: a path ${path} that a sequence makes of a client's value is 102532`, async t => {
    const flow = '<property name="REST_URL_POSTFIX" expression="$trp:X-P" scope="axis2"/>'
    const { gateway, backend } = await startFlows(t, [await flowsOf({ request: flow })], {}, { basePath: '/base' })
    const client = await connectPeer(gateway.port)
    client.send(`GET /a/r HTTP/1.1\r\nHost: h\r\nX-P: ${path}\r\n\r\n`)
    const { status, body } = await takeResponse(client)
    assert.equal(status, 500)
    assert.match(body, /102532/)
    assert.equal(backend.peers.length, 0)
  })
}

for (const method of ['CONNECT', 'TRACE', 'post', 'GETS', 'PUT /', 'é']) {
  for (const [place, more] of [
    ['reactor', ''],
    ['worker', '<log level="full"/>'],
    ['worker that calls', '<call/>'],
  ] as const) {
    test(`D899: the method ${method} of a sequence on the ${place} is 102532`, async t => {
      const flow = `<property name="HTTP_METHOD" expression="$trp:X-M" scope="axis2"/>${more}`
      const { gateway, backend } = await startFlows(t, [await flowsOf({ request: flow })])
      const client = await connectPeer(gateway.port)
      client.send(Buffer.from(`POST /a/r HTTP/1.1\r\nHost: h\r\nX-M: ${method}\r\nContent-Length: 0\r\n\r\n`, 'latin1'))
      const { status, body } = await takeResponse(client)
      assert.equal(status, 500)
      assert.match(body, /102532/)
      assert.equal(backend.peers.length, 0)
      assert.match(JSON.stringify(gateway.reports), /HTTP_METHOD is no method/)
    })
  }
}

// ---- edits of responses ---------------------------------------------------------------------------------------------

const RESPONSE_FRAMINGS = {
  length: { given: 'Content-Length: 3\r\n\r\nabc', kept: 'Content-Length: 3\r\n', line: '', body: 'abc' },
  chunked: {
    given: 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
    kept: '',
    line: 'Transfer-Encoding: chunked\r\n',
    body: '3\r\nabc\r\n0\r\n\r\n',
  },
}
const RESPONSES: Readonly<
  Record<string, { flow: string; given?: string; start?: string; kept?: string; added?: string; bodiless?: true }>
> = {
  'a field is added': { flow: set('X-A', '1'), given: 'B: 2\r\n', kept: 'B: 2\r\n', added: 'X-A: 1\r\n' },
  'a field is removed': { flow: remove('B'), given: 'b: 1\r\nC: 2\r\nB: 3\r\n', kept: 'C: 2\r\n' },
  'a field is replaced': { flow: set('B', '9'), given: 'b: 1\r\nC: 2\r\n', kept: 'C: 2\r\n', added: 'B: 9\r\n' },
  'framing fields are not removed': { flow: remove('Content-Length') + remove('Transfer-Encoding') },
  'the status is replaced': { flow: setAxis2('HTTP_SC', '404'), start: 'HTTP/1.1 404 Not Found' },
  'the reason is replaced': {
    flow: setAxis2('HTTP_SC', '201') + setAxis2('HTTP_SC_DESC', 'Made'),
    start: 'HTTP/1.1 201 Made',
  },
  'a status that is none is ignored': { flow: setAxis2('HTTP_SC', '99') },
  'a status without content loses the body': {
    flow: setAxis2('HTTP_SC', '204'),
    start: 'HTTP/1.1 204 No Content',
    bodiless: true,
  },
  'a field is set by its own value': {
    flow: '<property name="X-A" expression="fn:concat($trp:B, \'-\', $axis2:HTTP_SC)" scope="transport"/>',
    given: 'B: 2\r\n',
    kept: 'B: 2\r\n',
    added: 'X-A: 2-200\r\n',
  },
}

for (const [title, row] of Object.entries(RESPONSES)) {
  test(`response flow: ${title}`, async t => {
    const { gateway, backend } = await startFlows(t, [await flowsOf({ response: row.flow })])
    const client = await connectPeer(gateway.port)
    let peer: Peer | undefined
    for (const { given, kept, line, body } of Object.values(RESPONSE_FRAMINGS)) {
      for (let repeat = 0; repeat < 4; repeat++) {
        client.send('GET /a/r HTTP/1.1\r\nHost: h\r\n\r\n')
        peer ??= await backend.next()
        await takeHead(peer)
        peer.send(`HTTP/1.1 200 OK\r\n${row.given ?? ''}${given}`)
        const head = await takeHead(client)
        const isBodiless = row.bodiless === true
        const framing = isBodiless ? ['', ''] : [kept, line]
        const lines = `${row.kept ?? ''}${framing[0]}${row.added ?? ''}${framing[1]}`
        assert.equal(head, `${row.start ?? 'HTTP/1.1 200 OK'}\r\n${lines}\r\n`)
        const received = isBodiless ? '' : body
        await client.untilLength(received.length)
        assert.equal(client.take(), received)
      }
    }
  })
}

test('response flow: an HTTP/1.0 client gets the edits, and its connection ends with the response', async t => {
  const { gateway, backend } = await startFlows(t, [await flowsOf({ response: set('X-A', '1') })])
  const client = await connectPeer(gateway.port)
  client.send('GET /a/r HTTP/1.0\r\n\r\n')
  const peer = await backend.next()
  await takeHead(peer)
  peer.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n')
  assert.equal(await takeHead(client), 'HTTP/1.1 200 OK\r\nX-A: 1\r\nConnection: close\r\n\r\n')
  assert.equal(await client.untilEnd(), 'FIN')
  assert.equal(client.take(), 'abc')
})

test('response flow: a status with content follows one without, with the length 0', async t => {
  const { gateway, backend } = await startFlows(t, [await flowsOf({ response: setAxis2('HTTP_SC', '200') })])
  const client = await connectPeer(gateway.port)
  let peer: Peer | undefined
  for (const before of ['204 No Content', '304 Not Modified\r\nContent-Length: 7']) {
    client.send('GET /a/r HTTP/1.1\r\nHost: h\r\n\r\n')
    peer ??= await backend.next()
    await takeHead(peer)
    peer.send(`HTTP/1.1 ${before}\r\n\r\n`)
    assert.equal(await takeHead(client), 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  }
})

const GRANT = 'Access-Control-Allow-Origin'
/** [what, response flow, fields of the backend, values of Access-Control-Allow-Origin for the client]. */
const CORS: readonly (readonly [string, string, string, string])[] = [
  ['grants of the gateway are added', set('X-A', '1'), '', 'https://there'],
  ['a grant of the backend wins', set('X-A', '1'), `${GRANT}: *\r\n`, '*'],
  ['a grant of a flow wins over both', set(GRANT, 'https://flow'), `${GRANT}: *\r\n`, 'https://flow'],
  ['a grant of the backend that a flow removes makes room', remove(GRANT), `${GRANT}: *\r\n`, 'https://there'],
]

for (const [title, flow, given, granted] of CORS) {
  test(`response flow and CORS: ${title}`, async t => {
    const cors = { ...OPEN_CORS, origins: ['https://there'] }
    const plans = [await flowsOf({ response: flow })]
    const { gateway, backend } = await startFlows(t, plans, { hasFilterChain: true }, { overrides: { cors } })
    const client = await connectPeer(gateway.port)
    client.send('GET /a/r HTTP/1.1\r\nHost: h\r\nOrigin: https://there\r\n\r\n')
    const peer = await backend.next()
    await takeHead(peer)
    peer.send(`HTTP/1.1 200 OK\r\n${given}Content-Length: 0\r\n\r\n`)
    assert.deepEqual((await takeResponse(client)).fields.get(GRANT.toLowerCase()), [granted])
  })
}

test('trailers of names that a flow edits do not pass, in both directions', async t => {
  const edits = set('X-A', '1') + remove('X-B')
  const { gateway, backend } = await startFlows(t, [await flowsOf({ request: edits, response: edits })])
  const client = await connectPeer(gateway.port)
  const trailers = '0\r\nx-a: evil\r\nX-B: evil\r\nX-C: good\r\n\r\n'
  client.send(
    `POST /a/r HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE\r\nTransfer-Encoding: chunked\r\n\r\n${trailers}`,
  )
  const peer = await backend.next()
  await takeHead(peer)
  await peer.untilText('\r\n\r\n')
  assert.equal(peer.take(), '0\r\nX-C: good\r\n\r\n')
  peer.send(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${trailers}`)
  await takeHead(client)
  await client.untilText('\r\n\r\n')
  assert.equal(client.take(), '0\r\nX-C: good\r\n\r\n')
})

// ---- what belongs to one exchange -----------------------------------------------------------------------------------

test('heads that repeat keep nothing of an edit for another API, on the same connections of both sides', async t => {
  const edits = set('X-A', '1') + remove('X-B')
  const { gateway, backend } = await startFlows(t, [await flowsOf({ request: edits, response: edits }), null])
  const client = await connectPeer(gateway.port)
  let peer: Peer | undefined
  for (let turn = 0; turn < 24; turn++) {
    const api = turn % 3 === 0 ? 'b' : 'a'
    client.send(`GET /${api}/r HTTP/1.1\r\nHost: h\r\nX-B: 2\r\nX-C: 3\r\n\r\n`)
    peer ??= await backend.next()
    const [kept, added] = api === 'a' ? ['', 'X-A: 1\r\n'] : ['X-B: 2\r\n', '']
    const host = `Host: 127.0.0.1:${backend.port}\r\n`
    assert.equal(await takeHead(peer), `GET /r HTTP/1.1\r\n${host}${kept}X-C: 3\r\n${FORWARDING}${added}\r\n`)
    peer.send('HTTP/1.1 200 OK\r\nX-B: 2\r\nX-C: 3\r\nContent-Length: 0\r\n\r\n')
    assert.equal(await takeHead(client), `HTTP/1.1 200 OK\r\n${kept}X-C: 3\r\nContent-Length: 0\r\n${added}\r\n`)
  }
  assert.equal(backend.peers.length, 1)
})

test('pipelined requests get the edits of their own APIs', async t => {
  const plans = await Promise.all(
    ['1', '2'].map(value => flowsOf({ request: set('X-A', value), response: set('X-R', value) })),
  )
  const { gateway, backend } = await startFlows(t, [...plans, null])
  const client = await connectPeer(gateway.port)
  client.send([...'abcab'].map(api => `GET /${api}/r HTTP/1.1\r\nHost: h\r\n\r\n`).join(''))
  let peer: Peer | undefined
  for (const value of ['1', '2', undefined, '1', '2']) {
    peer ??= await backend.next()
    assert.equal(/^X-A: (.*)$/m.exec((await takeHead(peer)).replaceAll('\r', ''))?.[1], value)
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    assert.deepEqual((await takeResponse(client)).fields.get('x-r'), value === undefined ? undefined : [value])
  }
})

test('operations have flows of their own', async t => {
  const resource = { authType: 'None', tier: 'Unlimited', scopes: [] } as const
  const resources = ['/r', '/s'].map(template => ({ template, verb: 'GET', ...resource }))
  const plan = await flowsOf({ request: set('X-A', 'api') }, { 'GET /s': { request: set('X-A', 'operation') } })
  const { gateway, backend } = await startFlows(t, [plan], {}, { overrides: { resources } })
  const client = await connectPeer(gateway.port)
  let peer: Peer | undefined
  for (const [path, value] of [
    ['r', 'api'],
    ['s', 'operation'],
    ['r', 'api'],
  ] as const) {
    client.send(`GET /a/${path} HTTP/1.1\r\nHost: h\r\n\r\n`)
    peer ??= await backend.next()
    assert.match(await takeHead(peer), new RegExp(`\r\nX-A: ${value}\r\n`))
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    await takeResponse(client)
  }
})

// ---- sent once more -------------------------------------------------------------------------------------------------

const EVERYTHING = set('X-A', '1') + set('Host', 'inner') + setAxis2('REST_URL_POSTFIX', '/new?z=1')

test('a request that is retried on a fresh connection has its edits', async t => {
  const { gateway, backend } = await startFlows(t, [await flowsOf({ request: EVERYTHING })])
  const client = await connectPeer(gateway.port)
  const request = 'GET /a/r HTTP/1.1\r\nHost: h\r\n\r\n'
  client.send(request)
  const first = await backend.next()
  const head = await takeHead(first)
  first.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  await takeResponse(client)
  client.send(request)
  await takeHead(first)
  first.end()
  const second = await backend.next()
  assert.equal(await takeHead(second), head)
  second.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  assert.equal((await takeResponse(client)).status, 200)
})

test('a request that a flow makes unsafe is not retried, and one that it makes idempotent is', async t => {
  for (const [method, sent, isRetried] of [
    ['GET', 'POST', false],
    ['POST', 'PUT', true],
  ] as const) {
    const { gateway, backend } = await startFlows(t, [await flowsOf({ request: setAxis2('HTTP_METHOD', sent) })])
    const client = await connectPeer(gateway.port)
    const request = `${method} /a/r HTTP/1.1\r\nHost: h\r\n\r\n`
    client.send(request)
    const first = await backend.next()
    await takeHead(first)
    first.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    await takeResponse(client)
    client.send(request)
    await takeHead(first)
    first.end()
    if (isRetried) {
      const second = await backend.next()
      assert.match(await takeHead(second), new RegExp(`^${sent} `))
      second.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    }
    assert.equal((await takeResponse(client)).status, isRetried ? 200 : 502)
  }
})

test('a request that another endpoint takes over has its edits, behind the base path of that endpoint', async t => {
  const gone = await refusingPort()
  const { gateway, backend } = await startFlows(t, [await flowsOf({ request: EVERYTHING })])
  const [api] = gateway.plan.apis
  const [endpoint] = api!.endpoints.endpoints
  const dead = {
    ...endpoint!,
    slot: endpoint!.slot + 1,
    basePath: '/dead',
    route: { ...endpoint!.route, port: gone.port, slot: endpoint!.route.slot + 1 },
  }
  const endpoints = {
    kind: 'failover',
    algorithm: 'round_robin',
    failsOver: true,
    endpoints: [dead, { ...endpoint!, basePath: '/alive' }],
  } as const
  await gateway.deploy({ planned: [{ ...api!, endpoints }] })
  const client = await connectPeer(gateway.port)
  client.send('GET /a/r HTTP/1.1\r\nHost: h\r\nX-A: 2\r\n\r\n')
  const peer = await backend.next()
  assert.equal(await takeHead(peer), `GET /alive/new?z=1 HTTP/1.1\r\nHost: inner\r\n${FORWARDING}X-A: 1\r\n\r\n`)
  gone.close()
})

test('a forward proxy gets the edits behind scheme and authority', async t => {
  const proxy = await ScriptedBackend.listen()
  t.after(() => proxy.close())
  const forwardProxy = { host: '127.0.0.1', port: proxy.port, authorization: 'Basic eA==' }
  const { gateway } = await startFlows(
    t,
    [await flowsOf({ request: EVERYTHING })],
    {},
    {
      host: 'backend.test',
      port: 80,
      route: { proxy: forwardProxy },
    },
  )
  const client = await connectPeer(gateway.port)
  client.send('GET /a/r HTTP/1.1\r\nHost: h\r\n\r\n')
  const head = await takeHead(await proxy.next())
  const lines = `Host: inner\r\nProxy-Authorization: Basic eA==\r\n${FORWARDING}X-A: 1\r\n`
  assert.equal(head, `GET http://backend.test/new?z=1 HTTP/1.1\r\n${lines}\r\n`)
})

// ---- what a flow may not touch --------------------------------------------------------------------------------------

const UNTOUCHED = ['X-JWT-Assertion', 'Client-Cert', 'activityid', 'Expect', 'HTTP2-Settings', 'x_ssl_cert']

for (const name of UNTOUCHED) {
  test(`a change of ${name} in a request is ignored and logged`, async t => {
    const { gateway, backend } = await startFlows(t, [await flowsOf({ request: set(name, 'evil') + set('X-A', '1') })])
    const client = await connectPeer(gateway.port)
    client.send('GET /a/r HTTP/1.1\r\nHost: h\r\n\r\n')
    const peer = await backend.next()
    const host = `Host: 127.0.0.1:${backend.port}\r\n`
    assert.equal(await takeHead(peer), `GET /r HTTP/1.1\r\n${host}${FORWARDING}X-A: 1\r\n\r\n`)
    const [ignored] = gateway.reports.filter(({ event }) => event === 'change of a head ignored')
    assert.equal(ignored?.fields.FIELD, name.toLowerCase())
  })
}

test('a sequence does not see what a client claims in fields that no backend gets', async t => {
  const copied = ['X-JWT-Assertion', 'X-Forwarded-For', 'Proxy-Authorization', 'X-Named']
  const flow = copied.map(
    (name, index) => `<property name="Seen-${index}" expression="$trp:${name}" scope="transport"/>`,
  )
  const { gateway, backend } = await startFlows(t, [await flowsOf({ request: flow.join('') })])
  const client = await connectPeer(gateway.port)
  const claims = copied.map(name => `${name}: evil\r\n`).join('')
  client.send(`GET /a/r HTTP/1.1\r\nHost: h\r\nConnection: X-Named\r\n${claims}\r\n`)
  const head = await takeHead(await backend.next())
  assert.doesNotMatch(head, /evil/)
  assert.match(head, /\r\nSeen-1: 127\.0\.0\.1\r\n/)
})

test("the gateway's own Authorization for a backend wins over that of a flow", async t => {
  const credentials = { production: { kind: 'basic', authorization: 'Basic own' }, sandbox: null } as const
  const flow = { request: set('Authorization', 'Basic flow') + set('X-A', '1') }
  const { gateway, backend } = await startFlows(
    t,
    [await flowsOf(flow)],
    { hasFilterChain: true },
    { overrides: { credentials } },
  )
  const client = await connectPeer(gateway.port)
  client.send('GET /a/r HTTP/1.1\r\nHost: h\r\n\r\n')
  const head = await takeHead(await backend.next())
  assert.deepEqual(
    head.match(/^(?:Authorization|X-A): .*$/gm),
    ['X-A: 1\r', 'Authorization: Basic own\r'].map(line => line.slice(0, -1)),
  )
})

test('changes of more bytes than a head has room for are a fault, and nothing of the request leaves', async t => {
  const long = Array.from({ length: 3 }, (_, index) => set(`X-${index}`, 'v'.repeat(4000))).join('')
  const { gateway, backend } = await startFlows(t, [
    await flowsOf({ request: long }),
    await flowsOf({ request: set('X', '1') }),
  ])
  const client = await connectPeer(gateway.port)
  for (let i = 0; i < 2; i++) {
    client.send('GET /a/r HTTP/1.1\r\nHost: h\r\n\r\n')
    assert.equal((await takeResponse(client)).status, 500)
  }
  assert.equal(backend.peers.length, 0)
})
