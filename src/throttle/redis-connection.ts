/**
 * One connection of a reactor to Redis: pipelined commands with a time limit each, a bounded number of them, and
 * reconnects with backoff. While Redis does not answer, commands end at once instead of waiting.
 *
 * The library connects, authenticates and speaks RESP. Its queue of commands without a connection, its retries and its
 * reconnects are off: a charge that is sent twice would count twice.
 */
import { createRequire } from 'node:module'
import { METRIC } from '../observe/metrics.ts'
import type { TlsClientPlan } from '../socket/tls.ts'
import { withTimeout } from '../runtime/with-timeout.ts'
import type { RedisScript } from './redis-scripts.ts'

const require = createRequire(import.meta.url)

/** Where Redis is, and the limits of talking to it. */
export interface RedisAddress {
  readonly host: string
  readonly port: number
  /** '' for the default user. */
  readonly username: string
  /** '' for none. */
  readonly password: string
  readonly database: number
  /** Null: no TLS. */
  readonly tls: TlsClientPlan | null
  /** Longest wait for a reply, in milliseconds. */
  readonly timeoutMs: number
  /** Largest number of commands without a reply. */
  readonly pendingMax: number
}

/** The used part of the library's client. */
interface Client {
  connect(): Promise<unknown>
  sendCommand(args: readonly string[]): Promise<unknown>
  on(event: 'error', listener: (error: Error) => void): void
  destroy(): void
}

interface Library {
  createClient(options: object): Client
}

interface ConnectionOptions {
  report(level: 'info' | 'error', event: string, fields: Record<string, string | number>): void
  readonly metrics: { add(cell: number, by: number): void }
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number
  /** Loaded as soon as a connection is open. */
  readonly scripts: readonly RedisScript[]
  /** A script that shows that Redis answers and writes: the last step of a connect, and sent every second. */
  readonly probe: RedisScript
  /** Keys and arguments of the probe, with the number of keys first. */
  readonly probeArguments: readonly string[]
  probed(reply: unknown): void
}

/** A command without a reply. */
interface Pending {
  readonly sentMs: number
  readonly resolve: (reply: unknown) => void
  isSettled: boolean
}

/** Limit of opening a connection, TLS and authentication included. */
const CONNECT_MS = 2000
const PROBE_MS = 1000
const BACKOFF_MIN_MS = 100
const BACKOFF_MAX_MS = 5000
/** A connection that has lasted so long makes the next backoff short again. */
const STABLE_MS = 5000
/** So many time-outs in a row end a connection whose replies are all late. */
const TIMEOUTS_MAX = 16

export class RedisConnection {
  readonly #address: RedisAddress
  readonly #options: ConnectionOptions
  #state: 'new' | 'connecting' | 'up' | 'down' | 'closed' = 'new'
  #client: Client | null = null
  /** Commands in the order of sending, which is the order of replies; settled ones stay until the first is settled. */
  #queue: Pending[] = []
  /** Index of the first command in the queue that is not settled. */
  #head = 0
  /** Commands that the library holds, timed out ones included. */
  #held = 0
  readonly #tried = Promise.withResolvers<void>()
  #lastReplyMs = 0
  #timeouts = 0
  #upSinceMs = 0
  #downSinceMs = 0
  #backoffMs = BACKOFF_MIN_MS
  #isOutageLogged = false
  /** Time of the next check for commands that have waited too long; 0 for none. */
  #checkAtMs = 0
  #checkTimer: NodeJS.Timeout | undefined
  #connectTimer: NodeJS.Timeout | undefined
  #probeTimer: NodeJS.Timeout | undefined

  constructor(address: RedisAddress, options: ConnectionOptions) {
    this.#address = address
    this.#options = options
  }

  /** True if commands are sent. */
  get isUp(): boolean {
    return this.#state === 'up'
  }

  /** Connects, and again after each failure, until `close`. Resolves when Redis has answered or has failed once. */
  start(): Promise<void> {
    this.#downSinceMs = this.#options.nowMs()
    this.#options.metrics.add(METRIC.throttleRedisDown, 1)
    void this.#connect()
    return this.#tried.promise
  }

  /**
   * Runs a script. `args`: the whole command, `EVALSHA` first; kept by the caller. Resolves with the reply.
   * Resolves with null where it is late or an error, and at once where commands are not sent.
   */
  run(script: RedisScript, args: readonly string[]): Promise<unknown> {
    if (this.#state !== 'up') return this.#unsent(METRIC.throttleRedisUndecidedDown)
    if (this.#held >= this.#address.pendingMax) return this.#unsent(METRIC.throttleRedisUndecidedPending)
    return new Promise(resolve => {
      const pending = { sentMs: this.#options.nowMs(), resolve, isSettled: false }
      this.#queue.push(pending)
      this.#send(pending, script, args, 0)
      this.#checkLater(pending)
    })
  }

  /** Ends the connection after `last` and the replies that are due; later commands end at once. */
  close(last: readonly string[]): void {
    const wasUp = this.#state === 'up'
    if (!wasUp) this.#options.metrics.add(METRIC.throttleRedisDown, this.#state === 'new' ? 0 : -1)
    this.#state = 'closed'
    this.#tried.resolve()
    clearTimeout(this.#connectTimer)
    clearInterval(this.#probeTimer)
    const client = this.#client
    const end = () => {
      this.#abandon(METRIC.throttleRedisUndecidedDown)
      client?.destroy()
    }
    if (!wasUp || client === null) end()
    else withTimeout(client.sendCommand(last), this.#address.timeoutMs, () => new Error('late')).then(end, end)
  }

  #unsent(cause: number): Promise<null> {
    this.#options.metrics.add(cause, 1)
    return UNDECIDED
  }

  // ---- commands ---------------------------------------------------------------------------------------------------

  #send(pending: Pending, script: RedisScript, args: readonly string[], tries: number): void {
    const client = this.#client!
    this.#held++
    client.sendCommand(args).then(
      reply => {
        this.#held--
        this.#replied(pending, reply)
      },
      (error: Error) => {
        this.#held--
        if (pending.isSettled || this.#client !== client) return
        if (tries < 2 && error.message.startsWith('NOSCRIPT')) this.#loadAndSend(pending, script, args, tries)
        else this.#refused(pending, error)
      },
    )
  }

  /** Redis has forgotten the script: a restart or `SCRIPT FLUSH`. Nothing was charged. */
  #loadAndSend(pending: Pending, script: RedisScript, args: readonly string[], tries: number): void {
    // Commands run in order, so the script is there for the second command. The third try cannot miss it.
    if (tries === 0) this.#client!.sendCommand(['SCRIPT', 'LOAD', script.text]).catch(() => {})
    this.#send(pending, script, tries === 0 ? args : ['EVAL', script.text, ...args.slice(2)], tries + 1)
  }

  #replied(pending: Pending, reply: unknown): void {
    const nowMs = this.#options.nowMs()
    this.#lastReplyMs = nowMs
    if (pending.isSettled) return
    this.#timeouts = 0
    this.#options.metrics.add(METRIC.throttleRedisReplies, 1)
    this.#options.metrics.add(METRIC.throttleRedisWaitSeconds, (nowMs - pending.sentMs) / 1000)
    this.#settle(pending, reply)
  }

  #refused(pending: Pending, error: Error): void {
    this.#lastReplyMs = this.#options.nowMs()
    this.#options.metrics.add(METRIC.throttleRedisUndecidedError, 1)
    this.#settle(pending, null)
    if (!error.message.startsWith('WRONGTYPE')) this.#goDown(error)
    else this.#report('error', 'redis has a foreign key', error)
  }

  #settle(pending: Pending, reply: unknown): void {
    pending.isSettled = true
    pending.resolve(reply)
    const queue = this.#queue
    while (this.#head < queue.length && queue[this.#head]!.isSettled) this.#head++
    if (this.#head === queue.length) {
      this.#queue = []
      this.#head = 0
    } else if (this.#head > 1024) {
      queue.splice(0, this.#head)
      this.#head = 0
    }
  }

  /** Settles every command without a reply. */
  #abandon(cause: number): void {
    clearTimeout(this.#checkTimer)
    this.#checkAtMs = 0
    const left = this.#queue.slice(this.#head).filter(({ isSettled }) => !isSettled)
    this.#queue = []
    this.#head = 0
    this.#options.metrics.add(cause, left.length)
    for (const pending of left) {
      pending.isSettled = true
      pending.resolve(null)
    }
  }

  // ---- time limit -------------------------------------------------------------------------------------------------

  #checkLater(pending: Pending): void {
    if (this.#checkAtMs !== 0) return
    this.#checkAtMs = pending.sentMs + this.#address.timeoutMs
    const check = () => {
      const graceMs = this.#address.timeoutMs / 4
      const isBusy = this.#options.nowMs() - this.#checkAtMs > graceMs
      // A busy thread has not read its replies, or not sent its commands. Timers run before sockets are read.
      if (isBusy) this.#checkTimer = setTimeout(() => this.#expire(), graceMs)
      else setImmediate(() => this.#expire())
    }
    this.#checkTimer = setTimeout(check, this.#checkAtMs - this.#options.nowMs())
  }

  #expire(): void {
    this.#checkAtMs = 0
    const { nowMs, metrics } = this.#options
    // Half a millisecond, because timers may be early by so much.
    const limitMs = nowMs() - this.#address.timeoutMs + 0.5
    while (this.#head < this.#queue.length && this.#queue[this.#head]!.sentMs <= limitMs) {
      const pending = this.#queue[this.#head]!
      metrics.add(METRIC.throttleRedisUndecidedTimeout, 1)
      this.#settle(pending, null)
      if (this.#lastReplyMs < pending.sentMs || ++this.#timeouts >= TIMEOUTS_MAX) {
        this.#goDown(new Error(`no reply within ${this.#address.timeoutMs} ms`))
        return
      }
    }
    const next = this.#queue[this.#head]
    if (next !== undefined) this.#checkLater(next)
  }

  // ---- connection -------------------------------------------------------------------------------------------------

  async #connect(): Promise<void> {
    this.#state = 'connecting'
    const client = newClient(this.#address)
    this.#client = client
    client.on('error', error => this.#failed(client, error))
    try {
      await withTimeout(client.connect(), CONNECT_MS, () => new Error(`no connection within ${CONNECT_MS} ms`))
      const { scripts, probe, probeArguments } = this.#options
      const loaded = scripts.map(({ text }) => client.sendCommand(['SCRIPT', 'LOAD', text]))
      const answered = Promise.all([client.sendCommand(['EVAL', probe.text, ...probeArguments]), ...loaded])
      const { timeoutMs } = this.#address
      const [reply] = await withTimeout(answered, timeoutMs, () => new Error(`no reply within ${timeoutMs} ms`))
      this.#goUp(client, reply)
    } catch (error) {
      this.#failed(client, error as Error)
    }
  }

  #goUp(client: Client, reply: unknown): void {
    if (this.#client !== client || this.#state !== 'connecting') return
    const { nowMs, metrics, probe, probeArguments, probed } = this.#options
    this.#state = 'up'
    this.#tried.resolve()
    this.#timeouts = 0
    this.#upSinceMs = nowMs()
    this.#lastReplyMs = this.#upSinceMs
    metrics.add(METRIC.throttleRedisDown, -1)
    if (this.#isOutageLogged) {
      this.#isOutageLogged = false
      this.#report('info', 'redis answers again', null)
    }
    probed(reply)
    const args = ['EVALSHA', probe.sha, ...probeArguments]
    this.#probeTimer = setInterval(async () => {
      const answer = await this.run(probe, args)
      if (answer !== null) probed(answer)
    }, PROBE_MS)
  }

  #failed(client: Client, error: Error): void {
    if (this.#client === client) this.#goDown(error)
  }

  /** Ends every waiting command, and connects again after the backoff. */
  #goDown(error: Error): void {
    if (this.#state !== 'up' && this.#state !== 'connecting') return
    const nowMs = this.#options.nowMs()
    if (this.#state === 'up') {
      this.#options.metrics.add(METRIC.throttleRedisDown, 1)
      this.#downSinceMs = nowMs
      if (nowMs - this.#upSinceMs >= STABLE_MS) this.#backoffMs = BACKOFF_MIN_MS
    }
    this.#state = 'down'
    this.#tried.resolve()
    clearInterval(this.#probeTimer)
    const client = this.#client
    this.#client = null
    this.#abandon(METRIC.throttleRedisUndecidedDown)
    client?.destroy()
    if (!this.#isOutageLogged) {
      this.#isOutageLogged = true
      this.#report('error', 'redis does not answer', error)
    }
    // A random part keeps the reactors of many gateways from connecting at the same moment.
    this.#connectTimer = setTimeout(() => void this.#connect(), this.#backoffMs * (0.75 + Math.random() / 2))
    this.#backoffMs = Math.min(this.#backoffMs * 2, BACKOFF_MAX_MS)
  }

  #report(level: 'info' | 'error', event: string, error: Error | null): void {
    const { host, port } = this.#address
    const fields = { TARGET_HOST: host, TARGET_PORT: port }
    const downMs = Math.round(this.#options.nowMs() - this.#downSinceMs)
    this.#options.report(
      level,
      event,
      error === null ? { ...fields, DOWN_MS: downMs } : { ...fields, ...causeOf(error) },
    )
  }
}

const UNDECIDED = Promise.resolve(null)

/** Errors of several addresses have no message of their own. */
function causeOf(error: Error): { CAUSE_OF_ERROR: string } {
  const first = error instanceof AggregateError ? (error.errors[0] as Error) : error
  return { CAUSE_OF_ERROR: first.message === '' ? first.name : first.message }
}

function newClient({ host, port, username, password, database, tls, pendingMax }: RedisAddress): Client {
  const { createClient } = require('@redis/client') as Library
  const socket = { host, port, connectTimeout: CONNECT_MS, reconnectStrategy: false }
  return createClient({
    socket: tls === null ? socket : { ...socket, ...tlsOptions(tls) },
    ...(username === '' ? {} : { username }),
    ...(password === '' ? {} : { password }),
    ...{ database, RESP: 2, maintNotifications: 'disabled', disableClientInfo: true },
    // Probes and scripts go beyond the limit of `run`.
    ...{ disableOfflineQueue: true, commandsQueueMaxLength: pendingMax + 100 },
  })
}

function tlsOptions({ ca, identity, hostname, minVersion, maxVersion, ciphers }: TlsClientPlan): object {
  return {
    ...{ tls: true, minVersion, maxVersion, allowPartialTrustChain: true },
    ...(ciphers === '' ? {} : { ciphers }),
    ...(ca === null ? {} : { ca }),
    ...(identity === null ? {} : { cert: identity.cert, key: identity.key }),
    ...(hostname === 'none' ? { checkServerIdentity: () => undefined } : {}),
  }
}
