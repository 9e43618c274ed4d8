/**
 * Each size that `tune` varies, on a real gateway where it has an effect and a known optimum. Runs with `--long`: each
 * takes minutes. Times of backends are the bottleneck, and not processors, so that a busy machine changes no optimum.
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { home, leave, sluice } from '../harness/operator.ts'
import { IS_LONG } from '../harness/random.ts'
import { put } from '../harness/reloading.ts'

after(leave)

interface Result {
  readonly knobs: readonly {
    readonly key: string
    readonly optimum: number
    readonly verdict: string
    readonly points: readonly { readonly value: number; readonly failed: number }[]
  }[]
  readonly proposals: readonly { readonly key: string; readonly value: number }[]
  readonly generator: { readonly isBottleneck: boolean }
}

async function tuned(at: ReturnType<typeof home>, ...words: string[]): Promise<Result> {
  const common = ['--clients', '32', '--seconds', '1', '--repeats', '3', '--seed', '1', '--json']
  const { code, out, err } = await sluice(at, 'tune', '/t/', ...common, ...words)
  assert.equal(code, 0, err)
  return JSON.parse(out)
}

const printed = ({ knobs: [knob] }: Result): string => JSON.stringify(knob?.points, ['value', 'throughput', 'failed'])

function assertNear({ knobs: [knob] }: Result, expected: number): void {
  const grid = knob!.points.map(({ value }) => value)
  const steps = Math.abs(grid.indexOf(knob!.optimum) - grid.indexOf(expected))
  assert.ok(steps <= 1, `${knob!.optimum} is ${steps} steps from ${expected}`)
}

async function listening(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as AddressInfo).port
}

const HTTP = 'transport.passthru_http'
const REAL = { skip: !IS_LONG }

/**
 * A request takes 20 ms; beyond the slots the square of the requests at once for each slot. Half and twice as many at
 * once have half the throughput, so that a busy machine leaves the optimum where it is.
 */
function backendWithSlots(slots: number): Server {
  let atOnce = 0
  return createServer((request, response) => {
    request.resume()
    atOnce++
    const finish = (): void => {
      atOnce--
      response.end('ok')
    }
    setTimeout(finish, 20 * Math.max(1, atOnce / slots) ** 2)
  })
}

test('a backend with 8 slots that is slower beyond: connections to one backend', REAL, async t => {
  const backend = backendWithSlots(8)
  t.after(() => backend.close().closeAllConnections())
  const port = await listening(backend)
  assertNear(await tuned(home(port), '--only', 'connections'), 8)
})

test('connections that are too few for a backend without limits: found, written and kept', REAL, async t => {
  const backend = createServer((_, response) => setTimeout(() => response.end('ok'), 100))
  t.after(() => backend.close().closeAllConnections())
  const port = await listening(backend)
  const at = home(port)
  writeFileSync(
    join(at.path, 'deployment.toml'),
    '[transport.passthru_http]\n"http.max.connection.per.host.port" = 2\n',
  )
  const report = join(at.path, 'report.html')
  const result = await tuned(at, '--only', 'connections', '--report', report, '--apply')
  assertNear(result, 32)
  assert.equal(result.proposals[0]?.key, 'http.max.connection.per.host.port')
  const { value } = result.proposals[0]!
  const files = readdirSync(at.path).filter(file => file.startsWith('deployment.toml.'))
  assert.match(readFileSync(join(at.path, files[0]!), 'utf8'), /= 2\n/)
  assert.match(readFileSync(join(at.path, 'deployment.toml'), 'utf8'), new RegExp(`port" = ${value}\n`))
  assert.ok(existsSync(report))
})

/** Calls another service, and keeps its message while it waits. */
const calling = (port: number) => `<sequence xmlns="http://ws.apache.org/ns/synapse" name="WSO2AM--Ext--In">
  <call blocking="true"><endpoint><http method="get" uri-template="http://127.0.0.1:${port}/"/></endpoint></call>
</sequence>`

test('flows that call a service with 4 slots: messages at once on workers', REAL, async t => {
  const [backend, service] = [createServer((_, response) => response.end('ok')), backendWithSlots(4)]
  t.after(() => {
    for (const server of [backend, service]) server.close().closeAllConnections()
  })
  const at = home(await listening(backend))
  put(at, 'synapse-configs/default/sequences/WSO2AM--Ext--In.xml', calling(await listening(service)))
  assertNear(await tuned(at, '--only', 'workers'), 4)
})

const BUSY = `<sequence xmlns="http://ws.apache.org/ns/synapse" name="WSO2AM--Ext--In">
  <payloadFactory media-type="json"><format>{"id": $1}</format><args><arg evaluator="json" expression="$.pet"/></args>
  </payloadFactory>
</sequence>`

test('flows on workers: at most one step beyond the processors', REAL, async t => {
  const backend = createServer((request, response) => request.resume().on('end', () => response.end('ok')))
  t.after(() => backend.close().closeAllConnections())
  const port = await listening(backend)
  const at = home(port)
  put(at, 'synapse-configs/default/sequences/WSO2AM--Ext--In.xml', BUSY)
  const body = JSON.stringify({ pet: 1, more: 'x'.repeat(50_000) })
  const result = await tuned(at, '--only', 'workers', '-d', body, '-H', 'Content-Type: application/json')
  assert.ok(result.knobs[0]!.optimum <= 8, String(result.knobs[0]!.optimum))
})

/** Blocks its thread; each reactor has one. */
const HANDLER = `const cell = new Int32Array(new SharedArrayBuffer(4))
export async function request() { Atomics.wait(cell, 0, 0, 20) }
`
const HANDLERS = `enabled_global_handlers = ["slow"]
[handlers]
pool_size = 1
[[synapse_handlers]]
name = "slow"
class = "slow.mjs"
[${HTTP}]
reactors = 1
`

const SEVERAL = { skip: !IS_LONG || availableParallelism() < 2 }

test('a thread of each reactor that is the bottleneck: as many reactors as processors', SEVERAL, async t => {
  const backend = createServer((_, response) => response.end('ok'))
  t.after(() => backend.close().closeAllConnections())
  const at = home(await listening(backend))
  writeFileSync(join(at.path, 'slow.mjs'), HANDLER)
  writeFileSync(join(at.path, 'deployment.toml'), HANDLERS)
  const result = await tuned(at, '--only', 'reactors')
  assert.deepEqual(
    result.proposals.map(({ key, value }) => [key, value]),
    [['reactors', availableParallelism()]],
    printed(result),
  )
})

const ONE_AT_ONCE = `[${HTTP}]\nworker_pool_size_core = 1\nworker_pool_size_max = 1\n`

test('messages of 8 clients that one worker serves in turn: the shortest queue that refuses none', REAL, async t => {
  const [backend, service] = [createServer((_, response) => response.end('ok')), backendWithSlots(1)]
  t.after(() => {
    for (const server of [backend, service]) server.close().closeAllConnections()
  })
  const at = home(await listening(backend))
  put(at, 'synapse-configs/default/sequences/WSO2AM--Ext--In.xml', calling(await listening(service)))
  writeFileSync(join(at.path, 'deployment.toml'), ONE_AT_ONCE)
  const result = await tuned(at, '--only', 'queue', '--clients', '8')
  const [knob] = result.knobs
  assert.deepEqual([knob?.optimum, result.proposals], [8, []], printed(result))
  for (const { value, failed } of knob!.points) assert.equal(failed > 0.01, value >= 0 && value < 7, printed(result))
})

test('requests with a head of 10,000 bytes: the smallest buffer that holds it', REAL, async t => {
  const backend = createServer((_, response) => void setTimeout(() => response.end('ok'), 100))
  t.after(() => backend.close().closeAllConnections())
  const at = home(await listening(backend))
  writeFileSync(join(at.path, 'deployment.toml'), `[${HTTP}]\nio_buffer_size = 65536\n`)
  const result = await tuned(at, '--only', 'buffer', '-H', `X-Long: ${'x'.repeat(10_000)}`)
  const [knob] = result.knobs
  assert.equal(knob?.optimum, 16_384, printed(result))
  assert.deepEqual(
    knob.points.map(({ failed }) => failed),
    [1, 1, 0, 0, 0],
  )
})

test('sizes without an effect on a backend that takes 100 ms: no difference is seen', REAL, async t => {
  const backend = createServer((_, response) => void setTimeout(() => response.end('ok'), 100))
  t.after(() => backend.close().closeAllConnections())
  const at = home(await listening(backend))
  const words = ['--seconds', '1', '--repeats', '3', '--seed', '1', '--clients', '4']
  const { code, out, err } = await sluice(at, 'tune', '/t/', ...words, '--only', 'reactors,workers,queue,buffer')
  assert.equal(code, 0, err)
  assert.equal(out.match(/^no difference seen, .* stays: one of less than \d+ % would not show/gm)?.length, 4, out)
  assert.match(out, /Proposed changes\nnone: /)
})
