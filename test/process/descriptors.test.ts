/** The program with few open files: idle clients take nothing from requests, health port and control socket (D168). */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { after, test, type TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { sendCommand } from '../../src/cli/control-client.ts'
import { connectionLimits } from '../../src/plan/descriptor-planning.ts'
import { eventually, GUARD_MS, ScriptedBackend } from '../harness/peers.ts'
import { ask, freePort, makeHome, type RunningGateway, startProgram } from '../harness/program.ts'

const LEVELS = ['handles', 'streams'] as const
const OPEN_FILES = 256
const REACTORS = 2
const IDLE_CLIENTS = 400
const IS_LINUX = process.platform === 'linux'
const HAS_PRLIMIT = IS_LINUX && spawnSync('prlimit', ['--version']).status === 0
/** User and system time in /proc/PID/stat are hundredths of a second. */
const TICKS_PER_SECOND = 100

const backend = await ScriptedBackend.listen(peer => {
  void peer
    .untilText('\r\n\r\n')
    .then(() => peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok'))
})
after(() => backend.close())

async function start(t: TestContext, level: string, openFiles: number): Promise<RunningGateway> {
  const home = makeHome(backend.port)
  const sets = [
    `transport.passthru_http.listener.parameters.port=${await freePort()}`,
    `transport.passthru_http.reactors=${REACTORS}`,
    `transport.passthru_http.socket_level=${level}`,
  ]
  const running = await startProgram(home, sets, {}, [], openFiles)
  t.after(async () => {
    await running.program.kill()
    home.remove()
  })
  return running
}

/** Share of one processor that a process takes over a second. */
async function processorShare(pid: number): Promise<number> {
  const before = processorTicks(pid)
  await wait(1000)
  return (processorTicks(pid) - before) / TICKS_PER_SECOND
}

function processorTicks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .replace(/^.*\) /s, '')
    .split(' ')
  return Number(fields[11]) + Number(fields[12])
}

interface IdleClients {
  readonly sockets: readonly Socket[]
  /** Connections that the gateway has ended. */
  ended: number
}

function connectIdle(t: TestContext, port: number, count: number): IdleClients {
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1'))
  const clients = { sockets, ended: 0 }
  for (const socket of sockets) socket.on('error', () => {}).on('close', () => clients.ended++)
  t.after(() => sockets.forEach(socket => void socket.destroy()))
  return clients
}

for (const level of LEVELS) {
  test(`${level}, ulimit -n ${OPEN_FILES}: ${IDLE_CLIENTS} idle clients take nothing from the others`, {
    skip: !IS_LINUX,
  }, async t => {
    const { program, home, port, healthPort } = await start(t, level, OPEN_FILES)
    const { clients } = connectionLimits(OPEN_FILES, REACTORS)
    assert.ok(program.said.text.includes(`ulimit -n ${OPEN_FILES} allows ${clients} client connections; raise it`))
    const idle = connectIdle(t, port, IDLE_CLIENTS)
    const left = (): number => IDLE_CLIENTS - idle.ended
    await eventually('the resets of the clients over the limit', () => left() <= clients)
    assert.equal(left(), clients)
    assert.ok((await processorShare(program.child.pid!)) < 0.5)
    assert.match(await ask(healthPort, 'GET', '/healthz'), /^HTTP\/1\.1 200 /)
    const { endpoints } = await sendCommand<{ endpoints: { state: string }[] }>(home.data, { command: 'endpoints' })
    assert.equal(endpoints[0]!.state, 'ACTIVE')
    const counted = /refused_total\{limit="descriptors"\} (\d+)/.exec(await ask(healthPort, 'GET', '/metrics'))
    assert.equal(Number(counted?.[1]), IDLE_CLIENTS - clients)
    // Every client that is connected is served, all at the same time.
    const open = idle.sockets.filter(socket => !socket.destroyed)
    const responses = open.map(socket => {
      const { promise, resolve } = Promise.withResolvers<string>()
      socket.setEncoding('latin1').once('data', resolve)
      socket.write('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
      return promise
    })
    for (const response of await Promise.all(responses)) assert.match(response, /^HTTP\/1\.1 200 /)
  })

  test(`${level}: without a free descriptor a listener pauses without spinning, and accepts again afterwards`, {
    skip: !HAS_PRLIMIT,
  }, async t => {
    const { program, port } = await start(t, level, 0)
    const pid = program.child.pid!
    const limit = (openFiles: number) => spawnSync('prlimit', [`--pid=${pid}`, `--nofile=${openFiles}:`])
    assert.equal(limit(10).status, 0)
    const idle = connectIdle(t, port, 50)
    await program.err.until(/EMFILE, ulimit -n\)","msg":"accepting paused"/)
    assert.ok((await processorShare(pid)) < 0.5)
    await eventually('the end of every connection', () => idle.ended === idle.sockets.length)
    assert.equal(limit(1000).status, 0)
    let text = ''
    for (const end = performance.now() + GUARD_MS; text === '' && performance.now() < end; ) text = await answer(port)
    assert.match(text, /^HTTP\/1\.1 200 /)
  })
}

/** Response to a request on a connection that may be refused. */
async function answer(port: number): Promise<string> {
  try {
    return await ask(port, 'GET', '/t/it')
  } catch {
    return ''
  }
}
