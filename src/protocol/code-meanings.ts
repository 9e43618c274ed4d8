/**
 * Every meaning of every transport code. One code can have several: 101507 is a backend that was late, one that closed,
 * one that broke the protocol, or a cancelled connect. The list is derived from the failure tables, with a few failures
 * that have no row there (OTHERS), so each listed code can occur.
 */
import {
  INCOMPLETE_PAYLOAD,
  isLiteralCode,
  NO_MEMORY,
  POOL_FULL,
  RESPONSE_FAILED,
  SOURCE_FAILURES,
  TARGET_FAILURES,
  transportCode,
} from './failure-table.ts'
import type { Side } from './machine.ts'
import { REPORTED, STATE, STATE_NAMES } from './states.ts'

export interface CodeMeaning {
  /** Sum of base and state, as clients and logs show it. */
  readonly code: number
  readonly base: number
  /** Documented number, 0 to 8; -1 for a literal, which has none. */
  readonly state: number
  /** Name of the documented state; '' for a literal. */
  readonly stateName: string
  readonly side: Side
}

function meaning(side: Side, base: number, state: number): CodeMeaning {
  const code = transportCode(base, state)
  if (isLiteralCode(base)) return { code, base, state: -1, stateName: '', side }
  return { code, base, state, stateName: STATE_NAMES[state]!, side }
}

/** Failures without a row in the tables, with the documented state numbers in which each can happen. */
const OTHERS: readonly (readonly [Side, number, readonly number[]])[] = [
  ['target', POOL_FULL, [0]],
  ['target', NO_MEMORY, [0]],
  ['target', RESPONSE_FAILED, [0]],
  ['source', INCOMPLETE_PAYLOAD, [0]],
]

function derive(): readonly CodeMeaning[] {
  const meanings = new Map<string, CodeMeaning>()
  const add = (side: Side, base: number, state: number): void => {
    if (base !== 0) meanings.set(`${side} ${base} ${state}`, meaning(side, base, state))
  }
  for (const name of STATE_NAMES) {
    const state = REPORTED[STATE[name]]!
    for (const { base } of Object.values(TARGET_FAILURES[name])) add('target', base, state)
    for (const { base } of Object.values(SOURCE_FAILURES[name])) add('source', base, state)
  }
  for (const [side, base, states] of OTHERS) for (const state of states) add(side, base, state)
  return [...meanings.values()].sort((one, other) => one.code - other.code || other.base - one.base)
}

/** Ordered by code; meanings of the same code with the highest base first. */
export const CODE_MEANINGS = derive()
