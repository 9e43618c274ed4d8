/**
 * Load through tunnels, run as a program: a TunnelPlan as JSON in its argument, a LoadOutcome as JSON on its output, in
 * which messages count as requests. Echo: each connection sends a message, waits for all of it, and sends the next.
 * Flow: each connection asks once and takes what comes. The clock starts when all connections are upgraded.
 */
import { connect, type Socket } from 'node:net'
import { ECHO_PATH, flowPath, maskedFrame, plainFrame, upgradeRequest } from '../websocket.ts'
import { LatencyHistogram } from './latency-histogram.ts'
import type { LoadOutcome, TunnelPlan } from './load-plan.ts'

const READ_BUFFER = Buffer.allocUnsafe(256 * 1024)
const HEAD_END = Buffer.from('\r\n\r\n')
const SWITCHING = Buffer.from('HTTP/1.1 101 ')

interface TunnelListener {
  upgraded(): void
  /** So many bytes of messages have come. */
  received(tunnel: Tunnel, bytes: number): void
  lost(why: string): void
}

class Tunnel {
  readonly #socket: Socket
  readonly #listener: TunnelListener
  #head: Buffer | undefined = Buffer.alloc(0)
  /** Bytes of the message under way that have not come yet. */
  left = 0
  sentMs = 0

  constructor(port: number, path: string, listener: TunnelListener) {
    this.#listener = listener
    const callback = (bytes: number): boolean => {
      this.#take(READ_BUFFER.subarray(0, bytes))
      return true
    }
    const onread = { buffer: READ_BUFFER, callback }
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, onread }, () => {
      this.#socket.write(upgradeRequest(path))
    })
    this.#socket.once('error', error => this.#listener.lost(String(error)))
    this.#socket.once('end', () => this.#listener.lost('the proxy ended a tunnel'))
  }

  send(message: Uint8Array): void {
    this.sentMs = performance.now()
    this.#socket.write(message)
  }

  #take(bytes: Buffer): void {
    if (this.#head === undefined) this.#listener.received(this, bytes.length)
    else this.#takeHead(Buffer.concat([this.#head, bytes]))
  }

  #takeHead(bytes: Buffer): void {
    const end = bytes.indexOf(HEAD_END)
    this.#head = end < 0 ? bytes : undefined
    if (end < 0) return
    if (!bytes.subarray(0, SWITCHING.length).equals(SWITCHING)) this.#listener.lost(bytes.toString('latin1', 0, end))
    else this.#listener.upgraded()
  }
}

class TunnelGenerator implements TunnelListener {
  readonly #plan: TunnelPlan
  readonly #message: Buffer
  readonly #answerBytes: number
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
    this.#answerBytes = plainFrame(payload).length
    this.#message = maskedFrame(plan.traffic === 'echo' ? payload : Buffer.from('begin'))
    const path = plan.traffic === 'echo' ? ECHO_PATH : flowPath(plan.messageBytes)
    this.#tunnels = Array.from({ length: plan.connections }, () => new Tunnel(plan.port, path, this))
  }

  upgraded(): void {
    if (++this.#upgraded < this.#plan.connections) return
    this.#startMs = performance.now()
    this.#endMs = this.#startMs + this.#plan.seconds * 1000
    setTimeout(() => this.#stop(), this.#plan.seconds * 1000)
    for (const tunnel of this.#tunnels) this.#ask(tunnel)
  }

  received(tunnel: Tunnel, bytes: number): void {
    this.#bytes += bytes
    if (this.#plan.traffic === 'flow') return
    tunnel.left -= bytes
    if (tunnel.left > 0) return
    if (tunnel.left < 0) this.lost('more came than was sent')
    const now = performance.now()
    this.#messages++
    this.#latencies.record(now - tunnel.sentMs)
    if (now < this.#endMs) this.#ask(tunnel)
  }

  /** A tunnel that is lost cannot be what is measured: the run fails. */
  lost(why: string): void {
    throw new Error(`a tunnel was refused or lost: ${why}`)
  }

  #ask(tunnel: Tunnel): void {
    tunnel.left = this.#answerBytes
    tunnel.send(this.#message)
  }

  #stop(): void {
    const seconds = (performance.now() - this.#startMs) / 1000
    if (this.#plan.traffic === 'flow') {
      this.#finish({ requests: this.#bytes / this.#answerBytes, seconds, errors: 0 })
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
