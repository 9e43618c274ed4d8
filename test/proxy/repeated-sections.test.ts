/**
 * D180: a section of a head that a peer repeats is recognised instead of parsed. Whatever comes after repetitions has
 * the same effect as on a connection without them: each case is sent both ways, and the results are compared.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { KIND } from '../../src/http1/field-kinds.ts'
import type { Filter } from '../../src/proxy/exchange/contract.ts'
import { planGateway, startGateway } from '../harness/gateway.ts'
import { mutate } from '../harness/mutation.ts'
import { connectPeer, quiet, type Peer, ScriptedBackend } from '../harness/peers.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'
import { takeResponse } from '../harness/responses.ts'
import { StrictBackend } from '../harness/strict-backend.ts'

const WARMING = 4
const RANDOM_CASES = IS_LONG ? 20_000 : 150

const backend = await StrictBackend.listen()
/** What the scripted backends respond with, by the last segment of the path. */
const responses = new Map<string, string>()
const answered = await Promise.all([0, 1].map(() => ScriptedBackend.listen(peer => void answer(peer))))
/** Strips the last field of a request, as an API does with the credentials that it reads. */
const stripping: Filter = {
  name: 'stripping',
  request({ head, requestTarget }) {
    if (requestTarget.endsWith('strip')) head!.kinds[head!.count - 1] = KIND.CREDENTIAL
    return undefined
  },
}
const gateway = await startGateway(
  [
    { context: '/t', port: backend.port },
    { context: '/warm', port: answered[0]!.port },
    { context: '/cold', port: answered[1]!.port },
  ],
  { filters: [stripping] },
)
after(() => {
  gateway.stop()
  backend.close()
  for (const scripted of answered) scripted.close()
})

async function answer(peer: Peer): Promise<void> {
  while (!peer.isClosed && peer.ending === '') {
    await peer.untilText('\r\n\r\n').catch(() => {})
    const [, name] = /^\w+ \/(\w+)/.exec(peer.text) ?? []
    peer.take()
    if (name !== undefined) peer.send(responses.get(name)!)
  }
}

function request(line: string, ...fields: readonly string[]): string {
  return [line, 'Host: a', 'User-Agent: test', ...fields, '', ''].join('\r\n')
}

const USUAL = request('GET /t/usual?a=b HTTP/1.1', 'Accept: text/xml', 'Authorization: Bearer a.b.c', 'X-Own: 1')
const FIELDS = USUAL.slice(USUAL.indexOf('\r\n') + 2)

/** Correlation ids, dates and clients differ. */
function constant(text: string): string {
  return text.replace(/^(activityid|date): .*$/gim, '$1: *').replaceAll(/127(\.\d+){3}/g, '*')
}

let clients = 0
/** An address from which no connection has come before. */
function newClient(): string {
  clients++
  return `127.1.${clients >> 8}.${clients & 255}`
}

/** Where requests come before another: nowhere, on its connection, or each on a connection of the same client. */
type Warming = 'none' | 'connection' | 'client'

/** Sends usual requests; returns the connection for the next one. */
async function warm(warming: Warming): Promise<Peer> {
  const client = newClient()
  let peer = await connectPeer(gateway.port, client)
  for (let i = 0; i < WARMING && warming !== 'none'; i++) {
    peer.send(USUAL)
    assert.equal((await takeResponse(peer)).status, 200)
    if (warming === 'connection') continue
    peer.destroy()
    peer = await connectPeer(gateway.port, client)
  }
  return peer
}

/** What the backend got and what the client got for `last`. */
async function effectOf(last: string, warming: Warming): Promise<string> {
  const peer = await warm(warming)
  backend.requests.length = 0
  peer.send(last)
  for (let turns = 0; turns < 2; turns++) await quiet()
  const got = backend.requests.map(({ start, lines, body }) => [start, ...lines, body.toString('latin1')].join('\n'))
  const effect = constant([...got, peer.text, peer.ending].join('\n----\n'))
  peer.destroy()
  return effect
}

const CASES: readonly (readonly [string, string])[] = [
  ['the same request', USUAL],
  ['another target', USUAL.replace('usual', 'other/longer/path')],
  ['another method', USUAL.replace('GET', 'DELETE')],
  ['a method that llhttp does not know', USUAL.replace('GET', 'FETCH')],
  ['CONNECT', USUAL.replace('GET /t/usual?a=b', 'CONNECT a:80')],
  ['the absolute form', USUAL.replace('/t/', 'http://b/t/')],
  ['the asterisk form', USUAL.replace('GET /t/usual?a=b', 'OPTIONS *')],
  ['a fragment', USUAL.replace('?', '#')],
  ['HTTP/1.0', USUAL.replace('HTTP/1.1', 'HTTP/1.0')],
  ['HTTP/1.2', USUAL.replace('HTTP/1.1', 'HTTP/1.2')],
  ['two spaces in the request line', USUAL.replace(' HTTP', '  HTTP')],
  ['a bare line end', USUAL.replace('HTTP/1.1\r\n', 'HTTP/1.1\n')],
  ['an empty line in front', `\r\n${USUAL}`],
  ['an empty line behind the request line', USUAL.replace('HTTP/1.1\r\n', 'HTTP/1.1\r\n\r\n')],
  ['another field in front', USUAL.replace('Host', 'X-More: 1\r\nHost')],
  ['another host in front', USUAL.replace('Host', 'Host: evil\r\nHost')],
  ['a length in front', USUAL.replace('Host', 'Content-Length: 5\r\nHost')],
  ['a coding in front', USUAL.replace('Host', 'Transfer-Encoding: chunked\r\nHost')],
  ['another field behind', USUAL.replace('\r\n\r\n', '\r\nX-More: 1\r\n\r\n')],
  ['another value of the same length', USUAL.replace('a.b.c', 'a.b.d')],
  ['another last byte', USUAL.replace('X-Own: 1', 'X-Own: 2')],
  ['two requests in one piece', USUAL + USUAL],
  ['a body that ends in the fields', request('POST /t/a HTTP/1.1', `Content-Length: ${FIELDS.length}`) + FIELDS],
  [
    'a body that ends in a request line and the fields',
    `${request('POST /t/a HTTP/1.1', `Content-Length: ${USUAL.length}`)}${USUAL}`,
  ],
]

for (const [what, last] of CASES) {
  test(`after repeated fields, ${what} has the effect that it has alone`, async () => {
    const alone = await effectOf(last, 'none')
    assert.equal(await effectOf(last, 'connection'), alone)
    assert.equal(await effectOf(last, 'client'), alone)
  })
}

test(`after repeated fields, damaged requests have the effect that they have alone (SLUICE_SEED=${SEED})`, async () => {
  const random = new Random(SEED)
  for (let i = 0; i < RANDOM_CASES; i++) {
    const last = mutate(random, [USUAL])
    const alone = await effectOf(last, 'none')
    assert.equal(await effectOf(last, random.pick(['connection', 'client'])), alone, JSON.stringify(last))
  }
})

test('a field that one API strips from repeated fields reaches the backend of another', async () => {
  const peer = await connectPeer(gateway.port)
  for (let i = 0; i < 2 * WARMING; i++) {
    const strips = i % 2 === 1
    peer.send(USUAL.replace('/t/usual?a=b', strips ? '/t/strip' : '/t/keep'))
    assert.equal((await takeResponse(peer)).status, 200)
    assert.equal(backend.requests.at(-1)!.lines.includes('X-Own: 1'), !strips)
  }
  peer.destroy()
})

test('repeated fields that come in two pieces make one request', async () => {
  const peer = await connectPeer(gateway.port)
  for (let cut = 1; cut < USUAL.length; cut += 7) {
    await peer.sendCut(USUAL, [cut])
    assert.equal((await takeResponse(peer)).status, 200)
  }
  peer.destroy()
})

test('repeated fields are read anew after a reload that strips one of them', async () => {
  const peer = await connectPeer(gateway.port)
  const ownOf = async (sender: Peer) => {
    sender.send(USUAL)
    assert.equal((await takeResponse(sender)).status, 200)
    return backend.requests.at(-1)!.lines.some(line => line.startsWith('X-Own'))
  }
  const own = async () => {
    const fresh = await connectPeer(gateway.port)
    const [known, unknown] = [await ownOf(peer), await ownOf(fresh)]
    fresh.destroy()
    assert.equal(known, unknown)
    return known
  }
  for (let i = 0; i < WARMING; i++) assert.ok(await own())
  const { auth } = planGateway([]).plan
  await gateway.deploy({ auth: { ...auth, backendJwt: { ...auth.backendJwt, field: 'X-Own' } } })
  for (let i = 0; i < WARMING; i++) assert.equal(await own(), false)
  await gateway.deploy({ auth })
  peer.destroy()
})

test('more sections than are kept, of many connections, stay those of their requests', async () => {
  const random = new Random(SEED)
  const peers = await Promise.all(Array.from({ length: 8 }, () => connectPeer(gateway.port)))
  for (let i = 0; i < 900; i++) {
    const peer = random.pick(peers)
    const name = `X-Name-${random.below(400)}`
    for (let repetition = random.below(4); repetition >= 0; repetition--) {
      peer.send(request('GET /t/many HTTP/1.1', `${name}: it`))
      assert.equal((await takeResponse(peer)).status, 200)
      assert.deepEqual(
        backend.requests.at(-1)!.lines.filter(line => line.startsWith('X-Name')),
        [`${name}: it`],
      )
    }
  }
  for (const peer of peers) peer.destroy()
})

const RESPONSE = 'HTTP/1.1 200 OK\r\nServer: it\r\nContent-Length: 5\r\nX-A: 1\r\n\r\nhello'
const RESPONSES: readonly (readonly [string, string])[] = [
  ['the same response', RESPONSE],
  ['another body', RESPONSE.replace('hello', 'world')],
  ['a shorter body', RESPONSE.replace('5', '4').replace('hello', 'hell')],
  ['another status', RESPONSE.replace('200 OK', '404 No')],
  ['a status without body', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n'],
  ['chunks', RESPONSE.replace('Content-Length: 5', 'Transfer-Encoding: chunked').replace('hello', '0\r\n\r\n')],
  ['an interim response in front', `HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n${RESPONSE}`],
  ['a connection that ends', RESPONSE.replace('X-A: 1', 'Connection: close')],
  ['stray bytes behind', `${RESPONSE}stray`],
  ['two lengths', RESPONSE.replace('X-A: 1', 'Content-Length: 5')],
  ['a bare line end', RESPONSE.replace('it\r\n', 'it\n')],
]

/** What a client gets for a response, with the same response `warming` times in front of it. */
async function responseOf(context: string, first: string, last: string, warming: number): Promise<string> {
  const peer = await connectPeer(gateway.port)
  responses.set('it', first)
  for (let i = 0; i < warming; i++) {
    peer.send(request(`GET ${context}/it HTTP/1.1`))
    assert.equal((await takeResponse(peer)).status, 200)
  }
  responses.set('it', last)
  peer.send(request(`GET ${context}/it HTTP/1.1`))
  for (let turns = 0; turns < 2; turns++) await quiet()
  const got = constant([peer.text, peer.ending].join('\n----\n')).replaceAll(/http-outgoing-\d+/g, '')
  peer.destroy()
  return got
}

for (const [what, last] of RESPONSES) {
  test(`after repeated heads of responses, ${what} has the effect that it has alone`, async () => {
    assert.equal(await responseOf('/warm', RESPONSE, last, WARMING), await responseOf('/cold', RESPONSE, last, 0))
  })
}

test('a repeated head of a response serves HEAD, and a body in two pieces, as a new one does', async () => {
  responses.set('it', RESPONSE)
  await responseOf('/warm', RESPONSE, RESPONSE, WARMING)
  const peer = await connectPeer(gateway.port)
  responses.set('it', RESPONSE.replace('hello', ''))
  peer.send(request('HEAD /warm/it HTTP/1.1'))
  await peer.untilText('\r\n\r\n')
  assert.match(peer.take(), /^HTTP\/1\.1 200 OK\r\n/)
  responses.set('it', RESPONSE.slice(0, -3))
  peer.send(request('GET /warm/it HTTP/1.1'))
  await peer.untilText('he')
  await quiet()
  const serving = answered[0]!.peers.findLast(({ isClosed, ending }) => !isClosed && ending === '')!
  serving.send('llo')
  assert.equal((await takeResponse(peer)).body, 'hello')
  peer.destroy()
})
