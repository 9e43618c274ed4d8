/** Updates from the control thread hold at the next decision; calls to it are limited in number and time. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { type ControlCallHandlers, ReactorChannels } from '../../src/control/reactor-channels.ts'
import { PortControlChannel } from '../../src/auth/control-channel.ts'
import type { SubscriptionUpdate } from '../../src/auth/records.ts'
import type { AuthPlan } from '../../src/auth/auth-plan.ts'
import { AuthState } from '../../src/auth/auth-state.ts'
import { ControlCallFailed } from '../../src/auth/control-protocol.ts'
import { RevokedTokens } from '../../src/auth/revoked-tokens.ts'
import { Random, SEED } from '../harness/random.ts'

const LATER_MS = Date.now() + 3_600_000
const PLAN = { issuers: [], skewMs: 0 } as unknown as AuthPlan
const NONE = { applications: [], keys: [], subscriptions: [] }
const HANDLERS = { key: async () => true } as unknown as ControlCallHandlers

function subscription(id: string): SubscriptionUpdate {
  const record = { id, applicationId: 'app', api: 'Orders:1.0.0', tier: 'Gold', status: 'ACTIVE' } as const
  return { ...NONE, subscriptions: [record], removed: NONE }
}

function revoked(key: string) {
  return { kind: 'revoked', tokens: [{ key, expiresMs: LATER_MS }] } as const
}

/** The state of reactor 0; `begin` starts a control thread for it. */
function reactorState(t: TestContext, limits?: ConstructorParameters<typeof PortControlChannel>[2]) {
  const version = new SharedArrayBuffer(4)
  const state = new AuthState(version, PLAN)
  const begin = (handlers = HANDLERS) => {
    const channels = new ReactorChannels({ bug: assert.fail })
    channels.open(version, handlers)
    const { port1, port2 } = new MessageChannel()
    t.after(() => port2.close())
    channels.attach(0, port2)
    state.attach(new PortControlChannel(port1, update => state.apply(update), limits))
    return { channels, port: port2 }
  }
  t.after(() => state.close())
  return { state, begin, count: () => state.subscriptions.size.subscriptions }
}

test('an update holds at the next decision, without a turn of the event loop', t => {
  const { state, begin, count } = reactorState(t)
  const { channels } = begin()
  channels.broadcast({ kind: 'complete' })
  state.catchUp()
  channels.broadcast(revoked('a'))
  channels.broadcast({ kind: 'subscriptions', update: subscription('one') })
  assert.deepEqual([state.revoked.has('a'), count()], [false, 0])
  const before = state.version
  state.catchUp()
  assert.deepEqual([state.revoked.has('a'), count()], [true, 1])
  assert.notEqual(state.version, before)
  const after = state.version
  state.catchUp()
  assert.equal(state.version, after)
})

test('a new reactor gets a full snapshot', t => {
  const { begin, state, count } = reactorState(t)
  const { channels } = begin()
  for (let i = 0; i < 5000; i++) channels.broadcast({ kind: 'subscriptions', update: subscription(`s${i}`) })
  const removed = { applications: [], keys: [], subscriptions: ['s7'] }
  channels.broadcast({ kind: 'subscriptions', update: { ...NONE, removed } })
  channels.broadcast(revoked('a'))
  channels.broadcast({ kind: 'complete' })
  const { port1, port2 } = new MessageChannel()
  t.after(() => port2.close())
  channels.attach(0, port2)
  state.attach(new PortControlChannel(port1, update => state.apply(update)))
  assert.deepEqual([count(), state.revoked.has('a'), state.hasSnapshot], [4999, true, true])
})

test('a new control thread replaces the state once its snapshot is complete, and no revocation is lost', t => {
  const { state, begin, count } = reactorState(t)
  const { channels: first } = begin()
  first.broadcast({ kind: 'subscriptions', update: subscription('old') })
  first.broadcast(revoked('a'))
  first.broadcast({ kind: 'complete' })
  state.catchUp()
  const { channels: second } = begin()
  second.broadcast({ kind: 'subscriptions', update: subscription('one') })
  second.broadcast({ kind: 'subscriptions', update: subscription('two') })
  second.broadcast(revoked('b'))
  state.catchUp()
  assert.deepEqual([count(), state.revoked.has('a'), state.revoked.has('b')], [1, true, true])
  second.broadcast({ kind: 'complete' })
  state.catchUp()
  assert.deepEqual([count(), state.revoked.has('a')], [2, true])
})

test('a call gets its result, fails with the cause, or times out', async t => {
  const { state, begin } = reactorState(t, { pendingMax: 3, timeoutMs: 500 })
  await assert.rejects(state.call({ kind: 'key', issuer: '', kid: '' }), /no channel/)
  const silent = () => new Promise<never>(() => {})
  const failing = () => Promise.reject(new ControlCallFailed('the issuer is down'))
  begin({ ...HANDLERS, introspect: silent, password: failing })
  assert.equal(await state.call({ kind: 'key', issuer: '', kid: '' }), true)
  await assert.rejects(state.call({ kind: 'password', user: '', password: '', address: '' }), {
    name: 'ControlCallFailed',
    message: 'the issuer is down',
  })
  const calls = [1, 2, 3].map(() => state.call({ kind: 'introspect', token: 'secret' }))
  await assert.rejects(
    state.call({ kind: 'key', issuer: '', kid: '' }),
    /3 calls to the control thread are pending already/,
  )
  for (const one of await Promise.allSettled(calls)) {
    assert.match(String(one.status === 'rejected' && one.reason), /has not responded within 500 ms/)
  }
  assert.equal(await state.call({ kind: 'key', issuer: '', kid: '' }), true)
})

test('pending calls of one kind leave room for calls of other kinds', async t => {
  const { state, begin } = reactorState(t, { pendingMax: 4, timeoutMs: 5000 })
  const { port } = begin({ ...HANDLERS, introspect: () => new Promise<never>(() => {}) })
  const calls = Promise.allSettled([1, 2, 3].map(() => state.call({ kind: 'introspect', token: '' })))
  await assert.rejects(
    state.call({ kind: 'introspect', token: '' }),
    /3 calls of this kind to the control thread are pending already/,
  )
  assert.equal(await state.call({ kind: 'key', issuer: '', kid: '' }), true)
  assert.equal(await state.call({ kind: 'key', issuer: '', kid: '' }), true)
  port.close()
  await calls
})

test('pending and new calls fail at once when the control thread has ended', async t => {
  const { state, begin } = reactorState(t)
  const { port } = begin({ ...HANDLERS, introspect: () => new Promise<never>(() => {}) })
  const pending = state.call({ kind: 'introspect', token: '' })
  port.close()
  const startedMs = performance.now()
  await assert.rejects(pending, /the control thread has ended/)
  await assert.rejects(state.call({ kind: 'key', issuer: '', kid: '' }), /the control thread has ended/)
  assert.ok(performance.now() - startedMs < 1000)
  begin()
  assert.equal(await state.call({ kind: 'key', issuer: '', kid: '' }), true)
})

test('an unexpected error in the control thread fails the call without its message', async t => {
  const bugs: unknown[] = []
  const channels = new ReactorChannels({ bug: error => bugs.push(error) })
  const failing = () => Promise.reject(new Error('secret'))
  channels.open(new SharedArrayBuffer(4), { ...HANDLERS, claims: failing })
  const { port1, port2 } = new MessageChannel()
  t.after(() => port2.close())
  channels.attach(0, port2)
  const channel = new PortControlChannel(port1, () => {})
  await assert.rejects(channel.call({ kind: 'claims', user: '', tenant: '' }), {
    message: 'internal error in the control thread',
  })
  assert.equal(bugs.length, 1)
})

test(`in any order of events, a decision rests on all earlier updates (seed ${SEED})`, t => {
  const random = new Random(SEED)
  const { state, begin } = reactorState(t)
  let { channels } = begin()
  channels.broadcast({ kind: 'complete' })
  const revokedKeys = new Set<string>()
  const subscribed = new Set<string>()
  for (let step = 0; step < 2000; step++) {
    const what = random.below(10)
    if (what < 3) {
      channels.broadcast(revoked(`r${step}`))
      revokedKeys.add(`r${step}`)
    } else if (what < 6) {
      channels.broadcast({ kind: 'subscriptions', update: subscription(`s${step}`) })
      subscribed.add(`s${step}`)
    } else if (what === 6 && subscribed.size > 0) {
      const [first] = subscribed
      const removed = { ...NONE, subscriptions: [first!] }
      channels.broadcast({ kind: 'subscriptions', update: { ...NONE, removed } })
      subscribed.delete(first!)
    } else if (what === 7 && random.below(20) === 0) {
      // A new control thread, which has read the current subscriptions.
      channels = begin().channels
      for (const id of subscribed) channels.broadcast({ kind: 'subscriptions', update: subscription(id) })
      channels.broadcast({ kind: 'complete' })
    } else {
      state.catchUp()
      assert.equal(state.subscriptions.size.subscriptions, subscribed.size, `step ${step}`)
      assert.deepEqual(
        [state.revoked.size, [...revokedKeys].every(key => state.revoked.has(key))],
        [revokedKeys.size, true],
      )
    }
  }
})

test('a revoked token is forgotten once its expiry and the skew are over, and not before', () => {
  const skewMs = 7_200_000
  const set = new RevokedTokens(skewMs)
  const nowMs = 1_000_000_000
  assert.equal(set.add([{ key: 'over', expiresMs: nowMs - skewMs }], nowMs), false)
  for (let i = 0; i < 1000; i++) set.add([{ key: `k${i}`, expiresMs: nowMs + i * 1000 }], nowMs)
  set.add([{ key: 'k0', expiresMs: nowMs + 999_000 }], nowMs)
  assert.equal(set.size, 1000)
  const halfMs = nowMs + skewMs + 495_000
  set.add([], halfMs)
  for (let i = 495; i < 1000; i++) assert.ok(set.has(`k${i}`), `k${i}`)
  assert.ok(set.has('k0') && set.size < 570 && !set.has('k1'), String(set.size))
  set.add([], nowMs + skewMs + 1_195_000)
  assert.equal(set.size, 0)
})

test('issue 14: a clock that is ahead by less than an hour forgets no revocation of a valid token', () => {
  const set = new RevokedTokens()
  const nowMs = 1_000_000_000
  set.add([{ key: 'revoked', expiresMs: nowMs + 1 }], nowMs)
  set.add([{ key: 'other', expiresMs: nowMs + 1 }], nowMs + 3_500_000)
  assert.deepEqual([set.has('revoked'), set.has('other')], [true, true])
})
