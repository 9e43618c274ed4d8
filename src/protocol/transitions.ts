/**
 * Transition tables of both sides: the whole protocol. A missing cell is a transition that cannot happen. `satisfies
 * Table` makes a missing row or a misspelt cell a compile error; test/protocol/transitions.test.ts asserts every cell
 * from a grid written by hand.
 */
import type { EventName, StateName } from './states.ts'

export type Table = { readonly [S in StateName]: { readonly [E in EventName]?: StateName } }

/** A connection can be given up or lost in every state but CLOSED. */
const HANG_UP = { CLOSE: 'CLOSING', SOCKET_CLOSED: 'CLOSED' } as const

/** Rows of both sides; the target side adds WRITE_FAILED, the source side FILTERS_WAIT and PEER_END. */
const REQUEST_BODY = {
  REQUEST_DATA: 'REQUEST_BODY',
  REQUEST_END: 'REQUEST_DONE',
  RESPONSE_INTERIM: 'REQUEST_BODY',
  RESPONSE_BEGIN: 'EARLY_HEAD',
  ...HANG_UP,
} as const
const EARLY_BODY = {
  REQUEST_DATA: 'EARLY_BODY',
  REQUEST_END: 'RESPONSE_BODY',
  RESPONSE_DATA: 'EARLY_BODY',
  RESPONSE_END: 'CLOSING',
  ...HANG_UP,
} as const

/** Backend connection: the gateway sends the request, the peer sends the response. */
export const TARGET = {
  CONNECTING: { CONNECTED: 'REQUEST_READY', ...HANG_UP },
  REQUEST_READY: { REQUEST_BEGIN: 'REQUEST_HEAD', ...HANG_UP },
  REQUEST_HEAD: { REQUEST_BODY: 'REQUEST_BODY', REQUEST_END: 'REQUEST_DONE', ...HANG_UP },
  REQUEST_BODY: { ...REQUEST_BODY, WRITE_FAILED: 'UNWRITABLE' },
  REQUEST_DONE: { RESPONSE_INTERIM: 'REQUEST_DONE', RESPONSE_BEGIN: 'RESPONSE_HEAD', SWITCH: 'TUNNEL', ...HANG_UP },
  RESPONSE_HEAD: { RESPONSE_BODY: 'RESPONSE_BODY', RESPONSE_END: 'RESPONSE_DONE', ...HANG_UP },
  RESPONSE_BODY: { RESPONSE_DATA: 'RESPONSE_BODY', RESPONSE_END: 'RESPONSE_DONE', ...HANG_UP },
  RESPONSE_DONE: { REUSE: 'REQUEST_READY', ...HANG_UP },
  // Desync rule (D6): a connection whose request never finished cannot reach REUSE.
  EARLY_HEAD: {
    REQUEST_DATA: 'EARLY_HEAD',
    REQUEST_END: 'RESPONSE_HEAD',
    RESPONSE_BODY: 'EARLY_BODY',
    RESPONSE_END: 'CLOSING',
    ...HANG_UP,
  },
  EARLY_BODY: { ...EARLY_BODY, WRITE_FAILED: 'UNWRITABLE_BODY' },
  // The backend takes no more of the request, but may have responded already. No event of the request follows, so
  // these connections cannot reach REUSE either.
  UNWRITABLE: {
    RESPONSE_INTERIM: 'UNWRITABLE',
    RESPONSE_BEGIN: 'UNWRITABLE_HEAD',
    WRITE_FAILED: 'UNWRITABLE',
    ...HANG_UP,
  },
  UNWRITABLE_HEAD: { RESPONSE_BODY: 'UNWRITABLE_BODY', RESPONSE_END: 'CLOSING', ...HANG_UP },
  UNWRITABLE_BODY: {
    RESPONSE_DATA: 'UNWRITABLE_BODY',
    RESPONSE_END: 'CLOSING',
    WRITE_FAILED: 'UNWRITABLE_BODY',
    ...HANG_UP,
  },
  // Each direction of a tunnel ends by itself; no message follows.
  TUNNEL: {
    REQUEST_DATA: 'TUNNEL',
    REQUEST_END: 'TUNNEL_CLIENT_ENDED',
    RESPONSE_DATA: 'TUNNEL',
    RESPONSE_END: 'TUNNEL_BACKEND_ENDED',
    ...HANG_UP,
  },
  TUNNEL_CLIENT_ENDED: { RESPONSE_DATA: 'TUNNEL_CLIENT_ENDED', RESPONSE_END: 'CLOSING', ...HANG_UP },
  TUNNEL_BACKEND_ENDED: { REQUEST_DATA: 'TUNNEL_BACKEND_ENDED', REQUEST_END: 'CLOSING', ...HANG_UP },
  CLOSING: HANG_UP,
  CLOSED: {},
  FILTERS_PENDING: {},
} as const satisfies Table

/** Client connection: the same cycle with the sides swapped, plus the cells that only a client needs. */
export const SOURCE = {
  // RFC 9112 9.6: a client that has sent FIN still gets its responses, so PEER_END leaves the state alone.
  REQUEST_READY: { ...TARGET.REQUEST_READY, PEER_END: 'REQUEST_READY' },
  // An unreadable head is answered (400, 414, 431, 505) before it ends. On the target side this cell is missing: a
  // backend that sends before its request head is sent answers another request.
  REQUEST_HEAD: { ...TARGET.REQUEST_HEAD, RESPONSE_BEGIN: 'EARLY_HEAD', PEER_END: 'REQUEST_HEAD' },
  REQUEST_BODY: { ...REQUEST_BODY, FILTERS_WAIT: 'FILTERS_PENDING', PEER_END: 'REQUEST_BODY' },
  FILTERS_PENDING: { FILTERS_DONE: 'REQUEST_BODY', PEER_END: 'FILTERS_PENDING', ...HANG_UP },
  // Without a body nothing has to wait with the request: the state stays.
  REQUEST_DONE: {
    ...TARGET.REQUEST_DONE,
    FILTERS_WAIT: 'REQUEST_DONE',
    FILTERS_DONE: 'REQUEST_DONE',
    PEER_END: 'REQUEST_DONE',
  },
  RESPONSE_HEAD: { ...TARGET.RESPONSE_HEAD, PEER_END: 'RESPONSE_HEAD' },
  RESPONSE_BODY: { ...TARGET.RESPONSE_BODY, PEER_END: 'RESPONSE_BODY' },
  RESPONSE_DONE: { ...TARGET.RESPONSE_DONE, PEER_END: 'RESPONSE_DONE' },
  EARLY_HEAD: { ...TARGET.EARLY_HEAD, PEER_END: 'EARLY_HEAD' },
  EARLY_BODY: { ...EARLY_BODY, PEER_END: 'EARLY_BODY' },
  TUNNEL: TARGET.TUNNEL,
  TUNNEL_CLIENT_ENDED: TARGET.TUNNEL_CLIENT_ENDED,
  TUNNEL_BACKEND_ENDED: TARGET.TUNNEL_BACKEND_ENDED,
  // RFC 9112 9.6: discard what the client still sends, or a reset may overtake the last response.
  CLOSING: { REQUEST_DATA: 'CLOSING', REQUEST_END: 'CLOSING', PEER_END: 'CLOSING', ...HANG_UP },
  CLOSED: {},
  CONNECTING: {},
  UNWRITABLE: {},
  UNWRITABLE_HEAD: {},
  UNWRITABLE_BODY: {},
} as const satisfies Table
