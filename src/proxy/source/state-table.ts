/**
 * The actions of a client connection in each state: with bytes, at FIN, at a deadline, when all bytes have left, and
 * at a failure.
 */
import { type State, STATE_NAMES, type StateName } from '../../protocol/states.ts'
import { SOURCE } from '../../protocol/transitions.ts'

interface StateColumns {
  /** Bytes that come. `begin`: a request. `head`, `body`: of the request. `keep`: they wait in the buffer. */
  readonly reads: 'begin' | 'head' | 'body' | 'drop' | 'keep'
  /**
   * When the client is read. `target`: while a target takes its body. `early`: so, or when the target is gone.
   * `pipeline`: up to the limit of pipelined bytes; reading on notices a client that leaves.
   */
  readonly wants: 'always' | 'never' | 'target' | 'early' | 'pipeline'
  /** While the client is read, its next bytes have a deadline, `body.read_timeout`; otherwise it has none. */
  readonly timesBody: boolean
  /**
   * FIN of the client. `wait`: nothing until later. `refuse-head`, `refuse-body`: the request stays incomplete.
   * `last-response`: the client still gets its responses (RFC 9112 9.6), unless `abort_on_half_close` is set. `abort`:
   * the rest of the request cannot come. `close`: as soon as all bytes have left.
   */
  readonly end: 'wait' | 'refuse-head' | 'refuse-body' | 'last-response' | 'abort' | 'close'
  /**
   * Deadline of a client that takes its bytes. `late-head`, `late-body`: the request does not go on. `idle`: no further
   * request came. `wait`: the target has its own.
   */
  readonly deadline: 'late-head' | 'late-body' | 'idle' | 'close' | 'wait'
  /** All bytes have left. `next`: the next request may come; `resume`: the target may go on. */
  readonly drained: 'next' | 'resume' | 'linger'
  /** The last bytes of the response may wait until the turn of the event loop ends: the request is complete. */
  readonly gathers: boolean
  /** DIRECTION in the log. */
  readonly direction: 'REQUEST' | 'RESPONSE'
}

interface StateRow extends StateColumns {
  /** A fault can still be sent: a response may begin. */
  readonly canFault: boolean
}

const WAITING = {
  reads: 'keep',
  wants: 'pipeline',
  timesBody: false,
  deadline: 'wait',
  drained: 'resume',
  gathers: false,
} as const
const REQUEST = { ...WAITING, direction: 'REQUEST' } as const
const RESPONSE = { ...WAITING, direction: 'RESPONSE' } as const
const EARLY = { ...RESPONSE, reads: 'body', wants: 'early', end: 'abort' } as const
const OTHER = { ...RESPONSE, end: 'wait' } as const

const TABLE: { readonly [S in StateName]: StateColumns } = {
  REQUEST_READY: { ...REQUEST, reads: 'begin', end: 'close', deadline: 'idle', drained: 'next' },
  REQUEST_HEAD: { ...REQUEST, reads: 'head', wants: 'always', end: 'refuse-head', deadline: 'late-head' },
  REQUEST_BODY: {
    ...REQUEST,
    reads: 'body',
    wants: 'target',
    timesBody: true,
    end: 'refuse-body',
    deadline: 'late-body',
  },
  // Bytes in front of FIN are read when the filters have decided.
  FILTERS_PENDING: { ...REQUEST, wants: 'never', timesBody: true, end: 'wait' },
  REQUEST_DONE: { ...REQUEST, end: 'last-response' },
  RESPONSE_HEAD: { ...RESPONSE, end: 'last-response', gathers: true },
  RESPONSE_BODY: { ...RESPONSE, end: 'last-response', gathers: true },
  RESPONSE_DONE: { ...RESPONSE, end: 'close' },
  CLOSING: { ...REQUEST, reads: 'drop', wants: 'always', end: 'close', deadline: 'close', drained: 'linger' },
  EARLY_HEAD: EARLY,
  EARLY_BODY: EARLY,
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

/** All rows have one shape, which keeps the reads of the hot path monomorphic. */
const ROWS: readonly StateRow[] = STATE_NAMES.map(name => {
  const { reads, wants, timesBody, end, deadline, drained, gathers, direction } = TABLE[name]
  return {
    reads,
    wants,
    timesBody,
    end,
    deadline,
    drained,
    gathers,
    direction,
    canFault: 'RESPONSE_BEGIN' in SOURCE[name],
  }
})

export function stateRow(state: State): StateRow {
  return ROWS[state]!
}
