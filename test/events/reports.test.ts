/** Reports of gateways to traffic managers over real sockets, and the decisions that follow. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Decision } from '../../src/events/messages.ts'
import { type ReportGroup, ReportClient } from '../../src/events/report-client.ts'
import { decodeReport, encodeReport, FRAME, frame, FrameReader } from '../../src/events/report-codec.ts'
import { ReportServer } from '../../src/events/report-server.ts'
import { TrafficManager } from '../../src/events/traffic-manager.ts'
import type { UsageRow } from '../../src/throttle/cluster-limits.ts'
import { CounterTable } from '../../src/throttle/counter-table.ts'
import type { Quota } from '../../src/throttle/policy.ts'
import { CA, SERVER } from '../harness/certificates.ts'
import { freePort } from '../harness/program.ts'
import { TcpGate } from '../harness/tcp-gate.ts'

const ACCOUNT = { username: 'gateways', password: 'of this test' }
const DAILY: Quota = { type: 'requests', limit: 10, unit: 'day', units: 1, window: 'tumbling' }
const closings: (() => unknown)[] = []
after(async () => {
  for (const close of closings.reverse()) await close()
})

function row(key: string, amount: number, quota = DAILY): UsageRow {
  return { key, quota, amount }
}

interface Receiver {
  readonly port: number
  /** Amounts by key. */
  readonly counted: Map<string, number>
  readonly decisions: Decision[]
  readonly reports: string[]
  /** Resolves once so much of a key is counted. */
  until(key: string, amount: number): Promise<void>
}

const TLS = { identity: SERVER, minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3', ciphers: '' } as const

async function receiver(tls: typeof TLS | null = null): Promise<Receiver> {
  const counted = new Map<string, number>()
  const decisions: Decision[] = []
  const reports: string[] = []
  const waiting = new Set<() => void>()
  const manager = new TrafficManager(CounterTable.allocate(1000), {
    metrics: { add: () => {} },
    wallMs: Date.now,
    decide: decision => decisions.push(decision),
  })
  const server = new ReportServer(
    { host: '127.0.0.1', port: 0, tls, ...ACCOUNT },
    {
      metrics: { add: () => {} },
      report: (_, event, fields) => reports.push(`${event}: ${fields.CAUSE_OF_ERROR}`),
      receive: report => {
        for (const { key, amount } of report.rows) counted.set(key, (counted.get(key) ?? 0) + amount)
        manager.receive(report)
        for (const look of waiting) look()
      },
    },
  )
  const port = await server.listen()
  closings.push(() => server.close())
  const until = (key: string, amount: number): Promise<void> =>
    new Promise(resolve => {
      const look = (): void => {
        if ((counted.get(key) ?? 0) < amount) return
        waiting.delete(look)
        resolve()
      }
      waiting.add(look)
      look()
    })
  return { port, counted, decisions, reports, until }
}

function group(type: ReportGroup['type'], ports: readonly number[], more: Partial<ReportGroup> = {}): ReportGroup {
  return { type, members: ports.map(port => ({ host: '127.0.0.1', port, tls: null })), ...ACCOUNT, ...more }
}

interface Gateway {
  readonly client: ReportClient
  readonly reports: string[]
  /** Resolves once a line like this is in the log. */
  said(text: string, times?: number): Promise<void>
}

function gateway(...groups: readonly ReportGroup[]): Gateway {
  const reports: string[] = []
  let look = (): void => {}
  const client = new ReportClient(groups, {
    node: 'one',
    metrics: { add: () => {} },
    report: (_, event, fields) => {
      reports.push(`${event} ${JSON.stringify(fields)}`)
      look()
    },
  })
  closings.push(() => client.close())
  const said = (text: string, times = 1): Promise<void> =>
    new Promise(resolve => {
      look = () => {
        if (reports.filter(line => line.includes(text)).length >= times) resolve()
      }
      look()
    })
  return { client, reports, said }
}

test('a report is the same behind its encoding, with every type, unit and window', () => {
  const types = ['requests', 'bandwidth', 'events'] as const
  const units = ['sec', 'min', 'hour', 'day', 'month'] as const
  const rows = types.flatMap(type =>
    units.flatMap(unit =>
      (['tumbling', 'sliding'] as const).map(window =>
        row(`${type} ${unit} ümlaut`, 2 ** 40, { type, limit: 2 ** 50, unit, units: 7, window }),
      ),
    ),
  )
  const report = { number: 2 ** 32 - 1, atMs: 1_800_000_000_000, rows }
  assert.deepEqual(decodeReport(encodeReport(report)), report)
})

test('a report that is cut at any byte is refused or has fewer rows', () => {
  const whole = encodeReport({ number: 1, atMs: 1, rows: [row('a', 1), row('b', 2)] })
  for (let length = 0; length < whole.length; length++) {
    try {
      assert.ok(decodeReport(whole.subarray(0, length)).rows.length < 2)
    } catch (error) {
      assert.equal((error as Error).name, 'ReportMalformed')
    }
  }
})

test('frames are the same in one read and byte by byte', () => {
  const bytes = Buffer.concat([frame(FRAME.ACK, Buffer.from('abcd')), frame(FRAME.REFUSED, Buffer.from('why'))])
  const wanted = [...new FrameReader().read(bytes)].map(({ type, body }) => [type, body.toString()])
  const reader = new FrameReader()
  const found = [...bytes].flatMap(byte => [...reader.read(Buffer.of(byte))])
  assert.deepEqual(wanted, [
    [FRAME.ACK, 'abcd'],
    [FRAME.REFUSED, 'why'],
  ])
  assert.deepEqual(
    found.map(({ type, body }) => [type, body.toString()]),
    wanted,
  )
})

test('a decision comes once the quota is used up, over TLS', async () => {
  const manager = await receiver(TLS)
  const tls = { ...TLS, ca: [CA.cert], identity: null, hostname: 'none' } as const
  const members = [{ host: '127.0.0.1', port: manager.port, tls }]
  const { client } = gateway(group('failover', [], { members }))
  client.add([row('a', 9)])
  await manager.until('a', 9)
  assert.deepEqual(manager.decisions, [])
  client.add([row('a', 1), row('b', 1)])
  await manager.until('a', 10)
  assert.deepEqual(
    manager.decisions.map(({ key, isThrottled, untilMs }) => [key, isThrottled, untilMs % 86_400_000]),
    [['a', true, 0]],
  )
})

test('every group receives everything; with failover the first that answers has all of it', async () => {
  const [first, second, other] = [await receiver(), await receiver(), await receiver()]
  const at = new TcpGate(await freePort(), first.port)
  closings.push(() => at.shut())
  await at.open()
  const { client, said } = gateway(group('failover', [at.port, second.port]), group('failover', [other.port]))
  await said('traffic manager connected', 3)
  client.add([row('a', 1)])
  for (const { until } of [first, other]) await until('a', 1)
  assert.equal(second.counted.size, 0)
  await at.shut()
  await said('traffic manager lost')
  client.add([row('b', 1)])
  for (const { until } of [second, other]) await until('b', 1)
  assert.deepEqual([first.counted.size, other.counted.size], [1, 2])
})

test('with loadbalance each key has one traffic manager, and both have a share', async () => {
  const [one, two] = [await receiver(), await receiver()]
  const gateways = [
    gateway(group('loadbalance', [one.port, two.port])),
    gateway(group('loadbalance', [two.port, one.port])),
  ]
  for (const { said } of gateways) await said('traffic manager connected', 2)
  const keys = Array.from({ length: 200 }, (_, n) => `key-${n}`)
  for (const { client } of gateways) client.add(keys.map(key => row(key, 1)))
  for (const key of keys) await Promise.race([one.until(key, 2), two.until(key, 2)])
  assert.equal(one.counted.size + two.counted.size, keys.length)
  assert.ok(Math.min(one.counted.size, two.counted.size) > 60)
})

test('amounts wait while no traffic manager answers', async () => {
  const manager = await receiver()
  const at = new TcpGate(await freePort(), manager.port)
  closings.push(() => at.shut())
  const { client, said } = gateway(group('failover', [at.port]))
  await said('traffic manager lost')
  for (let n = 0; n < 50; n++) client.add([row('a', 1), row(`b${n}`, 1)])
  await at.open()
  await manager.until('a', 50)
  assert.equal(manager.counted.size, 51)
})

test('a traffic manager that stops answering is found, and replaced', async () => {
  const [held, next] = [await receiver(), await receiver()]
  const at = new TcpGate(await freePort(), held.port)
  closings.push(() => at.shut())
  await at.open()
  const { client, said } = gateway(group('failover', [at.port, next.port]))
  await said('traffic manager connected', 2)
  at.hold()
  client.add([row('a', 1)])
  await said('no answer within 3000 ms')
  client.add([row('b', 1)])
  await next.until('b', 1)
})

for (const [what, bytes] of [
  [
    'wrong credentials',
    frame(FRAME.HELLO, Buffer.from('{"version":1,"node":"n","username":"gateways","password":"x"}')),
  ],
  ['another greeting', frame(FRAME.HELLO, Buffer.from('{"version":2}'))],
  ['a report before the greeting', frame(FRAME.REPORT, encodeReport({ number: 1, atMs: 1, rows: [row('a', 1)] }))],
  ['a long frame before the greeting', Buffer.from([0, 0x10, 0, 0, 1])],
  ['an HTTP request', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
] as const) {
  test(`${what}: the connection ends, nothing is counted, and the log has the cause`, async () => {
    const manager = await receiver()
    const socket = connect({ port: manager.port, host: '127.0.0.1' })
    socket.resume().write(bytes)
    await once(socket, 'close')
    assert.equal(manager.counted.size, 0)
    assert.equal(manager.reports.length, 1)
    assert.match(manager.reports[0]!, /^a gateway is refused: /)
  })
}

test('a gateway that was refused is not heard again on its connection', async () => {
  const manager = await receiver()
  const socket = connect({ port: manager.port, host: '127.0.0.1', allowHalfOpen: true })
  const hello = (password: string) =>
    frame(FRAME.HELLO, Buffer.from(JSON.stringify({ version: 1, node: 'n', ...ACCOUNT, password })))
  socket.resume().write(hello('a first guess'))
  await once(socket, 'end')
  socket.on('error', () => {})
  // The traffic manager closes the connection of a peer that does not, and a later guess fails.
  while (!socket.destroyed) {
    socket.write(hello('a second guess'))
    await sleep(10)
  }
  assert.equal(manager.counted.size, 0)
  assert.equal(manager.reports.length, 1)
})

test('a decision that holds is repeated once a second while its key is reported, and not in the next window', () => {
  const decisions: Decision[] = []
  let nowMs = Date.UTC(2026, 0, 1)
  const context = { metrics: { add: () => {} }, wallMs: () => nowMs, decide: (one: Decision) => decisions.push(one) }
  const manager = new TrafficManager(CounterTable.allocate(100), context)
  const minute: Quota = { ...DAILY, unit: 'min' }
  const report = (atMs: number, amount: number): void => {
    manager.receive({ number: 1, atMs, rows: [row('a', amount, minute)] })
  }
  report(nowMs, 12)
  report(nowMs, 1)
  assert.equal(decisions.length, 1)
  nowMs += 1000
  report(nowMs, 1)
  assert.equal(decisions.length, 2)
  nowMs += 60_000
  // A report of the window before comes too late to count.
  report(nowMs - 60_000, 20)
  report(nowMs, 9)
  assert.equal(decisions.length, 2)
  report(nowMs, 1)
  assert.equal(decisions.length, 3)
})
