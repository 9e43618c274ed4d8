/**
 * Access log to a receiver of syslog (RFC 5424) over UDP (RFC 5426), TCP with octet counting (RFC 6587 3.4.1) or TLS
 * (RFC 5425), written by the primary only. A receiver that is slow or gone costs log lines, which are counted, and
 * never memory, requests or the process.
 */
import { createSocket, type Socket as DatagramSocket } from 'node:dgram'
import { lookup, type LookupOneOptions } from 'node:dns'
import { connect, type Socket } from 'node:net'
import { hostname } from 'node:os'
import { connect as connectTls } from 'node:tls'
import { type AccessLogSinkCallbacks, countLines, SinkFailures, tooSlow, WAITING_BYTES_MAX } from './access-log-sink.ts'

interface SyslogReceiver {
  readonly protocol: 'udp' | 'tcp' | 'tls'
  readonly host: string
  readonly port: number
  /** Number of the facility. */
  readonly facility: number
  /** Authorities of a TLS receiver in PEM; null: those of the system. */
  readonly ca: string | null
}

/** The longest payload of a datagram over IPv4; a longer line is cut, because the system would refuse it. */
const DATAGRAM_BYTES_MAX = 65_507
/** Informational (RFC 5424 6.2.1). */
const SEVERITY = 6
/** Times of a receiver in milliseconds; for tests. */
interface SyslogTimes {
  readonly connectMs: number
  /** Without a byte that the system takes, although lines wait: the receiver hangs. */
  readonly stallMs: number
  /** An address of a name is asked for again, and where none was found. */
  readonly addressMs: number
  readonly noAddressMs: number
}

const TIMES: SyslogTimes = { connectMs: 10_000, stallMs: 10_000, addressMs: 30_000, noAddressMs: 5000 }
const PAUSE_MIN_MS = 500
const PAUSE_MAX_MS = 30_000
const LINE_FEED = 0x0a

/** The lines of a batch as messages, all with the time of the batch. */
class Messages {
  readonly #priority: number
  readonly #host =
    hostname()
      .replace(/[^!-~]/g, '-')
      .slice(0, 255) || '-'

  constructor(facility: number) {
    this.#priority = facility * 8 + SEVERITY
  }

  of(batch: Uint8Array): Buffer[] {
    const header = `<${this.#priority}>1 ${new Date().toISOString()} ${this.#host} sluice ${process.pid} access - `
    const bytes = Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength)
    const messages: Buffer[] = []
    for (let from = 0; from < bytes.length; ) {
      const feed = bytes.indexOf(LINE_FEED, from)
      const to = feed < 0 ? bytes.length : feed
      messages.push(Buffer.concat([Buffer.from(header), bytes.subarray(from, to)]))
      from = to + 1
    }
    return messages
  }
}

/** A destination of batches. */
export interface AccessLogSyslog {
  /** Takes ownership of the batch. */
  write(batch: Uint8Array): void
  /** Resolves once what waits is sent, or after a second. */
  close(): Promise<void>
}

export function accessLogSyslog(
  receiver: SyslogReceiver,
  callbacks: AccessLogSinkCallbacks,
  times: Partial<SyslogTimes> = {},
): AccessLogSyslog {
  const messages = new Messages(receiver.facility)
  return receiver.protocol === 'udp'
    ? new DatagramSyslog(receiver, messages, callbacks, { ...TIMES, ...times })
    : new StreamSyslog(receiver, messages, callbacks, { ...TIMES, ...times })
}

const CLOSE_MS = 1000

/**
 * Looks a name up once for all messages of some seconds: the system has few threads for look-ups, and reactors need
 * them for backends.
 */
class ReceiverAddress {
  readonly #host: string
  readonly #times: SyslogTimes
  #found: Parameters<LookupDone> | null = null
  #untilMs = 0
  #waiting: LookupDone[] = []

  constructor(host: string, times: SyslogTimes) {
    this.#host = host
    this.#times = times
  }

  readonly lookup = (host: string, options: LookupOneOptions, done: LookupDone): void => {
    // The socket's own address, to which it is bound.
    if (host !== this.#host) {
      lookup(host, options, done)
      return
    }
    if (this.#found !== null && performance.now() < this.#untilMs) {
      const [error, address, family] = this.#found
      process.nextTick(done, error, address, family)
      return
    }
    if (this.#waiting.push(done) > 1) return
    lookup(host, options, (error, address, family) => {
      this.#found = [error, address, family]
      this.#untilMs = performance.now() + (error === null ? this.#times.addressMs : this.#times.noAddressMs)
      for (const waiting of this.#waiting.splice(0)) waiting(error, address, family)
    })
  }
}

type LookupDone = (error: NodeJS.ErrnoException | null, address: string, family: number) => void

class DatagramSyslog implements AccessLogSyslog {
  readonly #receiver: SyslogReceiver
  readonly #messages: Messages
  readonly #callbacks: AccessLogSinkCallbacks
  readonly #socket: DatagramSocket
  readonly #failures: SinkFailures
  #waitingBytes = 0
  #idle: PromiseWithResolvers<void> | null = null

  constructor(receiver: SyslogReceiver, messages: Messages, callbacks: AccessLogSinkCallbacks, times: SyslogTimes) {
    this.#receiver = receiver
    this.#messages = messages
    this.#callbacks = callbacks
    this.#failures = new SinkFailures(callbacks)
    const { lookup } = new ReceiverAddress(receiver.host, times)
    this.#socket = createSocket({ type: receiver.host.includes(':') ? 'udp6' : 'udp4', lookup })
    this.#socket.on('error', error => this.#failures.failed(error))
    this.#socket.unref()
  }

  write(batch: Uint8Array): void {
    for (const message of this.#messages.of(batch)) this.#send(message.subarray(0, DATAGRAM_BYTES_MAX))
  }

  #send(message: Buffer): void {
    if (this.#waitingBytes + message.length > WAITING_BYTES_MAX) {
      this.#callbacks.onDropped(1)
      this.#failures.failed(tooSlow('the receiver'))
      return
    }
    this.#waitingBytes += message.length
    const { host, port } = this.#receiver
    this.#socket.send(message, port, host, error => {
      this.#waitingBytes -= message.length
      if (error === null) this.#failures.succeeded(this.#waitingBytes)
      else {
        this.#callbacks.onDropped(1)
        this.#failures.failed(error)
      }
      if (this.#waitingBytes === 0) this.#idle?.resolve()
    })
  }

  async close(): Promise<void> {
    this.#idle = Promise.withResolvers()
    if (this.#waitingBytes > 0) await within(this.#idle.promise)
    this.#socket.close()
  }
}

type Phase =
  /** `sending`: the system has not taken the oldest batch. */
  | { readonly kind: 'connecting' | 'ready' | 'sending' | 'closed' }
  /** As `sending`, for the last time: `idle` is resolved when nothing waits, or cannot be sent. */
  | { readonly kind: 'ending'; readonly idle: PromiseWithResolvers<void> }
  /** Until the next attempt. */
  | { readonly kind: 'pausing'; readonly timer: NodeJS.Timeout }

/** Lines that the system has taken when a connection ends are lost without a count: TCP does not tell. */
class StreamSyslog implements AccessLogSyslog {
  readonly #receiver: SyslogReceiver
  readonly #messages: Messages
  readonly #callbacks: AccessLogSinkCallbacks
  readonly #times: SyslogTimes
  /** Batches that the system has not taken. */
  readonly #waiting: Uint8Array[] = []
  #waitingBytes = 0
  readonly #failures: SinkFailures
  #socket: Socket
  #phase: Phase = { kind: 'connecting' }
  #pauseMs = PAUSE_MIN_MS

  constructor(receiver: SyslogReceiver, messages: Messages, callbacks: AccessLogSinkCallbacks, times: SyslogTimes) {
    this.#receiver = receiver
    this.#messages = messages
    this.#callbacks = callbacks
    this.#times = times
    this.#failures = new SinkFailures(callbacks)
    this.#socket = this.#connect()
  }

  write(batch: Uint8Array): void {
    const isFull = this.#waitingBytes + batch.length > WAITING_BYTES_MAX
    if (isFull || this.#phase.kind === 'ending' || this.#phase.kind === 'closed') {
      this.#callbacks.onDropped(countLines(batch))
      if (isFull) this.#failures.failed(tooSlow('the receiver'))
      return
    }
    this.#waiting.push(batch)
    this.#waitingBytes += batch.length
    if (this.#phase.kind === 'ready') this.#send(this.#socket)
  }

  /** Sends the oldest batch: a connection that ends takes one batch with it. */
  #send(socket: Socket): void {
    const [batch] = this.#waiting
    if (batch === undefined) return
    if (this.#phase.kind === 'ready') this.#phase = { kind: 'sending' }
    const framed = this.#messages.of(batch).flatMap(message => [Buffer.from(`${message.length} `), message])
    socket.write(Buffer.concat(framed), error => {
      const phase = this.#phase
      if (error || (phase.kind !== 'sending' && phase.kind !== 'ending')) return
      this.#take()
      this.#failures.succeeded(this.#waitingBytes)
      if (phase.kind === 'ending') {
        if (this.#waiting.length === 0) phase.idle.resolve()
      } else this.#phase = { kind: 'ready' }
      this.#send(socket)
    })
  }

  /** The oldest batch waits no more; its lines. */
  #take(): number {
    const batch = this.#waiting.shift()!
    this.#waitingBytes -= batch.length
    return countLines(batch)
  }

  #connect(): Socket {
    const { protocol, host, port, ca } = this.#receiver
    const { connectMs, stallMs } = this.#times
    this.#phase = { kind: 'connecting' }
    const authorities = ca === null ? {} : { ca }
    const socket =
      protocol === 'tls' ? connectTls({ host, port, servername: host, ...authorities }) : connect(port, host)
    socket.setTimeout(connectMs)
    // Also of a connection without lines for a while, which is in order.
    socket.on('timeout', () => {
      const { kind } = this.#phase
      if (kind === 'connecting') socket.destroy(new Error(`no connection within ${connectMs} ms`))
      if (kind === 'sending' || kind === 'ending')
        socket.destroy(new Error(`the receiver has taken no byte for ${stallMs} ms`))
    })
    socket.on(protocol === 'tls' ? 'secureConnect' : 'connect', () => this.#connected(socket))
    let cause: Error | null = null
    socket.on('error', error => (cause = error))
    socket.on('close', () => this.#closed(cause ?? new Error('the receiver has closed the connection')))
    // A receiver does not speak; its bytes are dropped.
    socket.resume()
    socket.unref()
    return socket
  }

  #connected(socket: Socket): void {
    socket.setTimeout(this.#times.stallMs)
    this.#phase = { kind: 'ready' }
    this.#pauseMs = PAUSE_MIN_MS
    this.#send(socket)
    if (this.#waiting.length === 0) this.#failures.succeeded(0)
  }

  #closed(cause: Error): void {
    const phase = this.#phase
    if (phase.kind === 'closed') return
    if (phase.kind === 'ending') {
      phase.idle.resolve()
      return
    }
    // The receiver has a part of the batch; sent again, its lines would be there twice.
    if (phase.kind === 'sending') this.#callbacks.onDropped(this.#take())
    this.#failures.failed(cause)
    const timer = setTimeout(() => (this.#socket = this.#connect()), this.#pauseMs)
    timer.unref()
    this.#phase = { kind: 'pausing', timer }
    this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MAX_MS)
  }

  async close(): Promise<void> {
    if (this.#phase.kind === 'sending') {
      const idle = Promise.withResolvers<void>()
      this.#phase = { kind: 'ending', idle }
      await within(idle.promise)
    }
    const phase = this.#phase
    this.#phase = { kind: 'closed' }
    if (phase.kind === 'pausing') clearTimeout(phase.timer)
    this.#callbacks.onDropped(this.#waiting.reduce((lines, batch) => lines + countLines(batch), 0))
    const { promise, resolve } = Promise.withResolvers<void>()
    if (this.#socket.closed) resolve()
    else this.#socket.once('close', () => resolve())
    if (phase.kind === 'ready' || phase.kind === 'ending') this.#socket.end()
    else this.#socket.destroy()
    await within(promise)
    this.#socket.destroy()
  }
}

async function within(work: Promise<void>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, CLOSE_MS)
  await Promise.race([work, promise])
  clearTimeout(timer)
}
