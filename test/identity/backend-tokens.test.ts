/** Tokens for protected backends, as a reactor keeps them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OwnCredential } from '../../src/exchange/caller.ts'
import { BackendToken, NoBackendToken } from '../../src/identity/backend-tokens.ts'
import type { Inquiry, InquiryResults } from '../../src/identity/feed.ts'

const LIFE_MS = 100_000

function kept() {
  const clock = { ms: 1_000_000 }
  const asked: Inquiry[] = []
  const state = { failing: '', token: '' }
  const ask = async <I extends Inquiry>(inquiry: I): Promise<InquiryResults[I['kind']]> => {
    asked.push(inquiry)
    if (state.failing !== '') throw new Error(state.failing)
    const token = state.token || `t${asked.length}`
    return { token, expiresMs: clock.ms + LIFE_MS } as unknown as InquiryResults[I['kind']]
  }
  return { token: new BackendToken('production /a/1', { ask, now: () => clock.ms }), clock, asked, state }
}

function lineOf(own: OwnCredential | Promise<OwnCredential>): string {
  assert.ok(!(own instanceof Promise))
  return own.line
}

test('a thousand requests at once ask once, and those behind them never wait', async () => {
  const { token, asked } = kept()
  const lines = await Promise.all(Array.from({ length: 1000 }, async () => (await token.get()).line))
  assert.deepEqual([...new Set(lines)], ['Authorization: Bearer t1\r\n'])
  assert.equal(lineOf(token.get()), 'Authorization: Bearer t1\r\n')
  assert.deepEqual(asked, [{ kind: 'backendToken', key: 'production /a/1', refused: '' }])
})

test('one that is nearly over is replaced while it is used, and not used at its very end', async () => {
  const { token, clock, asked } = kept()
  await token.get()
  clock.ms += LIFE_MS * 0.8
  assert.equal(lineOf(token.get()), 'Authorization: Bearer t1\r\n')
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(lineOf(token.get()), 'Authorization: Bearer t2\r\n')
  clock.ms += LIFE_MS * 0.95
  assert.equal((await token.get()).line, 'Authorization: Bearer t3\r\n')
  assert.equal(asked.length, 3)
})

test('one that the backend refuses is asked for anew, once in a minute', async () => {
  const { token, clock, asked } = kept()
  const first = await token.get()
  first.refused()
  const second = await token.get()
  assert.deepEqual(asked.at(-1), { kind: 'backendToken', key: 'production /a/1', refused: 't1' })
  // Late word of the old one, and a backend that refuses everybody.
  first.refused()
  second.refused()
  assert.equal(lineOf(token.get()), second.line)
  clock.ms += 60_000
  second.refused()
  assert.equal((await token.get()).line, 'Authorization: Bearer t3\r\n')
})

test('a failure is told to all at once for a second, then tried again', async () => {
  const { token, clock, asked, state } = kept()
  state.failing = 'the token endpoint answered 500'
  await assert.rejects(async () => token.get(), { name: NoBackendToken.name, message: /answered 500/ })
  assert.throws(() => token.get(), { message: /answered 500/ })
  assert.equal(asked.length, 1)
  state.failing = ''
  clock.ms += 1000
  assert.equal((await token.get()).line, 'Authorization: Bearer t2\r\n')
})

test('a renewal that fails leaves what is still good', async () => {
  const { token, clock, state } = kept()
  await token.get()
  state.failing = 'down'
  clock.ms += LIFE_MS * 0.8
  token.get()
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(lineOf(token.get()), 'Authorization: Bearer t1\r\n')
})

for (const odd of ['a\r\nX-Admin: yes', 'a'.repeat(6145)]) {
  test(`${JSON.stringify(odd.slice(0, 20))}, ${odd.length} characters: no token for a field`, async () => {
    const { token, state } = kept()
    state.token = odd
    await assert.rejects(async () => token.get(), /no token for a field/)
  })
}

test('after a reload another one is asked for', async () => {
  const { token } = kept()
  await token.get()
  token.forget()
  assert.equal((await token.get()).line, 'Authorization: Bearer t2\r\n')
})
