/**
 * The whole protocol. Rule: everything that decides which state follows which stands in these two tables; a cell that
 * is missing is a transition that cannot happen. `satisfies Table` makes a missing row or a misspelt cell a compile
 * error. test/protocol/transitions.test.ts asserts all 364 cells from a grid written by hand.
 */
import type { EventName, StateName } from './states.ts'

export type Table = { readonly [S in StateName]: { readonly [E in EventName]?: StateName } }

/** A connection may be given up or lost in every state but CLOSED. */
const HANG_UP = { CLOSE: 'CLOSING', SOCKET_CLOSED: 'CLOSED' } as const

/** Backend connection: we send the request, the peer sends the response. */
export const TARGET = {
  REQUEST_READY: { REQUEST_BEGIN: 'REQUEST_HEAD', ...HANG_UP },
  REQUEST_HEAD: { REQUEST_BODY: 'REQUEST_BODY', REQUEST_END: 'REQUEST_DONE', ...HANG_UP },
  REQUEST_BODY: {
    REQUEST_DATA: 'REQUEST_BODY',
    REQUEST_END: 'REQUEST_DONE',
    RESPONSE_INTERIM: 'REQUEST_BODY',
    RESPONSE_BEGIN: 'EARLY_HEAD',
    ...HANG_UP,
  },
  REQUEST_DONE: { RESPONSE_INTERIM: 'REQUEST_DONE', RESPONSE_BEGIN: 'RESPONSE_HEAD', SWITCH: 'TUNNEL', ...HANG_UP },
  RESPONSE_HEAD: { RESPONSE_BODY: 'RESPONSE_BODY', RESPONSE_END: 'RESPONSE_DONE', ...HANG_UP },
  RESPONSE_BODY: { RESPONSE_DATA: 'RESPONSE_BODY', RESPONSE_END: 'RESPONSE_DONE', ...HANG_UP },
  RESPONSE_DONE: { REUSE: 'REQUEST_READY', ...HANG_UP },
  // The desync rule: a connection whose request never finished cannot reach REUSE, so nobody has to remember it (D6).
  EARLY_HEAD: {
    REQUEST_DATA: 'EARLY_HEAD',
    REQUEST_END: 'RESPONSE_HEAD',
    RESPONSE_BODY: 'EARLY_BODY',
    RESPONSE_END: 'CLOSING',
    ...HANG_UP,
  },
  EARLY_BODY: {
    REQUEST_DATA: 'EARLY_BODY',
    REQUEST_END: 'RESPONSE_BODY',
    RESPONSE_DATA: 'EARLY_BODY',
    RESPONSE_END: 'CLOSING',
    ...HANG_UP,
  },
  // Two directions, each with an end of its own; nothing comes behind them.
  TUNNEL: {
    REQUEST_DATA: 'TUNNEL',
    REQUEST_END: 'TUNNEL_REPLYING',
    RESPONSE_DATA: 'TUNNEL',
    RESPONSE_END: 'TUNNEL_ASKING',
    ...HANG_UP,
  },
  TUNNEL_REPLYING: { RESPONSE_DATA: 'TUNNEL_REPLYING', RESPONSE_END: 'CLOSING', ...HANG_UP },
  TUNNEL_ASKING: { REQUEST_DATA: 'TUNNEL_ASKING', REQUEST_END: 'CLOSING', ...HANG_UP },
  CLOSING: HANG_UP,
  CLOSED: {},
} as const satisfies Table

/** Client connection: the same cycle with the sides swapped, and three cells more. */
export const SOURCE = {
  ...TARGET,
  // An unreadable head is answered (400, 414, 431, 505) before it ends. On the target side the missing cell is a
  // defence: a backend that speaks before our head is out is answering somebody else's request.
  REQUEST_HEAD: { ...TARGET.REQUEST_HEAD, RESPONSE_BEGIN: 'EARLY_HEAD' },
  // RFC 9112 9.6: discard what the client still sends, or a reset may overtake our last response.
  CLOSING: { ...TARGET.CLOSING, REQUEST_DATA: 'CLOSING', REQUEST_END: 'CLOSING' },
} as const satisfies Table
