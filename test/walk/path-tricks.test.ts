/**
 * Ways to reach a resource by another name. An API has an open resource for everything and a restricted one; behind it
 * stands a backend that takes every liberty with a path and tells which of them it would serve. Whatever the request
 * looks like, that is the one that the gateway matched, or the request is refused.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Handler } from '../../src/exchange/contract.ts'
import { PATH_TRICKS, type PathOutcome } from '../corpus/path-tricks.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { takeAnswer } from '../harness/answers.ts'
import { startGateway } from '../harness/gateway.ts'
import { lenientPath } from '../harness/lenient-backend.ts'
import { connectPeer, eventually, type Peer } from '../harness/peers.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'

const CONTEXT = '/shop/1.0.0'
const BASE = '/base'

const backend = await AnsweringBackend.listen(({ start }) => {
  const path = lenientPath(start.split(' ')[1]!)
  const body = `${path}\n${start.split(' ')[1]}`
  return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`
})

/** Template of the resource that the gateway matched last. */
let matched = ''
const recorder: Handler = {
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
const shop = { context: CONTEXT, port: backend.port, basePath: BASE, unlike: { resources } }
const gateway = await startGateway([shop], {}, 'json', [recorder])
after(() => {
  gateway.stop()
  backend.close()
})

let client: Peer | undefined

/** What comes of a request, on a connection that goes on for as long as it is let. */
async function ask(target: string): Promise<{ readonly status: number; readonly body: string }> {
  if (client === undefined || client.ending !== '' || client.isClosed) client = await connectPeer(gateway.port)
  matched = ''
  client.send(`GET ${target} HTTP/1.1\r\nHost: gateway.test\r\n\r\n`)
  const { status, body, fields } = await takeAnswer(client)
  if (fields.get('connection')?.includes('close') === true) {
    client.destroy()
    client = undefined
  }
  return { status, body }
}

after(() => client?.destroy())

/** Of two that stand for the same: what the backend would serve. */
function servedBy(body: string): 'restricted' | 'open' {
  const [path = ''] = body.split('\n')
  assert.ok(path === BASE || path.startsWith(`${BASE}/`), `${body} is not behind ${BASE}`)
  return /^\/base\/restricted(?:\/|$)/.test(path) ? 'restricted' : 'open'
}

function outcomeOf({ status, body }: Awaited<ReturnType<typeof ask>>): PathOutcome {
  if (status === 404) return 'nobody'
  if (status !== 200) {
    assert.equal(status, 400, body)
    assert.match(body, /^\{"fault":\{"code":400,/)
    return 'refused'
  }
  const outcome = matched === '/restricted/*' ? 'restricted' : 'open'
  assert.equal(servedBy(body), outcome, body)
  return outcome
}

test('there are more than 250 of them, and none is there twice', () => {
  const all = Object.values(PATH_TRICKS).flat()
  assert.ok(all.length > 250)
  assert.deepEqual(all, [...new Set(all)])
})

for (const [outcome, tricks] of Object.entries(PATH_TRICKS)) {
  for (const trick of tricks) {
    test(`${outcome}: ${JSON.stringify(trick)}`, async () => {
      const target = trick.startsWith('=') ? trick.slice(1) : CONTEXT + trick
      assert.equal(outcomeOf(await ask(target)), outcome)
    })
  }
}

test('the query passes as it came, and so does the slash at the end', async () => {
  const { body } = await ask(`${CONTEXT}//%72estricted/./x/?a=%2f..//;%zz&b={"}`)
  assert.equal(body.split('\n')[1], '/base/restricted/x/?a=%2f..//;%zz&b={"}')
})

test('the access log has the target as it came', async () => {
  const target = `${CONTEXT}/open/../%72estricted?logged`
  await ask(target)
  await eventually('the line', () => gateway.accessLines.some(line => line.includes(`"request_target":"${target}"`)))
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

test(`random paths lead a lenient backend nowhere else (seed ${SEED})`, async () => {
  const random = new Random(SEED)
  const seen = { restricted: 0, open: 0, nobody: 0, refused: 0 }
  const isEnough = (): boolean => Object.values(seen).every(times => times > 20)
  for (let round = 0; round < (IS_LONG ? 100_000 : 400) || (!isEnough() && round < 5000); round++) {
    // Few ways lead to what is restricted by themselves.
    let target = random.once(3) ? `${CONTEXT}/restricted` : CONTEXT
    for (let scraps = random.below(7); scraps > 0; scraps--) target += random.pick(SCRAPS)
    seen[outcomeOf(await ask(target))]++
  }
  assert.ok(isEnough(), JSON.stringify(seen))
})
