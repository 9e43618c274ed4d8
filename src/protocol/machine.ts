/**
 * Protocol state of one connection. `advance` is the only writer of the state; no caller can test a transition in
 * advance or ignore its failure.
 */
import { EVENT, EVENT_NAMES, type Event, REPORTED, STATE, STATE_NAMES, type State } from './states.ts'
import { NO_TIMELINE, recordStep } from './timelines.ts'
import { tracer } from './tracer.ts'
import { SOURCE, TARGET, type Table } from './transitions.ts'

export type Side = 'source' | 'target'

const EVENT_BITS = 5
/** Bits of a cell's row that hold the state. */
const STATE_MASK = 31
/** Bit of a row: the peer has sent FIN. Each state has two rows, so one table answers for both. */
const PEER_ENDED = 32
const ILLEGAL = 255

/** Both rows of each state: events keep the bit, and PEER_END sets it. FIN may be reported again with each read. */
function compile(table: Table): Uint8Array {
  const cells = new Uint8Array((2 * (STATE_MASK + 1)) << EVENT_BITS).fill(ILLEGAL)
  STATE_NAMES.forEach((state, row) => {
    EVENT_NAMES.forEach((event, column) => {
      const next = table[state][event]
      if (next === undefined) return
      const bit = EVENT[event] === EVENT.PEER_END ? PEER_ENDED : 0
      cells[(row << EVENT_BITS) | column] = STATE[next] | bit
      cells[((row | PEER_ENDED) << EVENT_BITS) | column] = STATE[next] | PEER_ENDED
    })
  })
  return cells
}

const CELLS = { source: compile(SOURCE), target: compile(TARGET) }
/** Clients are accepted, backends are dialled. */
const INITIAL: Record<Side, State> = { source: STATE.REQUEST_READY, target: STATE.CONNECTING }

/** Events that the peer of a side causes, by name; the gateway causes every other event. */
const PEER_EVENTS: Record<Side, RegExp> = { source: /^REQUEST_/, target: /^(RESPONSE_|SWITCH)/ }

/** An event in a state that has no cell for it. The state is left alone. */
export class ProtocolViolation extends Error {
  readonly side: Side
  readonly state: State
  readonly event: Event
  /** `peer`: answered with 400 or 101506. `gateway`: a bug, logged as an error. */
  readonly culprit: 'peer' | 'gateway'

  constructor(side: Side, state: State, event: Event) {
    super(`${side} connection in ${STATE_NAMES[state]} cannot take ${EVENT_NAMES[event]}`)
    this.name = 'ProtocolViolation'
    this.side = side
    this.state = state
    this.event = event
    this.culprit = PEER_EVENTS[side].test(EVENT_NAMES[event]!) ? 'peer' : 'gateway'
  }
}

export class Machine {
  readonly side: Side
  /** Id of the timeline of the exchange under way. */
  timeline = NO_TIMELINE
  readonly #cells: Uint8Array
  readonly #isTarget: boolean
  /** The state, and PEER_ENDED. */
  #row: number

  constructor(side: Side) {
    this.side = side
    this.#cells = CELLS[side]
    this.#isTarget = side === 'target'
    this.#row = INITIAL[side]
  }

  get state(): State {
    return (this.#row & STATE_MASK) as State
  }

  /** The peer has sent FIN: no byte follows those that were read. Tunnels have states for this instead. */
  get peerEnded(): boolean {
    return (this.#row & PEER_ENDED) !== 0
  }

  /** The documented number, 0 to 8. */
  get reported(): number {
    return REPORTED[this.#row & STATE_MASK]!
  }

  /** Takes an event; returns the next state. Throws ProtocolViolation when the table has no such cell. */
  advance(event: Event): State {
    const row = this.#row
    const cell = (row << EVENT_BITS) + event
    const next = this.#cells[cell]!
    // Also true for undefined, which the cell of no event is.
    if (!(next < ILLEGAL)) throw new ProtocolViolation(this.side, (row & STATE_MASK) as State, event)
    const state = (next & STATE_MASK) as State
    if (tracer !== null) tracer.transition(this, (row & STATE_MASK) as State, event, state)
    // Body bytes leave the state alone, and are no step.
    if (next !== row && this.timeline !== NO_TIMELINE) recordStep(this.timeline, this.#isTarget, cell)
    this.#row = next
    return state
  }
}
