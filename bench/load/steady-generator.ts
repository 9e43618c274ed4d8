/**
 * Requests at a constant rate through whatever happens, run as a program: a SteadyPlan as JSON in its argument. It
 * prints `started` with the first request, and at the end the SteadyRecord of every request as a line of JSON. A
 * request that finds every connection waiting is sent late, and its time counts from the moment it was meant to leave.
 */
import { requestHead } from '../request-head.ts'
import { LoadConnection, type LoadListener } from './load-connection.ts'
import type { SteadyOutcome, SteadyPlan, SteadyRecord } from './load-plan.ts'

/** How long after the end answers are waited for: longer than any proxy is told to wait for a backend. */
const DRAIN_MS = 5000
const REOPEN_MS = 10

class SteadyGenerator implements LoadListener {
  readonly #plan: SteadyPlan
  readonly #request: Buffer
  readonly #records: SteadyRecord[] = []
  readonly #free: LoadConnection[] = []
  readonly #waiting: number[] = []
  #opened = 0
  #startMs = 0
  #due = 0

  constructor(plan: SteadyPlan) {
    this.#plan = plan
    this.#request = Buffer.from(requestHead('GET', plan.path, plan.fields), 'latin1')
    for (let i = 0; i < plan.connections; i++) new LoadConnection(plan.port, this, false).open()
  }

  opened(connection: LoadConnection): void {
    this.#free.push(connection)
    if (this.#startMs === 0 && ++this.#opened === this.#plan.connections) this.#start()
    else this.#send()
  }

  answered(connection: LoadConnection, status: number): void {
    const server = /\r\nx-served-by: *(\S+)/i.exec(connection.head)?.[1] ?? ''
    this.#keep(connection, status, server)
    if (!/\r\nconnection: *close/i.test(connection.head)) this.#free.push(connection)
    else this.#reopen(connection)
    this.#send()
  }

  /** Only a request without an answer is worth a word; an idle connection may be closed at any time. */
  lost(connection: LoadConnection): void {
    if (connection.awaiting) this.#keep(connection, 0, '')
    connection.awaiting = false
    const place = this.#free.indexOf(connection)
    if (place >= 0) this.#free.splice(place, 1)
    setTimeout(() => connection.open(), REOPEN_MS)
  }

  #reopen(connection: LoadConnection): void {
    connection.close()
    connection.open()
  }

  #keep(connection: LoadConnection, status: number, server: string): void {
    const epochMs = performance.timeOrigin
    this.#records.push({
      askedMs: epochMs + connection.intendedMs,
      answeredMs: epochMs + performance.now(),
      status,
      server,
    })
  }

  #start(): void {
    this.#startMs = performance.now()
    const pace = setInterval(() => this.#keepPace(), 1)
    setTimeout(() => {
      clearInterval(pace)
      // A timer may come a fraction early; what is due at the end is due.
      this.#keepPace(this.#plan.seconds * 1000)
      this.#drain(performance.now() + DRAIN_MS)
    }, this.#plan.seconds * 1000)
    console.log('started')
  }

  #keepPace(elapsedMs = Math.min(performance.now() - this.#startMs, this.#plan.seconds * 1000)): void {
    const due = Math.floor((elapsedMs * this.#plan.ratePerSecond) / 1000)
    while (this.#due < due) this.#waiting.push(this.#startMs + (++this.#due * 1000) / this.#plan.ratePerSecond)
    this.#send()
  }

  #send(): void {
    while (this.#waiting.length > 0 && this.#free.length > 0) {
      this.#free.shift()!.send(this.#request, this.#waiting.shift()!)
    }
  }

  #drain(deadlineMs: number): void {
    if (this.#records.length < this.#due && performance.now() < deadlineMs) {
      setTimeout(() => this.#drain(deadlineMs), 10)
      return
    }
    const outcome: SteadyOutcome = { asked: this.#due, records: this.#records }
    // Too long for one write: leaving before all of it is taken would cut it short.
    process.stdout.write(`${JSON.stringify(outcome)}\n`, () => process.exit(0))
  }
}

new SteadyGenerator(JSON.parse(process.argv[2] ?? '{}') as SteadyPlan)
