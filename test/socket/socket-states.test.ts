/** Every cell of the socket states, from a grid written by hand. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type SocketEvent, type SocketState, stateAfter } from '../../src/socket/socket-states.ts'

const SHORT: Readonly<Record<string, SocketState>> = {
  shake: 'HANDSHAKE',
  shakeE: 'HANDSHAKE_ENDING',
  settl: 'SETTLING',
  settlE: 'SETTLING_ENDING',
  ready: 'READY',
  writing: 'WRITING',
  block: 'BLOCKED',
  ending: 'ENDING',
  endB: 'ENDING_BLOCKED',
  shutting: 'SHUTTING',
  shut: 'SHUT',
  broken: 'BROKEN',
  leave: 'LEAVING',
  closed: 'CLOSED',
}

// A dot: the event cannot happen in this state.
const GRID = `
           SHAKEN OPEN   SEND    BLOCK DRAIN  FAIL   END    SHUT     FINISH LEAVE CLOSE
  shake    settl  ready  .       .     .      .      shakeE .        .      .     closed
  shakeE   settlE ending .       .     .      .      .      .        .      .     closed
  settl    .      ready  .       .     .      .      settlE .        .      .     closed
  settlE   .      ending .       .     .      .      .      .        .      .     closed
  ready    .      .      writing block .      broken .      shutting .      .     closed
  writing  .      .      .       block ready  broken ending .        .      leave closed
  block    .      .      writing block ready  broken endB   .        .      .     closed
  ending   .      .      ending  endB  ending broken .      shutting .      leave closed
  endB     .      .      ending  endB  ending broken .      .        .      .     closed
  shutting .      .      .       .     .      .      .      .        shut   .     closed
  shut     .      .      .       .     .      .      .      .        .      .     closed
  broken   .      .      .       .     .      .      .      .        .      .     closed
  leave    .      .      .       .     .      .      .      shutting .      .     closed
  closed   .      .      .       .     .      .      .      .        .      .     .
`

const [events = [], ...rows] = GRID.trim()
  .split('\n')
  .map(line => line.trim().split(/\s+/))

test(`all ${rows.length * events.length} cells`, () => {
  assert.equal(rows.length, Object.keys(SHORT).length)
  for (const [short, ...cells] of rows) {
    const state = SHORT[short!]!
    assert.equal(cells.length, events.length, short ?? '')
    for (const [column, cell] of cells.entries()) {
      const event = events[column] as SocketEvent
      if (cell === '.') assert.throws(() => stateAfter(state, event), /cannot take/)
      else assert.equal(stateAfter(state, event), SHORT[cell], `${state} + ${event}`)
    }
  }
})
