/** What a reactor is told, in which order it holds, and what becomes of questions that nobody answers. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { type Answers, ReactorLines } from '../../src/authority/reactor-lines.ts'
import { AuthorityLine } from '../../src/identity/authority-line.ts'
import type { SubscriptionNews } from '../../src/identity/facts.ts'
import type { IdentityPlan } from '../../src/identity/identity-plan.ts'
import { IdentityState, InquiryFailed } from '../../src/identity/identity-state.ts'
import { RevokedSet } from '../../src/identity/revoked-set.ts'
import { Random, SEED } from '../harness/random.ts'

const LATER_MS = Date.now() + 3_600_000
const PLAN = { issuers: [], skewMs: 0 } as unknown as IdentityPlan
const NONE = { applications: [], keys: [], subscriptions: [] }
const ANSWERS = { key: async () => true } as unknown as Answers

function subscription(id: string): SubscriptionNews {
  const facts = { id, applicationId: 'app', api: 'Orders:1.0.0', tier: 'Gold', status: 'ACTIVE' } as const
  return { ...NONE, subscriptions: [facts], removed: NONE }
}

function revoked(key: string) {
  return { kind: 'revoked', tokens: [{ key, expiresMs: LATER_MS }] } as const
}

/** An authority, and a reactor that it knows as number 0. */
function both(t: TestContext, limits?: ConstructorParameters<typeof AuthorityLine>[2]) {
  const epoch = new SharedArrayBuffer(4)
  const state = new IdentityState(epoch, PLAN)
  const begin = (answers = ANSWERS) => {
    const lines = new ReactorLines({ bug: assert.fail })
    lines.open(epoch, answers)
    const { port1, port2 } = new MessageChannel()
    t.after(() => port2.close())
    lines.attach(0, port2)
    state.connect(new AuthorityLine(port1, news => state.take(news), limits))
    return { lines, port: port2 }
  }
  t.after(() => state.close())
  return { state, begin, count: () => state.subscriptions.size.subscriptions }
}

test('what was told is in force at the next decision, without a turn of the event loop', t => {
  const { state, begin, count } = both(t)
  const { lines } = begin()
  lines.tell({ kind: 'complete' })
  state.catchUp()
  lines.tell(revoked('a'))
  lines.tell({ kind: 'subscriptions', news: subscription('one') })
  assert.deepEqual([state.revoked.has('a'), count()], [false, 0])
  const before = state.epoch
  state.catchUp()
  assert.deepEqual([state.revoked.has('a'), count()], [true, 1])
  assert.notEqual(state.epoch, before)
  const after = state.epoch
  state.catchUp()
  assert.equal(state.epoch, after)
})

test('a reactor that begins is told all that the others know', t => {
  const { begin, state, count } = both(t)
  const { lines } = begin()
  for (let i = 0; i < 5000; i++) lines.tell({ kind: 'subscriptions', news: subscription(`s${i}`) })
  const gone = { applications: [], keys: [], subscriptions: ['s7'] }
  lines.tell({ kind: 'subscriptions', news: { ...NONE, removed: gone } })
  lines.tell(revoked('a'))
  lines.tell({ kind: 'complete' })
  const { port1, port2 } = new MessageChannel()
  t.after(() => port2.close())
  lines.attach(0, port2)
  state.connect(new AuthorityLine(port1, news => state.take(news)))
  assert.deepEqual([count(), state.revoked.has('a'), state.isComplete], [4999, true, true])
})

test('what a thread has told holds until the next one has told everything; nothing is un-revoked', t => {
  const { state, begin, count } = both(t)
  const { lines: first } = begin()
  first.tell({ kind: 'subscriptions', news: subscription('old') })
  first.tell(revoked('a'))
  first.tell({ kind: 'complete' })
  state.catchUp()
  const { lines: second } = begin()
  second.tell({ kind: 'subscriptions', news: subscription('one') })
  second.tell({ kind: 'subscriptions', news: subscription('two') })
  second.tell(revoked('b'))
  state.catchUp()
  assert.deepEqual([count(), state.revoked.has('a'), state.revoked.has('b')], [1, true, true])
  second.tell({ kind: 'complete' })
  state.catchUp()
  assert.deepEqual([count(), state.revoked.has('a')], [2, true])
})

test('an inquiry is answered, fails with its cause, or fails within its time', async t => {
  const { state, begin } = both(t, { waitingMax: 3, answerMs: 50 })
  await assert.rejects(state.ask({ kind: 'key', issuer: '', kid: '' }), /no line/)
  const silent = () => new Promise<never>(() => {})
  const failing = () => Promise.reject(new InquiryFailed('the issuer is down'))
  begin({ ...ANSWERS, introspect: silent, password: failing })
  assert.equal(await state.ask({ kind: 'key', issuer: '', kid: '' }), true)
  await assert.rejects(state.ask({ kind: 'password', user: '', password: '', address: '' }), {
    name: 'InquiryFailed',
    message: 'the issuer is down',
  })
  const asked = [1, 2, 3].map(() => state.ask({ kind: 'introspect', token: 'secret' }))
  await assert.rejects(state.ask({ kind: 'key', issuer: '', kid: '' }), /3 questions wait for the authority already/)
  for (const one of await Promise.allSettled(asked)) {
    assert.match(String(one.status === 'rejected' && one.reason), /has not answered within 50 ms/)
  }
  assert.equal(await state.ask({ kind: 'key', issuer: '', kid: '' }), true)
})

test('inquiries of one kind that wait leave room for those of others', async t => {
  const { state, begin } = both(t, { waitingMax: 4, answerMs: 5000 })
  const { port } = begin({ ...ANSWERS, introspect: () => new Promise<never>(() => {}) })
  const asked = Promise.allSettled([1, 2, 3].map(() => state.ask({ kind: 'introspect', token: '' })))
  await assert.rejects(
    state.ask({ kind: 'introspect', token: '' }),
    /3 questions of this kind wait for the authority already/,
  )
  assert.equal(await state.ask({ kind: 'key', issuer: '', kid: '' }), true)
  assert.equal(await state.ask({ kind: 'key', issuer: '', kid: '' }), true)
  port.close()
  await asked
})

test('where the thread has died inquiries fail at once, those under way too', async t => {
  const { state, begin } = both(t)
  const { port } = begin({ ...ANSWERS, introspect: () => new Promise<never>(() => {}) })
  const asked = state.ask({ kind: 'introspect', token: '' })
  port.close()
  const begun = performance.now()
  await assert.rejects(asked, /thread of the authority has ended/)
  await assert.rejects(state.ask({ kind: 'key', issuer: '', kid: '' }), /thread of the authority has ended/)
  assert.ok(performance.now() - begun < 1000)
  begin()
  assert.equal(await state.ask({ kind: 'key', issuer: '', kid: '' }), true)
})

test('a fault of the authority is an answer without a word of it', async t => {
  const bugs: unknown[] = []
  const lines = new ReactorLines({ bug: error => bugs.push(error) })
  const fault = () => Promise.reject(new Error('secret'))
  lines.open(new SharedArrayBuffer(4), { ...ANSWERS, claims: fault })
  const { port1, port2 } = new MessageChannel()
  t.after(() => port2.close())
  lines.attach(0, port2)
  const line = new AuthorityLine(port1, () => {})
  await assert.rejects(line.ask({ kind: 'claims', user: '', tenant: '' }), { message: 'a fault in the authority' })
  assert.equal(bugs.length, 1)
})

test(`whatever the order, a reactor knows at its decision what had been told before it (seed ${SEED})`, t => {
  const random = new Random(SEED)
  const { state, begin } = both(t)
  let { lines } = begin()
  lines.tell({ kind: 'complete' })
  const told = new Set<string>()
  const subscribed = new Set<string>()
  for (let step = 0; step < 2000; step++) {
    const what = random.below(10)
    if (what < 3) {
      lines.tell(revoked(`r${step}`))
      told.add(`r${step}`)
    } else if (what < 6) {
      lines.tell({ kind: 'subscriptions', news: subscription(`s${step}`) })
      subscribed.add(`s${step}`)
    } else if (what === 6 && subscribed.size > 0) {
      const [first] = subscribed
      const removed = { ...NONE, subscriptions: [first!] }
      lines.tell({ kind: 'subscriptions', news: { ...NONE, removed } })
      subscribed.delete(first!)
    } else if (what === 7 && random.below(20) === 0) {
      // Another thread, which has read what there is.
      lines = begin().lines
      for (const id of subscribed) lines.tell({ kind: 'subscriptions', news: subscription(id) })
      lines.tell({ kind: 'complete' })
    } else {
      state.catchUp()
      assert.equal(state.subscriptions.size.subscriptions, subscribed.size, `step ${step}`)
      assert.deepEqual([state.revoked.size, [...told].every(key => state.revoked.has(key))], [told.size, true])
    }
  }
})

test('revoked tokens are forgotten when nobody could accept them any more, and not before', () => {
  const set = new RevokedSet(5000)
  const nowMs = 1_000_000_000
  assert.equal(set.add([{ key: 'over', expiresMs: nowMs - 5000 }], nowMs), false)
  for (let i = 0; i < 1000; i++) set.add([{ key: `k${i}`, expiresMs: nowMs + i * 1000 }], nowMs)
  set.add([{ key: 'k0', expiresMs: nowMs + 999_000 }], nowMs)
  assert.equal(set.size, 1000)
  const halfMs = nowMs + 500_000
  set.add([], halfMs)
  for (let i = 495; i < 1000; i++) assert.ok(set.has(`k${i}`), `k${i}`)
  assert.ok(set.has('k0') && set.size < 570 && !set.has('k1'), String(set.size))
  set.add([], nowMs + 1_200_000)
  assert.equal(set.size, 0)
})
