/**
 * Every cell of both machines, from a grid written by hand after RFC 9112 and the documented states, not copied from
 * the tables.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Machine, ProtocolViolation, type Side } from '../../src/protocol/machine.ts'
import { EVENT, type Event, type EventName, REPORTED, STATE, type StateName } from '../../src/protocol/states.ts'
import { SOURCE, TARGET } from '../../src/protocol/transitions.ts'
import { stateRow } from '../../src/proxy/source/state-table.ts'

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
  'FILTERS_WAIT',
  'FILTERS_DONE',
  'PEER_END',
  'CONNECTED',
  'WRITE_FAILED',
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
  tClnt: 'TUNNEL_CLIENT_ENDED',
  tBack: 'TUNNEL_BACKEND_ENDED',
  filtr: 'FILTERS_PENDING',
  conn: 'CONNECTING',
  unwr: 'UNWRITABLE',
  uHead: 'UNWRITABLE_HEAD',
  uBody: 'UNWRITABLE_BODY',
}

// Columns: the events in the order of EVENTS, q for request, p for response. A dot: the event cannot happen in this
// state. A row of dots: the side never gets into this state.
const TARGET_GRID = `
  state | qBeg  qBody qData qEnd  pIntr pBeg  pBody pData pEnd  swtch reuse close gone  fWait fDone fin   conn  wFail
  ready | qHead .     .     .     .     .     .     .     .     .     .     leave gone  .     .     .     .     .
  qHead | .     qBody .     qDone .     .     .     .     .     .     .     leave gone  .     .     .     .     .
  qBody | .     .     qBody qDone qBody eHead .     .     .     .     .     leave gone  .     .     .     .     unwr
  qDone | .     .     .     .     qDone pHead .     .     .     tunnl .     leave gone  .     .     .     .     .
  pHead | .     .     .     .     .     .     pBody .     pDone .     .     leave gone  .     .     .     .     .
  pBody | .     .     .     .     .     .     .     pBody pDone .     .     leave gone  .     .     .     .     .
  pDone | .     .     .     .     .     .     .     .     .     .     ready leave gone  .     .     .     .     .
  leave | .     .     .     .     .     .     .     .     .     .     .     leave gone  .     .     .     .     .
  gone  | .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .
  eHead | .     .     eHead pHead .     .     eBody .     leave .     .     leave gone  .     .     .     .     .
  eBody | .     .     eBody pBody .     .     .     eBody leave .     .     leave gone  .     .     .     .     uBody
  tunnl | .     .     tunnl tClnt .     .     .     tunnl tBack .     .     leave gone  .     .     .     .     .
  tClnt | .     .     .     .     .     .     .     tClnt leave .     .     leave gone  .     .     .     .     .
  tBack | .     .     tBack leave .     .     .     .     .     .     .     leave gone  .     .     .     .     .
  filtr | .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .
  conn  | .     .     .     .     .     .     .     .     .     .     .     leave gone  .     .     .     ready .
  unwr  | .     .     .     .     unwr  uHead .     .     .     .     .     leave gone  .     .     .     .     unwr
  uHead | .     .     .     .     .     .     uBody .     leave .     .     leave gone  .     .     .     .     .
  uBody | .     .     .     .     .     .     .     uBody leave .     .     leave gone  .     .     .     .     uBody
`

const SOURCE_GRID = `
  state | qBeg  qBody qData qEnd  pIntr pBeg  pBody pData pEnd  swtch reuse close gone  fWait fDone fin   conn  wFail
  ready | qHead .     .     .     .     .     .     .     .     .     .     leave gone  .     .     ready .     .
  qHead | .     qBody .     qDone .     eHead .     .     .     .     .     leave gone  .     .     qHead .     .
  qBody | .     .     qBody qDone qBody eHead .     .     .     .     .     leave gone  filtr .     qBody .     .
  qDone | .     .     .     .     qDone pHead .     .     .     tunnl .     leave gone  qDone qDone qDone .     .
  pHead | .     .     .     .     .     .     pBody .     pDone .     .     leave gone  .     .     pHead .     .
  pBody | .     .     .     .     .     .     .     pBody pDone .     .     leave gone  .     .     pBody .     .
  pDone | .     .     .     .     .     .     .     .     .     .     ready leave gone  .     .     pDone .     .
  leave | .     .     leave leave .     .     .     .     .     .     .     leave gone  .     .     leave .     .
  gone  | .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .
  eHead | .     .     eHead pHead .     .     eBody .     leave .     .     leave gone  .     .     eHead .     .
  eBody | .     .     eBody pBody .     .     .     eBody leave .     .     leave gone  .     .     eBody .     .
  tunnl | .     .     tunnl tClnt .     .     .     tunnl tBack .     .     leave gone  .     .     .     .     .
  tClnt | .     .     .     .     .     .     .     tClnt leave .     .     leave gone  .     .     .     .     .
  tBack | .     .     tBack leave .     .     .     .     .     .     .     leave gone  .     .     .     .     .
  filtr | .     .     .     .     .     .     .     .     .     .     .     leave gone  .     qBody filtr .     .
  conn  | .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .
  unwr  | .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .
  uHead | .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .
  uBody | .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .
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

/** States that a side never gets into. */
const ABSENT: Readonly<Record<Side, readonly StateName[]>> = {
  source: ['CONNECTING', 'UNWRITABLE', 'UNWRITABLE_HEAD', 'UNWRITABLE_BODY'],
  target: ['FILTERS_PENDING'],
}

/** States in which FIN of the client leaves the state alone. */
const SOURCE_TAKES_END = Object.values(SHORT).filter(
  state => !/^(CLOSED|TUNNEL)/.test(state) && !ABSENT.source.includes(state),
)

const GRIDS: Readonly<Record<Side, readonly Cell[]>> = { source: cellsOf(SOURCE_GRID), target: cellsOf(TARGET_GRID) }

/** Events that bring a machine into a state from the start of a connection: accepted, or connected. */
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
  TUNNEL_CLIENT_ENDED: ['REQUEST_BEGIN', 'REQUEST_END', 'SWITCH', 'REQUEST_END'],
  TUNNEL_BACKEND_ENDED: ['REQUEST_BEGIN', 'REQUEST_END', 'SWITCH', 'RESPONSE_END'],
  FILTERS_PENDING: ['REQUEST_BEGIN', 'REQUEST_BODY', 'FILTERS_WAIT'],
  CONNECTING: [],
  UNWRITABLE: ['REQUEST_BEGIN', 'REQUEST_BODY', 'WRITE_FAILED'],
  UNWRITABLE_HEAD: ['REQUEST_BEGIN', 'REQUEST_BODY', 'WRITE_FAILED', 'RESPONSE_BEGIN'],
  UNWRITABLE_BODY: ['REQUEST_BEGIN', 'REQUEST_BODY', 'WRITE_FAILED', 'RESPONSE_BEGIN', 'RESPONSE_BODY'],
}

function machineIn(side: Side, state: StateName): Machine {
  const machine = new Machine(side)
  if (side === 'target' && state !== 'CONNECTING') machine.advance(EVENT.CONNECTED)
  for (const event of PATHS[state]) machine.advance(EVENT[event])
  assert.equal(machine.state, STATE[state])
  return machine
}

for (const side of ['source', 'target'] as const) {
  test(`${side}: all ${GRIDS[side].length} cells`, () => {
    assert.equal(GRIDS[side].length, Object.keys(STATE).length * EVENTS.length)
    for (const { state, event, next } of GRIDS[side].filter(cell => !ABSENT[side].includes(cell.state))) {
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

  test(`${side}: no event leads into a state that only the other side has, and none leads out of it`, () => {
    const table = side === 'source' ? SOURCE : TARGET
    for (const absent of ABSENT[side]) {
      assert.deepEqual(table[absent], {})
      assert.ok(GRIDS[side].every(({ state, next }) => next !== absent && (state !== absent || next === undefined)))
    }
  })
}

test('RFC 9112 9.6: FIN of a client changes no transition, and is remembered until the socket closes', () => {
  const cells = GRIDS.source.filter(({ state, event }) => event !== 'PEER_END' && SOURCE_TAKES_END.includes(state))
  for (const { state, event, next } of cells) {
    const machine = machineIn('source', state)
    assert.equal(machine.peerEnded, false)
    machine.advance(EVENT.PEER_END)
    assert.equal(machine.peerEnded, true)
    if (next === undefined) assert.throws(() => machine.advance(EVENT[event]), ProtocolViolation, `${state} + ${event}`)
    else assert.equal(machine.advance(EVENT[event]), STATE[next], `${state} + ${event}`)
    assert.equal(machine.peerEnded, true, `${state} + ${event}`)
    assert.equal(machine.reported, REPORTED[STATE[next ?? state]])
  }
  const again = machineIn('source', 'RESPONSE_BODY')
  for (let i = 0; i < 2; i++) assert.equal(again.advance(EVENT.PEER_END), STATE.RESPONSE_BODY)
  assert.equal(again.peerEnded, true)
})

test('the grid names every state and every event once', () => {
  assert.deepEqual(EVENTS, Object.keys(EVENT))
  for (const side of ['source', 'target'] as const) {
    const states = GRIDS[side].filter(({ event }) => event === 'CLOSE').map(({ state }) => state)
    assert.deepEqual(states, Object.keys(STATE))
  }
})

test('the sides differ in an early response, discarded bytes, FIN, filters, connecting, and failed writes', () => {
  const isOwn = ({ state, event }: Cell) =>
    /^(PEER_END|FILTERS_|CONNECTED|WRITE_FAILED)/.test(event) || ABSENT.source.includes(state)
  const differing = GRIDS.source.filter((cell, at) => !isOwn(cell) && cell.next !== GRIDS.target[at]!.next)
  assert.deepEqual(differing, [
    // An unreadable head is answered before it ends; a backend that sends before our head is out answers another one.
    { state: 'REQUEST_HEAD', event: 'RESPONSE_BEGIN', next: 'EARLY_HEAD' },
    // RFC 9112 9.6: what the client still sends is discarded.
    { state: 'CLOSING', event: 'REQUEST_DATA', next: 'CLOSING' },
    { state: 'CLOSING', event: 'REQUEST_END', next: 'CLOSING' },
    { state: 'FILTERS_PENDING', event: 'CLOSE', next: 'CLOSING' },
    { state: 'FILTERS_PENDING', event: 'SOCKET_CLOSED', next: 'CLOSED' },
  ])
})

test('while filters wait, the request can only go on, or its connection end', () => {
  for (const event of EVENTS) {
    const machine = machineIn('source', 'FILTERS_PENDING')
    if (['FILTERS_DONE', 'PEER_END', 'CLOSE', 'SOCKET_CLOSED'].includes(event)) machine.advance(EVENT[event])
    else assert.throws(() => machine.advance(EVENT[event]), ProtocolViolation, event)
  }
})

test('a state can fault exactly where a response may begin', () => {
  const canBegin = GRIDS.source.filter(({ event, next }) => event === 'RESPONSE_BEGIN' && next !== undefined)
  assert.deepEqual(
    Object.values(SHORT).filter(state => stateRow(STATE[state]).canFault),
    canBegin.map(({ state }) => state),
  )
})

test('no event is refused like an impossible one', () => {
  for (const side of ['source', 'target'] as const) {
    const machine = new Machine(side)
    const { state } = machine
    assert.throws(() => machine.advance(undefined as unknown as Event), ProtocolViolation)
    assert.equal(machine.state, state)
  }
})

test('a connection whose request never finished cannot be used again', () => {
  for (const side of ['source', 'target'] as const) {
    const early = ['EARLY_HEAD', 'EARLY_BODY'] as const
    const unwritable = side === 'target' ? (['UNWRITABLE_HEAD', 'UNWRITABLE_BODY'] as const) : []
    for (const state of [...early, ...unwritable]) {
      const machine = machineIn(side, state)
      machine.advance(EVENT.RESPONSE_END)
      assert.throws(() => machine.advance(EVENT.REUSE), ProtocolViolation)
      assert.throws(() => machine.advance(EVENT.REQUEST_BEGIN), ProtocolViolation)
    }
  }
})

test('after a failed write no event of the request follows', () => {
  for (const state of ['UNWRITABLE', 'UNWRITABLE_HEAD', 'UNWRITABLE_BODY'] as const) {
    for (const event of ['REQUEST_DATA', 'REQUEST_END', 'REQUEST_BEGIN', 'REUSE'] as const)
      assert.throws(() => machineIn('target', state).advance(EVENT[event]), ProtocolViolation, `${state} + ${event}`)
  }
})

test('before a backend is connected, its connection can only open or close', () => {
  for (const event of EVENTS) {
    const machine = machineIn('target', 'CONNECTING')
    if (['CONNECTED', 'CLOSE', 'SOCKET_CLOSED'].includes(event)) machine.advance(EVENT[event])
    else assert.throws(() => machine.advance(EVENT[event]), ProtocolViolation, event)
  }
})

test('a connection that was a tunnel carries no further message', () => {
  for (const side of ['source', 'target'] as const) {
    for (const tunnel of ['TUNNEL', 'TUNNEL_CLIENT_ENDED', 'TUNNEL_BACKEND_ENDED'] as const) {
      for (const event of ['REQUEST_BEGIN', 'RESPONSE_BEGIN', 'REUSE', 'SWITCH'] as const)
        assert.throws(() => machineIn(side, tunnel).advance(EVENT[event]), ProtocolViolation, `${tunnel} + ${event}`)
    }
  }
})

/** The culprit of an impossible event is the sender of that half of the message. */
const CULPRITS: Readonly<Record<EventName, readonly [onSource: 'peer' | 'gateway', onTarget: 'peer' | 'gateway']>> = {
  REQUEST_BEGIN: ['peer', 'gateway'],
  REQUEST_BODY: ['peer', 'gateway'],
  REQUEST_DATA: ['peer', 'gateway'],
  REQUEST_END: ['peer', 'gateway'],
  RESPONSE_INTERIM: ['gateway', 'peer'],
  RESPONSE_BEGIN: ['gateway', 'peer'],
  RESPONSE_BODY: ['gateway', 'peer'],
  RESPONSE_DATA: ['gateway', 'peer'],
  RESPONSE_END: ['gateway', 'peer'],
  SWITCH: ['gateway', 'peer'],
  REUSE: ['gateway', 'gateway'],
  CLOSE: ['gateway', 'gateway'],
  SOCKET_CLOSED: ['gateway', 'gateway'],
  FILTERS_WAIT: ['gateway', 'gateway'],
  FILTERS_DONE: ['gateway', 'gateway'],
  PEER_END: ['gateway', 'gateway'],
  CONNECTED: ['gateway', 'gateway'],
  WRITE_FAILED: ['gateway', 'gateway'],
}

test('a violation names side, state, event and culprit', () => {
  for (const [column, side] of (['source', 'target'] as const).entries()) {
    for (const event of EVENTS) {
      // CLOSED takes no event.
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
  ['TUNNEL_CLIENT_ENDED', 12, 5],
  ['TUNNEL_BACKEND_ENDED', 13, 5],
  ['FILTERS_PENDING', 14, 2],
  ['CONNECTING', 15, 0],
  ['UNWRITABLE', 16, 2],
  ['UNWRITABLE_HEAD', 17, 4],
  ['UNWRITABLE_BODY', 18, 5],
]

test('documented states keep their numbers; other states report as the nearest documented one', () => {
  assert.equal(DOCUMENTED.length, Object.keys(STATE).length)
  for (const [state, number, reported] of DOCUMENTED) {
    assert.equal(STATE[state], number)
    assert.equal(REPORTED[number], reported)
    for (const side of ['source', 'target'] as const) {
      if (!ABSENT[side].includes(state)) assert.equal(machineIn(side, state).reported, reported)
    }
  }
})
