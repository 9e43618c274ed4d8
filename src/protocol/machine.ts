/**
 * The protocol state of one connection. Owns the state; `advance` is its only writer, and there is no way to ask in
 * advance or to ignore the answer.
 */
import { EVENT_NAMES, type Event, REPORTED, STATE, STATE_NAMES, type State } from './states.ts'
import { tracer } from './tracer.ts'
import { SOURCE, TARGET, type Table } from './transitions.ts'

export type Side = 'source' | 'target'

const EVENT_SHIFT = 4
const ILLEGAL = 255

function compile(table: Table): Uint8Array {
  const cells = new Uint8Array(STATE_NAMES.length << EVENT_SHIFT).fill(ILLEGAL)
  STATE_NAMES.forEach((state, row) => {
    EVENT_NAMES.forEach((event, column) => {
      const next = table[state][event]
      if (next !== undefined) cells[(row << EVENT_SHIFT) | column] = STATE[next]
    })
  })
  return cells
}

const CELLS = { source: compile(SOURCE), target: compile(TARGET) }

/** Events that the peer of a side causes; every other event is our own doing. */
const PEER_EVENTS: Record<Side, RegExp> = { source: /^REQUEST_/, target: /^(RESPONSE_|SWITCH)/ }

/** An event in a state that has no cell for it. The state is left alone. */
export class ProtocolViolation extends Error {
  readonly side: Side
  readonly state: State
  readonly event: Event
  /** `peer`: answered with 400 or 101506. `us`: a bug of ours, logged as an error. */
  readonly culprit: 'peer' | 'us'

  constructor(side: Side, state: State, event: Event) {
    super(`${side} connection in ${STATE_NAMES[state]} cannot take ${EVENT_NAMES[event]}`)
    this.name = 'ProtocolViolation'
    this.side = side
    this.state = state
    this.event = event
    this.culprit = PEER_EVENTS[side].test(EVENT_NAMES[event]!) ? 'peer' : 'us'
  }
}

export class Machine {
  readonly side: Side
  readonly #cells: Uint8Array
  #state: State = STATE.REQUEST_READY

  constructor(side: Side) {
    this.side = side
    this.#cells = CELLS[side]
  }

  get state(): State {
    return this.#state
  }

  /** The documented number, 0 to 8. */
  get reported(): number {
    return REPORTED[this.#state]!
  }

  /** The only writer of the state. Throws ProtocolViolation when the table has no such cell. */
  advance(event: Event): State {
    const next = this.#cells[(this.#state << EVENT_SHIFT) | event]!
    if (next === ILLEGAL) throw new ProtocolViolation(this.side, this.#state, event)
    if (tracer !== null) tracer.moved(this, this.#state, event, next as State)
    this.#state = next as State
    return this.#state
  }
}
