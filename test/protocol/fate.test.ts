/** What a lost backend connection means, from the failure tables of the transport, written out by hand. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { transportCode } from '../../src/errors/transport-code.ts'
import {
  CONNECT_CANCELLED,
  CONNECT_FAILED,
  CONNECT_TIMED_OUT,
  FATE,
  INCOMPLETE_PAYLOAD,
  type Loss,
  POOL_FULL,
  SEND_ABORTED,
  SOURCE_RECEIVING,
  SOURCE_SENDING,
} from '../../src/protocol/fate.ts'
import { REPORTED, STATE, type StateName } from '../../src/protocol/states.ts'

const LOSSES: readonly Loss[] = ['TIMED_OUT', 'PEER_CLOSED', 'READ_ERROR', 'WRITE_ERROR', 'UNREADABLE']

// The documented code of each loss in each state; `-`: nobody waits, so nothing is reported. A star: another connection
// may be tried, if this one had served before, the method is idempotent and there is no body.
const TABLE = `
                 | TIMED_OUT | PEER_CLOSED | READ_ERROR | WRITE_ERROR | UNREADABLE
  REQUEST_READY  | -         | -           | -          | -           | 101506
  REQUEST_HEAD   | 101505    | 101506 *    | 101501 *   | 101501 *    | 101507
  REQUEST_BODY   | 101506    | 101507      | 101502     | 101502      | 101508
  REQUEST_DONE   | 101507    | 101508 *    | 101504 *   | 101504 *    | 101509
  RESPONSE_HEAD  | 101508    | 101509      | 101505     | 101505      | 101510
  RESPONSE_BODY  | 101509    | 101510      | 101506     | 101506      | 101511
  RESPONSE_DONE  | -         | -           | -          | -           | -
  CLOSING        | -         | -           | -          | -           | -
  CLOSED         | -         | -           | -          | -           | -
  EARLY_HEAD     | 101508    | 101509      | 101505     | 101505      | 101510
  EARLY_BODY     | 101509    | 101510      | 101506     | 101506      | 101511
  TUNNEL         | 101509    | 101510      | 101506     | 101506      | 101511
  TUNNEL_REPLYING| 101509    | 101510      | 101506     | 101506      | 101511
  TUNNEL_ASKING  | 101509    | 101510      | 101506     | 101506      | 101511
`

const BASES: Readonly<Record<Loss, readonly number[]>> = {
  TIMED_OUT: [101504],
  PEER_CLOSED: [101505],
  // Sending until the request is out, receiving from then on.
  READ_ERROR: [101500, 101501],
  WRITE_ERROR: [101500, 101501],
  UNREADABLE: [101506],
}

function rows(): { state: StateName; loss: Loss; code: number; retry: 'if-reused' | 'never' }[] {
  const [, ...lines] = TABLE.trim().split('\n')
  return lines.flatMap(line => {
    const [state, ...cells] = line.split('|').map(cell => cell.trim())
    assert.equal(cells.length, LOSSES.length, line)
    return cells.map((cell, column) => ({
      state: state as StateName,
      loss: LOSSES[column]!,
      code: cell === '-' ? 0 : Number(cell.split(' ')[0]),
      retry: cell.endsWith('*') ? 'if-reused' : 'never',
    }))
  })
}

const ROWS = rows()

test(`all ${ROWS.length} rows: code and retry`, () => {
  assert.equal(ROWS.length, Object.keys(STATE).length * LOSSES.length)
  for (const { state, loss, code, retry } of ROWS) {
    const fate = FATE[state][loss]
    assert.equal(transportCode(fate.base, REPORTED[STATE[state]]!), code, `${state} ${loss}`)
    assert.equal(fate.retry, retry, `${state} ${loss}`)
    if (code !== 0) assert.ok(BASES[loss].includes(fate.base), `${state} ${loss}: base ${fate.base}`)
  }
})

test('an error of reading is one of sending until the request is out', () => {
  for (const state of ['REQUEST_HEAD', 'REQUEST_BODY'] as const) assert.equal(FATE[state].READ_ERROR.base, 101500)
  for (const state of ['REQUEST_DONE', 'RESPONSE_HEAD', 'RESPONSE_BODY', 'EARLY_HEAD', 'EARLY_BODY'] as const)
    assert.equal(FATE[state].READ_ERROR.base, 101501)
})

test('a timeout is never tried again: the backend may still be at work', () => {
  for (const state of Object.keys(STATE) as StateName[]) assert.equal(FATE[state].TIMED_OUT.retry, 'never')
})

test('once a response has begun, or a body was sent, nothing is tried again', () => {
  const receiving = ['RESPONSE_HEAD', 'RESPONSE_BODY', 'EARLY_HEAD', 'EARLY_BODY'] as const
  const begun = ['REQUEST_BODY', ...receiving, 'TUNNEL', 'TUNNEL_REPLYING', 'TUNNEL_ASKING'] as const
  for (const state of begun) for (const loss of LOSSES) assert.equal(FATE[state][loss].retry, 'never')
})

test('codes of the failures that need no table', () => {
  assert.equal(transportCode(CONNECT_FAILED, 0), 101503)
  assert.equal(transportCode(CONNECT_TIMED_OUT, 0), 101508)
  assert.equal(transportCode(CONNECT_CANCELLED, 0), 101507)
  assert.equal(transportCode(POOL_FULL, 0), 101504)
  const aborted = [0, 1, 3, 4, 5].map(state => transportCode(SEND_ABORTED, state))
  assert.deepEqual(aborted, [101509, 101510, 101512, 101513, 101514])
  assert.deepEqual(
    [0, 1, 2, 3].map(state => transportCode(SOURCE_RECEIVING, state)),
    [101001, 101002, 101003, 101004],
  )
  assert.deepEqual(
    [4, 5, 6].map(state => transportCode(SOURCE_SENDING, state)),
    [101004, 101005, 101006],
  )
})

test('literals are never summed, and no error stays no error', () => {
  for (let state = 0; state <= 8; state++) {
    assert.equal(transportCode(INCOMPLETE_PAYLOAD, state), 102511)
    assert.equal(transportCode(101510, state), 101510)
    assert.equal(transportCode(0, state), 0)
  }
})
