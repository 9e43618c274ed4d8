/**
 * Limits of one tunnel: each message of a WebSocket connection is one event, in both directions, and each byte counts
 * towards bandwidth when it is read.
 */
import { FAULT } from '../faults/error-codes.ts'
import { METRIC } from '../observe/metrics.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import type { TunnelMeter } from '../proxy/exchange/late-charges.ts'
import { LEVELS, type Limit } from './limit.ts'
import type { LimitList } from './limit-list.ts'
import type { Throttle } from './throttle.ts'

/** The protocol of the backend's choice, with any version (RFC 9110 7.8). */
const WEBSOCKET = /^websocket(?:\/|$)/i

export class TunnelLimits implements TunnelMeter {
  readonly hasMessages: boolean
  isClosing = false
  closeReason = ''
  /** RFC 6455 7.4.1: a message violates the policy of its receiver. */
  readonly closeStatus = 1008
  readonly #limits: LimitList
  readonly #exchange: Exchange
  readonly #throttle: Throttle

  constructor(limits: LimitList, exchange: Exchange, throttle: Throttle) {
    this.#limits = limits
    this.#exchange = exchange
    this.#throttle = throttle
    this.hasMessages = WEBSOCKET.test(exchange.tunnelProtocol)
  }

  admitsMessage(): boolean {
    for (const limit of this.#limits.bandwidth) {
      if (!limit.stops || !this.#throttle.isUsedUp(limit)) continue
      this.#throttle.table.countRefusal(limit.counter)
      return this.#refuse(limit)
    }
    const refusing = this.#throttle.admitEvent(this.#limits.events)
    return refusing === null || this.#refuse(refusing)
  }

  charge(bytes: number): boolean {
    let isWithin = true
    for (const limit of this.#limits.bandwidth) {
      if (!this.#throttle.charge(limit, bytes) && limit.stops) isWithin = false
    }
    if (!isWithin && !this.hasMessages) this.#report('tunnel cut', 'bandwidth')
    return isWithin
  }

  #refuse({ level }: Limit): false {
    const { code, refused } = LEVELS[level]
    this.#throttle.metrics.add(refused, 1)
    if (this.#throttle.plan.dropsMessages) {
      this.#throttle.metrics.add(METRIC.throttleMessagesDropped, 1)
      return false
    }
    this.isClosing = true
    this.closeReason = `${code} ${FAULT[code].message}`
    this.#report('tunnel closed', this.closeReason)
    return false
  }

  #report(event: string, cause: string): void {
    this.#throttle.metrics.add(METRIC.throttleTunnelsCut, 1)
    const { requestTarget, clientAddress, correlationId, sourceId } = this.#exchange
    this.#throttle.report('info', event, {
      CAUSE_OF_ERROR: `a limit is used up (${cause})`,
      HTTP_URL: requestTarget,
      CLIENT_ADDRESS: clientAddress,
      CORRELATION_ID: correlationId,
      CONNECTION: `http-incoming-${sourceId}`,
    })
  }
}
