/**
 * The load generator of the bench. A program: a LoadPlan as JSON in its argument, a LoadOutcome as JSON on its output.
 * In the open loop request k (from 1) is due at start + k / rate, whether or not earlier ones have a response. Latency
 * counts from that time (coordinated omission): a stall counts for all requests that had to wait, sent or not.
 */
import { requestHead } from '../request-head.ts'
import { LatencyHistogram } from './latency-histogram.ts'
import { LoadConnection, type LoadConnectionCallbacks } from './load-connection.ts'
import { requestFields, type LoadOutcome, type LoadPlan } from './load-plan.ts'

/** Time to wait for the last responses of an open loop. */
const DRAIN_MS = 2000
/** The run is aborted after more lost connections than this. */
const ERRORS_MAX = 10_000

class LoadGenerator implements LoadConnectionCallbacks {
  readonly #plan: LoadPlan
  readonly #request: Uint8Array
  readonly #latencies = new LatencyHistogram()
  readonly #connections: LoadConnection[]
  /** A queue, so that all connections are used; with a stack the proxy would see only a few. */
  readonly #free: LoadConnection[] = []
  readonly #finish: (outcome: LoadOutcome) => void
  #opened = 0
  #sent = 0
  #answered = 0
  #errors = 0
  #startMs = 0
  #countFromMs = 0
  #endMs = Number.POSITIVE_INFINITY

  constructor(plan: LoadPlan, finish: (outcome: LoadOutcome) => void) {
    this.#plan = plan
    this.#finish = finish
    const head = requestHead(plan.uploadBytes > 0 ? 'POST' : 'GET', plan.path, requestFields(plan))
    this.#request = Buffer.concat([Buffer.from(head, 'latin1'), Buffer.alloc(plan.uploadBytes, 'x')])
    this.#connections = Array.from(
      { length: plan.connections },
      () => new LoadConnection(plan.port, this, plan.connectionPerRequest, plan.certificate?.chainFile),
    )
  }

  open(): void {
    for (const connection of this.#connections) connection.open()
  }

  onOpened(connection: LoadConnection): void {
    this.#free.push(connection)
    // The clock starts once all are connected, because accepting connections is not measured.
    if (this.#startMs === 0 && ++this.#opened === this.#plan.connections) this.#start()
    else if (this.#startMs > 0) this.#sendDue()
  }

  onResponse(connection: LoadConnection, status: number): void {
    const now = performance.now()
    this.#record(connection.intendedMs, now)
    this.#answered++
    if (status < 200 || status > 299) this.#errors++
    if (this.#plan.connectionPerRequest) {
      if (now < this.#endMs) connection.open()
    } else {
      this.#free.push(connection)
      this.#sendDue()
    }
  }

  onLost(connection: LoadConnection): void {
    this.#errors++
    if (this.#errors > ERRORS_MAX) throw new Error('too many connections were refused or lost')
    connection.awaiting = false
    const index = this.#free.indexOf(connection)
    if (index >= 0) this.#free.splice(index, 1)
    if (performance.now() < this.#endMs) setTimeout(() => connection.open(), 10)
  }

  #start(): void {
    this.#startMs = performance.now()
    this.#countFromMs = this.#startMs + this.#plan.warmUpSeconds * 1000
    this.#endMs = this.#countFromMs + this.#plan.seconds * 1000
    if (this.#plan.ratePerSecond > 0) this.#sendAtRate()
    else setTimeout(() => this.#stop(performance.now()), this.#endMs - this.#startMs)
    this.#sendDue()
  }

  /** Never sleeps, because a timer would be late by up to a millisecond. Idle priority protects the other programs. */
  #sendAtRate(): void {
    this.#sendDue()
    const now = performance.now()
    if (now < this.#endMs) setImmediate(() => this.#sendAtRate())
    else this.#drain(now + DRAIN_MS)
  }

  #drain(deadlineMs: number): void {
    this.#sendDue()
    const now = performance.now()
    if (this.#answered >= this.#dueBy(this.#endMs) || now > deadlineMs) this.#stop(now)
    else setTimeout(() => this.#drain(deadlineMs), 1)
  }

  /** Number of requests that are due by a time; the first is due one interval after the start. */
  #dueBy(ms: number): number {
    return Math.floor(((Math.min(ms, this.#endMs) - this.#startMs) * this.#plan.ratePerSecond) / 1000)
  }

  #intendedMs(request: number): number {
    return this.#startMs + ((request + 1) * 1000) / this.#plan.ratePerSecond
  }

  #sendDue(): void {
    const now = performance.now()
    if (this.#plan.ratePerSecond === 0) {
      while (this.#free.length > 0 && now < this.#endMs) this.#free.shift()!.send(this.#request, now)
      return
    }
    const due = this.#dueBy(now)
    while (this.#sent < due && this.#free.length > 0) {
      this.#free.shift()!.send(this.#request, this.#intendedMs(this.#sent++))
    }
  }

  #record(intendedMs: number, now: number): void {
    if (intendedMs >= this.#countFromMs) this.#latencies.record(now - intendedMs)
  }

  #stop(now: number): void {
    const open = this.#plan.ratePerSecond > 0
    if (open) {
      // Requests without a response have waited at least until now; without them a stall would look too good.
      const unsent = this.#dueBy(now) - this.#sent
      for (let k = 0; k < unsent; k++) this.#record(this.#intendedMs(this.#sent + k), now)
      const waiting = this.#connections.filter(connection => connection.awaiting)
      for (const connection of waiting) this.#record(connection.intendedMs, now)
      this.#errors += unsent + waiting.length
    }
    for (const connection of this.#connections) connection.close()
    const latencies = this.#latencies
    this.#finish({
      requests: this.#answered,
      seconds: ((open ? this.#endMs : now) - this.#startMs) / 1000,
      errors: this.#errors,
      p50Ms: latencies.percentileMs(0.5),
      p99Ms: latencies.percentileMs(0.99),
      p999Ms: latencies.percentileMs(0.999),
      maxMs: latencies.maxMs,
    })
  }
}

const plan = JSON.parse(process.argv[2] ?? '{}') as LoadPlan
new LoadGenerator(plan, outcome => {
  console.log(JSON.stringify(outcome))
  process.exit(0)
}).open()
