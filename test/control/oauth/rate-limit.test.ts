/** Rate limit and lockout with a settable clock. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Context } from 'hono'
import type { KeyManager } from '../../../src/control/oauth/key-manager.ts'
import { countRequest, Lockout, RateLimiter } from '../../../src/control/oauth/rate-limit.ts'

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

test('requests of one IPv6 network count against one limit, and the address stays whole for the log', () => {
  const rateLimiter = new RateLimiter(() => 0)
  const manager = { rateLimiter, settings: { limits: { perAddress: 2 } } } as unknown as KeyManager
  const count = (clientAddress: string) => countRequest(manager, { env: { clientAddress } } as Context)
  assert.equal(count('2001:db8:1:2::1'), '2001:db8:1:2::1')
  count('2001:db8:1:2::2')
  assert.throws(() => count('2001:db8:1:2:ffff::'), REFUSED)
  count('2001:db8:1:3::1')
})
