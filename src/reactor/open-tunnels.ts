/**
 * Tunnels of callers who are known: whoever may not open one any more must not keep one either. They are looked at in
 * rounds, a bounded number at each tick: once a second for what has expired, and anew whenever something was told.
 */
import type { Exchange } from '../exchange/exchange.ts'
import type { Report } from '../exchange/surroundings.ts'
import type { Tunnel } from '../exchange/tunnel.ts'
import type { Identity } from '../identity/identity.ts'

const ROUND_MS = 1000
/** So many are looked at in one tick: a few tenths of a millisecond. */
const AT_ONCE = 2000

export class OpenTunnels {
  readonly #identity: Identity
  readonly #report: Report
  readonly #open = new Map<Exchange, Tunnel>()
  /** Of the round under way; null: there is none. */
  #round: MapIterator<[Exchange, Tunnel]> | null = null
  #startedMs = 0
  /** As of the round begun last. */
  #epoch = 0

  constructor(identity: Identity, report: Report) {
    this.#identity = identity
    this.#report = report
  }

  opened(exchange: Exchange, tunnel: Tunnel): void {
    if (exchange.caller !== null && exchange.caller.method !== 'none') this.#open.set(exchange, tunnel)
  }

  left(exchange: Exchange): void {
    this.#open.delete(exchange)
  }

  /** At each tick. `wallMs`: since 1970. */
  look(wallMs: number): void {
    if (this.#open.size === 0) return
    const { sources } = this.#identity
    sources.catchUp()
    const isDue = sources.epoch !== this.#epoch || Math.abs(wallMs - this.#startedMs) >= ROUND_MS
    // A round is finished before the next one: with news all the time nobody is left out.
    if (this.#round === null && isDue) this.#begin(sources.epoch, wallMs)
    for (let left = AT_ONCE; left > 0 && this.#round !== null; left--) {
      const next = this.#round.next()
      if (next.done === true) this.#round = null
      else this.#judge(...next.value, wallMs)
    }
  }

  #begin(epoch: number, wallMs: number): void {
    this.#round = this.#open.entries()
    this.#epoch = epoch
    this.#startedMs = wallMs
  }

  #judge(exchange: Exchange, tunnel: Tunnel, wallMs: number): void {
    const cause = this.#endOf(exchange, wallMs)
    if (cause === '') return
    this.#open.delete(exchange)
    this.#report('info', 'tunnel ended', {
      CAUSE_OF_ERROR: cause,
      HTTP_URL: exchange.requestTarget,
      CLIENT_ADDRESS: exchange.clientAddress,
      CORRELATION_ID: exchange.correlationId,
      CONNECTION: `http-incoming-${exchange.sourceId}`,
    })
    tunnel.cut()
  }

  /** Why the caller may have it no longer; '' where he may. */
  #endOf({ caller, api }: Exchange, wallMs: number): string {
    const { sources, plan } = this.#identity
    const { expiresMs, revocationKey, application, keyType } = caller!
    if (expiresMs !== 0 && wallMs >= expiresMs + plan.skewMs) return 'the token has expired'
    if (revocationKey !== '' && sources.revoked.has(revocationKey)) return 'the token was revoked'
    if (application === null || !sources.isComplete) return ''
    const found = sources.subscriptions.ofApplication(application.id, keyType, `${api!.name}:${api!.version}`)
    return found.kind === 'subscribed' ? '' : `the subscription does not hold any more (${found.code})`
  }
}
