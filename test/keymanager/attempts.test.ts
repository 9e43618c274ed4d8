/** How often something may be asked for, and fail, by a clock that is set. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Lockout, RequestRate } from '../../src/keymanager/attempts.ts'

const REFUSED = { name: 'OAuthRefusal', status: 429 }

test('a clock that is set back ends what is limited, and does not prolong it', () => {
  let nowMs = 7_200_000
  const rate = new RequestRate(() => nowMs)
  const lockout = new Lockout(() => nowMs)
  rate.count('address', 1)
  assert.equal(lockout.failed('user', 1, 1000), true)
  assert.throws(() => rate.count('address', 1), REFUSED)
  assert.throws(() => rate.check('address', 1), REFUSED)
  assert.throws(() => lockout.check('user', 1), REFUSED)
  nowMs = 0
  lockout.check('user', 1)
  rate.check('address', 1)
  rate.count('address', 1)
  assert.throws(() => rate.count('address', 1), REFUSED)
})
