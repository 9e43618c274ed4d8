/**
 * Every cell of both machines, from a grid written by hand: the transport's transitions as RFC 9112 and the
 * documented states have them, not as the tables happen to be.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Machine, ProtocolViolation, type Side } from '../../src/protocol/machine.ts'
import { EVENT, type EventName, REPORTED, STATE, type StateName } from '../../src/protocol/states.ts'

const EVENTS: readonly EventName[] = [
  'REQUEST_BEGIN',
  'REQUEST_BODY',
  'REQUEST_DATA',
  'REQUEST_END',
  'RESPONSE_INTERIM',
  'RESPONSE_BEGIN',
  'RESPONSE_BODY',
  'RESPONSE_DATA',
  'RESPONSE_END',
  'SWITCH',
  'REUSE',
  'CLOSE',
  'SOCKET_CLOSED',
]

const SHORT: Readonly<Record<string, StateName>> = {
  ready: 'REQUEST_READY',
  qHead: 'REQUEST_HEAD',
  qBody: 'REQUEST_BODY',
  qDone: 'REQUEST_DONE',
  pHead: 'RESPONSE_HEAD',
  pBody: 'RESPONSE_BODY',
  pDone: 'RESPONSE_DONE',
  leave: 'CLOSING',
  gone: 'CLOSED',
  eHead: 'EARLY_HEAD',
  eBody: 'EARLY_BODY',
  tunnl: 'TUNNEL',
  tRepl: 'TUNNEL_REPLYING',
  tAsk: 'TUNNEL_ASKING',
}

// A dot: the event cannot happen in this state.
const TARGET_GRID = `
        | request: begin body  data  end   | response: interim begin body  data  end   | switch reuse close socket
  ready |          qHead .     .     .     |           .       .     .     .     .     | .      .     leave gone
  qHead |          .     qBody .     qDone |           .       .     .     .     .     | .      .     leave gone
  qBody |          .     .     qBody qDone |           qBody   eHead .     .     .     | .      .     leave gone
  qDone |          .     .     .     .     |           qDone   pHead .     .     .     | tunnl  .     leave gone
  pHead |          .     .     .     .     |           .       .     pBody .     pDone | .      .     leave gone
  pBody |          .     .     .     .     |           .       .     .     pBody pDone | .      .     leave gone
  pDone |          .     .     .     .     |           .       .     .     .     .     | .      ready leave gone
  leave |          .     .     .     .     |           .       .     .     .     .     | .      .     leave gone
  gone  |          .     .     .     .     |           .       .     .     .     .     | .      .     .     .
  eHead |          .     .     eHead pHead |           .       .     eBody .     leave | .      .     leave gone
  eBody |          .     .     eBody pBody |           .       .     .     eBody leave | .      .     leave gone
  tunnl |          .     .     tunnl tRepl |           .       .     .     tunnl tAsk  | .      .     leave gone
  tRepl |          .     .     .     .     |           .       .     .     tRepl leave | .      .     leave gone
  tAsk  |          .     .     tAsk  leave |           .       .     .     .     .     | .      .     leave gone
`

const SOURCE_GRID = `
        | request: begin body  data  end   | response: interim begin body  data  end   | switch reuse close socket
  ready |          qHead .     .     .     |           .       .     .     .     .     | .      .     leave gone
  qHead |          .     qBody .     qDone |           .       eHead .     .     .     | .      .     leave gone
  qBody |          .     .     qBody qDone |           qBody   eHead .     .     .     | .      .     leave gone
  qDone |          .     .     .     .     |           qDone   pHead .     .     .     | tunnl  .     leave gone
  pHead |          .     .     .     .     |           .       .     pBody .     pDone | .      .     leave gone
  pBody |          .     .     .     .     |           .       .     .     pBody pDone | .      .     leave gone
  pDone |          .     .     .     .     |           .       .     .     .     .     | .      ready leave gone
  leave |          .     .     leave leave |           .       .     .     .     .     | .      .     leave gone
  gone  |          .     .     .     .     |           .       .     .     .     .     | .      .     .     .
  eHead |          .     .     eHead pHead |           .       .     eBody .     leave | .      .     leave gone
  eBody |          .     .     eBody pBody |           .       .     .     eBody leave | .      .     leave gone
  tunnl |          .     .     tunnl tRepl |           .       .     .     tunnl tAsk  | .      .     leave gone
  tRepl |          .     .     .     .     |           .       .     .     tRepl leave | .      .     leave gone
  tAsk  |          .     .     tAsk  leave |           .       .     .     .     .     | .      .     leave gone
`

type Cell = { readonly state: StateName; readonly event: EventName; readonly next: StateName | undefined }

function cellsOf(grid: string): Cell[] {
  const [, ...rows] = grid.trim().split('\n')
  return rows.flatMap(row => {
    const [state, ...cells] = row.replaceAll('|', ' ').trim().split(/\s+/)
    assert.equal(cells.length, EVENTS.length, row)
    return cells.map((next, column) => ({
      state: SHORT[state!]!,
      event: EVENTS[column]!,
      next: next === '.' ? undefined : SHORT[next]!,
    }))
  })
}

const GRIDS: Readonly<Record<Side, readonly Cell[]>> = { source: cellsOf(SOURCE_GRID), target: cellsOf(TARGET_GRID) }

/** How a new machine gets into a state. */
const PATHS: Readonly<Record<StateName, readonly EventName[]>> = {
  REQUEST_READY: [],
  REQUEST_HEAD: ['REQUEST_BEGIN'],
  REQUEST_BODY: ['REQUEST_BEGIN', 'REQUEST_BODY'],
  REQUEST_DONE: ['REQUEST_BEGIN', 'REQUEST_END'],
  RESPONSE_HEAD: ['REQUEST_BEGIN', 'REQUEST_END', 'RESPONSE_BEGIN'],
  RESPONSE_BODY: ['REQUEST_BEGIN', 'REQUEST_END', 'RESPONSE_BEGIN', 'RESPONSE_BODY'],
  RESPONSE_DONE: ['REQUEST_BEGIN', 'REQUEST_END', 'RESPONSE_BEGIN', 'RESPONSE_END'],
  CLOSING: ['CLOSE'],
  CLOSED: ['SOCKET_CLOSED'],
  EARLY_HEAD: ['REQUEST_BEGIN', 'REQUEST_BODY', 'RESPONSE_BEGIN'],
  EARLY_BODY: ['REQUEST_BEGIN', 'REQUEST_BODY', 'RESPONSE_BEGIN', 'RESPONSE_BODY'],
  TUNNEL: ['REQUEST_BEGIN', 'REQUEST_END', 'SWITCH'],
  TUNNEL_REPLYING: ['REQUEST_BEGIN', 'REQUEST_END', 'SWITCH', 'REQUEST_END'],
  TUNNEL_ASKING: ['REQUEST_BEGIN', 'REQUEST_END', 'SWITCH', 'RESPONSE_END'],
}

function machineIn(side: Side, state: StateName): Machine {
  const machine = new Machine(side)
  for (const event of PATHS[state]) machine.advance(EVENT[event])
  assert.equal(machine.state, STATE[state])
  return machine
}

for (const side of ['source', 'target'] as const) {
  test(`${side}: all ${GRIDS[side].length} cells`, () => {
    assert.equal(GRIDS[side].length, 182)
    for (const { state, event, next } of GRIDS[side]) {
      const machine = machineIn(side, state)
      if (next !== undefined) {
        assert.equal(machine.advance(EVENT[event]), STATE[next], `${state} + ${event}`)
        assert.equal(machine.state, STATE[next], `${state} + ${event}`)
      } else {
        assert.throws(() => machine.advance(EVENT[event]), ProtocolViolation, `${state} + ${event}`)
        assert.equal(machine.state, STATE[state], `${state} + ${event} must leave the state alone`)
      }
    }
  })
}

test('the grid names every state and every event once', () => {
  assert.deepEqual(EVENTS, Object.keys(EVENT))
  for (const side of ['source', 'target'] as const) {
    const states = GRIDS[side].filter(({ event }) => event === 'CLOSE').map(({ state }) => state)
    assert.deepEqual(states, Object.keys(STATE))
  }
})

test('the sides differ in three cells', () => {
  const differing = GRIDS.source.filter(({ next }, at) => next !== GRIDS.target[at]!.next)
  assert.deepEqual(differing, [
    // An unreadable head is answered before it ends; a backend that speaks before our head is out means another.
    { state: 'REQUEST_HEAD', event: 'RESPONSE_BEGIN', next: 'EARLY_HEAD' },
    // RFC 9112 9.6: what the client still sends is discarded.
    { state: 'CLOSING', event: 'REQUEST_DATA', next: 'CLOSING' },
    { state: 'CLOSING', event: 'REQUEST_END', next: 'CLOSING' },
  ])
})

test('a connection whose request never finished cannot be used again', () => {
  for (const side of ['source', 'target'] as const) {
    for (const early of ['EARLY_HEAD', 'EARLY_BODY'] as const) {
      const machine = machineIn(side, early)
      machine.advance(EVENT.RESPONSE_END)
      assert.throws(() => machine.advance(EVENT.REUSE), ProtocolViolation)
      assert.throws(() => machine.advance(EVENT.REQUEST_BEGIN), ProtocolViolation)
    }
  }
})

test('a connection that was a tunnel carries no further message', () => {
  for (const side of ['source', 'target'] as const) {
    for (const tunnel of ['TUNNEL', 'TUNNEL_REPLYING', 'TUNNEL_ASKING'] as const) {
      for (const event of ['REQUEST_BEGIN', 'RESPONSE_BEGIN', 'REUSE', 'SWITCH'] as const)
        assert.throws(() => machineIn(side, tunnel).advance(EVENT[event]), ProtocolViolation, `${tunnel} + ${event}`)
    }
  }
})

/** Who is to blame for an impossible event: whoever sends that half of the message. */
const CULPRITS: Readonly<Record<EventName, readonly [onSource: 'peer' | 'us', onTarget: 'peer' | 'us']>> = {
  REQUEST_BEGIN: ['peer', 'us'],
  REQUEST_BODY: ['peer', 'us'],
  REQUEST_DATA: ['peer', 'us'],
  REQUEST_END: ['peer', 'us'],
  RESPONSE_INTERIM: ['us', 'peer'],
  RESPONSE_BEGIN: ['us', 'peer'],
  RESPONSE_BODY: ['us', 'peer'],
  RESPONSE_DATA: ['us', 'peer'],
  RESPONSE_END: ['us', 'peer'],
  SWITCH: ['us', 'peer'],
  REUSE: ['us', 'us'],
  CLOSE: ['us', 'us'],
  SOCKET_CLOSED: ['us', 'us'],
}

test('a violation names side, state, event and culprit', () => {
  for (const [column, side] of (['source', 'target'] as const).entries()) {
    for (const event of EVENTS) {
      // Nothing can happen to a connection that is gone.
      const machine = machineIn(side, 'CLOSED')
      assert.throws(
        () => machine.advance(EVENT[event]),
        (error: unknown) => {
          assert.ok(error instanceof ProtocolViolation)
          assert.equal(error.name, 'ProtocolViolation')
          assert.equal(error.side, side)
          assert.equal(error.state, STATE.CLOSED)
          assert.equal(error.event, EVENT[event])
          assert.equal(error.culprit, CULPRITS[event][column], `${side} ${event}`)
          assert.equal(error.message, `${side} connection in CLOSED cannot take ${event}`)
          return true
        },
      )
    }
  }
})

const DOCUMENTED: readonly (readonly [StateName, number, number])[] = [
  ['REQUEST_READY', 0, 0],
  ['REQUEST_HEAD', 1, 1],
  ['REQUEST_BODY', 2, 2],
  ['REQUEST_DONE', 3, 3],
  ['RESPONSE_HEAD', 4, 4],
  ['RESPONSE_BODY', 5, 5],
  ['RESPONSE_DONE', 6, 6],
  ['CLOSING', 7, 7],
  ['CLOSED', 8, 8],
  ['EARLY_HEAD', 9, 4],
  ['EARLY_BODY', 10, 5],
  ['TUNNEL', 11, 5],
  ['TUNNEL_REPLYING', 12, 5],
  ['TUNNEL_ASKING', 13, 5],
]

test('states keep their documented numbers; those of our own report as the nearest', () => {
  assert.equal(DOCUMENTED.length, Object.keys(STATE).length)
  for (const [state, number, reported] of DOCUMENTED) {
    assert.equal(STATE[state], number)
    assert.equal(REPORTED[number], reported)
    assert.equal(machineIn('source', state).reported, reported)
    assert.equal(machineIn('target', state).reported, reported)
  }
})
