/**
 * The protocol states and events of a connection. The numbers 0 to 8 are those of the specification ("Transport
 * protocol states"); they are added to base codes in errors, logs and metrics, so they never change.
 */

export const STATE = {
  /** Nothing of a message yet; a kept-alive connection waits here. */
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
  /** No message will follow on this connection; what is owed is still being written or discarded. */
  CLOSING: 7,
  /** The socket is gone. */
  CLOSED: 8,
  /** Response head under way while the request is unfinished (an early response). Reported as RESPONSE_HEAD. */
  EARLY_HEAD: 9,
  /** Response body under way while the request is unfinished. Reported as RESPONSE_BODY. */
  EARLY_BODY: 10,
  /** After 101: the bytes are no longer HTTP. Reported as RESPONSE_BODY. */
  TUNNEL: 11,
  /** A tunnel whose client has ended its side: bytes still come from the backend. Reported as RESPONSE_BODY. */
  TUNNEL_REPLYING: 12,
  /** A tunnel whose backend has ended its side: bytes still come from the client. Reported as RESPONSE_BODY. */
  TUNNEL_ASKING: 13,
} as const

export type StateName = keyof typeof STATE
export type State = (typeof STATE)[StateName]

/** State -> the documented number used in error codes, logs and metrics. */
export const REPORTED = Uint8Array.of(0, 1, 2, 3, 4, 5, 6, 7, 8, 4, 5, 5, 5, 5)

export const STATE_NAMES = Object.keys(STATE) as readonly StateName[]

/** What happened to a message or to the socket; never who did it. */
export const EVENT = {
  /** First byte of a request (source), or its head handed to the socket (target). */
  REQUEST_BEGIN: 0,
  /** The request head is complete and a body follows. */
  REQUEST_BODY: 1,
  /** Bytes of the request body, or of a tunnel on their way to the backend. */
  REQUEST_DATA: 2,
  /** The request is complete, or the client has ended its side of a tunnel. */
  REQUEST_END: 3,
  /** A 1xx response other than 101. */
  RESPONSE_INTERIM: 4,
  /** A final response head. */
  RESPONSE_BEGIN: 5,
  /** The response head is complete and a body follows. */
  RESPONSE_BODY: 6,
  /** Bytes of the response body, or of a tunnel on their way to the client. */
  RESPONSE_DATA: 7,
  /** The response is complete, or the backend has ended its side of a tunnel. */
  RESPONSE_END: 8,
  /** 101 to a requested upgrade. */
  SWITCH: 9,
  /** The connection is kept for another message. */
  REUSE: 10,
  /** The connection carries no further message. */
  CLOSE: 11,
  /** The socket is gone, whoever closed it. */
  SOCKET_CLOSED: 12,
} as const

export type EventName = keyof typeof EVENT
export type Event = (typeof EVENT)[EventName]

export const EVENT_NAMES = Object.keys(EVENT) as readonly EventName[]
