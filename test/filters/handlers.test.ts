/** Synchronous handlers that are ended at their time limit. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HandledExchange } from '../../src/filters/handled-exchange.ts'
import { HandlersFilter } from '../../src/filters/handlers.ts'
import { ModuleStates } from '../../src/runtime/module-states.ts'

for (const [what, waitedMs, isIsolated] of [
  ['that has computed', 100, true],
  ['that has had no processor', 480, false],
] as const) {
  test(`a synchronous handler ${what} until its limit is ${isIsolated ? '' : 'not '}isolated`, () => {
    const events: string[] = []
    let nowMs = 0
    const states = new ModuleStates(ModuleStates.allocate(1, 1), 1)
    const handler = { name: 'h', path: 'h.mjs', phases: ['response'], module: { response: () => undefined } } as const
    const filter = new HandlersFilter([handler], {
      report: (_, event) => events.push(event),
      nowMs: () => nowMs,
      states,
      reactor: 0,
      notificationsMax: 1,
      synchronous: {
        limitMs: 500,
        // The call is ended: it has no result.
        run: () => {
          nowMs += 500
        },
        owned: (_, call) => call(),
        ended: () => waitedMs,
      },
      run: () => assert.fail(),
    })
    const run = { facts: () => ({ phase: 'response' }) } as unknown as HandledExchange
    filter.later('response', run, 200, { named: () => undefined, all: () => [] })
    assert.deepEqual(events, isIsolated ? ['handler failed', 'handler isolated'] : ['handler failed'])
    assert.equal(states.isIsolated(0), isIsolated)
  })
}
