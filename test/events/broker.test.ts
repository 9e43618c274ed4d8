/** The broker client against a real broker, through a proxy that the tests cut and hold. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Broker, type BrokerMessage } from '../../src/events/broker.ts'
import { messageBroker } from '../harness/message-broker.ts'
import { freePort } from '../harness/program.ts'
import { TcpGate } from '../harness/tcp-gate.ts'

const broker = await messageBroker()
after(() => (typeof broker === 'string' ? undefined : broker.remove()))
const skip = typeof broker === 'string' ? broker : false

interface Running {
  readonly client: Broker
  readonly got: BrokerMessage[]
  readonly reports: string[]
  readonly fields: object[]
  /** Resolves once there are so many connections. */
  connections(count: number): Promise<void>
  /** Resolves once an outage is in the log. */
  lost(): Promise<void>
  /** Resolves once a message with this body has come. */
  body(text: string): Promise<void>
}

function client(ports: readonly number[], origin: string, topics: readonly string[], password?: string): Running {
  if (typeof broker === 'string') throw new Error(broker)
  const got: BrokerMessage[] = []
  const reports: string[] = []
  const fields: object[] = []
  const waiting = new Set<() => void>()
  let count = 0
  const look = (): void => {
    for (const one of [...waiting]) one()
  }
  const until = (holds: () => boolean): Promise<void> =>
    new Promise(resolve => {
      const check = (): void => {
        if (!holds()) return
        waiting.delete(check)
        resolve()
      }
      waiting.add(check)
      check()
    })
  const running = new Broker(
    {
      endpoints: ports.map(port => ({ host: '127.0.0.1', port, vhost: broker.vhost, tls: null })),
      username: broker.username,
      password: password ?? broker.password,
      heartbeatS: 1,
      startDelayMs: 0,
    },
    origin,
    {
      metrics: { add: () => {} },
      report: (level, event, about) => {
        reports.push(`${level} ${event}`)
        fields.push(about)
        look()
      },
    },
    { pauseMs: 20, pauseMsMax: 100, connectMs: 2000 },
  )
  for (const topic of topics) {
    running.subscribe(topic, message => {
      got.push(message)
      look()
    })
  }
  running.start(() => {
    count++
    look()
  })
  after(() => running.close())
  return {
    ...{ client: running, got, reports, fields },
    connections: wanted => until(() => count >= wanted),
    lost: () => until(() => reports.some(line => line.startsWith('error broker lost'))),
    body: text => until(() => got.some(({ body }) => JSON.stringify(body).includes(text))),
  }
}

async function gate(): Promise<TcpGate> {
  if (typeof broker === 'string') throw new Error(broker)
  const made = new TcpGate(await freePort(), broker.port)
  after(() => made.shut())
  return made
}

test('a message reaches every subscriber of its topic, and not the node that has sent it', { skip }, async () => {
  const [one, two, other] = [client([5672], 'one', ['t']), client([5672], 'two', ['t']), client([5672], 'x', ['u'])]
  for (const each of [one, two, other]) await each.connections(1)
  one.client.publish('t', { n: 1 })
  two.client.publish('t', { n: 2 })
  await two.body('"n":1')
  await one.body('"n":2')
  assert.deepEqual(
    [one.got, two.got, other.got].map(list => list.map(({ topic, origin }) => [topic, origin])),
    [[['t', 'two']], [['t', 'one']], []],
  )
})

test('an answer reaches the node that has asked, and no other', { skip }, async () => {
  const asks = client([5672], 'asks', ['answers'])
  const serves = client([5672], 'serves', ['questions'])
  const other = client([5672], 'other', ['answers'])
  for (const each of [asks, serves, other]) await each.connections(1)
  asks.client.publish('questions', { q: 1 }, { replies: true })
  await serves.body('"q":1')
  serves.client.answer(serves.got[0]!, 'answers', { a: 1 })
  await asks.body('"a":1')
  assert.deepEqual(other.got, [])
})

test('messages wait while the broker is away, and one line tells of the outage', { skip }, async () => {
  const at = await gate()
  const hears = client([5672], 'hears', ['t'])
  await hears.connections(1)
  const speaks = client([at.port], 'speaks', [])
  speaks.client.publish('t', { n: 'before the first connection' })
  await speaks.lost()
  await at.open()
  await hears.body('before the first')
  await at.shut()
  for (let n = 0; n < 50; n++) speaks.client.publish('t', { n: `during ${n}.` })
  await at.open()
  await speaks.connections(2)
  await hears.body('during 49.')
  assert.equal(speaks.reports.filter(line => line.startsWith('error broker lost')).length, 2)
})

test('a broker that stops answering is found by heartbeats', { skip }, async () => {
  const at = await gate()
  await at.open()
  const held = client([at.port], 'held', ['t'])
  await held.connections(1)
  at.hold()
  await new Promise<void>(resolve => {
    const timer = setInterval(() => {
      if (held.client.isUp) return
      clearInterval(timer)
      resolve()
    }, 20)
  })
  at.release()
  await held.connections(2)
})

test('of several endpoints the next one replaces one that is down', { skip }, async () => {
  const [first, second] = [await gate(), await gate()]
  await second.open()
  const joined = client([first.port, second.port], 'joined', ['t'])
  await joined.connections(1)
  await first.open()
  await second.shut()
  await joined.connections(2)
})

test('refused credentials are reported without the credentials', { skip }, async () => {
  const refused = client([5672], 'refused', [], 'wrong-secret')
  await refused.lost()
  assert.doesNotMatch(JSON.stringify(refused.fields), /wrong-secret|guest/)
})

test('a message that is not understood is reported, and the next one is handled', { skip }, async () => {
  const [speaks, hears] = [client([5672], 'a', []), client([5672], 'b', ['t'])]
  hears.client.subscribe('refused', () => {
    throw new Error('wrong member')
  })
  for (const each of [speaks, hears]) await each.connections(1)
  speaks.client.publish('refused', {})
  speaks.client.publish('t', { n: 1 })
  await hears.body('"n":1')
  assert.ok(hears.reports.includes('warn message of the broker not understood'))
})

test('many messages in flight are confirmed in order', { skip }, async () => {
  const [speaks, hears] = [client([5672], 'a', []), client([5672], 'b', ['t'])]
  for (const each of [speaks, hears]) await each.connections(1)
  for (let n = 0; n < 2000; n++) speaks.client.publish('t', { n })
  await hears.body('"n":1999')
  assert.deepEqual(
    hears.got.map(({ body }) => (body as { n: number }).n),
    Array.from({ length: 2000 }, (_, n) => n),
  )
})
