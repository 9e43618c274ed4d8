/**
 * Failures of all kinds at random moments on many connections. No client gets the response to another request, no
 * incomplete message looks complete on either side, and all memory is released at the end.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { arena } from '../../src/http1/llhttp.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend, turn } from '../harness/peers.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'
import { parseRequest, parseResponse, type StrictMessage } from '../harness/strict-http.ts'

const EXCHANGES = IS_LONG ? 50_000 : 600
const AT_ONCE = 24
const BODY_MAX = 150_000

/** Actions of a backend on a request. */
const ACTIONS = [
  'respond',
  'respond',
  'respond in chunks',
  'respond until close',
  'respond slowly',
  'respond and close',
  'respond early',
  'respond early and reset',
  'respond with stray bytes',
  'interim, then respond',
  'close',
  'reset',
  'garbage',
  'half a response, then close',
  'half a response, then reset',
  'half a chunked response, then close',
  'bad chunk',
] as const
type Action = (typeof ACTIONS)[number]

const CLIENT_ACTIONS = ['waits', 'waits', 'waits', 'sends FIN', 'reset', 'half-close', 'leaves', 'malformed'] as const
type ClientAction = (typeof CLIENT_ACTIONS)[number]

/** A body that repeats the id of its request, so that a byte of another body is noticed. */
function bodyOf(id: number, length: number): string {
  const word = `<${id}>`
  return word.repeat(Math.ceil(length / word.length)).slice(0, length)
}

interface Plan {
  readonly id: number
  readonly action: Action
  readonly length: number
}
const plans = new Map<number, Plan>()
const sents = new Map<number, Sent>()
/** Complete requests at the backend, by id. */
const received = new Map<number, StrictMessage[]>()
const delays = new Random(SEED + 1)
let next = 1

async function pause(): Promise<void> {
  for (let turns = delays.below(6); turns > 0; turns--) await turn()
}

const backend = await ScriptedBackend.listen(peer => void serve(peer).catch(recordError))
const errors: unknown[] = []
function recordError(error: unknown): void {
  errors.push(error)
}

/** Serves the requests of a connection as planned. */
async function serve(peer: Peer): Promise<void> {
  while (peer.ending === '' && !peer.isClosed) {
    await peer.until('a head', () => peer.text.includes('\r\n\r\n') || peer.ending !== '' || peer.isClosed)
    const match = /^\w+ \/(\d+) HTTP\/1\.1\r\n/.exec(peer.text)
    if (match === null) {
      if (peer.length > 0 && peer.ending === '')
        recordError(new Error(`an unknown request: ${peer.text.slice(0, 200)}`))
      break
    }
    const plan = plans.get(Number(match[1]))!
    if (!/early|garbage|^(close|reset|half)/.test(plan.action) || delays.once(2)) {
      const request = await completeRequest(peer)
      if (request === undefined) break
      received.set(plan.id, [...(received.get(plan.id) ?? []), request])
    }
    await pause()
    if (!(await act(peer, plan))) break
  }
  peer.end()
}

async function completeRequest(peer: Peer): Promise<StrictMessage | undefined> {
  let request: StrictMessage | undefined
  await peer.until('a request', () => {
    request = parseRequest(peer.received, 0)
    return request !== undefined || peer.ending !== '' || peer.isClosed
  })
  if (request !== undefined) peer.take(request.end)
  return request
}

/** Performs the planned action; false if it ends the connection. */
async function act(peer: Peer, { id, action, length }: Plan): Promise<boolean> {
  const body = bodyOf(id, length)
  const head = `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`
  const chunks = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n`
  const chunk = (text: string) => (text === '' ? '' : `${text.length.toString(16)}\r\n${text}\r\n`)
  const half = Math.floor(length / 2)
  switch (action) {
    case 'respond':
    case 'respond early':
      peer.send(head + body)
      return action === 'respond'
    case 'respond slowly':
      await peer.sendCut(head + body, delays.cuts(head.length + length))
      return true
    case 'interim, then respond':
      peer.send('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')
      await pause()
      peer.send(head + body)
      return true
    case 'respond in chunks':
      peer.send(chunks + chunk(body.slice(0, half)))
      await pause()
      peer.send(`${chunk(body.slice(half))}0\r\n\r\n`)
      return true
    case 'respond until close':
      peer.send(`HTTP/1.1 200 OK\r\n\r\n${body}`)
      return false
    case 'respond and close':
      peer.send(head.replace('OK\r\n', 'OK\r\nConnection: close\r\n') + body)
      return false
    case 'respond with stray bytes':
      peer.send(`${head + body}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison`)
      return false
    case 'respond early and reset':
      peer.send(head + body)
      await pause()
      peer.reset()
      return false
    case 'garbage':
      peer.send('\x16\x03\x01garbage\r\n\r\n')
      return false
    case 'half a response, then close':
    case 'half a response, then reset':
      peer.send(head + body.slice(0, half))
      break
    case 'half a chunked response, then close':
      peer.send(chunks + chunk(body.slice(0, half)))
      break
    case 'bad chunk':
      peer.send(`${chunks + chunk(body.slice(0, half))}nonsense\r\n`)
      return false
    default:
      break
  }
  await pause()
  if (action.endsWith('reset')) peer.reset()
  return false
}

interface Sent {
  readonly id: number
  readonly method: string
  readonly bytes: string
  readonly body: string
  readonly action: ClientAction
}

function request(id: number, random: Random): Sent {
  const method = random.pick(['GET', 'GET', 'GET', 'PUT', 'POST', 'POST', 'POST'])
  const action = random.pick(CLIENT_ACTIONS)
  const body = method === 'GET' ? '' : bodyOf(id, random.once(3) ? random.below(BODY_MAX) : random.below(500))
  const start = `${method} /t/${id} HTTP/1.1\r\nHost: a\r\n`
  if (method === 'GET') return { id, method, bytes: `${start}\r\n`, body, action }
  if (random.once(2))
    return { id, method, bytes: `${start}Content-Length: ${body.length}\r\n\r\n${body}`, body, action }
  const chunks = body.match(/.{1,4000}/gs)?.map(part => `${part.length.toString(16)}\r\n${part}\r\n`) ?? []
  return { id, method, bytes: `${start}Transfer-Encoding: chunked\r\n\r\n${chunks.join('')}0\r\n\r\n`, body, action }
}

/** Performs the planned action of the client; true if the request was sent completely. */
async function send(client: Peer, sent: Sent, random: Random): Promise<boolean> {
  const { bytes, action } = sent
  if (action === 'waits' || action === 'leaves' || action === 'sends FIN') {
    await client.sendCut(bytes, random.cuts(bytes.length))
    // A FIN after the request changes nothing.
    if (action === 'sends FIN') client.end()
    return client.ending === ''
  }
  const until = random.below(bytes.length)
  await client.sendCut(bytes.slice(0, until), random.cuts(until))
  await pause()
  if (action === 'reset') client.reset()
  else {
    if (action === 'malformed') client.send('\0\0\r\n\r\n')
    client.end()
  }
  return false
}

/** Waits for the final response to one request; undefined if the connection ends before. */
async function finalResponse(client: Peer, method: string): Promise<StrictMessage | undefined> {
  for (;;) {
    let response: StrictMessage | undefined
    await client.until('a response', () => {
      response = parseResponse(client.received, 0, method, client.ending === 'FIN')
      return response !== undefined || client.ending !== '' || client.isClosed
    })
    if (response === undefined) return undefined
    client.take(response.end)
    if (response.status >= 200) return response
  }
}

/** Runs requests on one connection until one of them ends it. */
async function visit(gateway: TestGateway, requests: number, random: Random): Promise<void> {
  const client = await connectPeer(gateway.port)
  for (let left = requests; left > 0; left--) {
    const id = next++
    const plan: Plan = {
      id,
      action: random.pick(ACTIONS),
      length: 1 + (random.once(3) ? random.below(BODY_MAX) : random.below(500)),
    }
    plans.set(id, plan)
    const sent = request(id, random)
    sents.set(id, sent)
    const isComplete = await send(client, sent, random)
    if (sent.action === 'leaves') {
      await pause()
      break
    }
    const response = sent.action === 'reset' ? undefined : await finalResponse(client, sent.method)
    const context = `seed ${SEED}, request ${id}: ${sent.action} client, backend: ${plan.action}`
    checkResponse(client, sent, plan, isComplete, response, context)
    if (response === undefined || !isComplete || sent.action === 'sends FIN' || client.ending !== '') break
    if (response.lines.some(line => /^connection: close$/i.test(line))) break
  }
  client.destroy()
}

function checkResponse(
  client: Peer,
  sent: Sent,
  plan: Plan,
  isComplete: boolean,
  response: StrictMessage | undefined,
  context: string,
): void {
  if (response === undefined) {
    // An incomplete response must end by a reset.
    if (client.length > 0 && sent.action !== 'reset') assert.equal(client.ending, 'RST', context)
    return
  }
  if (response.status === 200) {
    assert.equal(response.body.toString('latin1'), bodyOf(plan.id, plan.length), context)
    assert.ok(!/half|bad chunk|garbage|^(close|reset)/.test(plan.action), context)
  } else {
    assert.ok([400, 408, 501, 502, 505].includes(response.status), `${context}: ${response.status}`)
    if (response.status !== 502) assert.ok(!isComplete, context)
  }
}

/** A complete request at the backend was sent completely, and arrived once, or twice if it may be retried. */
function checkRequests({ id, method, body, action }: Sent, requests: readonly StrictMessage[]): void {
  const context = `seed ${SEED}, request ${id}: ${action} client`
  assert.ok(
    requests.length === 1 || (method === 'GET' && requests.length === 2),
    `${context}, sent ${requests.length} times`,
  )
  // Invalid bytes in a body with Content-Length are body.
  if (action === 'malformed') return
  assert.ok(action === 'waits' || action === 'leaves' || action === 'sends FIN', context)
  for (const request of requests) assert.equal(request.body.toString('latin1'), body, context)
}

test(`${EXCHANGES} exchanges with failures at random moments mix up no messages (SLUICE_SEED=${SEED})`, async t => {
  const atRest = arena.acquiredChunks
  const gateway = await startGateway([{ context: '/t', port: backend.port }])
  t.after(() => gateway.stop())
  const random = new Random(SEED)
  const worker = async (): Promise<void> => {
    while (next <= EXCHANGES) {
      await visit(gateway, random.between(1, 5), random)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  assert.deepEqual(errors, [])
  for (const [id, requests] of received) checkRequests(sents.get(id)!, requests)
  assert.deepEqual(
    gateway.reports.filter(({ level }) => level === 'error'),
    [],
  )
  await eventually('the end of all client connections', () => gateway.metrics().counts.connectionsOpen === 0)
  for (const peer of backend.peers) peer.destroy()
  await eventually('the end of all backend connections', () => gateway.metrics().counts.targetsOpen === 0)
  gateway.stop()
  // The composer, its spare chunk, and the shared read buffer of the thread.
  assert.equal(arena.acquiredChunks - atRest, 3)
})

after(() => backend.close())
