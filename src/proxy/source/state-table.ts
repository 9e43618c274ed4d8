/** What a client connection does in each state at FIN, at a deadline, when all bytes have left, and at a failure. */
import { type State, STATE_NAMES, type StateName } from '../../protocol/states.ts'

interface StateRow {
  /**
   * FIN of the client. `wait`: nothing until later. `refuse-head`, `refuse-body`: the request stays incomplete.
   * `last-response`: the client still gets its responses (RFC 9112 9.6), unless `abort_on_half_close` is set. `abort`:
   * the rest of the request cannot come. `close`: as soon as all bytes have left.
   */
  readonly end: 'wait' | 'refuse-head' | 'refuse-body' | 'last-response' | 'abort' | 'close'
  /** Deadline of a client that takes its bytes. `late`: the request does not go on; `wait`: the target has its own. */
  readonly deadline: 'late' | 'idle' | 'close' | 'wait'
  /** All bytes have left. `next`: the next request may come; `resume`: the target may go on. */
  readonly drained: 'next' | 'resume' | 'linger'
  /** A fault can still be sent: no response has begun. */
  readonly canFault: boolean
  /** DIRECTION in the log. */
  readonly direction: 'REQUEST' | 'RESPONSE'
}

const REQUEST = { drained: 'resume', canFault: true, direction: 'REQUEST' } as const
const RESPONSE = { deadline: 'wait', drained: 'resume', canFault: false, direction: 'RESPONSE' } as const
const OTHER = { ...RESPONSE, end: 'wait' } as const

const TABLE: { readonly [S in StateName]: StateRow } = {
  REQUEST_READY: { ...REQUEST, end: 'close', deadline: 'idle', drained: 'next', canFault: false },
  REQUEST_HEAD: { ...REQUEST, end: 'refuse-head', deadline: 'late' },
  REQUEST_BODY: { ...REQUEST, end: 'refuse-body', deadline: 'late' },
  // Bytes in front of FIN are read when the filters have decided.
  FILTERS_PENDING: { ...REQUEST, end: 'wait', deadline: 'wait' },
  REQUEST_DONE: { ...REQUEST, end: 'last-response', deadline: 'wait' },
  RESPONSE_HEAD: { ...RESPONSE, end: 'last-response' },
  RESPONSE_BODY: { ...RESPONSE, end: 'last-response' },
  RESPONSE_DONE: { ...RESPONSE, end: 'close' },
  CLOSING: { end: 'close', deadline: 'close', drained: 'linger', canFault: false, direction: 'REQUEST' },
  EARLY_HEAD: { ...RESPONSE, end: 'abort' },
  EARLY_BODY: { ...RESPONSE, end: 'abort' },
  // The tunnel owns the socket.
  TUNNEL: OTHER,
  TUNNEL_CLIENT_ENDED: OTHER,
  TUNNEL_BACKEND_ENDED: OTHER,
  CLOSED: OTHER,
  // States of backends.
  CONNECTING: OTHER,
  UNWRITABLE: OTHER,
  UNWRITABLE_HEAD: OTHER,
  UNWRITABLE_BODY: OTHER,
}

const ROWS: readonly StateRow[] = STATE_NAMES.map(name => TABLE[name])

export function stateRow(state: State): StateRow {
  return ROWS[state]!
}
