/** Requests that the management listener refuses before an app sees them, and the fields that it adds to responses. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:https'
import { connect as connectPlain, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { connect } from 'node:tls'
import { Hono } from 'hono'
import { AccessControl } from '../../src/control/access-control.ts'
import { ManagementListener } from '../../src/control/management-listener.ts'
import type { ClientBindings } from '../../src/control/management-options.ts'
import type { ManagementPlan } from '../../src/plan/management-plan.ts'
import { CA, SELF_SIGNED, SERVER } from '../harness/certificates.ts'
import { pollPause } from '../harness/peers.ts'

const PLAN: ManagementPlan = {
  host: '127.0.0.1',
  port: 0,
  connectionsMax: 256,
  tls: { identity: SERVER, minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3', ciphers: '' },
  origin: 'https://localhost:9443',
  hostNames: ['gw.example.com'],
  console: { networks: [] },
  web: { networks: [] },
  filters: [],
}

const app = new Hono<{ Bindings: ClientBindings }>()
app.get('/api/thing', context => context.text(context.env.clientAddress))
app.get('/api/page', context => context.text('', 200, { 'Cache-Control': 'max-age=9' }))
app.get('/api/broken', () => {
  throw new Error('a secret cause')
})
app.onError(error => {
  throw error
})
app.post('/api/thing', async context => context.text(String((await context.req.arrayBuffer()).byteLength)))

const reported: string[] = []
const events = {
  report: (_level: string, event: string, fields: object) => void reported.push(event + JSON.stringify(fields)),
}
const apps = async () => [{ paths: ['/api'], area: 'console' as const, fetch: app.fetch }]
const listener = await ManagementListener.open(PLAN, { apps, events })
after(() => listener.close())

interface Asked {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly ca?: string
}

function ask({ method = 'GET', path = '/api/thing', headers = {}, body = '', ca = CA.cert }: Asked = {}) {
  const { promise, resolve, reject } = Promise.withResolvers<{
    readonly status: number
    readonly headers: NodeJS.Dict<string | string[]>
    readonly body: string
  }>()
  const options = { host: '127.0.0.1', servername: 'localhost', port: listener.port, agent: false, ca, method, path }
  const sent = request({ ...options, headers: { host: 'localhost', ...headers } }, async answer => {
    let text = ''
    for await (const piece of answer.setEncoding('utf8')) text += piece
    resolve({ status: answer.statusCode!, headers: answer.headers, body: text })
  })
  sent.on('error', reject)
  sent.end(body)
  return promise
}

/** The received text up to the end of a head, or of the connection. */
async function raw(sent: string, { port } = listener): Promise<string> {
  const socket = connect({ host: '127.0.0.1', servername: 'localhost', port, ca: CA.cert })
  socket.write(sent)
  let text = ''
  for await (const piece of socket.setEncoding('latin1')) {
    text += piece
    if (text.includes('\r\n\r\n')) break
  }
  socket.destroy()
  return text
}

test('an app gets the requests below its path, with the address of the client', async () => {
  const answer = await ask()
  assert.deepEqual([answer.status, answer.body], [200, '127.0.0.1'])
  assert.equal((await ask({ path: '/api/none' })).status, 404)
  assert.equal((await ask({ path: '/apiary' })).status, 404)
})

test('a forwarded request from this machine has the address of its client', async () => {
  assert.equal((await ask({ headers: { 'X-Forwarded-For': '192.0.2.7, 198.51.100.1' } })).body, '198.51.100.1')
})

test('a Host that names another machine gets 421 (DNS rebinding)', async () => {
  const at = async (host: string) => (await ask({ headers: { host } })).status
  const answered = await Promise.all(['localhost:1', '127.0.0.1', '[::1]:9443', 'GW.example.com.:9'].map(at))
  assert.deepEqual(answered, [200, 200, 200, 200])
  const refused = await Promise.all(['evil.example', 'localhost.evil.example', '192.0.2.1', '127.0.0.2'].map(at))
  assert.deepEqual(refused, [421, 421, 421, 421])
  assert.equal((await ask({ path: 'https://evil.example/api/thing' })).status, 421)
  assert.match(await raw('GET /api/thing HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n'), /^HTTP\/1.1 421 /)
})

test('a slow head ends its connection after the time-out', async () => {
  const hasty = await ManagementListener.open(PLAN, { apps, events, headMs: 100 })
  assert.match(await raw('GET /api/thing HTTP/1.1\r\nHost: loc', hasty), /^HTTP\/1.1 408 |^$/)
  await hasty.close()
})

test('another machine gets 64 connections; further ones are closed, and other clients are served', async () => {
  const held = Array.from({ length: 64 }, () => heldFrom('127.0.0.2'))
  await Promise.all(held.map(socket => once(socket, 'connect')))
  const beyond = heldFrom('127.0.0.2')
  await once(beyond, 'close')
  assert.equal((await ask()).status, 200)
  for (const socket of held) assert.equal(socket.closed, false)
  for (const socket of held) socket.destroy()
  await Promise.all(held.map(socket => socket.closed || once(socket, 'close')))
  // The address may connect again once the listener has seen its connections close.
  const isServed = async () => {
    const socket = connect({ socket: heldFrom('127.0.0.2'), servername: 'localhost', ca: CA.cert })
    const served = await once(socket, 'secureConnect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    return served
  }
  while (!(await isServed())) await pollPause()
})

/** A silent connection. */
function heldFrom(localAddress: string): Socket {
  return connectPlain({ host: '127.0.0.1', port: listener.port, localAddress }).on('error', () => {})
}

test('responses have the security fields, unless an app sets its own', async () => {
  const { headers } = await ask()
  assert.equal(headers['cache-control'], 'no-store')
  assert.equal(headers['x-content-type-options'], 'nosniff')
  assert.match(String(headers['content-security-policy']), /frame-ancestors 'none'/)
  assert.equal(headers['access-control-allow-origin'], undefined)
  assert.equal((await ask({ path: '/api/page' })).headers['cache-control'], 'max-age=9')
})

test('a body of more than 1 MiB gets 413, with and without a length', async () => {
  const body = 'x'.repeat(1024 * 1024 + 1)
  const length = { 'Content-Length': String(body.length) }
  const sized = ask({ method: 'POST', headers: length, body })
  const chunked = ask({ method: 'POST', headers: { 'Transfer-Encoding': 'chunked' }, body })
  assert.deepEqual([(await sized).status, (await chunked).status], [413, 413])
  assert.equal((await ask({ method: 'POST', headers: { 'Transfer-Encoding': 'chunked' }, body: 'abc' })).body, '3')
})

test('an error of an app becomes a 500, and its message is in the log only', async () => {
  const { status, body } = await ask({ path: '/api/broken' })
  assert.equal(status, 500)
  assert.doesNotMatch(body, /secret cause/)
  assert.match(reported.at(-1)!, /secret cause/)
})

test('the listener takes another identity while it runs', async () => {
  listener.replace({ ...PLAN, tls: { ...PLAN.tls, identity: SELF_SIGNED } })
  await assert.rejects(ask(), /certificate/)
  listener.replace(PLAN)
  assert.equal((await ask()).status, 200)
})

test('an address outside of a servlet_access_control_filter is refused, even this machine', async () => {
  const filters = [{ name: 'office', urlPattern: '/api/*', addressPattern: '10\\.0\\.0\\.\\d+' }]
  listener.replace({ ...PLAN, filters })
  assert.equal((await ask()).status, 403)
  assert.match(reported.at(-1)!, /servlet_access_control_filter office/)
  listener.replace(PLAN)
})

const REFUSALS: readonly (readonly [
  why: string,
  plan: Partial<ManagementPlan>,
  remoteAddress: string,
  refused: string,
])[] = [
  ['an empty list allows loopback', {}, '127.0.0.3', ''],
  ['an empty list allows the own address', {}, '192.0.2.1', ''],
  ['an empty list refuses every other address', {}, '192.0.2.2', 'admin_console.control_access'],
  ['a network allows its addresses', { console: { networks: ['192.0.2.0/24'] } }, '::ffff:192.0.2.2', ''],
  [
    'a network refuses other addresses',
    { console: { networks: ['192.0.3.0/24'] } },
    '192.0.2.2',
    'admin_console.control_access',
  ],
  ['without control_access every address is allowed', { console: { networks: null } }, '192.0.2.2', ''],
]

for (const [why, plan, remoteAddress, refused] of REFUSALS) {
  test(`control_access: ${why}`, () => {
    const access = new AccessControl({ ...PLAN, ...plan })
    assert.equal(access.refusal('console', '/api', { remoteAddress, localAddress: '192.0.2.1' }), refused)
  })
}

test('a filter covers the paths of its URL pattern (Jakarta Servlet 12.2)', () => {
  const refuses = (urlPattern: string, path: string) => {
    const filters = [{ name: 'x', urlPattern, addressPattern: 'nobody' }]
    const ends = { remoteAddress: '127.0.0.1', localAddress: '127.0.0.1' }
    return new AccessControl({ ...PLAN, filters }).refusal('web', path, ends) !== ''
  }
  for (const [pattern, path] of [
    ['/*', '/a'],
    ['', '/a'],
    ['/a/*', '/a'],
    ['/a/*', '/a/b'],
    ['*.do', '/x.do'],
    ['/a', '/a'],
  ]) {
    assert.ok(refuses(pattern!, path!), `${pattern} ${path}`)
  }
  for (const [pattern, path] of [
    ['/a/*', '/ab'],
    ['*.do', '/xdo'],
    ['/a', '/a/b'],
  ]) {
    assert.ok(!refuses(pattern!, path!), `${pattern} ${path}`)
  }
})

test('connections that come together are served by the server that loads with the first of them', async t => {
  const fresh = await ManagementListener.open(PLAN, { apps, events })
  t.after(() => fresh.close())
  const request = 'GET /api/page HTTP/1.1\r\nHost: localhost\r\n\r\n'
  const responses = await Promise.all(Array.from({ length: 20 }, () => raw(request, fresh)))
  for (const response of responses) assert.match(response, /^HTTP\/1\.1 200 /)
})

test('apps that cannot be loaded close the connection, are logged, and are loaded again with the next one', async t => {
  let loads = 0
  const failing = async () => {
    if (loads++ === 0) throw new Error('no such module')
    return apps()
  }
  const fresh = await ManagementListener.open(PLAN, { apps: failing, events })
  t.after(() => fresh.close())
  const request = 'GET /api/page HTTP/1.1\r\nHost: localhost\r\n\r\n'
  assert.equal(await raw(request, fresh).catch(() => ''), '')
  assert.ok(reported.includes('management listener failed{"CAUSE_OF_ERROR":"no such module"}'))
  assert.match(await raw(request, fresh), /^HTTP\/1\.1 200 /)
  assert.equal(loads, 2)
})

test('a listener without any connection refuses an identity that OpenSSL refuses, and closes', async () => {
  const identity = { ...SERVER, key: SELF_SIGNED.key }
  await assert.rejects(ManagementListener.open({ ...PLAN, tls: { ...PLAN.tls, identity } }, { apps, events }))
  const fresh = await ManagementListener.open(PLAN, { apps, events })
  assert.throws(() => fresh.replace({ ...PLAN, tls: { ...PLAN.tls, identity } }))
  await fresh.close()
})
