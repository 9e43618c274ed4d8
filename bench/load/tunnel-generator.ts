/**
 * Load through WebSocket tunnels. A program: a TunnelPlan as JSON in its argument, a LoadOutcome as JSON on its output;
 * messages count as requests. Echo: each connection sends a message, waits for its echo, and sends the next. Stream:
 * each connection requests once and receives messages. The clock starts when all connections are upgraded.
 */
import { connect, type Socket } from 'node:net'
import { ECHO_PATH, streamPath, maskedFrame, unmaskedFrame, upgradeRequest } from '../websocket.ts'
import { LatencyHistogram } from './latency-histogram.ts'
import type { LoadOutcome, TunnelPlan } from './load-plan.ts'

const READ_BUFFER = Buffer.allocUnsafe(256 * 1024)
const HEAD_END = Buffer.from('\r\n\r\n')
const SWITCHING_PROTOCOLS = Buffer.from('HTTP/1.1 101 ')

interface TunnelCallbacks {
  onUpgraded(): void
  /** Bytes of messages have arrived. */
  onBytes(tunnel: Tunnel, bytes: number): void
  onLost(reason: string): void
}

class Tunnel {
  readonly #socket: Socket
  readonly #callbacks: TunnelCallbacks
  #head: Buffer | undefined = Buffer.alloc(0)
  /** Bytes of the current message still to come. */
  left = 0
  sentMs = 0

  constructor(port: number, path: string, listener: TunnelCallbacks) {
    this.#callbacks = listener
    const callback = (bytes: number): boolean => {
      this.#read(READ_BUFFER.subarray(0, bytes))
      return true
    }
    const onread = { buffer: READ_BUFFER, callback }
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, onread }, () => {
      this.#socket.write(upgradeRequest(path))
    })
    this.#socket.once('error', error => this.#callbacks.onLost(String(error)))
    this.#socket.once('end', () => this.#callbacks.onLost('the proxy closed a tunnel'))
  }

  send(message: Uint8Array): void {
    this.sentMs = performance.now()
    this.#socket.write(message)
  }

  #read(bytes: Buffer): void {
    if (this.#head === undefined) this.#callbacks.onBytes(this, bytes.length)
    else this.#readHead(Buffer.concat([this.#head, bytes]))
  }

  #readHead(bytes: Buffer): void {
    const end = bytes.indexOf(HEAD_END)
    this.#head = end < 0 ? bytes : undefined
    if (end < 0) return
    if (!bytes.subarray(0, SWITCHING_PROTOCOLS.length).equals(SWITCHING_PROTOCOLS))
      this.#callbacks.onLost(bytes.toString('latin1', 0, end))
    else this.#callbacks.onUpgraded()
  }
}

class TunnelGenerator implements TunnelCallbacks {
  readonly #plan: TunnelPlan
  readonly #message: Buffer
  readonly #messageBytes: number
  readonly #latencies = new LatencyHistogram()
  readonly #tunnels: Tunnel[]
  readonly #finish: (outcome: LoadOutcome) => void
  #upgraded = 0
  #startMs = 0
  #endMs = Number.POSITIVE_INFINITY
  #messages = 0
  #bytes = 0

  constructor(plan: TunnelPlan, finish: (outcome: LoadOutcome) => void) {
    this.#plan = plan
    this.#finish = finish
    const payload = Buffer.alloc(plan.messageBytes, 'x')
    this.#messageBytes = unmaskedFrame(payload).length
    this.#message = maskedFrame(plan.traffic === 'echo' ? payload : Buffer.from('begin'))
    const path = plan.traffic === 'echo' ? ECHO_PATH : streamPath(plan.messageBytes)
    this.#tunnels = Array.from({ length: plan.connections }, () => new Tunnel(plan.port, path, this))
  }

  onUpgraded(): void {
    if (++this.#upgraded < this.#plan.connections) return
    this.#startMs = performance.now()
    this.#endMs = this.#startMs + this.#plan.seconds * 1000
    setTimeout(() => this.#stop(), this.#plan.seconds * 1000)
    for (const tunnel of this.#tunnels) this.#request(tunnel)
  }

  onBytes(tunnel: Tunnel, bytes: number): void {
    this.#bytes += bytes
    if (this.#plan.traffic === 'stream') return
    tunnel.left -= bytes
    if (tunnel.left > 0) return
    if (tunnel.left < 0) this.onLost('more bytes arrived than were sent')
    const now = performance.now()
    this.#messages++
    this.#latencies.record(now - tunnel.sentMs)
    if (now < this.#endMs) this.#request(tunnel)
  }

  /** Fails the run. */
  onLost(reason: string): void {
    throw new Error(`a tunnel was refused or lost: ${reason}`)
  }

  #request(tunnel: Tunnel): void {
    tunnel.left = this.#messageBytes
    tunnel.send(this.#message)
  }

  #stop(): void {
    const seconds = (performance.now() - this.#startMs) / 1000
    if (this.#plan.traffic === 'stream') {
      this.#finish({ requests: this.#bytes / this.#messageBytes, seconds, errors: 0 })
      return
    }
    const latencies = this.#latencies
    this.#finish({
      requests: this.#messages,
      seconds,
      errors: 0,
      p50Ms: latencies.percentileMs(0.5),
      p99Ms: latencies.percentileMs(0.99),
      p999Ms: latencies.percentileMs(0.999),
      maxMs: latencies.maxMs,
    })
  }
}

const plan = JSON.parse(process.argv[2] ?? '{}') as TunnelPlan
new TunnelGenerator(plan, outcome => {
  console.log(JSON.stringify(outcome))
  process.exit(0)
})
