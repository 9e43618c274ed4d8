/** How long a reactor caches confirmed passwords, and which updates drop them. */
import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { type ControlCallHandlers, ReactorChannels } from '../../src/control/reactor-channels.ts'
import { PortControlChannel } from '../../src/auth/control-channel.ts'
import type { AuthenticatedUser } from '../../src/auth/control-protocol.ts'
import type { AuthPlan } from '../../src/auth/auth-plan.ts'
import { AuthState } from '../../src/auth/auth-state.ts'
import { PasswordValidator } from '../../src/auth/password-validator.ts'

const ANN: AuthenticatedUser = { name: 'ann', tenant: 'carbon.super', roles: ['clerk'] }
const version = new SharedArrayBuffer(4)
const state = new AuthState(version, { issuers: [], skewMs: 0 } as unknown as AuthPlan)
let result: () => Promise<AuthenticatedUser | null>
let calls = 0

function startControlThread(): ReactorChannels {
  const started = new ReactorChannels({ bug: assert.fail })
  const password = () => {
    calls++
    return result()
  }
  started.open(version, { password } as unknown as ControlCallHandlers)
  const { port1, port2 } = new MessageChannel()
  after(() => port2.close())
  started.attach(0, port2)
  state.attach(new PortControlChannel(port1, update => state.apply(update)))
  started.broadcast({ kind: 'complete' })
  return started
}

const channels = startControlThread()
const passwords = new PasswordValidator({ state, metrics: { add: () => {} }, nowMs: () => 0 })
const user = async (): Promise<AuthenticatedUser | null> =>
  (await passwords.validate('ann', 'right', '10.0.0.1'))?.user ?? null

after(() => state.close())
beforeEach(() => {
  result = async () => ANN
  channels.broadcast({ kind: 'users' })
  calls = 0
})

test('a confirmed password is cached', async () => {
  assert.deepEqual([await user(), await user(), calls], [ANN, ANN, 1])
})

test('an update of users holds from the next request on', async () => {
  await user()
  result = async () => ({ ...ANN, roles: [] })
  channels.broadcast({ kind: 'users' })
  assert.deepEqual((await user())!.roles, [])
  result = async () => null
  channels.broadcast({ kind: 'users' })
  assert.equal(await user(), null)
})

test('a result from before an update of users is not cached, and later requests do not join its call', async () => {
  const first = Promise.withResolvers<AuthenticatedUser | null>()
  result = () => first.promise
  const before = user()
  while (calls === 0) await new Promise(setImmediate)
  result = async () => null
  channels.broadcast({ kind: 'users' })
  const behind = user()
  first.resolve(ANN)
  await before
  assert.deepEqual([await behind, await user(), calls], [null, null, 3])
})

test('a result that arrives after an update of users is not cached', async () => {
  const first = Promise.withResolvers<AuthenticatedUser | null>()
  result = () => first.promise
  const before = user()
  while (calls === 0) await new Promise(setImmediate)
  channels.broadcast({ kind: 'users' })
  first.resolve(ANN)
  await before
  result = async () => null
  assert.equal(await user(), null)
})

test('a new control thread drops all cached passwords', async () => {
  await user()
  startControlThread()
  await user()
  assert.equal(calls, 2)
})
