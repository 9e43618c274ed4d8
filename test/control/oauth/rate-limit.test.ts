/** Rate limit and lockout with a settable clock. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Lockout, RateLimiter } from '../../../src/control/oauth/rate-limit.ts'

const REFUSED = { name: 'OAuthError', status: 429 }

test('a clock that is set back ends a limit and a lock, and never prolongs them', () => {
  let nowMs = 7_200_000
  const limiter = new RateLimiter(() => nowMs)
  const lockout = new Lockout(() => nowMs)
  limiter.count('address', 1)
  assert.equal(lockout.failed('user', 1, 1000), true)
  assert.throws(() => limiter.count('address', 1), REFUSED)
  assert.throws(() => limiter.check('address', 1), REFUSED)
  assert.throws(() => lockout.check('user', 1), REFUSED)
  nowMs = 0
  lockout.check('user', 1)
  limiter.check('address', 1)
  limiter.count('address', 1)
  assert.throws(() => limiter.count('address', 1), REFUSED)
})
