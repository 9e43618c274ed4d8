/**
 * Paths that could reach a restricted resource under another name. The API has an open resource `/*` and a restricted
 * one; its backend interprets paths as leniently as possible and responds with the resource that it would serve. The
 * gateway must have matched the same resource, or have refused the request.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Filter } from '../../src/proxy/exchange/contract.ts'
import { PATH_TRICKS, type PathOutcome } from '../corpus/path-tricks.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { startGateway } from '../harness/gateway.ts'
import { lenientPath } from '../harness/lenient-backend.ts'
import { eventually } from '../harness/peers.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'
import { ReconnectingClient } from '../harness/reconnecting-client.ts'

const CONTEXT = '/shop/1.0.0'
const BASE = '/base'

const backend = await StrictBackend.listen(({ start }) => {
  const path = lenientPath(start.split(' ')[1]!)
  const body = `${path}\n${start.split(' ')[1]}`
  return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`
})

/** Template of the resource that the gateway matched last. */
let matched = ''
const recorder: Filter = {
  name: 'recorder',
  request(exchange) {
    matched = exchange.resource?.template ?? ''
    return undefined
  },
}

const REST = { verb: 'GET', authType: 'None', tier: 'Unlimited', scopes: [] } as const
const resources = [
  { ...REST, template: '/*' },
  { ...REST, template: '/restricted/*' },
]
const shop = { context: CONTEXT, port: backend.port, basePath: BASE, overrides: { resources } }
const gateway = await startGateway([shop], { accessLog: 'json', filters: [recorder] })
after(() => {
  gateway.stop()
  backend.close()
})

const client = new ReconnectingClient(gateway.port)

async function request(target: string): ReturnType<ReconnectingClient['get']> {
  matched = ''
  return client.get(target)
}

after(() => client.close())

/** The resource that the lenient backend would serve. */
function servedBy(body: string): 'restricted' | 'open' {
  const [path = ''] = body.split('\n')
  assert.ok(path === BASE || path.startsWith(`${BASE}/`), `${body} is not below ${BASE}`)
  return /^\/base\/restricted(?:\/|$)/.test(path) ? 'restricted' : 'open'
}

function outcomeOf({ status, body }: Awaited<ReturnType<typeof request>>): PathOutcome {
  if (status === 404) return 'unrouted'
  if (status !== 200) {
    assert.equal(status, 400, body)
    assert.match(body, /^\{"fault":\{"code":400,/)
    return 'refused'
  }
  const outcome = matched === '/restricted/*' ? 'restricted' : 'open'
  assert.equal(servedBy(body), outcome, body)
  return outcome
}

test('the corpus has more than 250 distinct paths', () => {
  const all = Object.values(PATH_TRICKS).flat()
  assert.ok(all.length > 250)
  assert.deepEqual(all, [...new Set(all)])
})

const EXPECTED: Readonly<Record<PathOutcome, string>> = {
  restricted: 'matches the restricted resource',
  open: 'matches the open resource',
  unrouted: 'matches no API',
  refused: 'is refused with 400',
}

for (const [outcome, tricks] of Object.entries(PATH_TRICKS)) {
  for (const trick of tricks) {
    test(`the path ${JSON.stringify(trick)} ${EXPECTED[outcome as PathOutcome]}`, async () => {
      const target = trick.startsWith('=') ? trick.slice(1) : CONTEXT + trick
      assert.equal(outcomeOf(await request(target)), outcome)
    })
  }
}

test('the query and the trailing slash are forwarded unchanged', async () => {
  const { body } = await request(`${CONTEXT}//%72estricted/./x/?a=%2f..//;%zz&b={"}`)
  assert.equal(body.split('\n')[1], '/base/restricted/x/?a=%2f..//;%zz&b={"}')
})

test('the access log has the target as the client sent it', async () => {
  const target = `${CONTEXT}/open/../%72estricted?logged`
  await request(target)
  await eventually('the access log line', () =>
    gateway.accessLines.some(line => line.includes(`"request_target":"${target}"`)),
  )
})

const SCRAPS = [
  ...[
    '/',
    '/',
    '/',
    '/restricted',
    '/restricted',
    '/open',
    '//',
    '/.',
    '/..',
    '/../',
    '/./',
    '.',
    '%2e',
    '%2E',
    '%2f',
    '%5c',
  ],
  ...[
    '\\',
    ';',
    ';a=b',
    '%3b',
    '%3F',
    '?',
    '%00',
    '%25',
    '%72',
    '%64',
    'restricted',
    'x',
    '%C3%A9',
    '%c0%af',
    '\xc3\xa9',
    ' ',
  ],
]

test(`a random path matches the resource that the lenient backend serves (seed ${SEED})`, async () => {
  const random = new Random(SEED)
  const seen = { restricted: 0, open: 0, unrouted: 0, refused: 0 }
  const isEnough = (): boolean => Object.values(seen).every(times => times > 20)
  for (let round = 0; round < (IS_LONG ? 100_000 : 400) || (!isEnough() && round < 5000); round++) {
    // Few random paths reach the restricted resource by themselves.
    let target = random.once(3) ? `${CONTEXT}/restricted` : CONTEXT
    for (let scraps = random.below(7); scraps > 0; scraps--) target += random.pick(SCRAPS)
    seen[outcomeOf(await request(target))]++
  }
  assert.ok(isEnough(), JSON.stringify(seen))
})
