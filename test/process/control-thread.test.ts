/** The supervised control thread: started, killed, hung, unable to start; and its channels to reactors meanwhile. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { ControlPlan } from '../../src/plan/control-messages.ts'
import { PortControlChannel } from '../../src/auth/control-channel.ts'
import { NOTHING_DECLARED } from '../../src/auth/records.ts'
import type { AuthPlan } from '../../src/auth/auth-plan.ts'
import { AuthState } from '../../src/auth/auth-state.ts'
import { allocateMetrics } from '../../src/observe/metrics.ts'
import type { LogEvent } from '../../src/observe/events.ts'
import { ControlThread } from '../../src/primary/control-thread.ts'
import { NO_THROTTLING } from '../../src/throttle/throttle-plan.ts'
import { loadConfiguration } from '../harness/configuration.ts'

const ENTRY = new URL('../../src/control/control-entry.js', import.meta.url)
const COMPILE_CACHE = join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'test')

type Limits = ConstructorParameters<typeof ControlThread>[3]

/** Shared with the threads of a script: how many there have been. */
const spawned = new Int32Array(new SharedArrayBuffer(4))

/** Steps of the first, second, third thread at `start`; the last step is for all that follow. */
function scripted(steps: readonly string[]): URL {
  const code = `
    import { parentPort, workerData } from 'node:worker_threads'
    setInterval(() => Atomics.add(workerData.heartbeats, 0, 1), 10)
    parentPort.on('message', ({ kind, id, call, plan }) => {
      if (kind === 'call') {
        const { cause } = call.plan
        if (cause === '') parentPort.postMessage({ kind: 'result', id, value: true })
        else if (cause !== 'silence') parentPort.postMessage({ kind: 'failure', id, cause })
      }
      if (kind === 'stop') parentPort.postMessage({ kind: 'stopped' })
      if (kind !== 'start') return
      const step = ${JSON.stringify(steps)}[Atomics.add(plan.spawned, 0, 1)] ?? ${JSON.stringify(steps.at(-1))}
      if (step === 'fail') return parentPort.postMessage({ kind: 'failed', cause: 'no database' })
      if (step === 'silent') return
      parentPort.postMessage({ kind: 'started', started: { port: 7, firstAccount: null } })
      if (step === 'die') setTimeout(() => process.exit(), 20)
      if (step === 'throw') setTimeout(() => { throw new Error('a bug') }, 20)
      if (step === 'hang') setTimeout(() => { while (true); }, 20)
    })`
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`)
}

function controlOf(t: TestContext, entry: URL, limits: Limits = {}) {
  const control = new ControlThread(COMPILE_CACHE, false, entry, limits)
  t.after(() => control.abort())
  const deaths: { cause: string; pauseMs: number }[] = []
  const events: LogEvent[] = []
  let replaced = Promise.withResolvers<void>()
  const owner = {
    event: (event: LogEvent) => events.push(event),
    died: (_: number, cause: string, pauseMs: number) => deaths.push({ cause, pauseMs }),
    replaced: () => replaced.resolve(),
    serve: () => assert.fail(),
    printed: (_: number, text: string) => assert.fail(text),
    fatal: assert.fail,
  }
  const nextReplaced = async (): Promise<void> => {
    await replaced.promise
    replaced = Promise.withResolvers()
  }
  return { control, owner, deaths, events, nextReplaced }
}

function scriptPlan(more: object = {}): ControlPlan {
  Atomics.store(spawned, 0, 0)
  return { spawned, databaseWaitMs: 0, ...more } as unknown as ControlPlan
}

test('a first thread that cannot start rejects the start with its cause', async t => {
  const { control, owner, deaths } = controlOf(t, scripted(['fail']))
  await assert.rejects(control.start(scriptPlan(), owner), { name: 'ThreadFailed', message: 'no database' })
  assert.deepEqual(deaths, [])
})

test('a first thread that reports nothing rejects the start after the limit', async t => {
  const { control, owner } = controlOf(t, scripted(['silent']), { startMs: 100, checkMs: 10 })
  await assert.rejects(control.start(scriptPlan(), owner), {
    message: 'control thread has not started within 100 ms',
  })
})

test('a thread that hangs is replaced, and so is a thread with a bug', async t => {
  const { control, owner, deaths, nextReplaced } = controlOf(t, scripted(['hang', 'throw', 'stay']), {
    silenceMs: 300,
    pauseMs: 10,
    checkMs: 20,
  })
  control.preload()
  assert.equal((await control.start(scriptPlan(), owner)).port, 7)
  await nextReplaced()
  await nextReplaced()
  assert.deepEqual([deaths.length, deaths[0]!.cause], [2, 'no heartbeat from control thread for 300 ms'])
  assert.match(deaths[1]!.cause, /Error: a bug/)
})

test('the pause doubles with each death in a row, and no number of deaths ends the node', async t => {
  const { control, owner, deaths, nextReplaced } = controlOf(
    t,
    scripted(['die', 'fail', 'fail', 'fail', 'fail', 'fail', 'stay']),
    {
      pauseMs: 4,
      pauseMsMax: 10,
    },
  )
  await control.start(scriptPlan(), owner)
  await nextReplaced()
  assert.deepEqual(
    deaths.map(({ pauseMs }) => pauseMs),
    [0, 4, 8, 10, 10, 10],
  )
})

test('each reload gets its own result, and a stop ends the thread', async t => {
  const { control, owner, deaths } = controlOf(t, scripted(['stay']))
  await control.start(scriptPlan(), owner)
  const results = ['', 'a broken module', ''].map(cause => control.reload(scriptPlan({ cause })))
  assert.deepEqual(await Promise.all(results), ['', 'a broken module', ''])
  await control.stop()
  assert.deepEqual([deaths, await control.reload(scriptPlan())], [[], ''])
})

test('the real thread is replaced; meanwhile calls fail at once and reactors keep their state', async t => {
  const home = mkdtempSync(join(tmpdir(), 'sluice-control-'))
  t.after(() => rmSync(home, { recursive: true, force: true }))
  writeFileSync(join(home, 'deployment.toml'), '')
  const sets = ['server.server_role=gateway-worker', 'apim.key_manager.service_url=http://127.0.0.1:1/services/']
  const { configuration } = loadConfiguration(home, sets)
  const epoch = new SharedArrayBuffer(4)
  const state = new AuthState(epoch, { issuers: [], skewMs: 0 } as unknown as AuthPlan)
  t.after(() => state.close())
  const { control, owner, deaths, nextReplaced } = controlOf(t, ENTRY)
  const connect = () => state.attach(new PortControlChannel(control.openChannel(0), update => state.apply(update)))
  const applications = [{ id: 'a', name: 'a', owner: '', tenant: '', tier: '', attributes: {} }]
  await control.start(
    {
      ...{
        configuration,
        home,
        dataDir: join(home, 'data'),
        databaseWaitMs: 0,
        apis: [],
        ...{ runsKeyManager: false, runsGateway: true, receiver: null },
        trust: {},
      },
      ...{ ownIssuer: 'own', takesIssuer: false, issuers: [], backends: [], management: null, authVersion: epoch },
      ...{ declared: { ...NOTHING_DECLARED, applications }, metrics: allocateMetrics(1), column: 0 },
      throttling: NO_THROTTLING,
    },
    owner,
  )
  connect()
  await state.firstSnapshot.promise
  assert.equal(state.subscriptions.size.applications, 1)
  await assert.rejects(state.call({ kind: 'introspect', token: 'a' }), /ECONNREFUSED/)
  const asked = state.call({ kind: 'introspect', token: 'b' })
  control.kill()
  await assert.rejects(asked, /has ended|ECONNREFUSED/)
  assert.equal(state.subscriptions.size.applications, 1)
  await nextReplaced()
  await assert.rejects(state.call({ kind: 'introspect', token: 'c' }), /has ended/)
  connect()
  await assert.rejects(state.call({ kind: 'introspect', token: 'd' }), /ECONNREFUSED/)
  assert.deepEqual([state.subscriptions.size.applications, deaths.length], [1, 1])
  await control.stop()
})
