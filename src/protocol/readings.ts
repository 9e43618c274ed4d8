/**
 * Every reading of every transport code. A code is base + state, and the sum cannot be taken apart again: 101507 is a
 * back end that was late, one that closed, one that broke the protocol, or a connect that was cancelled. Derived from
 * the failure tables, so that a code that is read is one that can occur.
 */
import { transportCode } from '../errors/transport-code.ts'
import {
  CONNECT_CANCELLED,
  CONNECT_FAILED,
  CONNECT_TIMED_OUT,
  FATE,
  INCOMPLETE_PAYLOAD,
  POOL_FULL,
  RESPONSE_FAILED,
  SEND_ABORTED,
  SOURCE_RECEIVING,
  SOURCE_SENDING,
} from './fate.ts'
import type { Side } from './machine.ts'
import { REPORTED, STATE, STATE_NAMES } from './states.ts'

export interface Reading {
  /** What the client and the log show. */
  readonly code: number
  readonly base: number
  /** Documented number, 0 to 8; -1 for a literal, which has none. */
  readonly state: number
  /** Name of the documented state; '' for a literal. */
  readonly stateName: string
  readonly side: Side
  /** No connection was left to open: 101504 + 0 besides its reading as a time-out. */
  readonly isPoolFull: boolean
}

function reading(side: Side, base: number, state: number): Reading {
  const code = transportCode(base, state)
  // What is not summed has no state to tell.
  const isLiteral = base === RESPONSE_FAILED || base === INCOMPLETE_PAYLOAD
  const isPoolFull = side === 'target' && base === POOL_FULL && state === STATE.REQUEST_READY
  if (isLiteral) return { code, base, state: -1, stateName: '', side, isPoolFull }
  return { code, base, state, stateName: STATE_NAMES[state]!, side, isPoolFull }
}

/** Failures that need no row of `FATE`: documented state numbers in which each can happen. */
const BESIDES: readonly (readonly [Side, number, readonly number[]])[] = [
  ['target', CONNECT_FAILED, [0]],
  ['target', CONNECT_TIMED_OUT, [0]],
  ['target', CONNECT_CANCELLED, [0]],
  ['target', POOL_FULL, [0]],
  // Before there is a connection, giving up is called cancelling.
  ['target', SEND_ABORTED, [1, 2, 3, 4, 5]],
  ['target', RESPONSE_FAILED, [0]],
  // 4 and 5: the body of a request that was answered early turns out to be malformed.
  ['source', SOURCE_RECEIVING, [0, 1, 2, 3, 4, 5]],
  // 7: the end of a response still waits for a client that takes nothing. 6 is over before anything can happen.
  ['source', SOURCE_SENDING, [4, 5, 7]],
  ['source', INCOMPLETE_PAYLOAD, [0]],
]

function derive(): readonly Reading[] {
  const readings = new Map<string, Reading>()
  const add = (found: Reading): void => {
    readings.set(`${found.side} ${found.base} ${found.state}`, found)
  }
  for (const name of STATE_NAMES) {
    for (const { base } of Object.values(FATE[name])) {
      if (base !== 0) add(reading('target', base, REPORTED[STATE[name]]!))
    }
  }
  for (const [side, base, states] of BESIDES) for (const state of states) add(reading(side, base, state))
  return [...readings.values()].sort((one, other) => one.code - other.code || other.base - one.base)
}

/** By code; of one code the base that needs the least added to it first. */
export const READINGS = derive()
