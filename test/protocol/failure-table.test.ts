/** Failure tables of both sides, written out by hand from the documented transport codes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type ClientLoss,
  CONNECT_CANCELLED,
  CONNECT_FAILED,
  CONNECT_TIMED_OUT,
  INCOMPLETE_PAYLOAD,
  type Loss,
  NO_MEMORY,
  POOL_FULL,
  SEND_ABORTED,
  SOURCE_FAILURES,
  SOURCE_RECEIVING,
  SOURCE_SENDING,
  TARGET_FAILURES,
  transportCode,
} from '../../src/protocol/failure-table.ts'
import { REPORTED, STATE, type StateName } from '../../src/protocol/states.ts'

const LOSSES: readonly Loss[] = ['TIMED_OUT', 'PEER_CLOSED', 'READ_ERROR', 'WRITE_ERROR', 'UNREADABLE', 'CLIENT_LEFT']

// Documented code of each loss in each state; `-`: no exchange waits, so nothing is reported. A star: another
// connection may be tried if this one has served before, the method is idempotent and the request has no body.
const TABLE = `
                       | TIMED_OUT   | PEER_CLOSED | READ_ERROR  | WRITE_ERROR | UNREADABLE  | CLIENT_LEFT
  REQUEST_READY        | -           | -           | -           | -           | 101506      | -
  REQUEST_HEAD         | 101505      | 101506 *    | 101501 *    | 101501 *    | 101507      | 101510
  REQUEST_BODY         | 101506      | 101507      | 101502      | 101502      | 101508      | 101511
  REQUEST_DONE         | 101507      | 101508 *    | 101504 *    | 101504 *    | 101509      | 101512
  RESPONSE_HEAD        | 101508      | 101509      | 101505      | 101505      | 101510      | 101513
  RESPONSE_BODY        | 101509      | 101510      | 101506      | 101506      | 101511      | 101514
  RESPONSE_DONE        | -           | -           | -           | -           | -           | -
  CLOSING              | -           | -           | -           | -           | -           | -
  CLOSED               | -           | -           | -           | -           | -           | -
  EARLY_HEAD           | 101508      | 101509      | 101505      | 101505      | 101510      | 101513
  EARLY_BODY           | 101509      | 101510      | 101506      | 101506      | 101511      | 101514
  TUNNEL               | 101509      | 101510      | 101506      | 101506      | 101511      | 101514
  TUNNEL_CLIENT_ENDED  | 101509      | 101510      | 101506      | 101506      | 101511      | 101514
  TUNNEL_BACKEND_ENDED | 101509      | 101510      | 101506      | 101506      | 101511      | 101514
  FILTERS_PENDING      | -           | -           | -           | -           | -           | -
  CONNECTING           | 101508      | 101503      | 101503      | 101503      | 101503      | 101507
  UNWRITABLE           | 101502      | 101502      | 101502      | 101502      | 101508      | 101511
  UNWRITABLE_HEAD      | 101505      | 101505      | 101505      | 101505      | 101510      | 101513
  UNWRITABLE_BODY      | 101506      | 101506      | 101506      | 101506      | 101511      | 101514
`

const BASES: Readonly<Record<Loss, readonly number[]>> = {
  TIMED_OUT: [101504],
  PEER_CLOSED: [101505],
  // Sending until the request is out, receiving from then on.
  READ_ERROR: [101500, 101501],
  WRITE_ERROR: [101500, 101501],
  UNREADABLE: [101506],
  CLIENT_LEFT: [101509],
}

/** Bases of every loss in a state, where they differ from those above. */
const OTHER_BASES: Readonly<Partial<Record<StateName, readonly number[]>>> = {
  CONNECTING: [CONNECT_FAILED, CONNECT_TIMED_OUT, CONNECT_CANCELLED],
  // The failed write is the cause of every loss behind it.
  UNWRITABLE: [101500, 101506, 101509],
  UNWRITABLE_HEAD: [101501, 101506, 101509],
  UNWRITABLE_BODY: [101501, 101506, 101509],
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
    const row = TARGET_FAILURES[state][loss]
    assert.equal(transportCode(row.base, REPORTED[STATE[state]]!), code, `${state} ${loss}`)
    assert.equal(row.retry, retry, `${state} ${loss}`)
    const bases = OTHER_BASES[state] ?? BASES[loss]
    if (code !== 0) assert.ok(bases.includes(row.base), `${state} ${loss}: base ${row.base}`)
  }
})

test('an error of reading is one of sending until the request is out', () => {
  for (const state of ['REQUEST_HEAD', 'REQUEST_BODY'] as const)
    assert.equal(TARGET_FAILURES[state].READ_ERROR.base, 101500)
  for (const state of ['REQUEST_DONE', 'RESPONSE_HEAD', 'RESPONSE_BODY', 'EARLY_HEAD', 'EARLY_BODY'] as const)
    assert.equal(TARGET_FAILURES[state].READ_ERROR.base, 101501)
})

test('a timeout is never tried again: the backend may still be at work', () => {
  for (const state of Object.keys(STATE) as StateName[]) assert.equal(TARGET_FAILURES[state].TIMED_OUT.retry, 'never')
})

test('once a response has begun, or a body was sent, nothing is tried again', () => {
  const receiving = ['RESPONSE_HEAD', 'RESPONSE_BODY', 'EARLY_HEAD', 'EARLY_BODY'] as const
  const begun = ['REQUEST_BODY', ...receiving, 'TUNNEL', 'TUNNEL_CLIENT_ENDED', 'TUNNEL_BACKEND_ENDED'] as const
  for (const state of begun) for (const loss of LOSSES) assert.equal(TARGET_FAILURES[state][loss].retry, 'never')
})

// Documented code of each loss of a client in each state; `-`: no exchange is under way.
const SOURCE_TABLE = `
                       | DISCONNECTED | TIMED_OUT | ABORTED | UNREADABLE
  REQUEST_READY        | -            | 101001    | 101001  | 101001
  REQUEST_HEAD         | 101002       | 101002    | 101002  | 101002
  REQUEST_BODY         | 101003       | 101003    | 101003  | 101003
  REQUEST_DONE         | 101004       | 101004    | 101004  | 101004
  RESPONSE_HEAD        | 101004       | 101004    | 101004  | 101005
  RESPONSE_BODY        | 101005       | 101005    | 101005  | 101006
  RESPONSE_DONE        | -            | -         | -       | -
  CLOSING              | -            | 101007    | 101007  | -
  CLOSED               | -            | -         | -       | -
  EARLY_HEAD           | 101004       | 101004    | 101004  | 101005
  EARLY_BODY           | 101005       | 101005    | 101005  | 101006
  TUNNEL               | 101005       | 101005    | 101005  | 101006
  TUNNEL_CLIENT_ENDED  | 101005       | 101005    | 101005  | 101006
  TUNNEL_BACKEND_ENDED | 101005       | 101005    | 101005  | 101006
  FILTERS_PENDING      | 101003       | 101003    | 101003  | 101003
  CONNECTING           | -            | -         | -       | -
  UNWRITABLE           | -            | -         | -       | -
  UNWRITABLE_HEAD      | -            | -         | -       | -
  UNWRITABLE_BODY      | -            | -         | -       | -
`
const CLIENT_LOSSES: readonly ClientLoss[] = ['DISCONNECTED', 'TIMED_OUT', 'ABORTED', 'UNREADABLE']

test('every loss of a client has its documented code', () => {
  const [, ...lines] = SOURCE_TABLE.trim().split('\n')
  assert.equal(lines.length, Object.keys(STATE).length)
  for (const line of lines) {
    const [name, ...cells] = line.split('|').map(cell => cell.trim())
    const state = name as StateName
    for (const [column, cell] of cells.entries()) {
      const { base } = SOURCE_FAILURES[state][CLIENT_LOSSES[column]!]
      const code = transportCode(base, base === 0 ? 0 : REPORTED[STATE[state]]!)
      assert.equal(code, cell === '-' ? 0 : Number(cell), `${state} ${CLIENT_LOSSES[column]}`)
    }
  }
})

test('a client that disconnects while idle, or leaves a tunnel, is no warning', () => {
  for (const state of Object.keys(STATE) as StateName[]) {
    const { base, level, event } = SOURCE_FAILURES[state].DISCONNECTED
    const isQuiet = base === 0 || state.startsWith('TUNNEL')
    assert.equal(level, isQuiet ? 'debug' : 'warn', state)
    const busy = isQuiet ? 'client left its tunnel' : 'client connection lost'
    assert.equal(event, base === 0 ? 'idle client connection lost' : busy, state)
  }
})

test('codes of the failures that need no table', () => {
  assert.equal(transportCode(CONNECT_FAILED, 0), 101503)
  assert.equal(transportCode(CONNECT_TIMED_OUT, 0), 101508)
  assert.equal(transportCode(CONNECT_CANCELLED, 0), 101507)
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

test('101600 and 101601 are no sum of a documented base code and a state', () => {
  const bases = [101000, 101001, 101500, 101501, 101503, 101504, 101505, 101506, 101507, 101508, 101509, 101510, 102511]
  const sums = bases.flatMap(base => Array.from({ length: 9 }, (_, state) => base + state))
  for (const code of [POOL_FULL, NO_MEMORY]) {
    assert.ok(!sums.includes(code), String(code))
    for (let state = 0; state <= 8; state++) assert.equal(transportCode(code, state), code)
  }
})

test('literals are never summed, and no error stays no error', () => {
  for (let state = 0; state <= 8; state++) {
    assert.equal(transportCode(INCOMPLETE_PAYLOAD, state), 102511)
    assert.equal(transportCode(101510, state), 101510)
    assert.equal(transportCode(0, state), 0)
  }
})
