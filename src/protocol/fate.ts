/**
 * What a lost backend connection means in each state: base code, whether another connection may be tried, and what the
 * client gets. The failure tables of the transport as data; every row is asserted in test/protocol/fate.test.ts.
 */
import type { StateName } from './states.ts'

/** What happened to the socket. */
export type Loss = 'PEER_CLOSED' | 'TIMED_OUT' | 'READ_ERROR' | 'WRITE_ERROR' | 'UNREADABLE'

/** `if-reused`: also needs an idempotent method and a request without body (RFC 9110 9.2.2, RFC 9112 9.3.1). */
type Retry = 'never' | 'if-reused'

interface Fate {
  /** Base code; 0: nobody is waiting, so there is nothing to report. */
  readonly base: number
  readonly retry: Retry
}

function fate(base: number, retry: Retry = 'never'): Fate {
  return { base, retry }
}

/** Nobody waits for this connection: it closes without a word. */
const SILENT = {
  PEER_CLOSED: fate(0),
  TIMED_OUT: fate(0),
  READ_ERROR: fate(0),
  WRITE_ERROR: fate(0),
  UNREADABLE: fate(0),
}

/** While the request is on its way out, an I/O error is an error of sending. */
const SENDING = {
  PEER_CLOSED: fate(101505, 'if-reused'),
  TIMED_OUT: fate(101504),
  READ_ERROR: fate(101500, 'if-reused'),
  WRITE_ERROR: fate(101500, 'if-reused'),
  UNREADABLE: fate(101506),
}

/** The request is out; nothing came back. */
const WAITING = { ...SENDING, READ_ERROR: fate(101501, 'if-reused'), WRITE_ERROR: fate(101501, 'if-reused') }

/** A response has begun: it cannot be taken back. */
const RECEIVING = {
  PEER_CLOSED: fate(101505),
  TIMED_OUT: fate(101504),
  READ_ERROR: fate(101501),
  WRITE_ERROR: fate(101501),
  UNREADABLE: fate(101506),
}

export const FATE: { readonly [S in StateName]: { readonly [L in Loss]: Fate } } = {
  REQUEST_READY: { ...SILENT, UNREADABLE: fate(101506) },
  REQUEST_HEAD: SENDING,
  REQUEST_BODY: { ...SENDING, PEER_CLOSED: fate(101505), READ_ERROR: fate(101500), WRITE_ERROR: fate(101500) },
  REQUEST_DONE: WAITING,
  RESPONSE_HEAD: RECEIVING,
  RESPONSE_BODY: RECEIVING,
  RESPONSE_DONE: SILENT,
  CLOSING: SILENT,
  CLOSED: SILENT,
  EARLY_HEAD: RECEIVING,
  EARLY_BODY: RECEIVING,
  TUNNEL: RECEIVING,
  TUNNEL_REPLYING: RECEIVING,
  TUNNEL_ASKING: RECEIVING,
}

/** Failures before there is a connection; the state is REQUEST_READY. */
export const CONNECT_FAILED = 101503
export const CONNECT_TIMED_OUT = 101508
export const CONNECT_CANCELLED = 101507
export const POOL_FULL = 101504
/** The gateway gave a request up because its client left. */
export const SEND_ABORTED = 101509
/** While receiving a request (source states 0 to 3) and while sending a response (4 to 6). */
export const SOURCE_RECEIVING = 101001
export const SOURCE_SENDING = 101000
/** Processing a response failed; a literal, never summed. */
export const RESPONSE_FAILED = 101510
/** The backend has answered, and refuses the gateway's own credentials; no code of the transport. */
export const CREDENTIALS_REFUSED = 900424
/** Too large, or not delivered whole within the life of the connection; a literal, never summed. */
export const INCOMPLETE_PAYLOAD = 102511
