/** `sluice upgrade`: another process takes over the ports, under load, without a failed request. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { endProcess } from '../harness/documents.ts'
import { eventually } from '../harness/peers.ts'
import { type Home, makeHome, type RunningGateway, startProgram } from '../harness/program.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const UPGRADE_MS = 60_000

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

async function started(t: TestContext, sets: readonly string[] = [], delayMs = 0): Promise<RunningGateway> {
  const backend = createServer((incoming, response) => {
    incoming.resume()
    setTimeout(() => response.end('ok'), incoming.url === '/slow' ? 1500 : delayMs)
  })
  backend.listen(0, '127.0.0.1')
  await once(backend, 'listening')
  const home = makeHome((backend.address() as AddressInfo).port)
  const gateway = await startProgram(home, sets)
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
  const args = ['src/launch.js', 'upgrade', '--home', home.path]
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
  await load.stop()
  assert.deepEqual(load.failures, [], `${load.answered} requests`)
  assert.ok(load.answered > 500, `${load.answered} requests`)
  assert.equal(program.child.exitCode, 0)
  t.diagnostic(`${load.answered} requests, the slowest took ${load.slowestMs.toFixed()} ms`)
})
