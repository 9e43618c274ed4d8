/** The credit of a client for which bytes wait (D178). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClientPace } from '../../src/proxy/source/client-pace.ts'

const LIMITS = { socketTimeoutMs: 1000, responseRateMin: 100 }

/** One wait: [milliseconds that bytes wait, bytes that the client takes, time that it has at the start]. */
type Wait = readonly [waitedMs: number, taken: number, hasMs: number]

const CASES: readonly (readonly [what: string, limits: typeof LIMITS, ...waits: readonly Wait[]])[] = [
  ['a byte after each wait: the credit goes down', LIMITS, [400, 1, 1000], [400, 1, 610], [0, 1, 220]],
  ['as many bytes as the rate asks for: the credit stays', LIMITS, [500, 50, 1000], [500, 50, 1000], [0, 0, 1000]],
  ['many bytes: no more than the whole credit', LIMITS, [500, 100_000, 1000], [900, 1, 1000], [0, 1, 110]],
  ['no rate: each wait has the whole time', { ...LIMITS, responseRateMin: 0 }, [900, 1, 1000], [900, 1, 1000]],
]

for (const [what, limits, ...waits] of CASES) {
  test(what, () => {
    const pace = new ClientPace(limits)
    let now = 0
    let sent = 0
    for (const [waitedMs, taken, hasMs] of waits) {
      assert.equal(pace.waiting(now), hasMs)
      assert.equal(pace.isSlow(limits), hasMs < limits.socketTimeoutMs)
      now += waitedMs
      sent += taken
      // More bytes for a client that is waited for give it no more time.
      assert.equal(pace.waiting(now), Math.max(0, hasMs - waitedMs))
      pace.drained(now, sent, limits)
      now += 10_000
    }
  })
}
