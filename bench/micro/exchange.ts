/**
 * Replays exchanges through a whole reactor on sockets in memory: the cost of the gateway's own code without the
 * kernel. Prints the figures of one variant as JSON: time of an exchange, of each of its phases, and allocated bytes.
 *
 *     npx node bench/micro/exchange.ts PARTS [EXCHANGES]    # parts joined by "+"; "plain" for none
 *
 * First exchanges run as they are, which gives the totals. Then clocks are put between the phases. Rounds with running
 * and with stopped clocks alternate: their difference is what the clocks cost, and is taken off each phase. Times are
 * medians of rounds: a round takes a fraction of a millisecond, so most of them are not interrupted on a busy machine.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { getHeapStatistics } from 'node:v8'
import { DEFAULT_FAULTS } from '../../test/harness/default-sequences.ts'
import { NO_ACCESS } from '../../test/harness/api-plan.ts'
import { loadConfiguration } from '../../test/harness/configuration.ts'
import { planGateway } from '../../test/harness/gateway.ts'
import { issuerPlan } from '../../test/auth/token-bench.ts'
import { signedToken, type TokenSigner, tokenSigner } from '../../test/auth/token-maker.ts'
import { AuthState } from '../../src/auth/auth-state.ts'
import { NOTHING_REMOVED } from '../../src/auth/records.ts'
import { HandlersFilter } from '../../src/filters/handlers.ts'
import type { ExchangeView } from '../../src/filters/handler-interface.ts'
import { buildFilterChain } from '../../src/filters/build-chain.ts'
import { Diagnostics } from '../../src/config/diagnostics.ts'
import { type ApiMediationPlan, NO_FLOW } from '../../src/mediation/flow-plan.ts'
import { needsOf } from '../../src/mediation/needs.ts'
import { parseSequence } from '../../src/mediation/sequence-parser.ts'
import { AnalyticsEvents } from '../../src/observe/analytics-events.ts'
import { TraceRecords } from '../../src/observe/trace-records.ts'
import { AccessLog } from '../../src/observe/access-log.ts'
import type { ApiPlan } from '../../src/plan/reactor-plan.ts'
import { globalCors } from '../../src/plan/reactor-planning.ts'
import { SourceConnection } from '../../src/proxy/source/source-connection.ts'
import { Endpoint } from '../../src/proxy/target/endpoint.ts'
import { Reactor } from '../../src/reactor/reactor.ts'
import { ReactorMediation } from '../../src/reactor/reactor-mediation.ts'
import { LimitedCalls } from '../../src/runtime/limited-calls.ts'
import { withTimersOf } from '../../src/runtime/limited-timers.ts'
import { ModuleStates } from '../../src/runtime/module-states.ts'
import type { ThrottlingPolicy } from '../../src/throttle/policy.ts'
import { OPERATIONS } from '../peers/exported-project.ts'
import { REQUEST_FIELDS } from '../request-head.ts'
import { median } from '../results.ts'
import { MemoryLevel, MemorySocket } from './memory-level.ts'

/** Parts that a variant can have, and what they add. */
const PARTS = {
  plain: 'nothing',
  token: 'the API requires an access token; every request has the same valid JWT',
  tokens: 'the requests carry 1,000 different JWTs in turn; with "token" the API requires them',
  cold: 'the caches of the processor are emptied before each round of 64 exchanges',
  log: 'access log, JSON',
  analytics: 'an event of analytics for each exchange',
  traces: 'requests are traced, and one of a hundred is recorded',
  operations: 'ten operations',
  policy: 'a policy of constant fields: one for the backend, one for the client',
  handler: 'a synchronous handler in all three phases: one field read, one set in each direction',
  unlimited: 'the handler has no time limit',
  resources: 'the filter that checks them',
  cors: 'the filter for CORS',
  origin: 'requests with Origin',
  post: 'requests with a body of 256 bytes',
  chunked: 'the bodies of both directions are chunked',
  limit: 'one limit: the application has a tier',
  limits: 'five limits: API, subscription, burst, application, and a custom policy',
  differ: 'a field with a counter in every head, so that no head repeats',
} as const
type Part = keyof typeof PARTS

const CONNECTIONS = 64
const TOKENS = 1000
/** More than the caches of a processor hold. */
const COLD_BYTES = 64 << 20
const CACHE_LINE = 64
/** Rounds between two turns of the event loop, which the timers of the reactor need. */
const TURN_ROUNDS = 100
const REQUEST_BODY = 'q'.repeat(256)
const RESPONSE_BODY = 'x'.repeat(1024)
const COUNTER = '1000000000000000'
const ISSUER = 'https://issuer.example'

// ---- clocks between phases ------------------------------------------------------------------------------------------

/** Phases of an exchange. The first two are the work of the bench, in the request's half and in the response's. */
const PHASE = { BEFORE: 0, BETWEEN: 1, DECODE: 2, FILTER: 3, SEND: 4, READ: 5, WRITE: 6, ACCOUNT: 7, LINE: 8 } as const
const PHASES = Object.keys(PHASE).length

class PhaseClock {
  isRunning = false
  /** Milliseconds by phase, of all rounds since the start. */
  readonly ms = new Float64Array(PHASES)
  /** How often each phase ended. */
  readonly ends = new Float64Array(PHASES)
  #phase = 0
  #lastMs = 0

  start(): void {
    this.ms.fill(0)
    this.ends.fill(0)
    this.#phase = PHASE.BEFORE
    this.isRunning = true
    this.#lastMs = performance.now()
  }

  /** Ends the current phase. */
  enter(phase: number): void {
    if (!this.isRunning) return
    const now = performance.now()
    this.ms[this.#phase]! += now - this.#lastMs
    this.ends[this.#phase]!++
    this.#phase = phase
    this.#lastMs = now
  }
}

const clock = new PhaseClock()

/** Replaces a method by one that enters `phase`, and `after` at its end. */
function clocked<Name extends string>(owner: Record<Name, unknown>, name: Name, phase: number, after: number): void {
  const method = owner[name] as (one: unknown, two: unknown, three: unknown) => unknown
  owner[name] = function (this: unknown, one: unknown, two: unknown, three: unknown): unknown {
    clock.enter(phase)
    const result = method.call(this, one, two, three)
    if (after >= 0) clock.enter(after)
    return result
  }
}

function installClocks(): void {
  const prototypes = [Reactor, Endpoint, SourceConnection, AccessLog].map(({ prototype }) => prototype as unknown)
  const [reactor, endpoint, source, log] = prototypes as Record<string, unknown>[]
  clocked(reactor!, 'process', PHASE.FILTER, -1)
  // The phase SEND lasts from the end of the pipeline to the write of the request in the same read.
  clocked(endpoint!, 'send', PHASE.SEND, -1)
  clocked(source!, 'responseHead', PHASE.WRITE, PHASE.READ)
  clocked(source!, 'responseBody', PHASE.WRITE, PHASE.READ)
  clocked(reactor!, 'exchangeDone', PHASE.ACCOUNT, PHASE.WRITE)
  clocked(log!, 'append', PHASE.LINE, PHASE.ACCOUNT)
}

// ---- the reactor and its messages -----------------------------------------------------------------------------------

/** The recorded bytes of a message. */
class Recording {
  readonly bytes: Buffer
  /** Last digit of the counter; -1 without one. */
  readonly #digit: number

  constructor(text: string) {
    this.bytes = Buffer.from(text, 'latin1')
    const at = this.bytes.indexOf(COUNTER)
    this.#digit = at < 0 ? -1 : at + COUNTER.length - 1
  }

  next(): Buffer {
    for (let at = this.#digit; at >= 0; at--) {
      if (this.bytes[at]! < 57) {
        this.bytes[at]!++
        break
      }
      this.bytes[at] = 48
    }
    return this.bytes
  }
}

function messageOf(start: string, fields: Readonly<Record<string, string>>, body: string): Recording {
  const chunk = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
  const content = fields['Transfer-Encoding'] === undefined ? body : chunk
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return new Recording(`${start}\r\n${lines.join('')}\r\n${content}`)
}

function framing(parts: ReadonlySet<Part>, body: string): Record<string, string> {
  return parts.has('chunked') ? { 'Transfer-Encoding': 'chunked' } : { 'Content-Length': String(body.length) }
}

function requestOf(parts: ReadonlySet<Part>, token: string): Recording {
  const { Origin, Authorization, ...others } = REQUEST_FIELDS
  const hasBody = parts.has('post')
  const fields = {
    ...others,
    Authorization: parts.has('token') || parts.has('tokens') ? `Bearer ${token}` : Authorization!,
    ...(parts.has('origin') ? { Origin: Origin! } : {}),
    ...(parts.has('differ') ? { 'X-Request-Id': COUNTER } : {}),
    ...(hasBody ? { 'Content-Type': 'application/json', ...framing(parts, REQUEST_BODY) } : {}),
  }
  const start = hasBody ? 'POST /bench/1.0.0/orders' : 'GET /bench/1.0.0/orders/4711'
  return messageOf(`${start} HTTP/1.1`, fields, hasBody ? REQUEST_BODY : '')
}

function responseOf(parts: ReadonlySet<Part>): Recording {
  const fields = {
    Server: 'nginx/1.22.1',
    Date: 'Sat, 21 Nov 2026 05:00:00 GMT',
    'Content-Type': 'text/plain',
    ...(parts.has('differ') ? { ETag: `"${COUNTER}"` } : {}),
    ...framing(parts, RESPONSE_BODY),
    Connection: 'keep-alive',
  }
  return messageOf('HTTP/1.1 200 OK', fields, RESPONSE_BODY)
}

/** Flows that set one field of each direction. */
async function policyPlan(): Promise<ApiMediationPlan> {
  const xml = `<sequence xmlns="http://ws.apache.org/ns/synapse" name="policy">
    <property name="X-Policy" value="constant" scope="transport"/></sequence>`
  const plan = await parseSequence('policy', 'policy.xml', xml, new Diagnostics())
  const flow = { sequences: ['policy'], needs: needsOf(['policy'], () => plan) }
  return { sequences: [plan!], flows: { request: flow, response: flow, fault: NO_FLOW }, byOperation: {} }
}

const POLICY = await policyPlan()

function apiOf(parts: ReadonlySet<Part>): Partial<ApiPlan> {
  const authType = parts.has('token') ? 'Application & Application User' : 'None'
  const operation = { authType, tier: 'Unlimited', scopes: [] } as const
  const resources = Object.entries(OPERATIONS).flatMap(([template, verbs]) => {
    return verbs.map(verb => ({ template, verb, ...operation }))
  })
  const { configuration } = loadConfiguration(`${import.meta.dirname}/../../conf`, [])
  return {
    name: 'Bench',
    paths: ['/bench/1.0.0', '/bench'],
    resources: parts.has('operations') ? resources : [],
    tier: parts.has('limits') ? 'Unreached' : '',
    cors: parts.has('cors') ? globalCors(configuration) : null,
    mediation: parts.has('policy') ? POLICY : null,
    access: { ...NO_ACCESS, api: 'Bench:1.0.0', schemes: parts.has('token') ? ['oauth2'] : [] },
  }
}

/** Policies with quotas that no run reaches. */
function policiesOf(parts: ReadonlySet<Part>): readonly ThrottlingPolicy[] {
  const quota = { type: 'requests', limit: 1e9, unit: 'min', units: 1, window: 'tumbling' } as const
  const common = { name: 'Unreached', quota, scope: 'node', failMode: 'local' } as const
  const application = { level: 'application', ...common } as const
  if (!parts.has('limits')) return parts.has('limit') ? [application] : []
  return [
    application,
    { level: 'advanced', userLevel: 'PER_API', groups: [], ...common },
    { level: 'subscription', burst: { ...quota, unit: 'sec' }, stopOnQuotaReach: true, ...common },
    { level: 'custom', keyTemplate: '$userId:$apiContext', ...common },
  ]
}

/** The signer of tokens. A variant without tokens makes none: a key takes longer than a short replay. */
let ownSigner: TokenSigner | undefined
function signer(): TokenSigner {
  ownSigner ??= tokenSigner('RS256', 'key-1')
  return ownSigner
}

const CLIENT = { issuer: ISSUER, consumerKey: 'bench', applicationId: 'app-1', keyType: 'PRODUCTION' } as const

/** Tells the reactor the keys of the issuer, and the subscription of the client. */
function fill(state: AuthState, parts: ReadonlySet<Part>): void {
  const hasTier = parts.has('limit') || parts.has('limits')
  const tier = hasTier ? 'Unreached' : 'Unlimited'
  const application = { id: 'app-1', name: 'Bench', owner: 'admin', tenant: '', tier, attributes: {} }
  const subscription = {
    id: 's-1',
    applicationId: 'app-1',
    api: 'Bench:1.0.0',
    tier: parts.has('limits') ? 'Unreached' : 'Unlimited',
    status: 'ACTIVE',
  } as const
  const records = { applications: [application], keys: [CLIENT], subscriptions: [subscription] }
  const keys = parts.has('token') ? [signer().jwk] : []
  state.apply({ kind: 'keys', issuers: [{ issuer: ISSUER, keys }] })
  state.apply({ kind: 'subscriptions', update: { ...records, removed: NOTHING_REMOVED } })
  state.apply({ kind: 'complete' })
}

/** A handler that sets one field of each direction. */
function handlersOf(parts: ReadonlySet<Part>): HandlersFilter | null {
  if (!parts.has('handler')) return null
  const change = (view: ExchangeView): void => {
    view.attributes.agent = view.field('user-agent')
    view.setField('X-Handler', 'constant')
  }
  const module = { request: change, response: change, end: (view: ExchangeView) => view.attributes.agent !== '' }
  const limitMs = 500
  const calls = parts.has('unlimited') ? null : new LimitedCalls(limitMs)
  return new HandlersFilter([{ name: 'h', path: 'h.mjs', phases: ['request', 'response', 'end'], module }], {
    report: (_level, event, fields) => console.error(event, fields),
    nowMs: () => performance.now(),
    states: new ModuleStates(ModuleStates.allocate(1, 1), 1),
    reactor: 0,
    notificationsMax: 1,
    synchronous: {
      limitMs,
      run: calls === null ? call => call() : call => calls.run(call),
      owned: (_, call) => withTimersOf(() => true, call),
      ended: () => 0,
    },
    run: () => Promise.reject(new Error('a handler on a thread')),
  })
}

function reactorOf(parts: ReadonlySet<Part>, level: MemoryLevel): Reactor {
  const api = { context: '/bench', port: 2, overrides: apiOf(parts) }
  const authChanges = { issuers: [issuerPlan(ISSUER)] }
  const { plan } = planGateway([api], { logLevel: 'error', faults: DEFAULT_FAULTS, authChanges })
  const authState = new AuthState(plan.authVersion, plan.auth)
  fill(authState, parts)
  authState.policies.setRegistry({ policies: policiesOf(parts), denied: [] })
  const handlers = handlersOf(parts)
  const dropped = new Set<string>((['resources', 'cors'] as const).filter(name => !parts.has(name)))
  return new Reactor(plan, {
    level,
    tls: null,
    report: (_level, event, fields) => console.error(event, fields),
    analytics: parts.has('analytics')
      ? new AnalyticsEvents({
          hasSizes: true,
          address: 'network',
          wallOffsetMs: () => performance.timeOrigin,
          publish: async () => true,
          onDropped: () => {},
        })
      : null,
    traces: parts.has('traces')
      ? new TraceRecords({
          ...{ ratio: 0.01, parentBased: true, faultsPerSecond: 100 },
          wallOffsetMs: () => performance.timeOrigin,
          publish: async () => true,
          onDropped: () => {},
        })
      : null,
    accessLog: parts.has('log')
      ? new AccessLog('json', (_batch, written) => written(), {
          wallOffsetMs: () => performance.timeOrigin,
          lends: true,
        })
      : null,
    authState,
    validator: null,
    mediation: parts.has('policy') ? ReactorMediation : null,
    buildFilterChain: (planned, auth, throttle) => {
      const chain = buildFilterChain(planned, auth, throttle).filter(({ name }) => !dropped.has(name))
      return handlers?.chain(chain) ?? chain
    },
    drained: () => {},
  })
}

// ---- the replay -----------------------------------------------------------------------------------------------------

class Replay {
  readonly #level = new MemoryLevel()
  readonly #reactor: Reactor
  readonly #requests: readonly Recording[]
  readonly #response: Recording
  readonly #evicting: Uint8Array
  readonly #hasPolicy: boolean
  readonly #hasHandler: boolean
  #turn = 0
  #clients: readonly MemorySocket[] = []

  /** `tokens`: how many different ones the requests have, where they have several. */
  constructor(parts: ReadonlySet<Part>, tokens: number) {
    const hasToken = parts.has('token') || parts.has('tokens')
    this.#requests = Array.from({ length: parts.has('tokens') ? tokens : 1 }, (_, turn) => {
      if (!hasToken) return requestOf(parts, '')
      const claims = { iss: ISSUER, sub: `user${turn}`, azp: 'bench', scope: 'read', exp: 4_000_000_000 }
      return requestOf(parts, signedToken(signer(), { ...claims, filler: 'x'.repeat(90) }))
    })
    this.#response = responseOf(parts)
    this.#evicting = new Uint8Array(parts.has('cold') ? COLD_BYTES : 0)
    this.#hasPolicy = parts.has('policy')
    this.#hasHandler = parts.has('handler')
    this.#reactor = reactorOf(parts, this.#level)
  }

  #next(): Buffer {
    this.#turn = this.#turn + 1 === this.#requests.length ? 0 : this.#turn + 1
    return this.#requests[this.#turn]!.next()
  }

  /** Opens the connections of both sides with an exchange on each. */
  async open(): Promise<void> {
    await this.#reactor.start()
    this.#clients = Array.from({ length: CONNECTIONS }, () => {
      const socket = new MemorySocket()
      this.#level.accept(socket)
      return socket
    })
    await this.#roundOfNewTokens()
    for (let known = CONNECTIONS; known < this.#requests.length; known += CONNECTIONS) await this.#roundOfNewTokens()
    this.check()
  }

  /** A new token is verified by the thread pool. */
  async #roundOfNewTokens(): Promise<void> {
    const { dialled } = this.#level
    const writesBefore = sumOfWrites(dialled)
    for (const client of this.#clients) receive(client, this.#next(), PHASE.DECODE, PHASE.BEFORE)
    for (let turn = 0; turn < 10_000 && sumOfWrites(dialled) < writesBefore + CONNECTIONS; turn++) await nextTurn()
    for (const backend of dialled) receive(backend, this.#response.next(), PHASE.READ, PHASE.BETWEEN)
  }

  /** Not part of any time. */
  evictCaches(): void {
    const bytes = this.#evicting
    for (let at = 0; at < bytes.length; at += CACHE_LINE) bytes[at]!++
  }

  /** Runs one exchange on each connection. */
  round(): void {
    for (const client of this.#clients) receive(client, this.#next(), PHASE.DECODE, PHASE.BEFORE)
    clock.enter(PHASE.BETWEEN)
    // The pool takes the connection that was used last, so pairs of connections change from round to round.
    for (const backend of this.#level.dialled) receive(backend, this.#response.next(), PHASE.READ, PHASE.BETWEEN)
  }

  /** Throws unless a round is one write to each backend and one response to each client, on connections that last. */
  check(): void {
    const sockets = [...this.#clients, ...this.#level.dialled]
    for (const socket of sockets) {
      socket.records = true
      socket.writes = 0
    }
    this.round()
    if (sockets.some(({ text }) => text.includes('\r\nX-Policy: constant\r\n') !== this.#hasPolicy)) {
      throw new Error('messages lack the field of the policy, or have it without a policy')
    }
    if (sockets.some(({ text }) => text.includes('\r\nX-Handler: constant\r\n') !== this.#hasHandler)) {
      throw new Error('messages lack the field of the handler, or have it without a handler')
    }
    const isOpen = sockets.length === 2 * CONNECTIONS && sockets.every(({ closes }) => closes === 0)
    const isRight = this.#clients.every(({ text }) => text.startsWith('HTTP/1.1 200 ') && text.includes(RESPONSE_BODY))
    if (!isOpen || !isRight || sockets.some(({ writes }) => writes !== 1))
      throw new Error(
        `not one write per exchange on connections that stay open:\n${sockets.map(s => s.text).join('\n')}`,
      )
    for (const socket of sockets) socket.records = false
  }

  stop(): void {
    this.#reactor.stop()
  }
}

/** Hands bytes to the owner of a socket, whose work is one phase; `outside`: the phase of the bench after it. */
function receive(socket: MemorySocket, bytes: Uint8Array, phase: number, outside: number): void {
  socket.fill(bytes)
  clock.enter(phase)
  socket.announce(bytes.length)
  clock.enter(outside)
}

function sumOfWrites(sockets: readonly MemorySocket[]): number {
  return sockets.reduce((sum, { writes }) => sum + writes, 0)
}

/** Runs `rounds` rounds; `timed` is called for each. */
async function repeat(rounds: number, timed: (round: number) => void): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    timed(round)
    if (round % TURN_ROUNDS === 0) await nextTurn()
  }
}

function timeRound(): number {
  replay.evictCaches()
  const startMs = performance.now()
  replay.round()
  return performance.now() - startMs
}

function allocatedSoFar(): number {
  return (getHeapStatistics() as unknown as { total_allocated_bytes: number }).total_allocated_bytes
}

/** Nanoseconds of an exchange, from milliseconds of a round. */
const NS_PER_ROUND_MS = 1e6 / CONNECTIONS

/**
 * Totals of exchanges as they are, with the copying of the recorded bytes. User time is that of the whole process,
 * collections included. Allocation is the median between turns of the event loop, because compiled code counts too.
 */
async function totals(rounds: number) {
  const times = new Float64Array(rounds)
  const allocated: number[] = [allocatedSoFar()]
  const cpu = process.cpuUsage()
  await repeat(rounds, round => {
    times[round] = timeRound()
    if (round % TURN_ROUNDS === TURN_ROUNDS - 1 || round === rounds - 1) allocated.push(allocatedSoFar())
  })
  const userNs = (process.cpuUsage(cpu).user * 1000) / (rounds * CONNECTIONS)
  const turns = allocated.slice(1).map((bytes, turn) => bytes - allocated[turn]!)
  const allocatedBytes = median(turns) / (Math.min(rounds, TURN_ROUNDS) * CONNECTIONS)
  return { exchangeNs: median([...times]) * NS_PER_ROUND_MS, userNs, allocatedBytes }
}

/**
 * Nanoseconds of each phase, without those of the clocks. They are shares of `exchangeNs`: the machine may have become
 * slower since that was measured.
 */
async function phases(rounds: number, exchangeNs: number): Promise<readonly number[]> {
  const stoppedMs = new Float64Array(rounds)
  const clocksMs = new Float64Array(rounds)
  const phaseMs = Array.from({ length: PHASES }, () => new Float64Array(rounds))
  await repeat(rounds, round => {
    stoppedMs[round] = timeRound()
    clock.start()
    clocksMs[round] = timeRound() - stoppedMs[round]!
    clock.isRunning = false
    for (let phase = 0; phase < PHASES; phase++) phaseMs[phase]![round] = clock.ms[phase]!
  })
  const { ends } = clock
  const clockMs = median([...clocksMs]) / ends.reduce((sum, count) => sum + count, 0)
  const nsPerMs = exchangeNs / median([...stoppedMs])
  return phaseMs.map((values, phase) => (median([...values]) - clockMs * ends[phase]!) * nsPerMs)
}

const [words = 'plain', exchanges = '1000000'] = process.argv.slice(2)
const unknown = words.split('+').filter(word => !Object.hasOwn(PARTS, word))
if (unknown.length > 0) throw new Error(`no part ${unknown.join(', ')}; there are ${Object.keys(PARTS).join(', ')}`)
const rounds = Math.max(2, Math.ceil(Number(exchanges) / CONNECTIONS / 2))
// A run of fewer exchanges would not get to all tokens.
const replay = new Replay(new Set(words.split('+') as Part[]), Math.min(TOKENS, Number(exchanges)))
await replay.open()
await repeat(rounds >> 1, timeRound)
const whole = await totals(rounds)
installClocks()
await repeat(rounds >> 3, timeRound)
const ns = await phases(Math.max(1, rounds >> 2), whole.exchangeNs)
replay.check()
replay.stop()
const [, , decodeNs, filterNs, sendNs, readNs, writeNs, accountNs, line] = ns
const lineNs = words.split('+').includes('log') ? line : undefined
console.log(JSON.stringify({ ...whole, decodeNs, filterNs, sendNs, readNs, writeNs, accountNs, lineNs }))
process.exit(0)
