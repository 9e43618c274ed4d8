/** Calls with a time limit: whatever they do, the thread goes on behind them. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { LimitedCalls } from '../../src/runtime/limited-calls.ts'
import { makeLoopsInterruptible } from '../../src/runtime/loop-interrupts.ts'

makeLoopsInterruptible()
const calls = new LimitedCalls(50)
after(() => calls.close())

/** Returns what a call has returned, or undefined if it was ended. */
function resultOf<Result>(call: () => Result): Result | undefined {
  let result: Result | undefined
  calls.run(() => {
    result = call()
  })
  return result
}

const HANGS: readonly (readonly [what: string, call: () => unknown])[] = [
  ['a loop', () => new Function('for (;;) {}')()],
  ['a loop that allocates', () => new Function('let a; for (;;) a = { a: {} }')()],
  ['a loop that catches', () => new Function('for (;;) try { for (;;) {} } catch {} finally { for (;;) {} }')()],
  ['a pattern', () => /^(a+)+$/.test(`${'a'.repeat(40)}b`)],
  ['a wait', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)],
  ['a comparison', () => [2, 1].toSorted(new Function('for (;;) {}') as () => number)],
  ['a generator', () => [...new Function('return (function* () { for (;;) {} })()')()]],
  ['an asynchronous function', () => new Function('return (async () => { for (;;) {} })()')()],
  ['a recursion', () => new Function('const f = () => { try { f() } catch {} ; f() } ; f()')()],
  ['a long number', () => new Function('let x = 3n; for (;;) x = (x * x) % (1n << 4096n)')()],
]

for (const [what, call] of HANGS) {
  test(`a call that hangs in ${what} ends at its limit, and its caller goes on`, async () => {
    assert.equal(resultOf(call), undefined)
    assert.equal(
      resultOf(() => 7),
      7,
    )
    const inMicrotask = Promise.resolve().then(() => resultOf(call))
    const behind = Promise.resolve().then(() => 8)
    assert.deepEqual(await Promise.all([inMicrotask, behind]), [undefined, 8])
  })
}

test('a call in a call ends alone', () => {
  const inner = () => resultOf(HANGS[0]![1])
  const outer = new LimitedCalls(10_000)
  let result: unknown
  outer.run(() => {
    result = [inner(), resultOf(() => 1)]
  })
  outer.close()
  assert.deepEqual(result, [undefined, 1])
})

test('an error of a call is lost, and the next one runs', () => {
  const thrown = resultOf(() => {
    throw new Error('lost')
  })
  assert.equal(thrown, undefined)
  assert.equal(
    resultOf(() => 7),
    7,
  )
})
