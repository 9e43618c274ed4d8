/**
 * The states of a socket and the events that move it, as one table for plain and TLS sockets of both levels. A plain
 * socket starts in READY, a TLS socket in HANDSHAKE. An event without a cell is a bug of ours and throws.
 * test/socket/socket-states.test.ts asserts all cells from a grid written by hand.
 */

export type SocketState =
  /** The TLS handshake is under way; writes are queued. */
  | 'HANDSHAKE'
  /** The TLS handshake is under way, and the owner has ended its side. */
  | 'HANDSHAKE_ENDING'
  /** The handshake is done, but OpenSSL has not returned from it: writing is not allowed yet. */
  | 'SETTLING'
  | 'SETTLING_ENDING'
  /** No write is under way. */
  | 'READY'
  /** A write has not called back, but the kernel has its bytes: the owner does not wait. */
  | 'WRITING'
  /** Bytes wait; the owner waits for `onDrained`. */
  | 'BLOCKED'
  /** The owner has ended its side; FIN follows the write that has not called back. */
  | 'ENDING'
  /** The owner has ended its side and waits for `onDrained`; FIN follows the bytes that wait. */
  | 'ENDING_BLOCKED'
  /** FIN has not called back. */
  | 'SHUTTING'
  /** FIN is out; reading goes on. */
  | 'SHUT'
  /** A write failed and none will succeed; reading goes on. */
  | 'BROKEN'
  /** The owner is gone; the end of TLS follows the write that has not called back, and then the socket closes. */
  | 'LEAVING'
  | 'CLOSED'

export type SocketEvent =
  /** OpenSSL has finished the handshake and is still at work. */
  | 'SHAKEN'
  /** The handshake is done and writing is allowed. */
  | 'OPEN'
  /** A write has begun whose bytes the kernel has; with it, all that waited has left. */
  | 'SEND'
  /** Bytes begin to wait. */
  | 'BLOCK'
  /** Every write has called back. */
  | 'DRAIN'
  /** A write failed. */
  | 'FAIL'
  /** The owner ends its side while something is in front of FIN. */
  | 'END'
  /** FIN is handed over. */
  | 'SHUT'
  /** FIN has called back. */
  | 'FINISH'
  /** The owner closes; what the kernel has still gets its end of TLS. */
  | 'LEAVE'
  | 'CLOSE'

type SocketTransitions = { readonly [S in SocketState]: { readonly [E in SocketEvent]?: SocketState } }

const TRANSITIONS: SocketTransitions = {
  HANDSHAKE: { SHAKEN: 'SETTLING', OPEN: 'READY', END: 'HANDSHAKE_ENDING', CLOSE: 'CLOSED' },
  HANDSHAKE_ENDING: { SHAKEN: 'SETTLING_ENDING', OPEN: 'ENDING', CLOSE: 'CLOSED' },
  SETTLING: { OPEN: 'READY', END: 'SETTLING_ENDING', CLOSE: 'CLOSED' },
  SETTLING_ENDING: { OPEN: 'ENDING', CLOSE: 'CLOSED' },
  READY: { SEND: 'WRITING', BLOCK: 'BLOCKED', FAIL: 'BROKEN', SHUT: 'SHUTTING', CLOSE: 'CLOSED' },
  WRITING: { BLOCK: 'BLOCKED', DRAIN: 'READY', FAIL: 'BROKEN', END: 'ENDING', LEAVE: 'LEAVING', CLOSE: 'CLOSED' },
  BLOCKED: {
    SEND: 'WRITING',
    BLOCK: 'BLOCKED',
    DRAIN: 'READY',
    FAIL: 'BROKEN',
    END: 'ENDING_BLOCKED',
    CLOSE: 'CLOSED',
  },
  // Queued writes of a handshake may still wait when it ends.
  ENDING: {
    SEND: 'ENDING',
    BLOCK: 'ENDING_BLOCKED',
    DRAIN: 'ENDING',
    FAIL: 'BROKEN',
    SHUT: 'SHUTTING',
    LEAVE: 'LEAVING',
    CLOSE: 'CLOSED',
  },
  ENDING_BLOCKED: { SEND: 'ENDING', BLOCK: 'ENDING_BLOCKED', DRAIN: 'ENDING', FAIL: 'BROKEN', CLOSE: 'CLOSED' },
  SHUTTING: { FINISH: 'SHUT', CLOSE: 'CLOSED' },
  SHUT: { CLOSE: 'CLOSED' },
  BROKEN: { CLOSE: 'CLOSED' },
  LEAVING: { SHUT: 'SHUTTING', CLOSE: 'CLOSED' },
  CLOSED: {},
}

/** The state that follows; throws where the event cannot happen. */
export function stateAfter(state: SocketState, event: SocketEvent): SocketState {
  const next = TRANSITIONS[state][event]
  if (next === undefined) throw new Error(`a socket in ${state} cannot take ${event}`)
  return next
}
