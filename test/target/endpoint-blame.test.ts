/** Which failures are the endpoint's, and what its lists of error codes make of them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blameOf } from '../../src/target/endpoint-blame.ts'

type Codes = readonly number[]
/** [what, base, state, codes for TIMEOUT, codes that suspend, on a reused connection, what it leads to]. */
const CASES: readonly (readonly [string, number, number, Codes, Codes, boolean, ReturnType<typeof blameOf>])[] = [
  ['without lists: connection refused suspends', 101503, 0, [], [], false, 'failure'],
  ['without lists: connect timed out suspends', 101508, 0, [], [], false, 'failure'],
  ['without lists: no answer in time is a time-out', 101504, 3, [], [], false, 'timeout'],
  ['without lists: closed without an answer is a time-out', 101505, 3, [], [], false, 'timeout'],
  ['without lists: reset while sending suspends', 101500, 1, [], [], false, 'failure'],
  ['without lists: garbage suspends', 101506, 3, [], [], false, 'failure'],
  ['an idle connection that was closed meanwhile', 101505, 3, [], [], true, 'none'],
  ['an idle connection that was reset meanwhile', 101501, 3, [], [], true, 'none'],
  ['no answer in time on a reused connection', 101504, 3, [], [], true, 'timeout'],
  ['garbage on a reused connection', 101506, 3, [], [], true, 'failure'],
  ['a code that was named counts on a reused connection too', 101505, 3, [], [101505], true, 'failure'],
  ['no further connection may be opened', 101504, 0, [], [], false, 'none'],
  ['no further connection, though its code is named', 101504, 0, [], [101504], false, 'none'],
  ['the client left', 101509, 3, [], [], false, 'none'],
  ['a bug of ours', 101510, 3, [], [], false, 'none'],
  ['a response that was cut short in its head', 101505, 4, [], [], false, 'none'],
  ['a response that was cut short in its body', 101504, 5, [], [], false, 'none'],
  ['a list of suspending codes: another code', 101503, 0, [], [101508], false, 'none'],
  ['a list of suspending codes: the code as the client sees it', 101504, 3, [101599], [101507], false, 'failure'],
  ['a list of suspending codes: the base', 101504, 3, [101599], [101504], false, 'failure'],
  ['a list of suspending codes leaves time-outs as they are', 101504, 3, [], [101503], false, 'timeout'],
  ['a list of time-outs: the code as the client sees it', 101501, 3, [101504], [], false, 'timeout'],
  ['a list of time-outs: the base', 101503, 0, [101503], [], false, 'timeout'],
  ['a list of time-outs: what it leaves out suspends', 101504, 3, [101503], [], false, 'failure'],
  ['both lists: time-outs first', 101503, 0, [101503], [101503], false, 'timeout'],
  ['-1 in both lists: nothing counts', 101503, 0, [-1], [-1], false, 'none'],
  ['-1 for time-outs: they suspend', 101504, 3, [-1], [], false, 'failure'],
]

for (const [what, base, state, timeoutCodes, suspendCodes, reused, expected] of CASES) {
  test(`${what}: ${expected}`, () => {
    const failure = { base, state, cause: '', status: 0 }
    assert.equal(blameOf(failure, { timeoutCodes, suspendCodes }, reused), expected)
  })
}
