/** What a reactor remembers of passwords, and when it forgets it. */
import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { type Answers, ReactorLines } from '../../src/authority/reactor-lines.ts'
import { AuthorityLine } from '../../src/identity/authority-line.ts'
import type { KnownUser } from '../../src/identity/feed.ts'
import type { IdentityPlan } from '../../src/identity/identity-plan.ts'
import { IdentityState } from '../../src/identity/identity-state.ts'
import { Passwords } from '../../src/identity/passwords.ts'

const ANN: KnownUser = { name: 'ann', tenant: 'carbon.super', roles: ['clerk'] }
const epoch = new SharedArrayBuffer(4)
const state = new IdentityState(epoch, { issuers: [], skewMs: 0 } as unknown as IdentityPlan)
let answer: () => Promise<KnownUser | null>
let asked = 0

function begin(): ReactorLines {
  const begun = new ReactorLines({ bug: assert.fail })
  const password = () => {
    asked++
    return answer()
  }
  begun.open(epoch, { password } as unknown as Answers)
  const { port1, port2 } = new MessageChannel()
  after(() => port2.close())
  begun.attach(0, port2)
  state.connect(new AuthorityLine(port1, news => state.take(news)))
  begun.tell({ kind: 'complete' })
  return begun
}

const lines = begin()
const passwords = new Passwords({ sources: state, metrics: { add: () => {} }, nowMs: () => 0 })
const user = async (): Promise<KnownUser | null> => (await passwords.check('ann', 'right', '10.0.0.1'))?.user ?? null

after(() => state.close())
beforeEach(() => {
  answer = async () => ANN
  lines.tell({ kind: 'users' })
  asked = 0
})

test('a password that was right is not asked about again', async () => {
  assert.deepEqual([await user(), await user(), asked], [ANN, ANN, 1])
})

test('users who were removed, locked or changed are others with the next request, at once', async () => {
  await user()
  answer = async () => ({ ...ANN, roles: [] })
  lines.tell({ kind: 'users' })
  assert.deepEqual((await user())!.roles, [])
  answer = async () => null
  lines.tell({ kind: 'users' })
  assert.equal(await user(), null)
})

test('an answer to what was asked before a change is not kept, and nobody joins its question after it', async () => {
  const first = Promise.withResolvers<KnownUser | null>()
  answer = () => first.promise
  const before = user()
  while (asked === 0) await new Promise(setImmediate)
  answer = async () => null
  lines.tell({ kind: 'users' })
  const behind = user()
  first.resolve(ANN)
  await before
  assert.deepEqual([await behind, await user(), asked], [null, null, 3])
})

test('an answer that comes after the change was told is not kept, whoever looks first', async () => {
  const first = Promise.withResolvers<KnownUser | null>()
  answer = () => first.promise
  const before = user()
  while (asked === 0) await new Promise(setImmediate)
  lines.tell({ kind: 'users' })
  first.resolve(ANN)
  await before
  answer = async () => null
  assert.equal(await user(), null)
})

test('nothing is remembered of what another thread of the authority has said', async () => {
  await user()
  begin()
  await user()
  assert.equal(asked, 2)
})
