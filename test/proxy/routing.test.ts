/** Routing: the API and the resource that a request matches by host, version, path and method. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Filter } from '../../src/proxy/exchange/contract.ts'
import { apiPaths } from '../../src/apis/api-paths.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { takeResponse } from '../harness/responses.ts'
import { operation } from '../harness/filter-chain.ts'
import { startGateway, type TestApi } from '../harness/gateway.ts'
import { connectPeer, turn } from '../harness/peers.ts'
import { startEndpoints, UnreliableBackend } from '../harness/unreliable-backend.ts'

/** Responds with the target that it gets. */
const backend = await StrictBackend.listen(({ start }) => {
  const target = start.split(' ')[1]!
  const body = start.startsWith('HEAD') ? '' : target
  return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`
})
/** The API, path and resource that the last request matched. */
let matched = ''
const recorder: Filter = {
  name: 'recorder',
  request({ api, resource, resourcePath, canonicalTarget, backendPathAt }) {
    const method = resource === null ? resourcePath?.allow : resource.verb
    const [path] = canonicalTarget.slice(backendPathAt).split('?')
    const resourceText = resourcePath === null ? 'no resource' : `${resourcePath.template}, ${method}`
    matched = `${api!.name}: ${path} matches ${resourceText}`
    return undefined
  },
}

function api(
  name: string,
  paths: readonly string[],
  hosts: readonly string[] = [],
  operations: readonly string[] = [],
): TestApi {
  const overrides = { name, paths, hosts, resources: operations.map(operation) }
  return { context: `/${name}`, port: backend.port, basePath: `/${name}`, overrides }
}

const PETS = [
  'GET /pets',
  'POST /pets',
  'GET /pets/{id}',
  'DELETE /pets/{id}',
  'GET /pets/{id}.{format}',
  '* /any/*',
  'GET /',
]
const APIS = [
  api('orders1', apiPaths('/orders', '1.0.0', false)),
  api('orders2', apiPaths('/orders', '2.0.0', true)),
  api('inner', apiPaths('/in/{version}/side', 'v3', true)),
  api('shop', ['/orders'], ['shop.example']),
  api('deep', ['/orders/9.0.0'], ['shop.example', 'other.example']),
  api('pets', ['/zoo/1.0.0'], [], PETS),
]
const gateway = await startGateway(APIS, {
  http: { 'target.max_bytes': 400, 'header.max_bytes': 600 },
  filters: [recorder],
})
const chained = await startGateway(APIS, { hasFilterChain: true })
after(() => {
  gateway.stop()
  chained.stop()
  backend.close()
})

interface Case {
  readonly target: string
  readonly host?: string
  readonly method?: string
  /** API, path and resource that the request matches; '' if no filter runs. */
  readonly matched: string
  /** The target that the backend gets, or the status of the gateway. */
  readonly result: string | number
}

const CASES: readonly Case[] = [
  // Versions.
  { target: '/orders/1.0.0/x?y', matched: 'orders1: /x matches /*, *', result: '/orders1/x?y' },
  { target: '/orders/2.0.0/x', matched: 'orders2: /x matches /*, *', result: '/orders2/x' },
  { target: '/orders/x', matched: 'orders2: /x matches /*, *', result: '/orders2/x' },
  { target: '/orders', matched: 'orders2:  matches /*, *', result: '/orders2' },
  { target: '/orders/', matched: 'orders2: / matches /*, *', result: '/orders2/' },
  { target: '/orders?a=/b', matched: 'orders2:  matches /*, *', result: '/orders2?a=/b' },
  { target: '/orders/1.0.00', matched: 'orders2: /1.0.00 matches /*, *', result: '/orders2/1.0.00' },
  { target: '/in/v3/side/x', matched: 'inner: /x matches /*, *', result: '/inner/x' },
  { target: '/in/side/x', matched: 'inner: /x matches /*, *', result: '/inner/x' },
  { target: '/in/v4/side/x', matched: '', result: 404 },
  { target: '/in', matched: '', result: 404 },
  // Hosts.
  { target: '/orders/x', host: 'shop.example', matched: 'shop: /x matches /*, *', result: '/shop/x' },
  { target: '/orders/x', host: 'SHOP.Example.:8290', matched: 'shop: /x matches /*, *', result: '/shop/x' },
  { target: '/orders/1.0.0/x', host: 'shop.example', matched: 'orders1: /x matches /*, *', result: '/orders1/x' },
  { target: '/orders/9.0.0/x', host: 'other.example:1', matched: 'deep: /x matches /*, *', result: '/deep/x' },
  {
    target: '/orders/9.0.0/x',
    host: 'third.example',
    matched: 'orders2: /9.0.0/x matches /*, *',
    result: '/orders2/9.0.0/x',
  },
  { target: 'http://shop.example/orders/x', host: 'a', matched: 'shop: /x matches /*, *', result: '/shop/x' },
  { target: 'http://SHOP.example:81/orders/%78/.', host: 'a', matched: 'shop: /x/ matches /*, *', result: '/shop/x/' },
  { target: 'http://a/orders/x', host: 'shop.example', matched: 'orders2: /x matches /*, *', result: '/orders2/x' },
  // Resources.
  { target: '/zoo/1.0.0', matched: 'pets:  matches /, GET', result: '/pets' },
  { target: '/zoo/1.0.0/', matched: 'pets: / matches /, GET', result: '/pets/' },
  { target: '/zoo/1.0.0/pets/', matched: 'pets: /pets/ matches /pets, GET', result: '/pets/pets/' },
  {
    target: '/zoo/1.0.0/pets/7',
    method: 'DELETE',
    matched: 'pets: /pets/7 matches /pets/{id}, DELETE',
    result: '/pets/pets/7',
  },
  { target: '/zoo/1.0.0/pets/7', method: 'HEAD', matched: 'pets: /pets/7 matches /pets/{id}, GET', result: '' },
  {
    target: '/zoo/1.0.0/pets/a.b',
    matched: 'pets: /pets/a.b matches /pets/{id}.{format}, GET',
    result: '/pets/pets/a.b',
  },
  { target: '/zoo/1.0.0/any', method: 'PATCH', matched: 'pets: /any matches /any/*, *', result: '/pets/any' },
  {
    target: '/zoo/./1.0.0//pets/%37?q=//',
    matched: 'pets: /pets/7 matches /pets/{id}, GET',
    result: '/pets/pets/7?q=//',
  },
  { target: '/zoo/1.0.0/none', matched: 'pets: /none matches no resource', result: '/pets/none' },
  {
    target: '/zoo/1.0.0/pets',
    method: 'PUT',
    matched: 'pets: /pets matches /pets, GET, HEAD, POST',
    result: '/pets/pets',
  },
  // Limits: the canonical path counts if it is longer than the received one.
  { target: `/orders/${'"'.repeat(200)}`, matched: '', result: 414 },
  {
    target: `/orders/${'"'.repeat(60)}`,
    matched: `orders2: /${'%22'.repeat(60)} matches /*, *`,
    result: `/orders2/${'%22'.repeat(60)}`,
  },
  {
    target: `/orders/${'%7e'.repeat(120)}`,
    matched: `orders2: /${'~'.repeat(120)} matches /*, *`,
    result: `/orders2/${'~'.repeat(120)}`,
  },
  { target: `/orders/${'"'.repeat(120)}`, host: 'a'.repeat(250), matched: '', result: 414 },
]

async function request(port: number, { target, host = 'a', method = 'GET' }: Pick<Case, 'target' | 'host' | 'method'>) {
  const client = await connectPeer(port)
  client.send(`${method} ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  const response = await takeResponse(client)
  client.destroy()
  return response
}

for (const one of CASES) {
  const { method = 'GET', target, host = 'a' } = one
  const result = typeof one.result === 'number' ? `gets ${one.result}` : `is routed to ${one.matched.slice(0, 60)}`
  test(`${method} ${target.slice(0, 50)} for ${host.slice(0, 30)} ${result}`, async () => {
    matched = ''
    const { status, body } = await request(gateway.port, one)
    assert.equal(matched, one.matched)
    assert.equal(status === 200 ? body : status, one.result)
  })
}

test('an HTTP/1.0 request without Host is routed to an API without hosts', async () => {
  const client = await connectPeer(gateway.port)
  client.send('GET /orders/9.0.0/x HTTP/1.0\r\n\r\n')
  assert.equal((await takeResponse(client)).body, '/orders2/9.0.0/x')
  client.destroy()
})

interface RefusedCase {
  readonly name: string
  readonly start: readonly [method: string, target: string]
  readonly status: number
  readonly code: number
  readonly allow?: string
}

/** Checked in this order: the path, the API, the resource, the method. */
const REFUSED: readonly RefusedCase[] = [
  { name: 'a path of no API', start: ['GET', '/nothing/here'], status: 404, code: 404 },
  { name: 'a path of no resource', start: ['PUT', '/zoo/1.0.0/none'], status: 403, code: 900906 },
  {
    name: 'a method that the resource does not have',
    start: ['PUT', '/zoo/1.0.0/pets'],
    status: 405,
    code: 405,
    allow: 'GET, HEAD, POST',
  },
  {
    name: 'a method that the resource of a non-canonical path does not have',
    start: ['PUT', '/zoo/1.0.0/x/../%70ets/'],
    status: 405,
    code: 405,
    allow: 'GET, HEAD, POST',
  },
  { name: 'an ambiguous path', start: ['GET', '/zoo/1.0.0/pets%2F7'], status: 400, code: 400 },
  { name: 'an ambiguous path of no API', start: ['GET', '/nothing/..;/here'], status: 400, code: 400 },
]

for (const { name, start, status, code, allow } of REFUSED) {
  test(`${name} gets ${code}`, async () => {
    const response = await request(chained.port, { method: start[0], target: start[1] })
    assert.equal(response.status, status)
    assert.equal((JSON.parse(response.body) as { fault: { code: number } }).fault.code, code)
    assert.equal(response.fields.get('allow')?.[0], allow)
  })
}

test('APIs with the same path and different hosts are deployed and removed independently', async t => {
  const own = await startGateway([api('general', ['/x'])])
  t.after(() => own.stop())
  const bodies = async () => {
    const results = [] as (string | number)[]
    for (const host of ['a.example', 'b.example', 'c.example']) {
      const { status, body } = await request(own.port, { target: '/x/y', host })
      results.push(status === 200 ? body : status)
    }
    return results
  }
  assert.deepEqual(await bodies(), ['/general/y', '/general/y', '/general/y'])
  await own.deploy({ apis: [api('a', ['/x'], ['a.example']), api('b', ['/x'], ['b.example'])] })
  assert.deepEqual(await bodies(), ['/a/y', '/b/y', '/general/y'])
  await own.deploy({ removed: ['/x'] })
  assert.deepEqual(await bodies(), ['/a/y', '/b/y', 404])
  await own.deploy({ removed: ['a.example/x'], apis: [api('again', ['/x'], ['b.example'])] })
  assert.deepEqual(await bodies(), [404, '/again/y', 404])
})

// ---- the canonical path of one request -----------------------------------------------------------------------------

interface CanonicalCase {
  readonly target: string
  readonly forwarded: string
}

const CANONICAL: readonly CanonicalCase[] = [
  { target: '/t/a/../%62/.?q=/../%zz', forwarded: '/b/?q=/../%zz' },
  { target: '/t/"x"', forwarded: '/%22x%22' },
  { target: '/t//?', forwarded: '/?' },
  { target: '/t/./..//t?x', forwarded: '/?x' },
  { target: 'http://a//t/%7E', forwarded: '/~' },
  { target: '/t/as%20it%2Bis/', forwarded: '/as%20it%2Bis/' },
]

async function statusOf(port: number, target: string): Promise<number> {
  return (await request(port, { target })).status
}

/** Method and path of the requests at a backend, sorted. */
function startsOf({ requests }: UnreliableBackend): readonly string[] {
  return requests.map(request => request.split(' ').slice(0, 2).join(' ')).sort()
}

for (const { target, forwarded } of CANONICAL) {
  test(`the canonical path of ${target} is sent to the next endpoint after a failover`, async t => {
    const [stopped, live] = [await UnreliableBackend.start('a'), await UnreliableBackend.start('b')]
    const failing = await startEndpoints({ kind: 'failover', ports: [stopped.port, live.port] })
    t.after(async () => {
      failing.stop()
      await live.stop()
    })
    await stopped.stop()
    assert.equal(await statusOf(failing.port, target), 200)
    assert.deepEqual(startsOf(live), [`GET ${forwarded}`])
  })

  test(`the canonical path of ${target} is forwarded after a filter that waits`, async t => {
    const live = await UnreliableBackend.start('b')
    const waits: Filter = {
      name: 'waits',
      async request() {
        await turn()
        return undefined
      },
    }
    const waiting = await startGateway([{ context: '/t', port: live.port }], { filters: [waits] })
    t.after(async () => {
      waiting.stop()
      await live.stop()
    })
    // Another request is routed while this one waits.
    const statuses = await Promise.all([statusOf(waiting.port, target), statusOf(waiting.port, '/t/other/../%6Fne')])
    assert.deepEqual(statuses, [200, 200])
    assert.deepEqual(startsOf(live), [`GET ${forwarded}`, 'GET /one'].toSorted())
  })
}
