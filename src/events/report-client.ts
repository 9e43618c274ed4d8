/**
 * Reports of a gateway to the traffic managers of its groups. Each group receives everything. In a group of type
 * `failover` the first traffic manager that answers gets it all. With `loadbalance` each key has one traffic manager
 * among those that answer, so that it is counted in one place. Nothing waits for a traffic manager.
 */
import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import type { EventLog } from '../observe/events.ts'
import type { TlsClientPlan } from '../socket/tls.ts'
import type { UsageRow } from '../throttle/cluster-limits.ts'
import { encodeReport, FRAME, frame, FrameReader } from './report-codec.ts'
import { tlsOptions } from './tls-options.ts'

export interface TrafficManagerAddress {
  readonly host: string
  readonly port: number
  /** Null: without TLS. */
  readonly tls: TlsClientPlan | null
}

export interface ReportGroup {
  readonly type: 'failover' | 'loadbalance'
  readonly members: readonly TrafficManagerAddress[]
  readonly username: string
  readonly password: string
}

interface ReportContext {
  readonly report: EventLog['report']
  readonly metrics: Pick<MetricsColumn, 'add'>
  /** Identity of this process. */
  readonly node: string
}

/** Keys that wait for the next report; amounts of further keys are lost and counted. */
const KEYS_MAX = 100_000
const ROWS_PER_REPORT = 10_000
/** Reports of a connection without an answer. */
const UNANSWERED_MAX = 32
const CONNECT_MS = 5000
/** Between two looks for late answers, and for a traffic manager that takes what waits. */
const RETRY_MS = 100
/** A traffic manager that leaves a report unanswered for so long is lost. */
const ANSWER_MS = 3000
const PAUSE_MS = 200
const PAUSE_MS_MAX = 10_000

/** Reports to one traffic manager, over one connection. */
class Reporter {
  readonly #address: TrafficManagerAddress
  readonly #group: ReportGroup
  readonly #context: ReportContext
  /** Socket of the last attempt to connect. */
  #socket: Socket
  #phase: 'connecting' | 'up' | 'waiting' | 'closed' = 'connecting'
  #number = 0
  readonly #unanswered = new Map<number, { readonly rows: number; readonly sentMs: number }>()
  #timer: NodeJS.Timeout | undefined
  #pauseMs = PAUSE_MS
  #outage: 'untold' | 'told' = 'untold'

  constructor(address: TrafficManagerAddress, group: ReportGroup, context: ReportContext) {
    this.#address = address
    this.#group = group
    this.#context = context
    context.metrics.add(METRIC.trafficManagerDown, 1)
    this.#socket = this.#connect()
  }

  get name(): string {
    return `${this.#address.host}:${this.#address.port}`
  }

  get isUp(): boolean {
    return this.#phase === 'up'
  }

  get isBusy(): boolean {
    return this.#unanswered.size >= UNANSWERED_MAX
  }

  send(rows: readonly UsageRow[]): void {
    this.#number = (this.#number + 1) % 2 ** 32
    const body = encodeReport({ number: this.#number, atMs: Date.now(), rows })
    this.#unanswered.set(this.#number, { rows: rows.length, sentMs: performance.now() })
    this.#socket.write(frame(FRAME.REPORT, body))
  }

  /** Ends a connection that does not answer. */
  tick(): void {
    const [oldest] = this.#unanswered.values()
    if (oldest !== undefined && performance.now() - oldest.sentMs > ANSWER_MS) {
      this.#socket.destroy(new Error(`no answer within ${ANSWER_MS} ms`))
    }
  }

  close(): void {
    this.#context.metrics.add(METRIC.trafficManagerDown, this.#phase === 'up' ? 0 : -1)
    this.#phase = 'closed'
    clearTimeout(this.#timer)
    // Bytes that are written reach the traffic manager.
    this.#socket.end()
    this.#socket.unref()
  }

  #connect(): Socket {
    this.#phase = 'connecting'
    const { host, port, tls } = this.#address
    const socket =
      tls === null
        ? connectPlain({ host, port, noDelay: true })
        : connectTls({ host, port, ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }), ...tlsOptions(tls) })
    let cause = 'it has closed the connection'
    const reader = new FrameReader(FRAME_MAX)
    const timer = setTimeout(() => socket.destroy(new Error(`no answer within ${CONNECT_MS} ms`)), CONNECT_MS)
    socket.on(tls === null ? 'connect' : 'secureConnect', () => {
      const { username, password } = this.#group
      const hello = { version: 1, node: this.#context.node, username, password }
      socket.write(frame(FRAME.HELLO, Buffer.from(JSON.stringify(hello))))
    })
    socket.on('data', (chunk: Buffer) => {
      try {
        for (const { type, body } of reader.read(chunk)) {
          if (type === FRAME.ACK && body.length === 4) this.#answered(body.readUInt32BE(0), timer)
          else if (type === FRAME.REFUSED) throw new Error(`it refuses: ${body.toString().slice(0, 200)}`)
        }
      } catch (error) {
        cause = (error as Error).message
        socket.destroy()
      }
    })
    socket.on('error', error => {
      cause = error.message
    })
    socket.on('close', () => {
      clearTimeout(timer)
      this.#lost(cause)
    })
    return socket
  }

  /** The answer to the greeting has number 0. */
  #answered(number: number, connecting: NodeJS.Timeout): void {
    if (number === 0 && this.#phase === 'connecting') {
      clearTimeout(connecting)
      this.#phase = 'up'
      this.#pauseMs = PAUSE_MS
      this.#outage = 'untold'
      this.#context.metrics.add(METRIC.trafficManagerDown, -1)
      this.#context.report('info', 'traffic manager connected', this.#fields)
    }
    const sent = this.#unanswered.get(number)
    if (sent === undefined) return
    this.#unanswered.delete(number)
    this.#context.metrics.add(METRIC.throttleReportsSent, sent.rows)
  }

  #lost(cause: string): void {
    // Whether they were counted is unknown; counting them twice would refuse requests within the limit.
    for (const { rows } of this.#unanswered.values()) this.#context.metrics.add(METRIC.throttleReportsLost, rows)
    this.#unanswered.clear()
    if (this.#phase === 'closed') return
    if (this.#phase === 'up') this.#context.metrics.add(METRIC.trafficManagerDown, 1)
    this.#phase = 'waiting'
    if (this.#outage === 'untold') {
      this.#context.report('error', 'traffic manager lost', { ...this.#fields, CAUSE_OF_ERROR: cause })
    }
    this.#outage = 'told'
    this.#timer = setTimeout(() => {
      this.#socket = this.#connect()
    }, this.#pauseMs)
    this.#pauseMs = Math.min(2 * this.#pauseMs, PAUSE_MS_MAX)
  }

  get #fields(): { readonly TARGET_HOST: string; readonly TARGET_PORT: number } {
    return { TARGET_HOST: this.#address.host, TARGET_PORT: this.#address.port }
  }
}

/** A traffic manager sends short frames only. */
const FRAME_MAX = 4096

interface Sum {
  quota: UsageRow['quota']
  amount: number
}

export class ReportClient {
  readonly #groups: readonly { readonly type: ReportGroup['type']; readonly reporters: readonly Reporter[] }[]
  readonly #context: ReportContext
  /** Sums that reactors have told since the last report; null: there is no group. */
  #sums = new Map<string, Sum>()
  readonly #timer: NodeJS.Timeout
  /** Rows that reactors add in one turn of the event loop leave in one report. */
  #isScheduled = false

  constructor(groups: readonly ReportGroup[], context: ReportContext) {
    this.#context = context
    this.#groups = groups.map(group => ({
      type: group.type,
      reporters: group.members.map(address => new Reporter(address, group, context)),
    }))
    this.#timer = setInterval(() => this.#flush(), RETRY_MS)
    this.#timer.unref()
  }

  /** Adds rows of a reactor to the next report. */
  add(rows: readonly UsageRow[]): void {
    for (const { key, quota, amount } of rows) {
      const sum = this.#sums.get(key)
      if (sum !== undefined) {
        sum.amount += amount
        sum.quota = quota
      } else if (this.#sums.size < KEYS_MAX) this.#sums.set(key, { quota, amount })
      else this.#context.metrics.add(METRIC.throttleReportsLost, 1)
    }
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#flush()
    })
  }

  close(): void {
    clearInterval(this.#timer)
    this.#flush()
    for (const { reporters } of this.#groups) for (const reporter of reporters) reporter.close()
  }

  /** While no traffic manager of any group takes reports, amounts add up, within the limit of keys. */
  #flush(): void {
    for (const { reporters } of this.#groups) for (const reporter of reporters) reporter.tick()
    if (this.#sums.size === 0) return
    const ready = this.#groups.map(({ type, reporters }) => ({ type, up: reporters.filter(takesReports) }))
    if (ready.every(({ up }) => up.length === 0)) return
    const rows = Array.from(this.#sums, ([key, { quota, amount }]) => ({ key, quota, amount }))
    this.#sums = new Map()
    for (const { type, up } of ready) {
      if (up.length === 0) this.#context.metrics.add(METRIC.throttleReportsLost, rows.length)
      else if (type === 'failover') sendAll(up[0]!, rows)
      else for (const [reporter, share] of shares(up, rows)) sendAll(reporter, share)
    }
  }
}

function takesReports(reporter: Reporter): boolean {
  return reporter.isUp && !reporter.isBusy
}

function sendAll(reporter: Reporter, rows: readonly UsageRow[]): void {
  for (let at = 0; at < rows.length; at += ROWS_PER_REPORT) reporter.send(rows.slice(at, at + ROWS_PER_REPORT))
}

/** Rendezvous hashing: a traffic manager that ends moves its own keys only, and all gateways choose alike. */
function shares(up: readonly Reporter[], rows: readonly UsageRow[]): ReadonlyMap<Reporter, readonly UsageRow[]> {
  const byReporter = new Map<Reporter, UsageRow[]>(up.map(reporter => [reporter, []]))
  for (const row of rows) {
    let best = up[0]!
    let bestHash = -1
    for (const reporter of up) {
      const hash = hashOf(`${reporter.name} ${row.key}`)
      if (hash > bestHash) {
        best = reporter
        bestHash = hash
      }
    }
    byReporter.get(best)!.push(row)
  }
  return byReporter
}

/** FNV-1a, 32 bits, with a final mix. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return (hash ^ (hash >>> 13)) >>> 0
}
