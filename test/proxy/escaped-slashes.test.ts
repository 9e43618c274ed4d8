/**
 * APIs that allow escaped slashes: what is matched, what the backend gets, and every path trick again. The backend
 * interprets paths as leniently as possible; the gateway must have matched the resource that it would serve.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { EscapedSlashes } from '../../src/apis/api-definition.ts'
import type { Filter } from '../../src/proxy/exchange/contract.ts'
import { PATH_TRICKS, type PathOutcome } from '../corpus/path-tricks.ts'
import { operation } from '../harness/filter-chain.ts'
import { startGateway, type TestApi } from '../harness/gateway.ts'
import { lenientPath } from '../harness/lenient-backend.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'
import { ReconnectingClient } from '../harness/reconnecting-client.ts'
import { StrictBackend } from '../harness/strict-backend.ts'

const backend = await StrictBackend.listen(({ start }) => {
  const body = start.split(' ')[1]!
  return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`
})
after(() => backend.close())

/** The API and the template that the last request matched. */
let matched = ''
const recorder: Filter = {
  name: 'recorder',
  request({ api, resource }) {
    matched = `${api!.name} ${resource?.template ?? ''}`
    return undefined
  },
}

function api(
  name: string,
  context: string,
  escapedSlashes: EscapedSlashes,
  templates: readonly string[],
  paths: readonly string[] = [context],
): TestApi {
  const resources = templates.map(template => operation(`GET ${template}`))
  return { context, port: backend.port, basePath: `/${name}`, overrides: { name, paths, resources, escapedSlashes } }
}

/** A client of a gateway with these APIs. */
async function clientOf(apis: readonly TestApi[]) {
  const gateway = await startGateway(apis, { filters: [recorder] })
  const client = new ReconnectingClient(gateway.port)
  after(() => {
    client.close()
    gateway.stop()
  })
  return (target: string): ReturnType<ReconnectingClient['get']> => {
    matched = ''
    return client.get(target)
  }
}

// ---- what is matched, and what the backend gets ---------------------------------------------------------------------

const FILES = ['/files/{name}', '/files/{name}/parts', '/urls/{url}', '/x']
const request = await clientOf([
  api('pass', '/pass/1', 'pass', FILES),
  api('decode', '/decode/1', 'decode', [...FILES, '/files/{folder}/{name}']),
  api('refuse', '/refuse/1', 'refuse', FILES),
  // Contexts of one API below those of another.
  api('outer', '/a', 'pass', ['/*'], ['/a/1', '/a']),
  api('inner', '/a/b', 'refuse', ['/*']),
  api('low', '/d', 'decode', ['/*'], ['/d/1', '/d']),
  api('high', '/d/e', 'decode', ['/*']),
])

/** Target, the matched API and template, and the target that the backend gets; '': refused with 400. */
const TARGETS: readonly (readonly [target: string, matched: string, passed: string])[] = [
  ['/pass/1/files/a%2Fb', 'pass /files/{name}', '/pass/files/a%2Fb'],
  ['/pass/1/files/a%2fb?x=%2f', 'pass /files/{name}', '/pass/files/a%2Fb?x=%2f'],
  ['/pass/1/files/a%2Fb/parts', 'pass /files/{name}/parts', '/pass/files/a%2Fb/parts'],
  ['/pass/1//files/%61%2Fb', 'pass /files/{name}', '/pass/files/a%2Fb'],
  ['/pass/1/urls/http%3A%2F%2Fh.example%2Fa', 'pass /urls/{url}', '/pass/urls/http:%2F%2Fh.example%2Fa'],
  ['/pass/1/files/%2Fetc', 'pass /files/{name}', '/pass/files/%2Fetc'],
  // The other reading is another resource.
  ['/pass/1/files/a%2Fparts', '', ''],
  ['/pass/1/files%2Fa', '', ''],
  ['/pass/1/x%2F', '', ''],
  ['/pass/1/%2Fx', '', ''],
  // Dot segments, before and after decoding.
  ['/pass/1/files/..%2Fx', '', ''],
  ['/pass/1/files/a%2F..', '', ''],
  ['/pass/1/files/a%2F..%2F..%2Fx', '', ''],
  ['/pass/1/files/a%2F%2e%2e%2Fx', '', ''],
  ['/pass/1/files/.%2Fa', '', ''],
  ['/pass/1/y/../files/a%2Fb', '', ''],
  ['/pass/1/files/a%2Fb/../x', '', ''],
  // What else is refused stays refused.
  ['/pass/1/files/a%2Fb%5Cc', '', ''],
  ['/pass/1/files/a%2Fb;c', '', ''],
  ['/pass/1/files/a%252Fb', '', ''],
  ['/pass/1/files/a%2Fb%00', '', ''],
  ['/pass/1/files/a%c0%af%2Fb', '', ''],
  ['/pass/1/files/a%2', '', ''],
  ['/decode/1/files/a%2Fb', 'decode /files/{folder}/{name}', '/decode/files/a/b'],
  ['/decode/1/files%2fa%2fparts', 'decode /files/{name}/parts', '/decode/files/a/parts'],
  ['/decode/1/files/%2F/a?x=%2F', 'decode /files/{name}', '/decode/files/a?x=%2F'],
  ['/decode/1/files/a/..%2Fb', '', ''],
  ['/decode/1/files/a/../b%2Fc', '', ''],
  ['/refuse/1/files/a%2Fb', '', ''],
  // The path of the API itself holds no escaped slash, and no reading leads to another API.
  ['/pass%2F1/files/a', '', ''],
  ['/decode%2F1/files/a', '', ''],
  ['/decode/1%2Ffiles/a', '', ''],
  ['/decode/1/..%2F..%2Frefuse/1/x', '', ''],
  ['/a/b%2Fc', '', ''],
  ['/a%2Fb/c', '', ''],
  ['/a/c%2Fb', 'outer /*', '/outer/c%2Fb'],
  ['/a/1%2Fb', '', ''],
  ['/a/x%2Fb/c', 'outer /*', '/outer/x%2Fb/c'],
  ['/d/e%2Fx', '', ''],
  ['/d%2Fe/x', '', ''],
  ['/d/1%2Fx', '', ''],
  ['/d/e/x%2Fy', 'high /*', '/high/x/y'],
  ['/d/x%2Fy', 'low /*', '/low/x/y'],
  ['/nobody/a%2Fb', '', ''],
]

for (const [target, api, passed] of TARGETS) {
  const result = passed === '' ? 'gets 400' : `matches ${api} and is forwarded as ${passed}`
  test(`the target ${target} ${result}`, async () => {
    const { status, body } = await request(target)
    if (passed === '') assert.equal(status, 400, body)
    else assert.deepEqual([status, matched, body], [200, api, passed])
  })
}

// ---- path tricks ----------------------------------------------------------------------------------------------------

const SCRAPS = [
  ...[
    '/',
    '/',
    '/restricted',
    '/restricted',
    '/open',
    '//',
    '/.',
    '/..',
    '/../',
    '.',
    '%2e',
    '%2F',
    '%2F',
    '%2f',
    '%2f',
  ],
  ...[
    '%5c',
    ';',
    '%3b',
    '?',
    '%00',
    '%25',
    '%72',
    'restricted',
    'restricted',
    'x',
    '%C3%A9',
    '%c0%af',
    'shop',
    '1.0.0',
  ],
]

for (const slashes of ['pass', 'decode'] as const) {
  const ask = await clientOf([api('base', '/shop/1.0.0', slashes, ['/*', '/restricted/*'])])

  const outcomeOf = async (target: string): Promise<PathOutcome> => {
    const { status, body } = await ask(target)
    if (status === 404) return 'unrouted'
    if (status !== 200) {
      assert.equal(status, 400, body)
      return 'refused'
    }
    const outcome = matched === 'base /restricted/*' ? 'restricted' : 'open'
    const served = lenientPath(body)
    assert.match(served, /^\/base(?:\/|$)/)
    assert.equal(/^\/base\/restricted(?:\/|$)/.test(served) ? 'restricted' : 'open', outcome, `${target}: ${body}`)
    return outcome
  }

  test(`escaped slashes = ${slashes}: a path trick without an escaped slash has its usual outcome`, async () => {
    for (const [outcome, tricks] of Object.entries(PATH_TRICKS)) {
      for (const trick of tricks) {
        const target = trick.startsWith('=') ? trick.slice(1) : `/shop/1.0.0${trick}`
        const found = await outcomeOf(target)
        // With an escaped slash the backend serves what was matched, which outcomeOf asserts.
        if (!/%2f/i.test(target.split('?')[0]!)) assert.equal(found, outcome, target)
      }
    }
  })

  test(`escaped slashes = ${slashes}: a random path matches the served resource (seed ${SEED})`, async () => {
    const random = new Random(SEED)
    const seen = { restricted: 0, open: 0, unrouted: 0, refused: 0 }
    for (let round = 0; round < (IS_LONG ? 50_000 : 400); round++) {
      let target = random.once(3) ? '/shop/1.0.0/restricted' : '/shop/1.0.0'
      for (let scraps = random.below(7); scraps > 0; scraps--) target += random.pick(SCRAPS)
      seen[await outcomeOf(target)]++
    }
    assert.ok(seen.restricted > 20 && seen.open > 20 && seen.refused > 20, JSON.stringify(seen))
  })
}

// ---- an API at the root ---------------------------------------------------------------------------------------------

const rooted = await clientOf([
  api('root', '/', 'refuse', [], ['/1.0.0', '/']),
  api('orders', '/orders', 'refuse', ['/*'], ['/orders/1']),
])

/** [target, API, target that the backend gets]. */
const ROOTED: readonly (readonly [target: string, api: string, passed: string])[] = [
  ['/', 'root', '/root/'],
  ['/?a=b', 'root', '/root/?a=b'],
  ['http://gateway.test', 'root', '/root'],
  ['http://gateway.test?a=b', 'root', '/root?a=b'],
  ['/orders', 'root', '/root/orders'],
  ['/orders/2/a/', 'root', '/root/orders/2/a/'],
  ['/orders/1', 'orders', '/orders'],
  ['/orders/1/a', 'orders', '/orders/a'],
  ['//a//%62', 'root', '/root/a/b'],
  ['/1.0.0/a', 'root', '/root/a'],
  [`/${'a/'.repeat(300)}`, 'root', `/root/${'a/'.repeat(300)}`],
]

for (const [target, name, passed] of ROOTED) {
  test(`with an API at the root, the target ${target.slice(0, 40)} is routed to ${name}`, async () => {
    const { status, body } = await rooted(target)
    assert.deepEqual([status, matched.split(' ')[0], body], [200, name, passed])
  })
}

test('an API at the root refuses ambiguous paths', async () => {
  for (const target of ['/..', '/a%2Fb', '/orders%2F1/a', '/a;b', '/%00', '/a%5Cb']) {
    assert.equal((await rooted(target)).status, 400, target)
  }
})
