/** Which API and resource a request gets to: hosts, versions, slashes, methods, and what is refused on the way. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Handler } from '../../src/exchange/contract.ts'
import { apiPaths } from '../../src/config/api-paths.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { takeAnswer } from '../harness/answers.ts'
import { operation } from '../harness/chained.ts'
import { startGateway, type TestApi } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'

/** What the gateway made of the request, as the backend's API tells it. */
const backend = await AnsweringBackend.listen(({ start }) => {
  const target = start.split(' ')[1]!
  const body = start.startsWith('HEAD') ? '' : target
  return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`
})
let seen = ''
const recorder: Handler = {
  name: 'recorder',
  request({ api, resource, place, target, restAt }) {
    const method = resource === null ? place?.allow : resource.verb
    const [path] = target.slice(restAt).split('?')
    seen = `${api!.name}: ${path} is ${place?.template ?? 'nothing'}, ${method ?? 'nothing'}`
    return undefined
  },
}

function api(
  name: string,
  paths: readonly string[],
  hosts: readonly string[] = [],
  operations: readonly string[] = [],
): TestApi {
  const unlike = { name, paths, hosts, resources: operations.map(operation) }
  return { context: `/${name}`, port: backend.port, basePath: `/${name}`, unlike }
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
const gateway = await startGateway(APIS, { 'target.max_bytes': 400, 'header.max_bytes': 600 }, null, [recorder])
const chained = await startGateway(APIS, {}, null, [], { isChained: true })
after(() => {
  gateway.stop()
  chained.stop()
  backend.close()
})

interface Case {
  readonly target: string
  readonly host?: string
  readonly method?: string
  /** What the handlers saw; '' where they were not asked. */
  readonly seen: string
  /** What the backend got; a number: the status of the gateway's own answer. */
  readonly gets: string | number
}

const CASES: readonly Case[] = [
  // Versions.
  { target: '/orders/1.0.0/x?y', seen: 'orders1: /x is /*, *', gets: '/orders1/x?y' },
  { target: '/orders/2.0.0/x', seen: 'orders2: /x is /*, *', gets: '/orders2/x' },
  { target: '/orders/x', seen: 'orders2: /x is /*, *', gets: '/orders2/x' },
  { target: '/orders', seen: 'orders2:  is /*, *', gets: '/orders2' },
  { target: '/orders/', seen: 'orders2: / is /*, *', gets: '/orders2/' },
  { target: '/orders?a=/b', seen: 'orders2:  is /*, *', gets: '/orders2?a=/b' },
  { target: '/orders/1.0.00', seen: 'orders2: /1.0.00 is /*, *', gets: '/orders2/1.0.00' },
  { target: '/in/v3/side/x', seen: 'inner: /x is /*, *', gets: '/inner/x' },
  { target: '/in/side/x', seen: 'inner: /x is /*, *', gets: '/inner/x' },
  { target: '/in/v4/side/x', seen: '', gets: 404 },
  { target: '/in', seen: '', gets: 404 },
  // Hosts.
  { target: '/orders/x', host: 'shop.example', seen: 'shop: /x is /*, *', gets: '/shop/x' },
  { target: '/orders/x', host: 'SHOP.Example.:8290', seen: 'shop: /x is /*, *', gets: '/shop/x' },
  { target: '/orders/1.0.0/x', host: 'shop.example', seen: 'orders1: /x is /*, *', gets: '/orders1/x' },
  { target: '/orders/9.0.0/x', host: 'other.example:1', seen: 'deep: /x is /*, *', gets: '/deep/x' },
  { target: '/orders/9.0.0/x', host: 'third.example', seen: 'orders2: /9.0.0/x is /*, *', gets: '/orders2/9.0.0/x' },
  { target: 'http://shop.example/orders/x', host: 'a', seen: 'shop: /x is /*, *', gets: '/shop/x' },
  { target: 'http://SHOP.example:81/orders/%78/.', host: 'a', seen: 'shop: /x/ is /*, *', gets: '/shop/x/' },
  { target: 'http://a/orders/x', host: 'shop.example', seen: 'orders2: /x is /*, *', gets: '/orders2/x' },
  // Resources.
  { target: '/zoo/1.0.0', seen: 'pets:  is /, GET', gets: '/pets' },
  { target: '/zoo/1.0.0/', seen: 'pets: / is /, GET', gets: '/pets/' },
  { target: '/zoo/1.0.0/pets/', seen: 'pets: /pets/ is /pets, GET', gets: '/pets/pets/' },
  { target: '/zoo/1.0.0/pets/7', method: 'DELETE', seen: 'pets: /pets/7 is /pets/{id}, DELETE', gets: '/pets/pets/7' },
  { target: '/zoo/1.0.0/pets/7', method: 'HEAD', seen: 'pets: /pets/7 is /pets/{id}, GET', gets: '' },
  { target: '/zoo/1.0.0/pets/a.b', seen: 'pets: /pets/a.b is /pets/{id}.{format}, GET', gets: '/pets/pets/a.b' },
  { target: '/zoo/1.0.0/any', method: 'PATCH', seen: 'pets: /any is /any/*, *', gets: '/pets/any' },
  { target: '/zoo/./1.0.0//pets/%37?q=//', seen: 'pets: /pets/7 is /pets/{id}, GET', gets: '/pets/pets/7?q=//' },
  { target: '/zoo/1.0.0/none', seen: 'pets: /none is nothing, nothing', gets: '/pets/none' },
  { target: '/zoo/1.0.0/pets', method: 'PUT', seen: 'pets: /pets is /pets, GET, HEAD, POST', gets: '/pets/pets' },
  // Limits: what becomes longer counts as if it had come so.
  { target: `/orders/${'"'.repeat(200)}`, seen: '', gets: 414 },
  {
    target: `/orders/${'"'.repeat(60)}`,
    seen: `orders2: /${'%22'.repeat(60)} is /*, *`,
    gets: `/orders2/${'%22'.repeat(60)}`,
  },
  {
    target: `/orders/${'%7e'.repeat(120)}`,
    seen: `orders2: /${'~'.repeat(120)} is /*, *`,
    gets: `/orders2/${'~'.repeat(120)}`,
  },
  { target: `/orders/${'"'.repeat(120)}`, host: 'a'.repeat(250), seen: '', gets: 414 },
]

async function ask(port: number, { target, host = 'a', method = 'GET' }: Pick<Case, 'target' | 'host' | 'method'>) {
  const client = await connectPeer(port)
  client.send(`${method} ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  const answer = await takeAnswer(client)
  client.destroy()
  return answer
}

for (const one of CASES) {
  const { method = 'GET', target, host = 'a' } = one
  test(`${method} ${target.slice(0, 50)} of ${host.slice(0, 30)}`, async () => {
    seen = ''
    const { status, body } = await ask(gateway.port, one)
    assert.equal(seen, one.seen)
    assert.equal(status === 200 ? body : status, one.gets)
  })
}

test('HTTP/1.0 without Host: what is reached on every host', async () => {
  const client = await connectPeer(gateway.port)
  client.send('GET /orders/9.0.0/x HTTP/1.0\r\n\r\n')
  assert.equal((await takeAnswer(client)).body, '/orders2/9.0.0/x')
  client.destroy()
})

interface Answered {
  readonly name: string
  readonly start: readonly [method: string, target: string]
  readonly status: number
  readonly code: number
  readonly allow?: string
}

/** In this order: whether there is an API, whether it has the resource, whether with the method. */
const ANSWERED: readonly Answered[] = [
  { name: 'a path of no API', start: ['GET', '/nothing/here'], status: 404, code: 404 },
  { name: 'a path of no resource', start: ['PUT', '/zoo/1.0.0/none'], status: 403, code: 900906 },
  {
    name: 'a method that is not declared',
    start: ['PUT', '/zoo/1.0.0/pets'],
    status: 405,
    code: 405,
    allow: 'GET, HEAD, POST',
  },
  {
    name: 'the same by a path that is not canonical',
    start: ['PUT', '/zoo/1.0.0/x/../%70ets/'],
    status: 405,
    code: 405,
    allow: 'GET, HEAD, POST',
  },
  { name: 'a path that cannot be read in one way only', start: ['GET', '/zoo/1.0.0/pets%2F7'], status: 400, code: 400 },
  { name: 'such a path of no API', start: ['GET', '/nothing/..;/here'], status: 400, code: 400 },
]

for (const { name, start, status, code, allow } of ANSWERED) {
  test(`${name} is answered with ${status}`, async () => {
    const answer = await ask(chained.port, { method: start[0], target: start[1] })
    assert.equal(answer.status, status)
    assert.equal((JSON.parse(answer.body) as { fault: { code: number } }).fault.code, code)
    assert.equal(answer.fields.get('allow')?.[0], allow)
  })
}

test('APIs of the same path and other hosts come and go one by one', async t => {
  const own = await startGateway([api('general', ['/x'])])
  t.after(() => own.stop())
  const bodies = async () => {
    const answers = [] as (string | number)[]
    for (const host of ['a.example', 'b.example', 'c.example']) {
      const { status, body } = await ask(own.port, { target: '/x/y', host })
      answers.push(status === 200 ? body : status)
    }
    return answers
  }
  assert.deepEqual(await bodies(), ['/general/y', '/general/y', '/general/y'])
  await own.deploy({ apis: [api('a', ['/x'], ['a.example']), api('b', ['/x'], ['b.example'])] })
  assert.deepEqual(await bodies(), ['/a/y', '/b/y', '/general/y'])
  await own.deploy({ removed: ['/x'] })
  assert.deepEqual(await bodies(), ['/a/y', '/b/y', 404])
  await own.deploy({ removed: ['a.example/x'], apis: [api('again', ['/x'], ['b.example'])] })
  assert.deepEqual(await bodies(), [404, '/again/y', 404])
})
