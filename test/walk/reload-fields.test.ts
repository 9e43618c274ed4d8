/** Settings that a reload changes and one request shows: on connections that were open before, and on new ones. */
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { takeAnswer } from '../harness/answers.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, type Peer } from '../harness/peers.ts'
import { valuesOf } from '../harness/strict-http.ts'

const quick = await AnsweringBackend.listen(
  () => 'HTTP/1.1 200 OK\r\nServer: origin\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 2\r\n\r\nok',
)
after(() => quick.close())

async function dial(t: TestContext, gateway: TestGateway): Promise<Peer> {
  const peer = await connectPeer(gateway.port)
  t.after(() => peer.destroy())
  return peer
}

interface Change {
  readonly what: string
  readonly http: Readonly<Record<string, unknown>>
  readonly request: string
  /** What is looked at: the status of the answer, or the values of a field. */
  readonly look: 'status' | `answered ${string}` | `passed on ${string}`
  readonly before: string
  readonly after: string
}

const FIELDS = 'Host: shop.example\r\nUser-Agent: cat\r\nX-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\n'
const ASKED = `GET /quick/some/where HTTP/1.1\r\n${FIELDS}\r\n`
const CHUNKED =
  'POST /quick/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\nhello\r\n0\r\n\r\n'
const LONG = 'POST /quick/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello'
const OWN_HOST = `127.0.0.1:${quick.port}`

const CHANGES: readonly Change[] = [
  {
    what: 'trusted_proxies',
    http: { trusted_proxies: ['127.0.0.0/8'] },
    request: ASKED,
    look: 'passed on X-Forwarded-For',
    before: '127.0.0.1',
    after: '192.0.2.1, 127.0.0.1',
  },
  {
    what: 'forwarded.headers, which adds a field',
    http: { 'forwarded.headers': 'forwarded' },
    request: ASKED,
    look: 'passed on Forwarded',
    before: '',
    after: 'for=127.0.0.1;host="shop.example";proto=http',
  },
  {
    what: 'forwarded.headers, which takes one away',
    http: { 'forwarded.headers': 'forwarded' },
    request: ASKED,
    look: 'passed on X-Forwarded-For',
    before: '127.0.0.1',
    after: '',
  },
  {
    what: 'trusted_proxies and forwarded.headers',
    http: { trusted_proxies: ['127.0.0.1'], 'forwarded.headers': 'forwarded' },
    request: ASKED,
    look: 'passed on Forwarded',
    before: '',
    after: 'for=192.0.2.1, for=127.0.0.1;host="shop.example";proto=http',
  },
  {
    what: 'http.headers.preserve with Host',
    http: { 'http.headers.preserve': ['Host'] },
    request: ASKED,
    look: 'passed on Host',
    before: OWN_HOST,
    after: 'shop.example',
  },
  {
    what: 'http.headers.preserve with Server',
    http: { 'http.headers.preserve': ['Server'] },
    request: ASKED,
    look: 'answered Server',
    before: '',
    after: 'origin',
  },
  {
    what: 'preserve_http_server_name',
    http: { preserve_http_server_name: true },
    request: ASKED,
    look: 'answered Server',
    before: '',
    after: 'origin',
  },
  {
    what: 'http.user.agent.preserve',
    http: { 'http.user.agent.preserve': false },
    request: ASKED,
    look: 'passed on User-Agent',
    before: 'cat',
    after: 'Sluice',
  },
  {
    what: 'disable_connection_keepalive',
    http: { disable_connection_keepalive: true },
    request: ASKED,
    look: 'passed on Connection',
    before: '',
    after: 'close',
  },
  { what: 'body.max_bytes', http: { 'body.max_bytes': 4 }, request: LONG, look: 'status', before: '200', after: '400' },
  {
    what: 'body.max_bytes, of chunks',
    http: { 'body.max_bytes': 4 },
    request: CHUNKED,
    look: 'status',
    before: '200',
    after: '400',
  },
  {
    what: 'chunk.max_extension_bytes',
    http: { 'chunk.max_extension_bytes': 0 },
    request: CHUNKED,
    look: 'status',
    before: '200',
    after: '400',
  },
  {
    what: 'target.max_bytes',
    http: { 'target.max_bytes': 12 },
    request: ASKED,
    look: 'status',
    before: '200',
    after: '414',
  },
]

const DEFAULTS = {
  trusted_proxies: [],
  'forwarded.headers': 'x-forwarded',
  'http.headers.preserve': ['Content-Type'],
  preserve_http_server_name: false,
  'http.user.agent.preserve': true,
  disable_connection_keepalive: false,
  'body.max_bytes': -1,
  'chunk.max_extension_bytes': 1024,
  'target.max_bytes': 8192,
}

async function seen(client: Peer, { request, look }: Change): Promise<string> {
  client.send(request)
  const { status, fields } = await takeAnswer(client)
  const [how, ...name] = look.split(' ')
  if (how === 'status') return String(status)
  if (how === 'answered') return fields.get(name[0]!.toLowerCase())?.join() ?? ''
  return valuesOf(quick.requests.at(-1)!.lines, name[1]!).join()
}

for (const change of CHANGES) {
  test(`${change.what} is another on open connections and on new ones, and back again`, async t => {
    const gateway = await startGateway([{ context: '/quick', port: quick.port }])
    t.after(() => gateway.stop())
    const lasting = await dial(t, gateway)
    const other = await dial(t, gateway)
    assert.equal(await seen(lasting, change), change.before)
    assert.equal(await seen(other, change), change.before)
    await gateway.deploy({ http: change.http })
    assert.equal(await seen(lasting, change), change.after)
    assert.equal(await seen(await dial(t, gateway), change), change.after)
    const defaults = Object.keys(change.http).map(key => [key, DEFAULTS[key as keyof typeof DEFAULTS]])
    await gateway.deploy({ http: Object.fromEntries(defaults) })
    assert.equal(await seen(other, change), change.before)
    assert.equal(await seen(await dial(t, gateway), change), change.before)
    assert.deepEqual(quick.violations, [])
  })
}
