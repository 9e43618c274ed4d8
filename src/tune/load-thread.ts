/**
 * The load generator of `sluice tune`, in a thread of its own: keep-alive connections on raw sockets. In an open loop
 * request k (from 0) is due at start + k / rate, whether or not earlier ones have a response, and latency counts from
 * that time (coordinated omission): a stall counts for all requests that had to wait.
 */
import { connect, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { parentPort, workerData } from 'node:worker_threads'
import { ResponseEnd } from './response-end.ts'

export interface LoadPlan {
  readonly port: number
  /** Latin-1. */
  readonly request: string
  readonly clients: number
  readonly seconds: number
  readonly warmUpSeconds: number
  /** 0: closed loop. */
  readonly ratePerSecond: number
}

/** Of the measured time, without the warm-up. */
export interface LoadOutcome {
  readonly seconds: number
  readonly succeeded: number
  readonly errors: number
  readonly latenciesMs: Float64Array
  /** Busy share of the event loop. */
  readonly busy: number
}

/** Of more requests the latency is not kept. */
const LATENCIES_MAX = 4_000_000
/** Time to wait for the last responses of an open loop. */
const DRAIN_MS = 1000
const REOPEN_MS = 5
/** A refused request is repeated after a pause, as a client would: an endless loop would starve the gateway. */
const REFUSED_PAUSE_MS = 5
const SUCCESS = [200, 299] as const

/** One connection; another client takes the place of a lost one. */
class Client {
  readonly #load: Load
  readonly #end = new ResponseEnd()
  readonly #socket: Socket
  /** When the request that waits for its response was due, in milliseconds of `performance.now`; -1: none waits. */
  dueMs = -1

  constructor(load: Load) {
    this.#load = load
    const socket = connect({ port: load.plan.port, host: '127.0.0.1', noDelay: true })
    this.#socket = socket
    socket.on('connect', () => load.isFree(this))
    socket.on('data', bytes => this.#read(bytes as Buffer))
    socket.on('error', () => socket.destroy())
    socket.on('close', () => load.isLost(this))
  }

  send(dueMs: number): void {
    this.dueMs = dueMs
    this.#end.begin()
    this.#socket.write(this.#load.plan.request, 'latin1')
  }

  close(): void {
    this.#socket.destroy()
  }

  #read(bytes: Buffer): void {
    if (this.dueMs < 0) this.#socket.destroy()
    else if (this.#end.read(bytes)) this.#load.hasResponse(this, this.#end.status)
  }
}

class Load {
  readonly plan: LoadPlan
  readonly #clients: Set<Client>
  readonly #free: Client[] = []
  #opened = 0
  #startMs = 0
  #sent = 0
  #succeeded = 0
  #errors = 0
  #latencies: number[] = []
  #isOver = false
  #before = performance.eventLoopUtilization()

  constructor(plan: LoadPlan) {
    this.plan = plan
    this.#clients = new Set(Array.from({ length: plan.clients }, () => new Client(this)))
  }

  isFree(client: Client): void {
    this.#free.push(client)
    if (this.#startMs === 0 && ++this.#opened === this.plan.clients) this.#start()
    else if (this.#startMs > 0) this.#send()
  }

  hasResponse(client: Client, status: number): void {
    const isSuccess = status >= SUCCESS[0] && status <= SUCCESS[1]
    const now = performance.now()
    this.#count(client.dueMs, now, isSuccess)
    client.dueMs = -1
    if (isSuccess || this.plan.ratePerSecond > 0) this.isFree(client)
    else setTimeout(() => this.#clients.has(client) && this.isFree(client), REFUSED_PAUSE_MS)
  }

  isLost(client: Client): void {
    if (this.#isOver) return
    if (client.dueMs >= 0) this.#count(client.dueMs, performance.now(), false)
    this.#clients.delete(client)
    const at = this.#free.indexOf(client)
    if (at >= 0) this.#free.splice(at, 1)
    setTimeout(() => !this.#isOver && this.#clients.add(new Client(this)), REOPEN_MS)
  }

  /** The clock starts when all connections are open. */
  #start(): void {
    const { warmUpSeconds, seconds, ratePerSecond } = this.plan
    this.#startMs = performance.now()
    setTimeout(() => {
      this.#before = performance.eventLoopUtilization()
    }, warmUpSeconds * 1000)
    if (ratePerSecond > 0) this.#sendAtRate()
    else setTimeout(() => this.#finish(), (warmUpSeconds + seconds) * 1000)
    this.#send()
  }

  /** A timer is late by up to a millisecond; latency counts from the due time all the same. */
  #sendAtRate(): void {
    this.#send()
    const now = performance.now()
    if (now < this.#endMs) setTimeout(() => this.#sendAtRate(), 1)
    else setTimeout(() => this.#finish(), this.#clients.values().some(({ dueMs }) => dueMs >= 0) ? DRAIN_MS : 0)
  }

  get #countFromMs(): number {
    return this.#startMs + this.plan.warmUpSeconds * 1000
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

  #count(dueMs: number, now: number, isSuccess: boolean): void {
    const at = this.plan.ratePerSecond > 0 ? dueMs : now
    if (at < this.#countFromMs || at > this.#endMs) return
    if (isSuccess) this.#succeeded++
    else this.#errors++
    if (this.#latencies.length < LATENCIES_MAX) this.#latencies.push(now - dueMs)
  }

  /** Requests of an open loop without a response have waited until now at least. */
  #finish(): void {
    const now = performance.now()
    const { utilization } = performance.eventLoopUtilization(this.#before)
    if (this.plan.ratePerSecond > 0) {
      for (const client of this.#clients) if (client.dueMs >= 0) this.#count(client.dueMs, now, false)
      while (this.#dueMs(this.#sent) <= this.#endMs) this.#count(this.#dueMs(this.#sent++), now, false)
    }
    this.#isOver = true
    for (const client of this.#clients) client.close()
    const latenciesMs = Float64Array.from(this.#latencies)
    const { seconds } = this.plan
    const counts = { succeeded: this.#succeeded, errors: this.#errors }
    const outcome: LoadOutcome = { seconds, ...counts, latenciesMs, busy: utilization }
    parentPort!.postMessage(outcome, [latenciesMs.buffer])
  }
}

new Load(workerData as LoadPlan)
