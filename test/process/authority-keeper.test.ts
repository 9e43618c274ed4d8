/** The authority's thread: begun, killed, hung, unable to begin; and what lines to it are worth then. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { AuthorityPlan } from '../../src/authority-messages.ts'
import { AuthorityLine } from '../../src/identity/authority-line.ts'
import { NOTHING_DECLARED } from '../../src/identity/declared-applications.ts'
import type { IdentityPlan } from '../../src/identity/identity-plan.ts'
import { IdentityState } from '../../src/identity/identity-state.ts'
import { allocateMetrics } from '../../src/observe/metrics.ts'
import type { LogEvent } from '../../src/observe/events.ts'
import { AuthorityKeeper } from '../../src/primary/authority-keeper.ts'
import { loadConfiguration } from '../harness/configuration.ts'

const ENTRY = new URL('../../src/authority-entry.js', import.meta.url)
const COMPILE_CACHE = join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'test')

type KeeperLimits = ConstructorParameters<typeof AuthorityKeeper>[2]

/** Shared with the threads of a script: how many there were. */
const spawned = new Int32Array(new SharedArrayBuffer(4))

/** What the first, second, third thread does at `start`; the last step is for all that follow. */
function scripted(steps: readonly string[]): URL {
  const code = `
    import { parentPort, workerData } from 'node:worker_threads'
    setInterval(() => Atomics.add(workerData.beats, 0, 1), 10)
    parentPort.on('message', ({ kind, plan }) => {
      if (kind === 'reload') parentPort.postMessage({ kind: 'reloaded', cause: plan.cause })
      if (kind === 'stop') parentPort.postMessage({ kind: 'stopped' })
      if (kind !== 'start') return
      const step = ${JSON.stringify(steps)}[Atomics.add(plan.spawned, 0, 1)] ?? ${JSON.stringify(steps.at(-1))}
      if (step === 'fail') return parentPort.postMessage({ kind: 'failed', cause: 'no database' })
      if (step === 'silent') return
      parentPort.postMessage({ kind: 'started', port: 7, said: [] })
      if (step === 'die') setTimeout(() => process.exit(), 20)
      if (step === 'throw') setTimeout(() => { throw new Error('a bug') }, 20)
      if (step === 'hang') setTimeout(() => { while (true); }, 20)
    })`
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`)
}

function keeperOf(t: TestContext, entry: URL, limits: KeeperLimits = {}) {
  const keeper = new AuthorityKeeper(COMPILE_CACHE, entry, limits)
  t.after(() => keeper.abort())
  const deaths: { cause: string; pauseMs: number }[] = []
  const events: LogEvent[] = []
  let replaced = Promise.withResolvers<void>()
  const watcher = {
    event: (event: LogEvent) => events.push(event),
    died: (cause: string, pauseMs: number) => deaths.push({ cause, pauseMs }),
    replaced: () => replaced.resolve(),
    question: () => assert.fail(),
  }
  const nextReplaced = async (): Promise<void> => {
    await replaced.promise
    replaced = Promise.withResolvers()
  }
  return { keeper, watcher, deaths, events, nextReplaced }
}

function scriptPlan(more: object = {}): AuthorityPlan {
  Atomics.store(spawned, 0, 0)
  return { spawned, ...more } as unknown as AuthorityPlan
}

test('one that cannot begin ends the start with its reason', async t => {
  const { keeper, watcher, deaths } = keeperOf(t, scripted(['fail']))
  await assert.rejects(keeper.start(scriptPlan(), watcher), { name: 'AuthorityFailed', message: 'no database' })
  assert.deepEqual(deaths, [])
})

test('one that says nothing ends the start in bounded time', async t => {
  const { keeper, watcher } = keeperOf(t, scripted(['silent']), { startMs: 100, checkMs: 10 })
  await assert.rejects(keeper.start(scriptPlan(), watcher), { message: 'has not begun after 100 ms' })
})

test('one that hangs is replaced, and so is one with a bug', async t => {
  const { keeper, watcher, deaths, nextReplaced } = keeperOf(t, scripted(['hang', 'throw', 'stay']), {
    silenceMs: 300,
    pauseMs: 10,
    checkMs: 20,
  })
  keeper.begin(false)
  assert.equal((await keeper.start(scriptPlan(), watcher)).port, 7)
  await nextReplaced()
  await nextReplaced()
  assert.deepEqual([deaths.length, deaths[0]!.cause], [2, 'no heartbeat for 300 ms'])
  assert.match(deaths[1]!.cause, /Error: a bug/)
})

test('threads that keep dying come ever more slowly, and never end the gateway', async t => {
  const { keeper, watcher, deaths, nextReplaced } = keeperOf(
    t,
    scripted(['die', 'fail', 'fail', 'fail', 'fail', 'fail', 'stay']),
    {
      pauseMs: 4,
      pauseMsMax: 10,
    },
  )
  await keeper.start(scriptPlan(), watcher)
  await nextReplaced()
  assert.deepEqual(
    deaths.map(({ pauseMs }) => pauseMs),
    [0, 4, 8, 10, 10, 10],
  )
})

test('a reload is answered in turn, and a stop ends the thread', async t => {
  const { keeper, watcher, deaths } = keeperOf(t, scripted(['stay']))
  await keeper.start(scriptPlan(), watcher)
  const answers = ['', 'a broken module', ''].map(cause => keeper.reload(scriptPlan({ cause })))
  assert.deepEqual(await Promise.all(answers), ['', 'a broken module', ''])
  await keeper.stop()
  assert.deepEqual([deaths, await keeper.reload(scriptPlan())], [[], ''])
})

test('the real one: killed, it is replaced; meanwhile inquiries fail at once and what was told holds', async t => {
  const home = mkdtempSync(join(tmpdir(), 'sluice-authority-'))
  t.after(() => rmSync(home, { recursive: true, force: true }))
  writeFileSync(join(home, 'deployment.toml'), '')
  const sets = ['server.server_role=gateway-worker', 'apim.key_manager.service_url=http://127.0.0.1:1/services/']
  const { configuration } = loadConfiguration(home, sets)
  const epoch = new SharedArrayBuffer(4)
  const state = new IdentityState(epoch, { issuers: [], skewMs: 0 } as unknown as IdentityPlan)
  t.after(() => state.close())
  const { keeper, watcher, deaths, nextReplaced } = keeperOf(t, ENTRY)
  const connect = () => state.connect(new AuthorityLine(keeper.newLine(0), news => state.take(news)))
  const applications = [{ id: 'a', name: 'a', owner: '', tenant: '', tier: '', attributes: {} }]
  await keeper.start(
    {
      ...{ configuration, home, dataDir: join(home, 'data'), apis: [], runsKeyManager: false, trust: {} },
      ...{ ownIssuer: 'own', issuers: [], backends: [], management: null, epoch },
      ...{ declared: { ...NOTHING_DECLARED, applications }, metrics: allocateMetrics(1), column: 0 },
    },
    watcher,
  )
  connect()
  await state.complete.promise
  assert.equal(state.subscriptions.size.applications, 1)
  await assert.rejects(state.ask({ kind: 'introspect', token: 'a' }), /ECONNREFUSED/)
  const asked = state.ask({ kind: 'introspect', token: 'b' })
  keeper.kill()
  await assert.rejects(asked, /has ended|ECONNREFUSED/)
  assert.equal(state.subscriptions.size.applications, 1)
  await nextReplaced()
  await assert.rejects(state.ask({ kind: 'introspect', token: 'c' }), /has ended/)
  connect()
  await assert.rejects(state.ask({ kind: 'introspect', token: 'd' }), /ECONNREFUSED/)
  assert.deepEqual([state.subscriptions.size.applications, deaths.length], [1, 1])
  await keeper.stop()
})
