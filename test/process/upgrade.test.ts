/** `sluice upgrade`: another process takes over the ports, under load, without a failed request. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { endProcess } from '../harness/documents.ts'
import { eventually, GUARD_MS } from '../harness/peers.ts'
import { ask, freePort, type Home, LAUNCHER, makeHome, type RunningGateway, startProgram } from '../harness/program.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const UPGRADE_MS = 60_000
/** Pause of each client between a response and the next request: the clients leave the processors to the upgrade. */
const PAUSE_MS = 20

interface Answer {
  readonly status: number
  readonly closes: boolean
}

function get(port: number, agent: Agent | undefined, path = '/t/x'): Promise<Answer> {
  const { promise, resolve: answered, reject } = Promise.withResolvers<Answer>()
  const sent = request(
    { host: '127.0.0.1', port, path, agent, headers: { 'content-type': 'text/plain' } },
    response => {
      response.resume()
      response.on('end', () =>
        answered({ status: response.statusCode!, closes: response.headers.connection === 'close' }),
      )
      response.on('error', reject)
    },
  )
  sent.on('error', reject)
  sent.end()
  return promise
}

/** Clients that send one request after the other: some on one connection, some on a new one each time. */
class Load {
  readonly failures: string[] = []
  /** Longest wait for an answer. */
  slowestMs = 0
  answered = 0
  #isOn = true
  readonly #clients: Promise<void>[]
  readonly #port: number

  constructor(port: number, keptAlive: number, fresh: number) {
    this.#port = port
    const agents = [
      ...Array.from({ length: keptAlive }, () => new Agent({ keepAlive: true, maxSockets: 1 })),
      ...Array.from({ length: fresh }, () => new Agent({ keepAlive: false })),
    ]
    this.#clients = agents.map(agent => this.#run(agent))
  }

  async #run(agent: Agent): Promise<void> {
    while (this.#isOn) {
      const startedMs = performance.now()
      try {
        const { status } = await get(this.#port, agent)
        if (status !== 200) this.failures.push(`status ${status}`)
      } catch (error) {
        this.failures.push(String(error))
      }
      this.answered++
      this.slowestMs = Math.max(this.slowestMs, performance.now() - startedMs)
      await wait(PAUSE_MS)
    }
    agent.destroy()
  }

  async stop(): Promise<void> {
    this.#isOn = false
    await Promise.all(this.#clients)
  }
}

function pidOf(home: Home): number {
  return Number.parseInt(readFileSync(join(home.data, 'lock'), 'latin1'), 10)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** `text`: the configuration file; a key that `sets` has stays through all upgrades. */
async function started(
  t: TestContext,
  sets: readonly string[] = [],
  delayMs = 0,
  text = '',
  words: readonly string[] = [],
): Promise<RunningGateway> {
  const backend = createServer((incoming, response) => {
    incoming.resume()
    setTimeout(() => response.end('ok'), incoming.url === '/slow' ? 5000 : delayMs)
  })
  backend.listen(0, '127.0.0.1')
  await once(backend, 'listening')
  const home = makeHome((backend.address() as AddressInfo).port, text)
  const gateway = await startProgram(home, sets, {}, words)
  t.after(async () => {
    endProcess(pidOf(home))
    await gateway.program.kill()
    backend.close()
    backend.closeAllConnections()
    home.remove()
  })
  return gateway
}

interface Upgraded {
  readonly code: number
  readonly text: string
}

/** The clients of this process go on meanwhile. */
function upgrade({ home }: RunningGateway): Promise<Upgraded> {
  const args = [LAUNCHER, 'upgrade', '--home', home.path]
  const { promise, resolve: ended } = Promise.withResolvers<Upgraded>()
  execFile(process.execPath, args, { cwd: ROOT, timeout: UPGRADE_MS }, (error, stdout, stderr) => {
    ended({ code: Number(error?.code ?? 0), text: `${stdout}${stderr}` })
  })
  return promise
}

test('an upgrade under load: no request fails, and the old process ends', async t => {
  const gateway = await started(t, ['transport.listener.shutdown.wait.sec=5'], 2)
  const { port, home, program } = gateway
  const load = new Load(port, 6, 6)
  await wait(500)
  const pids = [pidOf(home)]
  for (let upgrades = 0; upgrades < 3; upgrades++) {
    const before = load.answered
    const { text } = await upgrade(gateway)
    const pid = pidOf(home)
    assert.equal(text, `upgraded: process ${pid} serves\n`)
    assert.ok(!pids.includes(pid))
    assert.ok(load.answered > before, 'requests went on')
    pids.push(pid)
    await eventually('the end of the old process', () => !isAlive(pids.at(-2)!))
  }
  await wait(500)
  await eventually('500 requests', () => load.answered > 500)
  await load.stop()
  assert.deepEqual(load.failures, [], `${load.answered} requests`)
  assert.equal(program.child.exitCode, 0)
  t.diagnostic(`${load.answered} requests, the slowest took ${load.slowestMs.toFixed()} ms`)
})

/** [what, configuration before, configuration of the new process] */
const CHANGES: readonly (readonly [what: string, before: string, after: string])[] = [
  ['from one reactor to three', 'reactors = 1', 'reactors = 3'],
  ['from three reactors to one', 'reactors = 3', 'reactors = 1'],
  ['to other sizes of buffers', 'reactors = 2', 'reactors = 2\nio_buffer_size = 32768'],
]
for (const [what, before, after] of CHANGES) {
  for (const level of ['handles', 'streams']) {
    test(`an upgrade ${what}, ${level}: no request fails`, async t => {
      const port = await freePort()
      const listens = `transport.passthru_http.listener.parameters.port=${port}`
      const sets = [listens, `transport.passthru_http.socket_level=${level}`]
      const gateway = await started(t, sets, 2, `[transport.passthru_http]\n${before}\n`)
      const load = new Load(port, 4, 4)
      writeFileSync(join(gateway.home.path, 'deployment.toml'), `[transport.passthru_http]\n${after}\n`)
      const { text } = await upgrade(gateway)
      assert.match(text, /^upgraded: process \d+ serves$/m)
      await wait(300)
      await eventually('20 requests', () => load.answered > 20)
      await load.stop()
      assert.deepEqual(load.failures, [], `${load.answered} requests`)
    })
  }
}

/** [what, new configuration, exit code of the new process, whether the old one had closed its management listener] */
const REFUSED: readonly (readonly [what: string, text: string, code: number, isLate: boolean])[] = [
  ['has an error', 'nonsense = [', 78, false],
  ['cannot start', '[access_log]\ntarget = "file"\npath = "/no/such/folder/a.log"\n', 1, true],
]
for (const [what, text, code, isLate] of REFUSED) {
  test(`an upgrade to a configuration that ${what} is refused, and the running process goes on as before`, async t => {
    const gateway = await started(t, ['management.enable=true', 'management.port=0'], 2)
    const { home, port, program } = gateway
    const pid = pidOf(home)
    const load = new Load(port, 3, 3)
    const file = join(home.path, 'deployment.toml')
    writeFileSync(file, text)
    const refused = await upgrade(gateway)
    assert.equal(refused.code, 1)
    const cause = `not upgraded: the new process ended with ${code}; see the log; the running process goes on\n`
    assert.equal(refused.text, cause)
    assert.equal(pidOf(home), pid)
    await load.stop()
    assert.deepEqual(load.failures, [])
    assert.match(await ask(gateway.healthPort, 'GET', '/readyz'), /^HTTP\/1\.1 200 /)
    // The thread that listens for the key manager was replaced where its listener was closed.
    if (isLate) await program.said.until(/^control thread replaced$/m)
    writeFileSync(file, '')
    assert.match((await upgrade(gateway)).text, /^upgraded/)
  })
}

test('after an upgrade that is refused late, start --watch goes on, and finds what has changed meanwhile', async t => {
  const gateway = await started(t, [], 0, '', ['--watch'])
  const { home, port } = gateway
  const file = join(home.path, 'deployment.toml')
  const [, cannotStart] = REFUSED.find(([, , , isLate]) => isLate)!
  writeFileSync(file, cannotStart)
  assert.equal((await upgrade(gateway)).code, 1)
  writeFileSync(file, '')
  rmSync(join(home.path, 'apis', 'Test'), { recursive: true })
  const agent = new Agent({ keepAlive: true })
  const endMs = performance.now() + GUARD_MS
  while ((await get(port, agent)).status !== 404) {
    assert.ok(performance.now() < endMs, 'the API is still deployed')
    await wait(20)
  }
  agent.destroy()
})

test('where the old process is killed while it hands over, the new one serves', async t => {
  const gateway = await started(t)
  const { home, port, program } = gateway
  const old = pidOf(home)
  void upgrade(gateway)
  const [, successor] = await program.err.until(/"SUCCESSOR":(\d+)/)
  program.signal('SIGKILL')
  await eventually('the lock of the new process', () => pidOf(home) === Number(successor))
  assert.notEqual(pidOf(home), old)
  const agent = new Agent({ keepAlive: false })
  assert.equal((await get(port, agent)).status, 200)
})

test('over an upgrade a request in flight is answered, and an idle client gets one more answer with close', async t => {
  const gateway = await started(t)
  const { port, home } = gateway
  const [busy, idle] = [new Agent({ keepAlive: true }), new Agent({ keepAlive: true })]
  assert.deepEqual(await get(port, idle), { status: 200, closes: false })
  const old = pidOf(home)
  const slow = get(port, busy, '/t/slow')
  assert.equal((await upgrade(gateway)).code, 0)
  // The old process says close: none of these reaches it.
  for (let clients = 0; clients < 20; clients++) {
    const agent = new Agent({ keepAlive: true })
    assert.deepEqual(await get(port, agent), { status: 200, closes: false })
    agent.destroy()
  }
  assert.equal((await slow).status, 200)
  busy.destroy()
  await wait(200)
  assert.ok(isAlive(old), 'the idle client keeps the old process')
  assert.deepEqual(await get(port, idle), { status: 200, closes: true })
  await eventually('the end of the old process', () => !isAlive(old))
  assert.deepEqual(await get(port, idle), { status: 200, closes: false })
  idle.destroy()
})
