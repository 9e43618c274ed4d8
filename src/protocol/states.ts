/**
 * Protocol states and events of a connection. The numbers 0 to 8 are documented (specification, "Transport protocol
 * states"): error codes, logs and metrics contain them, so they never change.
 */

export const STATE = {
  /** No byte of a message yet; a kept-alive connection waits in this state. */
  REQUEST_READY: 0,
  /** A request head is being received (source) or written (target). */
  REQUEST_HEAD: 1,
  /** A request body is under way. */
  REQUEST_BODY: 2,
  /** The request is complete; no response yet. */
  REQUEST_DONE: 3,
  /** A response head is being received (target) or written (source). */
  RESPONSE_HEAD: 4,
  /** A response body is under way. */
  RESPONSE_BODY: 5,
  /** The response is complete. */
  RESPONSE_DONE: 6,
  /** No message will follow on this connection; pending bytes are still written or discarded. */
  CLOSING: 7,
  /** The socket is closed. */
  CLOSED: 8,
  /** Response head under way while the request is unfinished (an early response). Reported as RESPONSE_HEAD. */
  EARLY_HEAD: 9,
  /** Response body under way while the request is unfinished. Reported as RESPONSE_BODY. */
  EARLY_BODY: 10,
  /** After 101: the bytes are no longer HTTP. Reported as RESPONSE_BODY. */
  TUNNEL: 11,
  /** Half-closed tunnel: the client has sent FIN, the backend still sends. Reported as RESPONSE_BODY. */
  TUNNEL_CLIENT_ENDED: 12,
  /** Half-closed tunnel: the backend has sent FIN, the client still sends. Reported as RESPONSE_BODY. */
  TUNNEL_BACKEND_ENDED: 13,
  /** Source only: a request with a body waits for its filters; the body is not read. Reported as REQUEST_BODY. */
  FILTERS_PENDING: 14,
  /** Target only: the connection is being opened. Reported as REQUEST_READY. */
  CONNECTING: 15,
  /** Target only: a write failed within a request body; a response may still come. Reported as REQUEST_BODY. */
  UNWRITABLE: 16,
  /** Target only: response head under way after a write failed. Reported as RESPONSE_HEAD. */
  UNWRITABLE_HEAD: 17,
  /** Target only: response body under way after a write failed. Reported as RESPONSE_BODY. */
  UNWRITABLE_BODY: 18,
} as const

export type StateName = keyof typeof STATE
export type State = (typeof STATE)[StateName]

/** State -> the documented number used in error codes, logs and metrics. */
export const REPORTED = Uint8Array.of(0, 1, 2, 3, 4, 5, 6, 7, 8, 4, 5, 5, 5, 5, 2, 0, 2, 4, 5)

/** Whether a documented state is one of a response under way. */
export function hasResponse(reported: number): boolean {
  return reported === STATE.RESPONSE_HEAD || reported === STATE.RESPONSE_BODY
}

export const STATE_NAMES = Object.keys(STATE) as readonly StateName[]

/** Events name what happened to a message or to the socket, never the side that caused it. */
export const EVENT = {
  /** First byte of a request (source), or its head handed to the socket (target). */
  REQUEST_BEGIN: 0,
  /** The request head is complete and a body follows. */
  REQUEST_BODY: 1,
  /** Bytes of the request body, or of a tunnel towards the backend. */
  REQUEST_DATA: 2,
  /** The request is complete, or the client has ended its side of a tunnel. */
  REQUEST_END: 3,
  /** A 1xx response other than 101. */
  RESPONSE_INTERIM: 4,
  /** A final response head. */
  RESPONSE_BEGIN: 5,
  /** The response head is complete and a body follows. */
  RESPONSE_BODY: 6,
  /** Bytes of the response body, or of a tunnel towards the client. */
  RESPONSE_DATA: 7,
  /** The response is complete, or the backend has ended its side of a tunnel. */
  RESPONSE_END: 8,
  /** 101 to a requested upgrade. */
  SWITCH: 9,
  /** The connection is kept for another message. */
  REUSE: 10,
  /** The connection carries no further message. */
  CLOSE: 11,
  /** The socket is closed, whichever side closed it. */
  SOCKET_CLOSED: 12,
  /** A filter of the request waits for an answer. */
  FILTERS_WAIT: 13,
  /** The waiting filters have decided. */
  FILTERS_DONE: 14,
  /** FIN of the peer outside of a tunnel: the state stays, and `Machine.peerEnded` is true from now on. */
  PEER_END: 15,
  /** The connection to the backend is open. */
  CONNECTED: 16,
  /** A write failed: the peer takes no more bytes. */
  WRITE_FAILED: 17,
} as const

export type EventName = keyof typeof EVENT
export type Event = (typeof EVENT)[EventName]

export const EVENT_NAMES = Object.keys(EVENT) as readonly EventName[]
