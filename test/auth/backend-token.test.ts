/** Cached access tokens for protected backends. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OwnCredential } from '../../src/proxy/exchange/caller.ts'
import { BackendToken, BackendTokenFailed } from '../../src/auth/backend-token.ts'
import type { ControlCall, ControlCallResults } from '../../src/auth/control-protocol.ts'

const LIFE_MS = 100_000

function cached() {
  const clock = { ms: 1_000_000 }
  const calls: ControlCall[] = []
  const state = { failing: '', token: '' }
  const call = async <One extends ControlCall>(one: One): Promise<ControlCallResults[One['kind']]> => {
    calls.push(one)
    if (state.failing !== '') throw new Error(state.failing)
    const token = state.token || `t${calls.length}`
    return { token, expiresMs: clock.ms + LIFE_MS } as unknown as ControlCallResults[One['kind']]
  }
  return { token: new BackendToken('production /a/1', { call, now: () => clock.ms }), clock, calls, state }
}

function lineOf(own: OwnCredential | Promise<OwnCredential>): string {
  assert.ok(!(own instanceof Promise))
  return own.line
}

test('a thousand concurrent requests fetch one token, and later requests do not wait', async () => {
  const { token, calls } = cached()
  const lines = await Promise.all(Array.from({ length: 1000 }, async () => (await token.get()).line))
  assert.deepEqual([...new Set(lines)], ['Authorization: Bearer t1\r\n'])
  assert.equal(lineOf(token.get()), 'Authorization: Bearer t1\r\n')
  assert.deepEqual(calls, [{ kind: 'backendToken', key: 'production /a/1', refused: '' }])
})

test('a token is renewed before its end while it is still used, and is not used at its very end', async () => {
  const { token, clock, calls } = cached()
  await token.get()
  clock.ms += LIFE_MS * 0.8
  assert.equal(lineOf(token.get()), 'Authorization: Bearer t1\r\n')
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(lineOf(token.get()), 'Authorization: Bearer t2\r\n')
  clock.ms += LIFE_MS * 0.95
  assert.equal((await token.get()).line, 'Authorization: Bearer t3\r\n')
  assert.equal(calls.length, 3)
})

test('a token that the backend refuses is replaced, at most once a minute', async () => {
  const { token, clock, calls } = cached()
  const first = await token.get()
  first.refused()
  const second = await token.get()
  assert.deepEqual(calls.at(-1), { kind: 'backendToken', key: 'production /a/1', refused: 't1' })
  // A late refusal of the old token, and a backend that also refuses the new one.
  first.refused()
  second.refused()
  assert.equal(lineOf(token.get()), second.line)
  clock.ms += 60_000
  second.refused()
  assert.equal((await token.get()).line, 'Authorization: Bearer t3\r\n')
})

test('a failure is repeated for a second, then the token is fetched again', async () => {
  const { token, clock, calls, state } = cached()
  state.failing = 'the token endpoint answered 500'
  await assert.rejects(async () => token.get(), { name: BackendTokenFailed.name, message: /answered 500/ })
  assert.throws(() => token.get(), { message: /answered 500/ })
  assert.equal(calls.length, 1)
  state.failing = ''
  clock.ms += 1000
  assert.equal((await token.get()).line, 'Authorization: Bearer t2\r\n')
})

test('a failed renewal leaves the token that is still valid', async () => {
  const { token, clock, state } = cached()
  await token.get()
  state.failing = 'down'
  clock.ms += LIFE_MS * 0.8
  token.get()
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(lineOf(token.get()), 'Authorization: Bearer t1\r\n')
})

for (const odd of ['a\r\nX-Admin: yes', 'a'.repeat(6145)]) {
  test(`${JSON.stringify(odd.slice(0, 20))}, ${odd.length} characters: does not fit a header field`, async () => {
    const { token, state } = cached()
    state.token = odd
    await assert.rejects(async () => token.get(), /does not fit a header field/)
  })
}

test('a reload fetches another token', async () => {
  const { token } = cached()
  await token.get()
  token.forget()
  assert.equal((await token.get()).line, 'Authorization: Bearer t2\r\n')
})
