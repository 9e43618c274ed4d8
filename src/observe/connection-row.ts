/** The open connections of a reactor as an operator sees them: counted by state, a row for each that is wanted. */
import type { Exchange } from '../exchange/exchange.ts'
import type { Side } from '../protocol/machine.ts'
import { type State, STATE, STATE_NAMES, type StateName } from '../protocol/states.ts'
import { escapeControls } from './escape.ts'
import { redactUrl } from './redact.ts'

const PATH_CHARS_MAX = 512

export interface ConnectionRow {
  /** `http-incoming-7`, as in the logs; numbers are counted in each reactor. */
  readonly id: string
  readonly side: Side
  readonly state: StateName
  /** Address of the other end, '' where none is connected yet. */
  readonly peer: string
  /** Milliseconds since the exchange under way began; of a client that waits, since its last one ended; -1: none. */
  readonly ageMs: number
  readonly api: string
  readonly method: string
  /** Request target without its secrets. */
  readonly path: string
  /** Authority of the back end. */
  readonly backend: string
  /** The connection on the other side that carries the same exchange; '' when there is none. */
  readonly partner: string
  /** What is spoken on it: `http`, or `https` behind TLS. */
  readonly scheme: string
}

/** Which connections are listed; '' is all of them. */
export interface ConnectionQuery {
  readonly side: Side | ''
  readonly state: StateName | ''
  /** Rows at most. */
  readonly limit: number
}

export interface ConnectionList {
  /** All connections by side and state, whatever was asked for. */
  readonly counts: Readonly<Record<Side, Partial<Record<StateName, number>>>>
  readonly rows: readonly ConnectionRow[]
  /** Connections that fit and are not among the rows. */
  readonly left: number
}

/** Goes from connection to connection. Only one that becomes a row costs more than a count. */
export class ConnectionLister {
  readonly #query: ConnectionQuery
  readonly #nowMs: number
  readonly #counts: Record<Side, Partial<Record<StateName, number>>> = { source: {}, target: {} }
  readonly #rows: ConnectionRow[] = []
  #left = 0

  constructor(query: ConnectionQuery, nowMs: number) {
    this.#query = query
    this.#nowMs = nowMs
  }

  /** `exchange`: the one under way; of a client that waits, the last one; null: none. */
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
    this.#rows.push({ ...row, ...this.#carried(side, state, backend, exchange) })
  }

  #carried(side: Side, state: State, backend: string, exchange: Exchange | null): Carried {
    const nothing = { ageMs: -1, api: '', method: '', path: '', backend, partner: '' }
    if (exchange === null) return nothing
    const isSource = side === 'source'
    if (isSource && state === STATE.REQUEST_READY) return { ...nothing, ageMs: this.#since(exchange.doneMs) }
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
    return { counts: this.#counts, rows: this.#rows, left: this.#left }
  }
}

type Carried = Pick<ConnectionRow, 'ageMs' | 'api' | 'method' | 'path' | 'backend' | 'partner'>
