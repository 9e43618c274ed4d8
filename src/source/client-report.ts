/** What goes wrong with a client connection, for the log and the counters, under the documented field names. */
import type { Exchange } from '../exchange/exchange.ts'
import type { Surroundings } from '../exchange/surroundings.ts'
import { faultCell, METRIC } from '../observe/metrics.ts'
import { SOURCE_RECEIVING, SOURCE_SENDING } from '../protocol/fate.ts'
import { type Machine, ProtocolViolation } from '../protocol/machine.ts'
import { STATE, STATE_NAMES } from '../protocol/states.ts'

/** What src/socket/tls-verdict.ts says where the certificate of a client, or ours, is in the way. */
const CERTIFICATE = /certificate/

export class ClientReport {
  readonly #around: Surroundings
  readonly #machine: Machine
  readonly #exchange: Exchange

  constructor(around: Surroundings, machine: Machine, exchange: Exchange) {
    this.#around = around
    this.#machine = machine
    this.#exchange = exchange
  }

  /** A failure that the exchange carries: base code and the state it happened in. */
  failed(base: number, event: string, cause: string, level: 'debug' | 'warn' = 'warn'): void {
    const { reported } = this.#machine
    this.#exchange.errorBase = base
    this.#exchange.errorState = reported
    this.#around.metrics.add(faultCell('source', base, reported), 1)
    this.say(level, event, cause)
  }

  /** A failure of the connection itself, while receiving the request or sending the response. */
  broke(event: string, cause: string): void {
    this.failed(this.#machine.state >= STATE.RESPONSE_HEAD ? SOURCE_SENDING : SOURCE_RECEIVING, event, cause)
  }

  /** The request does not come on. */
  late(): void {
    const { metrics, settings } = this.#around
    const isHead = this.#machine.state === STATE.REQUEST_HEAD
    metrics.add(isHead ? METRIC.timeoutRequestHead : METRIC.timeoutRequestBody, 1)
    const cause = isHead ? `head not complete within ${settings.headerReadMs} ms` : 'no progress of the request body'
    this.failed(SOURCE_RECEIVING, 'client timed out', cause)
  }

  /** The client takes nothing of its response. */
  stalled(): void {
    this.#around.metrics.add(METRIC.timeoutSourceStalled, 1)
    this.broke('client timed out', `no byte taken within ${this.#around.settings.socketTimeoutMs} ms`)
  }

  /** Nothing moves in a tunnel. */
  tunnelExpired(): void {
    this.#around.metrics.add(METRIC.timeoutTunnelIdle, 1)
    this.say('debug', 'idle tunnel closed', `nothing moved within ${this.#around.settings.tunnelIdleMs} ms`)
  }

  /** Scanners and clients of another time come all day; a certificate that is not taken concerns somebody. */
  handshakeFailed(cause: string): void {
    this.#around.metrics.add(METRIC.tlsHandshakesFailed, 1)
    this.say(CERTIFICATE.test(cause) ? 'warn' : 'debug', 'TLS handshake failed', cause)
  }

  /** The connection is lost. One that nobody waits for is worth a line only to somebody who debugs. */
  lost(code: string): void {
    const { state } = this.#machine
    if (state === STATE.REQUEST_READY || state === STATE.RESPONSE_DONE || state === STATE.CLOSING) {
      this.say('debug', 'idle client connection lost', code)
      return
    }
    this.#around.metrics.add(METRIC.connectionsReset, 1)
    // Most clients leave a tunnel without a word: a browser that closes a page does.
    if (state >= STATE.TUNNEL) this.failed(SOURCE_SENDING, 'client left its tunnel', code, 'debug')
    else this.broke('client connection lost', code)
  }

  /** What was thrown: a violation by the client, or a bug of ours, with where it happened. */
  thrown(error: unknown): void {
    if (error instanceof ProtocolViolation && error.side === 'source' && error.culprit === 'peer') {
      this.failed(SOURCE_RECEIVING, 'protocol violation', error.message)
      return
    }
    this.say('error', 'bug', error instanceof Error ? (error.stack ?? error.message) : String(error))
  }

  say(level: 'debug' | 'warn' | 'error', event: string, cause: string): void {
    const exchange = this.#exchange
    const { reported, state } = this.#machine
    this.#around.report(level, event, {
      STATE_DESCRIPTION: `source connection in ${STATE_NAMES[state]}`,
      INTERNAL_STATE: reported,
      DIRECTION: state >= STATE.RESPONSE_HEAD && state !== STATE.CLOSING ? 'RESPONSE' : 'REQUEST',
      CAUSE_OF_ERROR: cause,
      HTTP_URL: exchange.requestTarget,
      HTTP_METHOD: exchange.method,
      SOCKET_TIMEOUT: this.#around.settings.socketTimeoutMs,
      CLIENT_ADDRESS: exchange.clientAddress,
      CORRELATION_ID: exchange.correlationId,
      CONNECTION: `http-incoming-${exchange.sourceId}`,
    })
  }
}
