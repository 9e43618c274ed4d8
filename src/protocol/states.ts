/**
 * Protocol states and events of a connection. The numbers 0 to 8 are documented (specification, "Transport protocol
 * states"): error codes, logs and metrics contain them, so they never change.
 */

/** Numbers of states and of events have five bits in the tables of the machine. */
const NUMBERS_MAX = 32

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
  /** Response head under way while the request is unfinished (an early response). */
  EARLY_HEAD: 9,
  /** Response body under way while the request is unfinished. */
  EARLY_BODY: 10,
  /** After 101: the bytes are no longer HTTP. */
  TUNNEL: 11,
  /** Half-closed tunnel: the client has sent FIN, the backend still sends. */
  TUNNEL_CLIENT_ENDED: 12,
  /** Half-closed tunnel: the backend has sent FIN, the client still sends. */
  TUNNEL_BACKEND_ENDED: 13,
  /** Source only: a request with a body waits for its filters; the body is not read. */
  FILTERS_PENDING: 14,
  /** Target only: the connection is being opened. */
  CONNECTING: 15,
  /** Target only: a write failed within a request body; a response may still come. */
  UNWRITABLE: 16,
  /** Target only: response head under way after a write failed. */
  UNWRITABLE_HEAD: 17,
  /** Target only: response body under way after a write failed. */
  UNWRITABLE_BODY: 18,
} as const

export type StateName = keyof typeof STATE
export type State = (typeof STATE)[StateName]

/** A state that the specification documents. */
type DocumentedState =
  | 'REQUEST_READY'
  | 'REQUEST_HEAD'
  | 'REQUEST_BODY'
  | 'REQUEST_DONE'
  | 'RESPONSE_HEAD'
  | 'RESPONSE_BODY'
  | 'RESPONSE_DONE'
  | 'CLOSING'
  | 'CLOSED'

/** The documented state as which each state appears in error codes, logs and metrics. */
const REPORTED_AS: { readonly [S in StateName]: S extends DocumentedState ? S : DocumentedState } = {
  REQUEST_READY: 'REQUEST_READY',
  REQUEST_HEAD: 'REQUEST_HEAD',
  REQUEST_BODY: 'REQUEST_BODY',
  REQUEST_DONE: 'REQUEST_DONE',
  RESPONSE_HEAD: 'RESPONSE_HEAD',
  RESPONSE_BODY: 'RESPONSE_BODY',
  RESPONSE_DONE: 'RESPONSE_DONE',
  CLOSING: 'CLOSING',
  CLOSED: 'CLOSED',
  EARLY_HEAD: 'RESPONSE_HEAD',
  EARLY_BODY: 'RESPONSE_BODY',
  TUNNEL: 'RESPONSE_BODY',
  TUNNEL_CLIENT_ENDED: 'RESPONSE_BODY',
  TUNNEL_BACKEND_ENDED: 'RESPONSE_BODY',
  FILTERS_PENDING: 'REQUEST_BODY',
  CONNECTING: 'REQUEST_READY',
  UNWRITABLE: 'REQUEST_BODY',
  UNWRITABLE_HEAD: 'RESPONSE_HEAD',
  UNWRITABLE_BODY: 'RESPONSE_BODY',
}

export const STATE_NAMES = namesOf(STATE)

/** State -> the number of its documented state. */
export const REPORTED = Uint8Array.from(STATE_NAMES, name => STATE[REPORTED_AS[name]])

/** True if a documented state is one of a response under way. */
export function hasResponse(reported: number): boolean {
  return reported === STATE.RESPONSE_HEAD || reported === STATE.RESPONSE_BODY
}

/**
 * Events name what happened to a message or to the socket, never the side that caused it. For an event that the table
 * refuses the name decides the culprit (`PEER_EVENTS` in machine.ts): REQUEST_* comes from clients, RESPONSE_* and
 * SWITCH from backends, every other event from the gateway.
 */
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

export const EVENT_NAMES = namesOf(EVENT)

/** Names in the order of their numbers, which are indexes of tables. */
function namesOf<N extends string>(numbers: Readonly<Record<N, number>>): readonly N[] {
  const names = Object.keys(numbers) as N[]
  const wrong = names.find((name, at) => numbers[name] !== at || at >= NUMBERS_MAX)
  if (wrong !== undefined) throw new Error(`${wrong}: numbers ascend by 1 from 0 to ${NUMBERS_MAX - 1}`)
  return names
}
