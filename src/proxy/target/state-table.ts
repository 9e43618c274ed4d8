/** Actions of a backend connection by state: for bytes of either side, after a failed write, and at a deadline. */
import { type State, STATE_NAMES, type StateName } from '../../protocol/states.ts'

interface StateRow {
  /**
   * Bytes that come. `stale`: no request is under way, so the connection closes. `head`, `body`: of the response.
   * `nothing`: bytes are kept. `gone`: the socket is closed, or belongs to a tunnel.
   */
  readonly reads: 'stale' | 'nothing' | 'head' | 'body' | 'gone'
  /** Bytes of the request. `buffer`: until the connection is open. `discard`: the backend takes no more. */
  readonly request: 'buffer' | 'write' | 'discard'
  /** A failed write. `await-response`: the backend may have responded before it closed. */
  readonly writeFailed: 'await-response' | 'lose'
  /** Deadline. `idle`: no request came for the connection. `write-failed`: no response came behind a failed write. */
  readonly deadline: 'idle' | 'write-failed' | 'late'
  /** The next move is the backend's. False while a request body is under way, unless bytes wait for the backend. */
  readonly awaitsBackend: boolean
}

const OPEN = {
  reads: 'nothing',
  request: 'write',
  writeFailed: 'lose',
  deadline: 'late',
  awaitsBackend: true,
} as const
const RESPONSE = { ...OPEN, reads: 'body' } as const
const UNWRITABLE = {
  reads: 'body',
  request: 'discard',
  writeFailed: 'await-response',
  deadline: 'write-failed',
  awaitsBackend: true,
} as const
const GONE = { ...OPEN, reads: 'gone' } as const

const TABLE: { readonly [S in StateName]: StateRow } = {
  CONNECTING: { ...OPEN, request: 'buffer' },
  REQUEST_READY: { ...OPEN, reads: 'stale', deadline: 'idle' },
  REQUEST_HEAD: OPEN,
  REQUEST_BODY: { ...OPEN, reads: 'head', writeFailed: 'await-response', awaitsBackend: false },
  REQUEST_DONE: { ...OPEN, reads: 'head' },
  RESPONSE_HEAD: RESPONSE,
  RESPONSE_BODY: RESPONSE,
  RESPONSE_DONE: OPEN,
  CLOSING: OPEN,
  EARLY_HEAD: RESPONSE,
  EARLY_BODY: { ...RESPONSE, writeFailed: 'await-response' },
  // The deadline of the failed write stands until the response begins.
  UNWRITABLE: { ...UNWRITABLE, reads: 'head', awaitsBackend: false },
  UNWRITABLE_HEAD: UNWRITABLE,
  UNWRITABLE_BODY: UNWRITABLE,
  TUNNEL: GONE,
  TUNNEL_CLIENT_ENDED: GONE,
  TUNNEL_BACKEND_ENDED: GONE,
  CLOSED: GONE,
  FILTERS_PENDING: GONE,
}

/** All rows have one shape, which keeps the reads of the hot path monomorphic. */
const ROWS: readonly StateRow[] = STATE_NAMES.map(name => {
  const { reads, request, writeFailed, deadline, awaitsBackend } = TABLE[name]
  return { reads, request, writeFailed, deadline, awaitsBackend }
})

export function stateRow(state: State): StateRow {
  return ROWS[state]!
}
