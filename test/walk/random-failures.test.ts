/**
 * Everything that can fail, at random moments, on many connections at once. Whatever happens: no client gets another's
 * answer, nothing cut short looks whole on either side, and in the end nobody holds anything.
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

/** What a backend may do to a request; `whole` waits for its end first. */
const DEEDS = [
  'answer',
  'answer',
  'answer chunked',
  'answer until close',
  'answer slowly',
  'answer and close',
  'answer early',
  'answer early and reset',
  'answer with stray bytes',
  'interim, then answer',
  'close',
  'reset',
  'garbage',
  'half an answer, then close',
  'half an answer, then reset',
  'half a chunked answer, then close',
  'bad chunk',
] as const
type Deed = (typeof DEEDS)[number]

const CLIENT_DEEDS = ['patient', 'patient', 'patient', 'whole', 'reset', 'half-close', 'leave', 'malformed'] as const
type ClientDeed = (typeof CLIENT_DEEDS)[number]

/** Says which request it answers, all along its length, so that no byte of another goes unnoticed. */
function bodyOf(id: number, length: number): string {
  const word = `<${id}>`
  return word.repeat(Math.ceil(length / word.length)).slice(0, length)
}

interface Plan {
  readonly id: number
  readonly deed: Deed
  readonly length: number
}
const plans = new Map<number, Plan>()
const sents = new Map<number, Sent>()
/** What reached the backend whole, by id, and how often. */
const received = new Map<number, StrictMessage[]>()
const delays = new Random(SEED + 1)
let next = 1

async function pause(): Promise<void> {
  for (let turns = delays.below(6); turns > 0; turns--) await turn()
}

const backend = await ScriptedBackend.listen(peer => void serve(peer).catch(failed))
const gone: unknown[] = []
function failed(error: unknown): void {
  gone.push(error)
}

/** Serves one request after the other, each as its plan has it. */
async function serve(peer: Peer): Promise<void> {
  while (peer.ending === '' && !peer.isClosed) {
    await peer.until('a head', () => peer.text.includes('\r\n\r\n') || peer.ending !== '' || peer.isClosed)
    const match = /^\w+ \/(\d+) HTTP\/1\.1\r\n/.exec(peer.text)
    if (match === null) {
      if (peer.length > 0 && peer.ending === '') failed(new Error(`no request of ours: ${peer.text.slice(0, 200)}`))
      break
    }
    const plan = plans.get(Number(match[1]))!
    if (!/early|garbage|^(close|reset|half)/.test(plan.deed) || delays.once(2)) {
      const request = await wholeRequest(peer)
      if (request === undefined) break
      received.set(plan.id, [...(received.get(plan.id) ?? []), request])
    }
    await pause()
    if (!(await act(peer, plan))) break
  }
  peer.end()
}

async function wholeRequest(peer: Peer): Promise<StrictMessage | undefined> {
  let request: StrictMessage | undefined
  await peer.until('a request', () => {
    request = parseRequest(peer.received, 0)
    return request !== undefined || peer.ending !== '' || peer.isClosed
  })
  if (request !== undefined) peer.take(request.end)
  return request
}

/** False when the connection is done with. */
async function act(peer: Peer, { id, deed, length }: Plan): Promise<boolean> {
  const body = bodyOf(id, length)
  const head = `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`
  const chunks = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n`
  const chunk = (text: string) => (text === '' ? '' : `${text.length.toString(16)}\r\n${text}\r\n`)
  const half = Math.floor(length / 2)
  switch (deed) {
    case 'answer':
    case 'answer early':
      peer.send(head + body)
      return deed === 'answer'
    case 'answer slowly':
      await peer.sendCut(head + body, delays.cuts(head.length + length))
      return true
    case 'interim, then answer':
      peer.send('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')
      await pause()
      peer.send(head + body)
      return true
    case 'answer chunked':
      peer.send(chunks + chunk(body.slice(0, half)))
      await pause()
      peer.send(`${chunk(body.slice(half))}0\r\n\r\n`)
      return true
    case 'answer until close':
      peer.send(`HTTP/1.1 200 OK\r\n\r\n${body}`)
      return false
    case 'answer and close':
      peer.send(head.replace('OK\r\n', 'OK\r\nConnection: close\r\n') + body)
      return false
    case 'answer with stray bytes':
      peer.send(`${head + body}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison`)
      return false
    case 'answer early and reset':
      peer.send(head + body)
      await pause()
      peer.reset()
      return false
    case 'garbage':
      peer.send('\x16\x03\x01garbage\r\n\r\n')
      return false
    case 'half an answer, then close':
    case 'half an answer, then reset':
      peer.send(head + body.slice(0, half))
      break
    case 'half a chunked answer, then close':
      peer.send(chunks + chunk(body.slice(0, half)))
      break
    case 'bad chunk':
      peer.send(`${chunks + chunk(body.slice(0, half))}nonsense\r\n`)
      return false
    default:
      break
  }
  await pause()
  if (deed.endsWith('reset')) peer.reset()
  return false
}

interface Sent {
  readonly id: number
  readonly method: string
  readonly bytes: string
  readonly body: string
  readonly deed: ClientDeed
}

function request(id: number, random: Random): Sent {
  const method = random.pick(['GET', 'GET', 'GET', 'PUT', 'POST', 'POST', 'POST'])
  const deed = random.pick(CLIENT_DEEDS)
  const body = method === 'GET' ? '' : bodyOf(id, random.once(3) ? random.below(BODY_MAX) : random.below(500))
  const start = `${method} /t/${id} HTTP/1.1\r\nHost: a\r\n`
  if (method === 'GET') return { id, method, bytes: `${start}\r\n`, body, deed }
  if (random.once(2)) return { id, method, bytes: `${start}Content-Length: ${body.length}\r\n\r\n${body}`, body, deed }
  const chunks = body.match(/.{1,4000}/gs)?.map(part => `${part.length.toString(16)}\r\n${part}\r\n`) ?? []
  return { id, method, bytes: `${start}Transfer-Encoding: chunked\r\n\r\n${chunks.join('')}0\r\n\r\n`, body, deed }
}

/** Sends it, or what its client does instead; true when it went out whole. */
async function send(client: Peer, sent: Sent, random: Random): Promise<boolean> {
  const { bytes, deed } = sent
  if (deed === 'patient' || deed === 'leave' || deed === 'whole') {
    await client.sendCut(bytes, random.cuts(bytes.length))
    // A FIN behind it changes nothing.
    if (deed === 'whole') client.end()
    return client.ending === ''
  }
  const until = random.below(bytes.length)
  await client.sendCut(bytes.slice(0, until), random.cuts(until))
  await pause()
  if (deed === 'reset') client.reset()
  else {
    if (deed === 'malformed') client.send('\0\0\r\n\r\n')
    client.end()
  }
  return false
}

/** What a client got for one request: a whole answer, or the end of its connection. */
async function answerTo(client: Peer, method: string): Promise<StrictMessage | undefined> {
  for (;;) {
    let answer: StrictMessage | undefined
    await client.until('an answer', () => {
      answer = parseResponse(client.received, 0, method, client.ending === 'FIN')
      return answer !== undefined || client.ending !== '' || client.isClosed
    })
    if (answer === undefined) return undefined
    client.take(answer.end)
    if (answer.status >= 200) return answer
  }
}

/** A connection with some requests, one after the other, until one of them ends it. */
async function visit(gateway: TestGateway, requests: number, random: Random): Promise<void> {
  const client = await connectPeer(gateway.port)
  for (let left = requests; left > 0; left--) {
    const id = next++
    const plan: Plan = {
      id,
      deed: random.pick(DEEDS),
      length: 1 + (random.once(3) ? random.below(BODY_MAX) : random.below(500)),
    }
    plans.set(id, plan)
    const sent = request(id, random)
    sents.set(id, sent)
    const isWhole = await send(client, sent, random)
    if (sent.deed === 'leave') {
      await pause()
      break
    }
    const answer = sent.deed === 'reset' ? undefined : await answerTo(client, sent.method)
    const where = `seed ${SEED}, request ${id}: ${sent.deed} client, backend: ${plan.deed}`
    judge(client, sent, plan, isWhole, answer, where)
    if (answer === undefined || !isWhole || sent.deed === 'whole' || client.ending !== '') break
    if (answer.lines.some(line => /^connection: close$/i.test(line))) break
  }
  client.destroy()
}

function judge(
  client: Peer,
  sent: Sent,
  plan: Plan,
  isWhole: boolean,
  answer: StrictMessage | undefined,
  where: string,
): void {
  if (answer === undefined) {
    // Cut short: then by a reset, or before the first byte.
    if (client.length > 0 && sent.deed !== 'reset') assert.equal(client.ending, 'RST', where)
    return
  }
  if (answer.status === 200) {
    assert.equal(answer.body.toString('latin1'), bodyOf(plan.id, plan.length), where)
    assert.ok(!/half|bad chunk|garbage|^(close|reset)/.test(plan.deed), where)
  } else {
    assert.ok([400, 408, 501, 502, 505].includes(answer.status), `${where}: ${answer.status}`)
    if (answer.status !== 502) assert.ok(!isWhole, where)
  }
}

/** A request that reached the backend whole was sent whole, and reached it once, or twice where that is harmless. */
function judgeRequests({ id, method, body, deed }: Sent, requests: readonly StrictMessage[]): void {
  const where = `seed ${SEED}, request ${id}: ${deed} client`
  assert.ok(
    requests.length === 1 || (method === 'GET' && requests.length === 2),
    `${where}, sent ${requests.length} times`,
  )
  // Nonsense in a body of a length is just body.
  if (deed === 'malformed') return
  assert.ok(deed === 'patient' || deed === 'leave' || deed === 'whole', where)
  for (const request of requests) assert.equal(request.body.toString('latin1'), body, where)
}

test(`${EXCHANGES} exchanges that fail at random moments (SLUICE_SEED=${SEED})`, async t => {
  const atRest = arena.lentChunks
  const gateway = await startGateway([{ context: '/t', port: backend.port }])
  t.after(() => gateway.stop())
  const random = new Random(SEED)
  const worker = async (): Promise<void> => {
    while (next <= EXCHANGES) {
      await visit(gateway, random.between(1, 5), random)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  assert.deepEqual(gone, [])
  for (const [id, requests] of received) judgeRequests(sents.get(id)!, requests)
  assert.deepEqual(
    gateway.reports.filter(({ level }) => level === 'error'),
    [],
  )
  await eventually('all clients to be gone', () => gateway.metrics().counts.connectionsOpen === 0)
  for (const peer of backend.peers) peer.destroy()
  await eventually('all backends to be gone', () => gateway.metrics().counts.targetsOpen === 0)
  gateway.stop()
  // The composer, its spare, and the shared read buffer of the thread.
  assert.equal(arena.lentChunks - atRest, 3)
})

after(() => backend.close())
