/**
 * Sends requests at a constant rate and records each of them. A program: a RecordingPlan as JSON in its argument; it
 * prints `started` with the first request, and a RecordingOutcome as a line of JSON at the end. A request that finds no
 * free connection is sent late, and its latency counts from the time at which it was due (coordinated omission).
 */
import { requestHead } from '../request-head.ts'
import { LoadConnection, type LoadConnectionCallbacks } from './load-connection.ts'
import type { RecordingOutcome, RecordingPlan, RequestRecord } from './load-plan.ts'

/** Time to wait for the last responses: longer than any proxy waits for a backend. */
const DRAIN_MS = 5000
const REOPEN_MS = 10

class RecordingGenerator implements LoadConnectionCallbacks {
  readonly #plan: RecordingPlan
  readonly #request: Buffer
  readonly #records: RequestRecord[] = []
  readonly #free: LoadConnection[] = []
  /** Due times of requests that wait for a connection. */
  readonly #overdue: number[] = []
  #opened = 0
  #startMs = 0
  #due = 0

  constructor(plan: RecordingPlan) {
    this.#plan = plan
    this.#request = Buffer.from(requestHead('GET', plan.path, plan.fields), 'latin1')
    for (let i = 0; i < plan.connections; i++) new LoadConnection(plan.port, this, false).open()
  }

  onOpened(connection: LoadConnection): void {
    this.#free.push(connection)
    if (this.#startMs === 0 && ++this.#opened === this.#plan.connections) this.#start()
    else this.#send()
  }

  onResponse(connection: LoadConnection, status: number): void {
    const server = /\r\nx-served-by: *(\S+)/i.exec(connection.head)?.[1] ?? ''
    this.#record(connection, status, server)
    if (!/\r\nconnection: *close/i.test(connection.head)) this.#free.push(connection)
    else this.#reopen(connection)
    this.#send()
  }

  /** Records a request without a response; an idle connection may be closed at any time. */
  onLost(connection: LoadConnection): void {
    if (connection.awaiting) this.#record(connection, 0, '')
    connection.awaiting = false
    const index = this.#free.indexOf(connection)
    if (index >= 0) this.#free.splice(index, 1)
    setTimeout(() => connection.open(), REOPEN_MS)
  }

  #reopen(connection: LoadConnection): void {
    connection.close()
    connection.open()
  }

  #record(connection: LoadConnection, status: number, server: string): void {
    const epochMs = performance.timeOrigin
    this.#records.push({
      intendedMs: epochMs + connection.intendedMs,
      answeredMs: epochMs + performance.now(),
      status,
      server,
    })
  }

  #start(): void {
    this.#startMs = performance.now()
    const pace = setInterval(() => this.#queueDue(), 1)
    setTimeout(() => {
      clearInterval(pace)
      // A timer may fire a fraction early, so count the full time.
      this.#queueDue(this.#plan.seconds * 1000)
      this.#drain(performance.now() + DRAIN_MS)
    }, this.#plan.seconds * 1000)
    console.log('started')
  }

  #queueDue(elapsedMs = Math.min(performance.now() - this.#startMs, this.#plan.seconds * 1000)): void {
    const due = Math.floor((elapsedMs * this.#plan.ratePerSecond) / 1000)
    while (this.#due < due) this.#overdue.push(this.#startMs + (++this.#due * 1000) / this.#plan.ratePerSecond)
    this.#send()
  }

  #send(): void {
    while (this.#overdue.length > 0 && this.#free.length > 0) {
      this.#free.shift()!.send(this.#request, this.#overdue.shift()!)
    }
  }

  #drain(deadlineMs: number): void {
    if (this.#records.length < this.#due && performance.now() < deadlineMs) {
      setTimeout(() => this.#drain(deadlineMs), 10)
      return
    }
    const outcome: RecordingOutcome = { due: this.#due, records: this.#records }
    // The output exceeds one write to the pipe; an exit before its end would truncate it.
    process.stdout.write(`${JSON.stringify(outcome)}\n`, () => process.exit(0))
  }
}

new RecordingGenerator(JSON.parse(process.argv[2] ?? '{}') as RecordingPlan)
