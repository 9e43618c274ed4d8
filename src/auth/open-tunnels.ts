/**
 * Cuts tunnels whose caller may no longer have them, or that a deny policy names. Checks all tunnels in rounds, a
 * bounded number per tick: once a second because tokens expire, and after every update from the control thread.
 */
import type { Exchange } from '../proxy/exchange/exchange.ts'
import type { Tunnel } from '../proxy/exchange/tunnel.ts'
import { METRIC } from '../observe/metrics.ts'
import { deniesExchange } from '../throttle/denials.ts'
import type { ReactorAuth } from './reactor-auth.ts'

const ROUND_MS = 1000
/** Tunnels checked in one tick, which takes a few tenths of a millisecond. */
const TUNNELS_PER_TICK = 2000

export class OpenTunnels {
  readonly #auth: ReactorAuth
  readonly #open = new Map<Exchange, Tunnel>()
  /** The round under way; null: none. */
  #round: MapIterator<[Exchange, Tunnel]> | null = null
  #roundStartedMs = 0
  /** `AuthState.version` of the last round that was begun. */
  #version = 0
  /** Version of the policies at that time. */
  #policies = 0

  constructor(auth: ReactorAuth) {
    this.#auth = auth
  }

  opened(exchange: Exchange, tunnel: Tunnel): void {
    this.#open.set(exchange, tunnel)
  }

  closed(exchange: Exchange): void {
    this.#open.delete(exchange)
  }

  /** `wallMs`: milliseconds since 1970. */
  tick(wallMs: number): void {
    if (this.#open.size === 0) return
    const { state } = this.#auth
    state.catchUp()
    const hasChanged = state.version !== this.#version || state.policies.version !== this.#policies
    const isDue = hasChanged || Math.abs(wallMs - this.#roundStartedMs) >= ROUND_MS
    // A round is finished before the next one, so that frequent updates cannot keep it from the last tunnels.
    if (this.#round === null && isDue) this.#beginRound(wallMs)
    for (let left = TUNNELS_PER_TICK; left > 0 && this.#round !== null; left--) {
      const next = this.#round.next()
      if (next.done === true) this.#round = null
      else this.#check(...next.value, wallMs)
    }
  }

  #beginRound(wallMs: number): void {
    const { version, policies } = this.#auth.state
    this.#round = this.#open.entries()
    this.#version = version
    this.#policies = policies.version
    this.#roundStartedMs = wallMs
  }

  #check(exchange: Exchange, tunnel: Tunnel, wallMs: number): void {
    const cause = this.#endingCause(exchange, wallMs)
    if (cause === '') return
    this.#open.delete(exchange)
    this.#auth.report('info', 'tunnel ended', {
      CAUSE_OF_ERROR: cause,
      HTTP_URL: exchange.requestTarget,
      CLIENT_ADDRESS: exchange.clientAddress,
      CORRELATION_ID: exchange.correlationId,
      CONNECTION: `http-incoming-${exchange.sourceId}`,
    })
    tunnel.cut()
  }

  /** '' where the caller may keep the tunnel. */
  #endingCause(exchange: Exchange, wallMs: number): string {
    const { state, plan } = this.#auth
    const { caller, api } = exchange
    if (deniesExchange(state.policies.denied, exchange)) {
      this.#auth.metrics.add(METRIC.throttleTunnelsDenied, 1)
      return 'a deny policy refuses the caller (900805)'
    }
    if (caller === null || caller.method === 'none') return ''
    const { expiresMs, revocationKey, application, keyType } = caller
    if (expiresMs !== 0 && wallMs >= expiresMs + plan.skewMs) return 'the token has expired'
    if (revocationKey !== '' && state.revoked.has(revocationKey)) return 'the token was revoked'
    if (application === null || !state.hasSnapshot) return ''
    const found = state.subscriptions.forApplication(application.id, keyType, `${api!.name}:${api!.version}`)
    return found.kind === 'subscribed' ? '' : `the subscription is no longer valid (${found.code})`
  }
}
