/** Lists the open connections of a reactor for `sluice connections`: counts by state, and one row per connection. */
import type { Exchange } from '../proxy/exchange/exchange.ts'
import type { Side } from '../protocol/machine.ts'
import { type State, STATE, STATE_NAMES, type StateName } from '../protocol/states.ts'
import { escapeControls } from './escape.ts'
import { redactUrl } from './redact.ts'

const PATH_CHARS_MAX = 512

export interface ConnectionRow {
  /** `http-incoming-7`, as in the logs. Each reactor counts its own numbers. */
  readonly id: string
  readonly side: Side
  readonly state: StateName
  /** Address of the peer; '' before the connection is established. */
  readonly peer: string
  /** Milliseconds since the start of the current exchange, or since the end of the last one; -1 without either. */
  readonly ageMs: number
  readonly api: string
  readonly method: string
  /** Request target, redacted. */
  readonly path: string
  /** Host and port of the backend. */
  readonly backend: string
  /** Id of the connection on the other side that carries the same exchange; '' without one. */
  readonly partner: string
  /** `http`, or `https` over TLS. */
  readonly scheme: string
}

/** Filter of the listing; '' for any. */
export interface ConnectionQuery {
  readonly side: Side | ''
  readonly state: StateName | ''
  /** Maximum number of rows. */
  readonly limit: number
}

export interface ConnectionList {
  /** All connections by side and state, unfiltered. */
  readonly counts: Readonly<Record<Side, Partial<Record<StateName, number>>>>
  readonly rows: readonly ConnectionRow[]
  /** Connections that match and are beyond the limit. */
  readonly omitted: number
}

/** Builds the list connection by connection. Connections that become no row are only counted. */
export class ConnectionListBuilder {
  readonly #query: ConnectionQuery
  readonly #nowMs: number
  readonly #counts: Record<Side, Partial<Record<StateName, number>>> = { source: {}, target: {} }
  readonly #rows: ConnectionRow[] = []
  #left = 0

  constructor(query: ConnectionQuery, nowMs: number) {
    this.#query = query
    this.#nowMs = nowMs
  }

  /** `exchange`: the current exchange, or the last one of an idle client connection; null without one. */
  add(
    side: Side,
    id: number,
    state: State,
    peer: string,
    scheme: string,
    backend: string,
    exchange: Exchange | null,
  ): void {
    const name = STATE_NAMES[state]!
    this.#counts[side][name] = (this.#counts[side][name] ?? 0) + 1
    const query = this.#query
    if ((query.side !== '' && query.side !== side) || (query.state !== '' && query.state !== name)) return
    if (this.#rows.length >= query.limit) {
      this.#left++
      return
    }
    const row = { id: `http-${side === 'source' ? 'incoming' : 'outgoing'}-${id}`, side, state: name, peer, scheme }
    this.#rows.push({ ...row, ...this.#exchangeFields(side, state, backend, exchange) })
  }

  #exchangeFields(side: Side, state: State, backend: string, exchange: Exchange | null): ExchangeFields {
    const none = { ageMs: -1, api: '', method: '', path: '', backend, partner: '' }
    if (exchange === null) return none
    const isSource = side === 'source'
    if (isSource && state === STATE.REQUEST_READY) return { ...none, ageMs: this.#since(exchange.doneMs) }
    const { startedMs, apiName, method, requestTarget, sourceId, targetId } = exchange
    const partner = isSource ? (targetId === 0 ? '' : `http-outgoing-${targetId}`) : `http-incoming-${sourceId}`
    const path = escapeControls(redactUrl(requestTarget.slice(0, PATH_CHARS_MAX)))
    const at = isSource ? exchange.backend : backend
    return { ageMs: this.#since(startedMs), api: apiName, method, path, backend: at, partner }
  }

  #since(ms: number): number {
    return ms === 0 ? -1 : Math.max(0, Math.round(this.#nowMs - ms))
  }

  get list(): ConnectionList {
    return { counts: this.#counts, rows: this.#rows, omitted: this.#left }
  }
}

type ExchangeFields = Pick<ConnectionRow, 'ageMs' | 'api' | 'method' | 'path' | 'backend' | 'partner'>
