/**
 * The load generator of `sluice tune`, in a thread of its own: keep-alive connections on raw sockets. In an open loop
 * request k (from 0) is due at start + k / rate, whether or not earlier ones have a response, and latency counts from
 * that time (coordinated omission): a stall counts for all requests that had to wait.
 */
import { connect, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { parentPort, workerData } from 'node:worker_threads'
import { ResponseEnd } from './response-end.ts'
import { NO_RESPONSE } from './system.ts'

export interface LoadPlan {
  readonly port: number
  /** Latin-1. */
  readonly request: string
  readonly clients: number
  readonly seconds: number
  readonly warmUpSeconds: number
  /** 0: closed loop. */
  readonly ratePerSecond: number
  /** Time for all connections to open. */
  readonly openMs?: number
  /** Closed loop: time for the first response, after which the measured time begins all the same. */
  readonly firstMs?: number
}

/** Counts of the measured time, without the warm-up. */
export interface LoadOutcome {
  readonly seconds: number
  readonly succeeded: number
  readonly errors: number
  /** Kind of error, such as `429 (900802)` -> count. */
  readonly failures: Readonly<Record<string, number>>
  /** Latencies of successes and of requests without a response: a refusal is no fast response. */
  readonly latenciesMs: Float64Array
  /** Busy share of the event loop. */
  readonly busy: number
}

/** Latencies that are kept; those of further requests are not. */
const LATENCIES_MAX = 4_000_000
/** Time to wait for the last responses of an open loop. */
const DRAIN_MS = 1000
const REOPEN_MS = 5
const OPEN_MS = 15_000
/** Threads of a gateway that start with the first request take seconds on a busy machine. */
const FIRST_MS = 10_000
/** A refused request is repeated after a pause, as a client would: an endless loop would starve the gateway. */
const REFUSED_PAUSE_MS = 5
const SUCCESS = [200, 299] as const
/** In place of a time: no request was sent yet; none waits for its response. */
const [UNUSED, IDLE] = [-2, -1]
const LOST = 'lost connection'
const REFUSED = 'refused connection'
/** The code of a fault in its JSON or XML body. */
const FAULT_CODE = /(?:"code" ?: ?"?|<(?:\w+:)?code>)(\d+)/

/** One connection; another client takes the place of a lost one. */
class Client {
  readonly #load: Load
  readonly #end = new ResponseEnd()
  readonly #socket: Socket
  readonly #isHead: boolean
  /** When the request that waits for its response was due, in milliseconds of `performance.now`; or UNUSED, IDLE. */
  dueMs = UNUSED

  constructor(load: Load) {
    this.#load = load
    this.#isHead = load.plan.request.startsWith('HEAD ')
    const socket = connect({ port: load.plan.port, host: '127.0.0.1', noDelay: true })
    this.#socket = socket
    socket.on('connect', () => load.isFree(this))
    socket.on('data', bytes => this.#read(bytes as Buffer))
    socket.on('error', error => load.hasError(error))
    socket.on('close', () => load.isLost(this))
  }

  send(dueMs: number): void {
    this.dueMs = dueMs
    this.#end.begin(this.#isHead)
    this.#socket.write(this.#load.plan.request, 'latin1')
  }

  close(): void {
    this.#socket.destroy()
  }

  #read(bytes: Buffer): void {
    if (this.dueMs < 0) return void this.#socket.destroy()
    if (!this.#end.read(bytes)) return
    this.#load.hasResponse(this, this.#end.status, bytes)
  }
}

class Load {
  readonly plan: LoadPlan
  readonly #clients: Set<Client>
  readonly #free: Client[] = []
  #opened = 0
  #startMs = 0
  #countFromMs = Number.POSITIVE_INFINITY
  #sent = 0
  #succeeded = 0
  #errors = 0
  readonly #failures: Record<string, number> = {}
  /** Status -> its name among the failures. */
  readonly #kinds = new Map<number, string>()
  #lastError = ''
  #latencies: number[] = []
  #isOver = false
  #before = performance.eventLoopUtilization()

  constructor(plan: LoadPlan) {
    this.plan = plan
    this.#clients = new Set(Array.from({ length: plan.clients }, () => new Client(this)))
    setTimeout(() => {
      if (this.#startMs > 0) return
      const why = this.#lastError === '' ? '' : ` (${this.#lastError})`
      throw new Error(`${this.#opened} of ${plan.clients} connections opened${why}`)
    }, plan.openMs ?? OPEN_MS).unref()
  }

  isFree(client: Client): void {
    this.#free.push(client)
    if (this.#startMs === 0 && ++this.#opened === this.plan.clients) this.#start()
    else if (this.#startMs > 0) this.#send()
  }

  hasError(error: Error): void {
    const code = (error as NodeJS.ErrnoException).code ?? error.message
    this.#lastError = code === 'EMFILE' ? `${code}: raise ulimit -n, or give fewer --clients` : code
  }

  /** `last`: bytes with the end of the response. */
  hasResponse(client: Client, status: number, last: Buffer): void {
    this.#begin()
    const isSuccess = status >= SUCCESS[0] && status <= SUCCESS[1]
    const now = performance.now()
    this.#count(client.dueMs, now, isSuccess ? '' : this.#kindOf(status, last))
    client.dueMs = IDLE
    if (isSuccess || this.plan.ratePerSecond > 0) this.isFree(client)
    else setTimeout(() => this.#clients.has(client) && this.isFree(client), REFUSED_PAUSE_MS)
  }

  #kindOf(status: number, last: Buffer): string {
    let kind = this.#kinds.get(status)
    if (kind === undefined) {
      const code = FAULT_CODE.exec(last.toString('latin1'))?.[1]
      kind = code === undefined || Number(code) === status ? String(status) : `${status} (${code})`
      this.#kinds.set(status, kind)
    }
    return kind
  }

  isLost(client: Client): void {
    if (this.#isOver) return
    if (client.dueMs >= 0) this.#begin()
    const now = performance.now()
    if (client.dueMs >= 0) this.#count(client.dueMs, now, LOST)
    else if (client.dueMs === UNUSED && this.#startMs > 0) this.#count(now, now, REFUSED)
    this.#clients.delete(client)
    const at = this.#free.indexOf(client)
    if (at >= 0) this.#free.splice(at, 1)
    setTimeout(() => !this.#isOver && this.#clients.add(new Client(this)), REOPEN_MS)
  }

  /** All connections are open. */
  #start(): void {
    const { ratePerSecond, firstMs } = this.plan
    this.#startMs = performance.now()
    if (ratePerSecond > 0) {
      this.#begin()
      this.#sendAtRate()
    } else setTimeout(() => this.#begin(0), firstMs ?? FIRST_MS).unref()
    this.#send()
  }

  /** The warm-up begins, and the measured time after it. */
  #begin(warmUpSeconds = this.plan.warmUpSeconds): void {
    if (this.#countFromMs < Number.POSITIVE_INFINITY) return
    const { seconds, ratePerSecond } = this.plan
    this.#countFromMs = performance.now() + warmUpSeconds * 1000
    setTimeout(() => {
      this.#before = performance.eventLoopUtilization()
    }, warmUpSeconds * 1000)
    if (ratePerSecond === 0) setTimeout(() => this.#finish(), (warmUpSeconds + seconds) * 1000)
  }

  /** A timer is late by up to a millisecond; latency counts from the due time all the same. */
  #sendAtRate(): void {
    this.#send()
    const now = performance.now()
    if (now < this.#endMs) setTimeout(() => this.#sendAtRate(), 1)
    else setTimeout(() => this.#finish(), this.#clients.values().some(({ dueMs }) => dueMs >= 0) ? DRAIN_MS : 0)
  }

  get #endMs(): number {
    return this.#countFromMs + this.plan.seconds * 1000
  }

  #dueMs(request: number): number {
    return this.#startMs + (request * 1000) / this.plan.ratePerSecond
  }

  #send(): void {
    const now = performance.now()
    if (this.#isOver || now >= this.#endMs + DRAIN_MS) return
    if (this.plan.ratePerSecond === 0) {
      for (const client of this.#free.splice(0)) client.send(now)
      return
    }
    while (this.#free.length > 0 && this.#dueMs(this.#sent) <= Math.min(now, this.#endMs))
      this.#free.shift()!.send(this.#dueMs(this.#sent++))
  }

  /** `failure`: its kind; '' for a success. */
  #count(dueMs: number, now: number, failure: string): void {
    const at = this.plan.ratePerSecond > 0 ? dueMs : now
    if (at < this.#countFromMs || at > this.#endMs) return
    if (failure === '') this.#succeeded++
    else {
      this.#errors++
      this.#failures[failure] = (this.#failures[failure] ?? 0) + 1
    }
    const isTimed = failure === '' || failure === NO_RESPONSE
    if (isTimed && this.#latencies.length < LATENCIES_MAX) this.#latencies.push(now - dueMs)
  }

  /** Requests without a response have waited until now at least; in a closed loop, those of the whole time count. */
  #finish(): void {
    const now = performance.now()
    const { utilization } = performance.eventLoopUtilization(this.#before)
    if (this.plan.ratePerSecond === 0) {
      const silent = this.#clients.values().filter(({ dueMs }) => dueMs >= 0 && dueMs < this.#countFromMs)
      for (const { dueMs } of silent) this.#count(dueMs, Math.min(now, this.#endMs), NO_RESPONSE)
    } else {
      for (const client of this.#clients) if (client.dueMs >= 0) this.#count(client.dueMs, now, NO_RESPONSE)
      while (this.#dueMs(this.#sent) <= this.#endMs) this.#count(this.#dueMs(this.#sent++), now, NO_RESPONSE)
    }
    this.#isOver = true
    for (const client of this.#clients) client.close()
    const latenciesMs = Float64Array.from(this.#latencies)
    const { seconds } = this.plan
    const counts = { succeeded: this.#succeeded, errors: this.#errors, failures: this.#failures }
    const outcome: LoadOutcome = { seconds, ...counts, latenciesMs, busy: utilization }
    parentPort!.postMessage(outcome, [latenciesMs.buffer])
  }
}

new Load(workerData as LoadPlan)
