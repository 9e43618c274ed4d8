/** What key managers and gateway-workers tell each other through a real broker. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { NOTHING_REMOVED, type RevocationRecord, type SubscriptionUpdate } from '../../src/auth/records.ts'
import { Messaging, type MessagingContext, type SharedState } from '../../src/control/messaging.ts'
import { allocateMetrics } from '../../src/observe/metrics.ts'
import type { ControlPlan } from '../../src/plan/control-messages.ts'
import type { DenyPolicy, PolicySet } from '../../src/throttle/policy.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { messageBroker } from '../harness/message-broker.ts'
import { freePort } from '../harness/program.ts'
import { TcpGate } from '../harness/tcp-gate.ts'

const home = mkdtempSync(join(tmpdir(), 'sluice-messaging-'))
const broker = await messageBroker()
const skip = typeof broker === 'string' ? broker : false
const closings: (() => unknown)[] = []
after(async () => {
  for (const close of closings.reverse()) await close()
  if (typeof broker !== 'string') await broker.remove()
  rmSync(home, { recursive: true, force: true })
})

/** Long after this run: tokens that have expired are not kept. */
const EXPIRES_MS = Date.now() + 3_600_000

const application = (id: string) => ({ id, name: id, owner: 'anna', tenant: '', tier: 'Unlimited', attributes: {} })

function update(more: Partial<SubscriptionUpdate>): SubscriptionUpdate {
  return { applications: [], keys: [], subscriptions: [], removed: NOTHING_REMOVED, ...more }
}

function deny(id: string, value: string, enabled = true): DenyPolicy {
  return { id, type: 'USER', value, inverted: false, enabled }
}

interface Heard {
  readonly revoked: RevocationRecord[]
  readonly updates: SubscriptionUpdate[]
  replaced: readonly SubscriptionUpdate[]
  policies: PolicySet | null
}

interface Node {
  readonly messaging: Messaging
  readonly heard: Heard
  readonly reports: string[]
  until(holds: (heard: Heard) => boolean): Promise<void>
}

/** `state`: what a key manager knows; null for a gateway-worker. */
async function node(state: SharedState | null, port: number, toml = ''): Promise<Node> {
  if (typeof broker === 'string') throw new Error(broker)
  const role = state === null ? 'gateway-worker' : 'api-key-manager'
  writeFileSync(
    join(home, 'deployment.toml'),
    `[server]\nserver_role = "${role}"\n[apim.throttling]\n` +
      `throttle_decision_endpoints = ["amqp://127.0.0.1:${port}/${broker.vhost}"]\n` +
      `jms.username = "${broker.username}"\njms.password = "${broker.password}"\n${toml}`,
  )
  const { configuration } = loadConfiguration(home, [])
  const plan = {
    ...{ configuration, dataDir: home, trust: {}, receiver: null },
    ...{ runsGateway: state === null, runsKeyManager: state !== null, metrics: allocateMetrics(1), column: 0 },
  } as unknown as ControlPlan
  const heard: Heard = { revoked: [], updates: [], replaced: [], policies: null }
  const reports: string[] = []
  let look = (): void => {}
  const hear = (tell: () => void): void => {
    tell()
    look()
  }
  const context: MessagingContext = {
    report: (level, event) => hear(() => reports.push(`${level} ${event}`)),
    state: state === null ? null : async () => state,
    decided: () => {},
    revoked: tokens => hear(() => heard.revoked.push(...tokens)),
    subscriptionsChanged: change => hear(() => heard.updates.push(change)),
    subscriptionsReplaced: updates =>
      hear(() => {
        heard.replaced = updates
      }),
    policiesChanged: set =>
      hear(() => {
        heard.policies = set
      }),
  }
  const messaging = await Messaging.open(plan, context)
  closings.push(() => messaging.close())
  const until = (holds: (heard: Heard) => boolean): Promise<void> =>
    new Promise(resolve => {
      look = () => {
        if (holds(heard)) resolve()
      }
      look()
    })
  return { messaging, heard, reports, until }
}

/** A key manager that is connected. */
async function keyManager(state: Partial<SharedState>, port = 5672, toml = ''): Promise<Node> {
  const made = await node({ revoked: [], subscriptions: update({}), policies: null, ...state }, port, toml)
  await made.until(() => made.reports.includes('info broker connected'))
  return made
}

async function gate(): Promise<TcpGate> {
  const made = new TcpGate(await freePort(), 5672)
  closings.push(() => made.shut())
  await made.open()
  return made
}

const ids = (updates: readonly SubscriptionUpdate[]): readonly string[] =>
  updates.flatMap(({ applications }) => applications.map(({ id }) => id))

/** The tests share one virtual host, so each has its nodes to itself. */
test('a worker that starts has every application, policy and revoked token of its key manager', { skip }, async () => {
  const applications = Array.from({ length: 4500 }, (_, n) => application(`application-${n}`))
  const revoked = Array.from({ length: 4500 }, (_, n) => ({ key: `token-${n}`, expiresMs: EXPIRES_MS }))
  const policies = { policies: [], denied: [deny('1', 'bob')] }
  const manager = await keyManager({ subscriptions: update({ applications }), revoked, policies })
  const worker = await node(null, 5672)
  assert.deepEqual(ids(worker.heard.replaced), ids([update({ applications })]))
  assert.equal(worker.heard.revoked.length, revoked.length)
  assert.deepEqual(worker.heard.policies, policies)
  await manager.messaging.close()
  await worker.messaging.close()
})

test('revocations go both ways, once', { skip }, async () => {
  const manager = await keyManager({})
  const [one, two] = [await node(null, 5672), await node(null, 5672)]
  manager.messaging.publishRevoked([{ key: 'of the manager', expiresMs: EXPIRES_MS }])
  one.messaging.publishRevoked([{ key: 'of a worker', expiresMs: EXPIRES_MS }])
  for (const { until } of [one, two]) await until(({ revoked }) => revoked.some(({ key }) => key === 'of the manager'))
  for (const { until } of [manager, two]) await until(({ revoked }) => revoked.some(({ key }) => key === 'of a worker'))
  // A node that hears a token keeps it as its own; it does not publish it again.
  manager.messaging.publishRevoked(manager.heard.revoked)
  manager.messaging.publishRevoked([{ key: 'last', expiresMs: EXPIRES_MS }])
  for (const { until } of [one, two]) await until(({ revoked }) => revoked.some(({ key }) => key === 'last'))
  assert.deepEqual(
    [manager, one, two].map(({ heard }) => heard.revoked.map(({ key }) => key).sort()),
    [['of a worker'], ['last', 'of the manager'], ['last', 'of a worker', 'of the manager']],
  )
  for (const { messaging } of [manager, one, two]) await messaging.close()
})

test('without enable_realtime_notifier a worker learns of a revocation when it connects', { skip }, async () => {
  const revoked: RevocationRecord[] = []
  const toml = '[apim.token.revocation]\nenable_realtime_notifier = false\n'
  const manager = await keyManager({ revoked }, 5672, toml)
  const before = await node(null, 5672)
  revoked.push({ key: 'a', expiresMs: EXPIRES_MS })
  manager.messaging.publishRevoked(revoked)
  manager.messaging.publishSubscriptions(update({ applications: [application('behind it')] }))
  await before.until(({ updates }) => updates.length > 0)
  assert.deepEqual(before.heard.revoked, [])
  const behind = await node(null, 5672)
  assert.deepEqual(behind.heard.revoked, revoked)
  for (const { messaging } of [manager, before, behind]) await messaging.close()
})

test('a worker asks for what it has missed while the broker was away', { skip }, async () => {
  const revoked: RevocationRecord[] = []
  const applications = [application('a')]
  const manager = await keyManager({ revoked, subscriptions: update({ applications }) })
  const at = await gate()
  const worker = await node(null, at.port)
  await at.shut()
  await worker.until(() => worker.reports.some(line => line.startsWith('error broker lost')))
  revoked.push({ key: 'missed', expiresMs: EXPIRES_MS })
  applications.push(application('b'))
  manager.messaging.publishRevoked(revoked)
  await at.open()
  await worker.until(({ replaced, revoked: got }) => ids(replaced).includes('b') && got.length === 1)
  for (const { messaging } of [manager, worker]) await messaging.close()
})

test('deny policies of a key manager reach workers, switched on, off and removed', { skip }, async () => {
  const manager = await keyManager({})
  const worker = await node(null, 5672)
  const denied = (set: PolicySet | null): string => JSON.stringify(set?.denied ?? [])
  for (const policies of [[deny('1', 'bob')], [deny('1', 'bob', false), deny('2', 'eve')], []]) {
    manager.messaging.publishPolicies({ policies: [], denied: policies })
    await worker.until(heard => denied(heard.policies) === JSON.stringify(policies))
  }
  for (const { messaging } of [manager, worker]) await messaging.close()
})

test('a node with a broker starts while the broker is down', { skip }, async () => {
  const at = await gate()
  await at.shut()
  const worker = await node(null, at.port)
  assert.deepEqual(
    worker.reports.filter(line => line.startsWith('error')),
    ['error broker lost; messages wait until it answers'],
  )
  await worker.messaging.close()
})
