/** States of a mediated exchange and their transitions. A missing cell is a transition that cannot happen. */

/**
 * `NEW`: no flow on a worker has begun. `EXPECTED`: the client waits for 100 (RFC 9110 10.1.1), or sends its body all
 * the same. `COLLECTING_REQUEST`: the body of the request is collected. `REQUEST_AT_WORKER`, `RESPONSE_AT_WORKER`,
 * `FAULT_AT_WORKER`: a worker runs a flow. `SENDING`: the target gets the fed request. `AWAITING_RESPONSE`: the target
 * has the request, or the client sends it there. `PASSING`: the client gets the response of the target as it comes.
 * `COLLECTING_RESPONSE`: the body of the response is collected. `…_EARLY`: the same while the target still gets the
 * request. `RESPONDING`: the client gets a fed response. `ENDED`: nothing follows.
 */
export type MediatedState =
  | 'NEW'
  | 'EXPECTED'
  | 'COLLECTING_REQUEST'
  | 'REQUEST_AT_WORKER'
  | 'SENDING'
  | 'AWAITING_RESPONSE'
  | 'PASSING_EARLY'
  | 'PASSING'
  | 'COLLECTING_EARLY'
  | 'COLLECTING_RESPONSE'
  | 'RESPONSE_AT_WORKER'
  | 'RESPONDING'
  | 'FAULT_AT_WORKER'
  | 'ENDED'

/**
 * `EXPECT`: a body begins that a flow needs, and its client may wait for 100. `COLLECT`: such a body comes. `MEDIATE`:
 * a message goes to a worker. `SEND`: a fed request goes to the target. `FORWARD`: the request of the client goes to
 * the target as it comes. `SENT`: the target has the whole fed request. `PASS`: a response begins that no flow needs.
 * `RESPOND`: a fed response goes to the client. `FAULT`: a fault goes to a worker, for the onError of its `<send>` and
 * then for the fault flow. `END`: the exchange is over, or somebody else responds.
 */
export type MediatedEvent =
  | 'EXPECT'
  | 'COLLECT'
  | 'MEDIATE'
  | 'SEND'
  | 'FORWARD'
  | 'SENT'
  | 'PASS'
  | 'RESPOND'
  | 'FAULT'
  | 'END'

type Row = { readonly [E in MediatedEvent]?: MediatedState }

const END = { END: 'ENDED' } as const
/** A fault can be worded: the client has got nothing of a response. */
const OPEN = { ...END, FAULT: 'FAULT_AT_WORKER' } as const

export const TRANSITIONS: { readonly [S in MediatedState]: Row } = {
  NEW: {
    ...OPEN,
    EXPECT: 'EXPECTED',
    COLLECT: 'COLLECTING_REQUEST',
    MEDIATE: 'REQUEST_AT_WORKER',
    FORWARD: 'AWAITING_RESPONSE',
  },
  EXPECTED: { ...OPEN, COLLECT: 'COLLECTING_REQUEST' },
  COLLECTING_REQUEST: { ...OPEN, MEDIATE: 'REQUEST_AT_WORKER' },
  // MEDIATE: loopback, or a sequence responds and the response flow follows.
  REQUEST_AT_WORKER: { ...OPEN, SEND: 'SENDING', RESPOND: 'RESPONDING', MEDIATE: 'RESPONSE_AT_WORKER' },
  SENDING: { ...OPEN, SENT: 'AWAITING_RESPONSE', PASS: 'PASSING_EARLY', COLLECT: 'COLLECTING_EARLY' },
  AWAITING_RESPONSE: { ...OPEN, PASS: 'PASSING', COLLECT: 'COLLECTING_RESPONSE' },
  // FAULT: a flow of heads has not let the response pass.
  PASSING_EARLY: { ...OPEN, SENT: 'PASSING' },
  PASSING: OPEN,
  COLLECTING_EARLY: { ...OPEN, SENT: 'COLLECTING_RESPONSE', MEDIATE: 'RESPONSE_AT_WORKER' },
  COLLECTING_RESPONSE: { ...OPEN, MEDIATE: 'RESPONSE_AT_WORKER' },
  RESPONSE_AT_WORKER: { ...OPEN, RESPOND: 'RESPONDING' },
  RESPONDING: END,
  FAULT_AT_WORKER: { ...OPEN, RESPOND: 'RESPONDING' },
  ENDED: END,
}

/** A transition that the table does not have: a bug of the gateway. */
class IllegalTransition extends Error {
  override readonly name = 'IllegalTransition'

  constructor(state: MediatedState, event: MediatedEvent) {
    super(`a mediated exchange in ${state} cannot take ${event}`)
  }
}

/** The state of one mediated exchange; nothing else moves it. */
export class MediatedMachine {
  #state: MediatedState = 'NEW'

  get state(): MediatedState {
    return this.#state
  }

  /** Throws IllegalTransition. */
  advance(event: MediatedEvent): MediatedState {
    const next = TRANSITIONS[this.#state][event]
    if (next === undefined) throw new IllegalTransition(this.#state, event)
    this.#state = next
    return next
  }
}
