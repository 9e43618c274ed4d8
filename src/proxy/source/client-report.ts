/** Reports failures of a client connection to log and metrics, under the documented field names. */
import type { Exchange } from '../exchange/exchange.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import { faultCell, METRIC } from '../../observe/metrics.ts'
import { type ClientLoss, SOURCE_FAILURES } from '../../protocol/failure-table.ts'
import { type Machine, ProtocolViolation } from '../../protocol/machine.ts'
import { STATE_NAMES } from '../../protocol/states.ts'
import type { TlsFailure } from '../../socket/byte-socket.ts'
import { stateRow } from './state-table.ts'

type Level = 'debug' | 'warn' | 'error'

export class ClientReport {
  readonly #context: ConnectionContext
  readonly #machine: Machine
  readonly #exchange: Exchange

  constructor(context: ConnectionContext, machine: Machine, exchange: Exchange) {
    this.#context = context
    this.#machine = machine
    this.#exchange = exchange
  }

  /** A failure that the exchange carries: base code, and the current state. */
  failed(base: number, event: string, cause: string, level: Level = 'warn'): void {
    const { reported } = this.#machine
    this.#exchange.errorBase = base
    this.#exchange.errorState = reported
    this.#exchange.errorCause = cause
    this.#context.metrics.add(faultCell('source', base, reported), 1)
    this.#log(level, event, cause)
  }

  /** A failure of the connection, with the base code of its state in the failure table. */
  lost(loss: ClientLoss, event: string, cause: string): void {
    const { base, level } = SOURCE_FAILURES[STATE_NAMES[this.#machine.state]!][loss]
    if (base === 0) this.#log(level, event, cause)
    else this.failed(base, event, cause, level)
  }

  /** The socket is lost. `code`: errno name, or what was wrong with TLS. */
  disconnected(code: string): void {
    const { base, event } = SOURCE_FAILURES[STATE_NAMES[this.#machine.state]!].DISCONNECTED
    if (base !== 0) this.#context.metrics.add(METRIC.connectionsReset, 1)
    this.lost('DISCONNECTED', event, code)
  }

  /** The deadline of a request head, or of the next part of a request body, has passed. */
  late(): void {
    const { metrics, settings } = this.#context
    const isHead = stateRow(this.#machine.state).deadline === 'late-head'
    metrics.add(isHead ? METRIC.timeoutRequestHead : METRIC.timeoutRequestBody, 1)
    const cause = isHead ? `head not complete within ${settings.headerReadMs} ms` : 'no progress of the request body'
    this.lost('TIMED_OUT', 'client timed out', cause)
  }

  /** The client takes no byte of its response, or (`isSlow`) too few of them. */
  stalled(isSlow: boolean): void {
    const { metrics, settings } = this.#context
    metrics.add(METRIC.timeoutSourceStalled, 1)
    const cause = isSlow
      ? `fewer than ${settings.responseRateMin} bytes per second taken (response.min_rate)`
      : `no byte taken within ${settings.socketTimeoutMs} ms`
    this.lost('TIMED_OUT', 'client timed out', cause)
  }

  /** No byte moved in a tunnel. */
  tunnelExpired(): void {
    this.#context.metrics.add(METRIC.timeoutTunnelIdle, 1)
    this.#log('debug', 'idle tunnel closed', `no byte moved within ${this.#context.settings.tunnelIdleMs} ms`)
  }

  /** A failed TLS handshake. Kind `handshake` is no warning, because scanners and outdated clients cause it all day. */
  handshakeFailed({ kind, cause }: TlsFailure): void {
    this.#context.metrics.add(METRIC.tlsHandshakesFailed, 1)
    this.#log(kind === 'handshake' ? 'debug' : 'warn', 'TLS handshake failed', cause)
  }

  /** Code threw: a protocol violation by the client, or a bug of the gateway. */
  threw(error: unknown): void {
    if (error instanceof ProtocolViolation && error.side === 'source' && error.culprit === 'peer') {
      this.lost('UNREADABLE', 'protocol violation', error.message)
      return
    }
    this.#exchange.errorCause = 'a bug of the gateway: the event log has its stack'
    this.#log('error', 'bug', error instanceof Error ? (error.stack ?? error.message) : String(error))
  }

  #log(level: Level, event: string, cause: string): void {
    const exchange = this.#exchange
    const { reported, state } = this.#machine
    this.#context.report(level, event, {
      STATE_DESCRIPTION: `source connection in ${STATE_NAMES[state]}`,
      INTERNAL_STATE: reported,
      DIRECTION: stateRow(state).direction,
      CAUSE_OF_ERROR: cause,
      HTTP_URL: exchange.requestTarget,
      HTTP_METHOD: exchange.method,
      SOCKET_TIMEOUT: this.#context.settings.socketTimeoutMs,
      CLIENT_ADDRESS: exchange.clientAddress,
      CORRELATION_ID: exchange.correlationId,
      CONNECTION: `http-incoming-${exchange.sourceId}`,
    })
  }
}
