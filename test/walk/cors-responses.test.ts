/** CORS fields of responses: what the gateway adds to which, what a backend says itself, and what caches must know. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { CorsDefinition } from '../../src/config/api-definition.ts'
import { takeAnswer } from '../harness/answers.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { ask, OPEN_CORS, saidOfCors } from '../harness/chained.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'

const A = 'https://a.example'
const B = 'https://b.example'
let saidByBackend = ''
const backend = await AnsweringBackend.listen(() => `HTTP/1.1 200 OK\r\n${saidByBackend}Content-Length: 2\r\n\r\nok`)

function api(context: string, cors: Partial<CorsDefinition> | null) {
  return { context, port: backend.port, unlike: { cors: cors === null ? null : { ...OPEN_CORS, ...cors } } }
}

const APIS = [
  api('/open', {}),
  api('/named', { origins: [A] }),
  api('/credentials', { origins: [A, 'https://*.x.example'], credentials: true }),
  api('/both', { credentials: true }),
  api('/exposing', { origins: [A], exposedHeaders: ['ETag', 'Link'] }),
  api('/nobody', { origins: [] }),
  api('/off', null),
]
const gateway = await startGateway(APIS, {}, null, [], { isChained: true })
after(() => {
  gateway.stop()
  backend.close()
})

const ANY = 'access-control-allow-origin: *'
const CREDENTIALS = 'access-control-allow-credentials: true'
const VARY = 'vary: Origin'

function allow(origin: string): string {
  return `access-control-allow-origin: ${origin}`
}

/** Path, origin ('' for none), lines of the backend, what the client is told. */
type Case = readonly [path: string, origin: string, backend: string, said: readonly string[]]

const CASES: readonly Case[] = [
  ['/open', A, '', [ANY]],
  ['/open', '', '', [ANY]],
  ['/open', 'null', '', [ANY]],
  // Two are none: the backend sees both, and no browser sends them.
  ['/credentials', `${A}\r\nOrigin: ${B}`, '', [VARY]],
  ['/credentials', `${B}\r\nOrigin: ${A}`, '', [VARY]],
  ['/named', A, '', [allow(A), VARY]],
  ['/named', B, '', [VARY]],
  ['/named', '', '', [VARY]],
  ['/named', 'null', '', [VARY]],
  ['/credentials', A, '', [CREDENTIALS, allow(A), VARY]],
  ['/credentials', 'https://c.x.example', '', [CREDENTIALS, allow('https://c.x.example'), VARY]],
  ['/credentials', 'https://x.example', '', [VARY]],
  ['/credentials', 'https://evil.example#.x.example', '', [VARY]],
  ['/both', A, '', [ANY]],
  ['/exposing', A, '', [allow(A), 'access-control-expose-headers: ETag, Link', VARY]],
  ['/exposing', B, '', [VARY]],
  ['/nobody', A, '', []],
  ['/off', A, '', []],
  // What a backend says of it stands, whatever it is.
  ['/open', A, `Access-Control-Allow-Origin: ${B}\r\n`, [allow(B)]],
  ['/open', A, `ACCESS-CONTROL-ALLOW-ORIGIN: ${B}\r\n`, [allow(B)]],
  ['/named', A, 'Access-Control-Allow-Origin: *\r\n', [ANY, VARY]],
  ['/credentials', A, 'Access-Control-Allow-Origin: *\r\n', [ANY, VARY]],
  ['/named', A, 'Access-Control-Allow-Credentials: true\r\n', [CREDENTIALS, VARY]],
  ['/named', A, 'Access-Control-Allow-Methods: GET\r\n', ['access-control-allow-methods: GET', VARY]],
  ['/named', A, 'Access-Control-Allow-Headers: X-A\r\n', ['access-control-allow-headers: X-A', VARY]],
  ['/off', A, `Access-Control-Allow-Origin: ${B}\r\nVary: Origin\r\n`, [allow(B), VARY]],
  // What is no grant by itself stands beside ours.
  [
    '/exposing',
    A,
    'Access-Control-Expose-Headers: X-B\r\n',
    [allow(A), 'access-control-expose-headers: ETag, Link', 'access-control-expose-headers: X-B', VARY],
  ],
  ['/named', A, 'Vary: Accept-Encoding\r\n', [allow(A), 'vary: Accept-Encoding', VARY]],
]

for (const [path, origin, said, expected] of CASES) {
  const from = origin === '' ? 'no origin' : origin
  test(`${path} from ${from}, backend: ${said.trim() || 'nothing of CORS'}`, async t => {
    saidByBackend = said
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    const answer = await ask(client, `GET ${path}/x`, origin === '' ? '' : `Origin: ${origin}\r\n`)
    assert.equal(answer.body, 'ok', 'the request passes, whatever its page may see')
    assert.deepEqual(saidOfCors(answer), [...expected].sort())
  })
}

test('what one request was granted is not said to the next of its connection', async t => {
  saidByBackend = ''
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  const from = (origin: string): string => `Origin: ${origin}\r\n`
  const asked: readonly (readonly [path: string, fields: string, said: readonly string[]])[] = [
    ['/credentials/x', from(A), [CREDENTIALS, allow(A), VARY]],
    ['/credentials/x', from(B), [VARY]],
    ['/credentials/x', '', [VARY]],
    ['/open/x', from(A), [ANY]],
    ['/off/x', from(A), []],
    ['/none', from(A), ['vary: Accept']],
    ['/credentials/x', from(A), [CREDENTIALS, allow(A), VARY]],
    ['/off/x', '', []],
  ]
  for (const [path, fields, said] of asked) assert.deepEqual(saidOfCors(await ask(client, `GET ${path}`, fields)), said)
  // The same without waiting for each other.
  client.send(asked.map(([path, fields]) => `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`).join(''))
  for (const [, , said] of asked) assert.deepEqual(saidOfCors(await takeAnswer(client)), said)
})

test('responses in chunks, of HEAD and without a body have it too', async t => {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  backend.answer = ({ method }) =>
    method === 'HEAD' ? 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n' : 'HTTP/1.1 204 No Content\r\n\r\n'
  t.after(() => {
    backend.answer = () => `HTTP/1.1 200 OK\r\n${saidByBackend}Content-Length: 2\r\n\r\nok`
  })
  for (const method of ['HEAD', 'DELETE']) {
    client.send(`${method} /named/x HTTP/1.1\r\nHost: a\r\nOrigin: ${A}\r\n\r\n`)
    await client.untilText('\r\n\r\n')
    assert.match(client.take(), /\r\nAccess-Control-Allow-Origin: https:\/\/a\.example\r\nVary: Origin\r\n/)
  }
  backend.answer = () => 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'
  client.send(`GET /named/x HTTP/1.1\r\nHost: a\r\nOrigin: ${A}\r\n\r\n`)
  await client.untilText('0\r\n\r\n')
  assert.match(client.take(), /\r\nAccess-Control-Allow-Origin: https:\/\/a\.example\r\nVary: Origin\r\n/)
})

test('interim responses and the switch to WebSocket say nothing of it', async t => {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  backend.answer = ({ lines }) =>
    lines.some(line => /^upgrade:/i.test(line))
      ? 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
      : 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'
  t.after(() => {
    backend.answer = () => `HTTP/1.1 200 OK\r\n${saidByBackend}Content-Length: 2\r\n\r\nok`
  })
  client.send(`GET /named/x HTTP/1.1\r\nHost: a\r\nOrigin: ${A}\r\n\r\n`)
  await client.untilText('200 OK')
  await client.until('both heads', ({ text }) => text.split('\r\n\r\n').length === 3)
  const [interim, final] = client.take().split('\r\n\r\n')
  assert.doesNotMatch(interim!, /access-control|vary/i)
  assert.match(final!, /Access-Control-Allow-Origin/)
  client.send(`GET /named/x HTTP/1.1\r\nHost: a\r\nOrigin: ${A}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
  await client.untilText('\r\n\r\n')
  assert.match(client.text, /^HTTP\/1\.1 101 /)
  assert.doesNotMatch(client.text, /access-control|vary/i)
})

test('a reload changes it for connections that are open', async t => {
  saidByBackend = ''
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  const asked = async (): Promise<readonly string[]> => saidOfCors(await ask(client, 'GET /open/x', `Origin: ${A}\r\n`))
  assert.deepEqual(await asked(), [ANY])
  await gateway.deploy({ apis: [api('/open', { origins: [A], credentials: true })] })
  assert.deepEqual(await asked(), [CREDENTIALS, allow(A), VARY])
  await gateway.deploy({ apis: [api('/open', null)] })
  assert.deepEqual(await asked(), [])
  await gateway.deploy({ apis: [api('/open', {})] })
  assert.deepEqual(await asked(), [ANY])
})
