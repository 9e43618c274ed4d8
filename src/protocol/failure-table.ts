/**
 * Transport error codes and failure tables: base code of each loss in each state, per side. A code is base + documented
 * state number (specification, "Transport error codes"). The sum cannot be taken apart again, so everything but the
 * last step carries base and state. test/protocol/failure-table.test.ts asserts every row.
 */
import type { StateName } from './states.ts'

/** Failures of a backend before there is a connection. */
export const CONNECT_FAILED = 101503
export const CONNECT_TIMED_OUT = 101508
export const CONNECT_CANCELLED = 101507
/** The connection limit of a backend is reached. */
export const POOL_FULL = 101600
/** No memory is left for a request. */
export const NO_MEMORY = 101601
/** The gateway aborted a request because its client left. */
export const SEND_ABORTED = 101509
/** I/O error while receiving a request from a client, or while sending a response to it. */
export const SOURCE_RECEIVING = 101001
export const SOURCE_SENDING = 101000
/** Processing a response failed. */
export const RESPONSE_FAILED = 101510
/** The backend has answered and refuses the gateway's own credentials; not a code of the transport. */
export const CREDENTIALS_REFUSED = 900424
/** Body too large, or not delivered whole within the life of the connection. */
export const INCOMPLETE_PAYLOAD = 102511

/** Codes that are literals: the state is never added. */
const LITERAL = new Set([INCOMPLETE_PAYLOAD, RESPONSE_FAILED, CREDENTIALS_REFUSED, POOL_FULL, NO_MEMORY])

/** True for a code to which no state is added. */
export function isLiteralCode(base: number): boolean {
  return LITERAL.has(base)
}

/** The documented code of a base in a documented state, 0 to 8. `base` 0 means no error and stays 0. */
export function transportCode(base: number, state: number): number {
  return base === 0 || isLiteralCode(base) ? base : base + state
}

/** Loss of a backend connection; CLIENT_LEFT: the gateway aborts the request because its client left. */
export type Loss = 'PEER_CLOSED' | 'TIMED_OUT' | 'READ_ERROR' | 'WRITE_ERROR' | 'UNREADABLE' | 'CLIENT_LEFT'

/** `if-reused` also needs an idempotent method and a request without body (RFC 9110 9.2.2, RFC 9112 9.3.1). */
type Retry = 'never' | 'if-reused'

interface TargetFailure {
  /** 0: no exchange waits for this connection, so there is nothing to report. */
  readonly base: number
  /** True if another connection may be tried. */
  readonly retry: Retry
}

function failure(base: number, retry: Retry = 'never'): TargetFailure {
  return { base, retry }
}

/** No exchange waits for this connection: it closes without a report. */
const SILENT = {
  PEER_CLOSED: failure(0),
  TIMED_OUT: failure(0),
  READ_ERROR: failure(0),
  WRITE_ERROR: failure(0),
  UNREADABLE: failure(0),
  CLIENT_LEFT: failure(0),
}

/** There is no connection yet. */
const OPENING = {
  PEER_CLOSED: failure(CONNECT_FAILED),
  TIMED_OUT: failure(CONNECT_TIMED_OUT),
  READ_ERROR: failure(CONNECT_FAILED),
  WRITE_ERROR: failure(CONNECT_FAILED),
  UNREADABLE: failure(CONNECT_FAILED),
  CLIENT_LEFT: failure(CONNECT_CANCELLED),
}

/** The request is being sent: an I/O error is an error of sending. */
const SENDING = {
  PEER_CLOSED: failure(101505, 'if-reused'),
  TIMED_OUT: failure(101504),
  READ_ERROR: failure(101500, 'if-reused'),
  WRITE_ERROR: failure(101500, 'if-reused'),
  UNREADABLE: failure(101506),
  CLIENT_LEFT: failure(SEND_ABORTED),
}

/** The request is sent and no response has begun. */
const WAITING = { ...SENDING, READ_ERROR: failure(101501, 'if-reused'), WRITE_ERROR: failure(101501, 'if-reused') }

/** A response has begun, so the request cannot be sent again. */
const RECEIVING = {
  PEER_CLOSED: failure(101505),
  TIMED_OUT: failure(101504),
  READ_ERROR: failure(101501),
  WRITE_ERROR: failure(101501),
  UNREADABLE: failure(101506),
  CLIENT_LEFT: failure(SEND_ABORTED),
}

/** A write has failed before, and is the cause of every loss that follows. */
function afterFailedWrite(base: number) {
  const failed = failure(base)
  const other = { UNREADABLE: failure(101506), CLIENT_LEFT: failure(SEND_ABORTED) }
  return { PEER_CLOSED: failed, TIMED_OUT: failed, READ_ERROR: failed, WRITE_ERROR: failed, ...other }
}

/** Meaning of a lost backend connection. */
export const TARGET_FAILURES: { readonly [S in StateName]: { readonly [L in Loss]: TargetFailure } } = {
  CONNECTING: OPENING,
  REQUEST_READY: { ...SILENT, UNREADABLE: failure(101506) },
  REQUEST_HEAD: SENDING,
  REQUEST_BODY: { ...SENDING, PEER_CLOSED: failure(101505), READ_ERROR: failure(101500), WRITE_ERROR: failure(101500) },
  REQUEST_DONE: WAITING,
  RESPONSE_HEAD: RECEIVING,
  RESPONSE_BODY: RECEIVING,
  RESPONSE_DONE: SILENT,
  CLOSING: SILENT,
  CLOSED: SILENT,
  EARLY_HEAD: RECEIVING,
  EARLY_BODY: RECEIVING,
  UNWRITABLE: afterFailedWrite(101500),
  UNWRITABLE_HEAD: afterFailedWrite(101501),
  UNWRITABLE_BODY: afterFailedWrite(101501),
  TUNNEL: RECEIVING,
  TUNNEL_CLIENT_ENDED: RECEIVING,
  TUNNEL_BACKEND_ENDED: RECEIVING,
  FILTERS_PENDING: SILENT,
}

/**
 * Loss of a client connection. DISCONNECTED: reset, or a write failed. TIMED_OUT: the client neither sends nor
 * takes what is due. ABORTED: the gateway itself gives the connection up. UNREADABLE: the request breaks the protocol.
 */
export type ClientLoss = 'DISCONNECTED' | 'TIMED_OUT' | 'ABORTED' | 'UNREADABLE'

interface SourceFailure {
  /** 0: no exchange is under way, so there is nothing to report. */
  readonly base: number
  readonly level: 'debug' | 'warn'
  /** Event of a DISCONNECTED client in the log; other losses name their own. */
  readonly event: string
}

const IDLE_LOST: SourceFailure = { base: 0, level: 'debug', event: 'idle client connection lost' }
const NOTHING: SourceFailure = { base: 0, level: 'debug', event: '' }
const RECEIVING_FAILED: SourceFailure = { base: SOURCE_RECEIVING, level: 'warn', event: 'client connection lost' }
const SENDING_FAILED: SourceFailure = { base: SOURCE_SENDING, level: 'warn', event: 'client connection lost' }
/** Most clients reset a tunnel without closing it: a browser that closes a page does. */
const TUNNEL_LEFT: SourceFailure = { base: SOURCE_SENDING, level: 'debug', event: 'client left its tunnel' }

const OF_REQUEST = {
  DISCONNECTED: RECEIVING_FAILED,
  TIMED_OUT: RECEIVING_FAILED,
  ABORTED: RECEIVING_FAILED,
  UNREADABLE: RECEIVING_FAILED,
}
/** UNREADABLE: the body of a request that was answered early turns out to be malformed. */
const OF_RESPONSE = {
  DISCONNECTED: SENDING_FAILED,
  TIMED_OUT: SENDING_FAILED,
  ABORTED: SENDING_FAILED,
  UNREADABLE: RECEIVING_FAILED,
}
const OF_TUNNEL = { ...OF_RESPONSE, DISCONNECTED: TUNNEL_LEFT }
const OVER = { DISCONNECTED: IDLE_LOST, TIMED_OUT: NOTHING, ABORTED: NOTHING, UNREADABLE: NOTHING }

/** Meaning of a lost client connection. */
export const SOURCE_FAILURES: { readonly [S in StateName]: { readonly [L in ClientLoss]: SourceFailure } } = {
  // TIMED_OUT: the end of the response before still waits for a client that takes no bytes.
  REQUEST_READY: { ...OF_REQUEST, DISCONNECTED: IDLE_LOST },
  REQUEST_HEAD: OF_REQUEST,
  REQUEST_BODY: OF_REQUEST,
  FILTERS_PENDING: OF_REQUEST,
  REQUEST_DONE: OF_REQUEST,
  RESPONSE_HEAD: OF_RESPONSE,
  RESPONSE_BODY: OF_RESPONSE,
  RESPONSE_DONE: OVER,
  // TIMED_OUT: as in REQUEST_READY.
  CLOSING: { ...OVER, TIMED_OUT: SENDING_FAILED, ABORTED: SENDING_FAILED },
  CLOSED: OVER,
  EARLY_HEAD: OF_RESPONSE,
  EARLY_BODY: OF_RESPONSE,
  TUNNEL: OF_TUNNEL,
  TUNNEL_CLIENT_ENDED: OF_TUNNEL,
  TUNNEL_BACKEND_ENDED: OF_TUNNEL,
  CONNECTING: OVER,
  UNWRITABLE: OVER,
  UNWRITABLE_HEAD: OVER,
  UNWRITABLE_BODY: OVER,
}
