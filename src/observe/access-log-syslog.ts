/**
 * Access log to a receiver of syslog (RFC 5424) over UDP (RFC 5426), TCP with octet counting (RFC 6587 3.4.1) or TLS
 * (RFC 5425), written by the primary only. A receiver that is slow or gone costs log lines, which are counted, and
 * never memory, requests or the process.
 */
import { createSocket, type Socket as DatagramSocket } from 'node:dgram'
import { connect, type Socket } from 'node:net'
import { hostname } from 'node:os'
import { connect as connectTls } from 'node:tls'
import { type AccessLogSinkCallbacks, countLines } from './access-log-file.ts'

interface SyslogReceiver {
  readonly protocol: 'udp' | 'tcp' | 'tls'
  readonly host: string
  readonly port: number
  /** Number of the facility. */
  readonly facility: number
  /** Authorities of a TLS receiver in PEM; null: those of the system. */
  readonly ca: string | null
}

/** Informational (RFC 5424 6.2.1). */
const SEVERITY = 6
/** Bytes that wait for a receiver on TCP or TLS, and for the socket on UDP; further lines are dropped. */
const WAITING_BYTES_MAX = 8 * 1024 * 1024
const CONNECT_MS = 10_000
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

/** Tells the first failure after a success, and the first success after a failure. */
class Failures {
  readonly #callbacks: Pick<AccessLogSinkCallbacks, 'onFailed' | 'onRecovered'>
  #isFailing = false

  constructor(callbacks: Pick<AccessLogSinkCallbacks, 'onFailed' | 'onRecovered'>) {
    this.#callbacks = callbacks
  }

  failed(cause: Error): void {
    if (!this.#isFailing) this.#callbacks.onFailed(cause)
    this.#isFailing = true
  }

  succeeded(): void {
    if (this.#isFailing) this.#callbacks.onRecovered()
    this.#isFailing = false
  }
}

/** A destination of batches. */
export interface AccessLogSyslog {
  /** Takes ownership of the batch. */
  write(batch: Uint8Array): void
  /** Resolves once what waits is sent, or after a second. */
  close(): Promise<void>
}

export function accessLogSyslog(receiver: SyslogReceiver, callbacks: AccessLogSinkCallbacks): AccessLogSyslog {
  const messages = new Messages(receiver.facility)
  return receiver.protocol === 'udp'
    ? new DatagramSyslog(receiver, messages, callbacks)
    : new StreamSyslog(receiver, messages, callbacks)
}

const CLOSE_MS = 1000

class DatagramSyslog implements AccessLogSyslog {
  readonly #receiver: SyslogReceiver
  readonly #messages: Messages
  readonly #callbacks: AccessLogSinkCallbacks
  readonly #socket: DatagramSocket
  readonly #failures: Failures
  #waitingBytes = 0
  #idle: PromiseWithResolvers<void> | null = null

  constructor(receiver: SyslogReceiver, messages: Messages, callbacks: AccessLogSinkCallbacks) {
    this.#receiver = receiver
    this.#messages = messages
    this.#callbacks = callbacks
    this.#failures = new Failures(callbacks)
    this.#socket = createSocket(receiver.host.includes(':') ? 'udp6' : 'udp4')
    this.#socket.on('error', error => this.#failures.failed(error))
    this.#socket.unref()
  }

  write(batch: Uint8Array): void {
    for (const message of this.#messages.of(batch)) this.#send(message)
  }

  #send(message: Buffer): void {
    if (this.#waitingBytes + message.length > WAITING_BYTES_MAX) {
      this.#callbacks.onDropped(1)
      return
    }
    this.#waitingBytes += message.length
    const { host, port } = this.#receiver
    this.#socket.send(message, port, host, error => {
      this.#waitingBytes -= message.length
      if (error === null) this.#failures.succeeded()
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
  | { readonly kind: 'connecting' | 'connected' | 'closed' }
  /** Until the next attempt. */
  | { readonly kind: 'pausing'; readonly timer: NodeJS.Timeout }

/** Lines that were in the buffers of a connection as it ended are lost without a count: TCP does not tell. */
class StreamSyslog implements AccessLogSyslog {
  readonly #receiver: SyslogReceiver
  readonly #messages: Messages
  readonly #callbacks: AccessLogSinkCallbacks
  /** Batches before the first connection, and between two. */
  readonly #waiting: Uint8Array[] = []
  #waitingBytes = 0
  readonly #failures: Failures
  #socket: Socket
  #phase: Phase = { kind: 'connecting' }
  #pauseMs = PAUSE_MIN_MS

  constructor(receiver: SyslogReceiver, messages: Messages, callbacks: AccessLogSinkCallbacks) {
    this.#receiver = receiver
    this.#messages = messages
    this.#callbacks = callbacks
    this.#failures = new Failures(callbacks)
    this.#socket = this.#connect()
  }

  write(batch: Uint8Array): void {
    const { kind } = this.#phase
    const held = kind === 'connected' ? this.#socket.writableLength : this.#waitingBytes
    if (kind === 'closed' || held + batch.length > WAITING_BYTES_MAX) {
      this.#callbacks.onDropped(countLines(batch))
    } else if (kind === 'connected') this.#send(batch)
    else {
      this.#waiting.push(batch)
      this.#waitingBytes += batch.length
    }
  }

  #send(batch: Uint8Array): void {
    const framed = this.#messages.of(batch).flatMap(message => [Buffer.from(`${message.length} `), message])
    this.#socket.write(Buffer.concat(framed))
  }

  #connect(): Socket {
    const { protocol, host, port, ca } = this.#receiver
    this.#phase = { kind: 'connecting' }
    const authorities = ca === null ? {} : { ca }
    const socket =
      protocol === 'tls' ? connectTls({ host, port, servername: host, ...authorities }) : connect(port, host)
    socket.setTimeout(CONNECT_MS, () => socket.destroy(new Error(`no connection within ${CONNECT_MS} ms`)))
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
    socket.setTimeout(0)
    this.#phase = { kind: 'connected' }
    this.#failures.succeeded()
    this.#pauseMs = PAUSE_MIN_MS
    this.#waitingBytes = 0
    for (const batch of this.#waiting.splice(0)) this.#send(batch)
  }

  #closed(cause: Error): void {
    if (this.#phase.kind === 'closed') return
    this.#failures.failed(cause)
    const timer = setTimeout(() => (this.#socket = this.#connect()), this.#pauseMs)
    timer.unref()
    this.#phase = { kind: 'pausing', timer }
    this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MAX_MS)
  }

  async close(): Promise<void> {
    const phase = this.#phase
    this.#phase = { kind: 'closed' }
    if (phase.kind === 'pausing') clearTimeout(phase.timer)
    this.#callbacks.onDropped(this.#waiting.reduce((lines, batch) => lines + countLines(batch), 0))
    const { promise, resolve } = Promise.withResolvers<void>()
    if (this.#socket.closed) resolve()
    else this.#socket.once('close', () => resolve())
    if (phase.kind === 'connected') this.#socket.end()
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
