/** Runs on each database: what becomes of each delivery, and who delivers where several nodes do. */
import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AttemptResult } from '../../src/delivery/attempt.ts'
import type { Outbox } from '../../src/delivery/outbox.ts'
import {
  acceptAll,
  type Clause,
  DELIVERED,
  describeClauses,
  MAIL,
  numbered,
  type OutboxFixture,
  readCountsOf,
  readState,
  RETRY,
  runDue,
  runOf,
  TENANT,
  TestClock,
} from './outbox-databases.ts'

const CLAUSES: readonly (readonly [string, Clause])[] = [
  ['three hundred events of two senders are delivered once each, with at most the concurrency on the way', deliversAll],
  ['an event is composed from what was stored, and an attempt that fails is put off', retries],
  ['a delivery is given up after the last attempt, at an age, and where no attempt can succeed', givesUp],
  ['what a receiver asks for is honoured within its limit, and pauses the whole sender', pauses],
  ['a rate that needs longer than a run goes on where it has stopped', keepsRate],
  ['an error of the sender is a retry with a line in the log', survivesBugs],
  ['an aborted run returns its claims at once, and interrupted messages are no attempts', returnsClaims],
  ['one node delivers at a time, and another one takes over when the lease ends', oneHolder],
  ['a node that holds the lock of the data folder takes over at once', takesOverBehindLock],
  ['a node that is started again takes over from itself at once, and no other node does', takesOverFromItself],
  ['results of a node that has lost its claims change nothing', ignoresLateResults],
  ['a node that cannot renew its lease interrupts its messages', stopsWithoutLease],
  ['a node gives the lease back when nothing waits', releasesLease],
  ['a run for which nothing waits any more is not logged as interrupted', endsQuietly],
  ['a claim without a result waits again when it has ended', recovers],
  ['a clock that goes back or ahead loses nothing', survivesJumps],
  ['results wait for a database that is away, and none is lost', survivesErrors],
]

describeClauses('deliveries from', CLAUSES)

const NEVER = new AbortController().signal

/** A sender whose messages stay on the way until the test ends them. */
class HeldSender {
  readonly held: ((result: AttemptResult) => void)[] = []
  readonly ids: string[] = []
  #expected: { readonly count: number; readonly resolve: () => void } | null = null

  readonly compose = ({ id }: { readonly id: string }, signal: AbortSignal): Promise<AttemptResult> => {
    this.ids.push(id)
    const { promise, resolve } = Promise.withResolvers<AttemptResult>()
    this.held.push(resolve)
    signal.addEventListener('abort', () => resolve({ kind: 'retry', cause: 'interrupted', afterMs: null }))
    if (this.held.length >= (this.#expected?.count ?? Number.POSITIVE_INFINITY)) this.#expected!.resolve()
    return promise
  }

  /** Resolves when so many messages were begun. */
  begun(count: number): Promise<void> {
    if (this.held.length >= count) return Promise.resolve()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#expected = { count, resolve }
    return promise
  }
}

async function deliversAll({ open }: OutboxFixture): Promise<void> {
  const outbox = await open()
  const ids = [...(await acceptAll(outbox, numbered(200))), ...(await acceptAll(outbox, numbered(100), MAIL))]
  const sent = new Map<string, number>()
  const onTheWay = new Map<string, number>()
  let most = 0
  const run = runOf(
    outbox,
    async ({ id, sender: { channel } }) => {
      sent.set(id, (sent.get(id) ?? 0) + 1)
      onTheWay.set(channel, (onTheWay.get(channel) ?? 0) + 1)
      most = Math.max(most, onTheWay.get(channel)!)
      await new Promise(setImmediate)
      onTheWay.set(channel, onTheWay.get(channel)! - 1)
      return DELIVERED
    },
    { pace: () => ({ concurrency: 5, perSecond: null }) },
  )
  await runDue(run)
  assert.deepEqual(new Set(sent.keys()), new Set(ids))
  assert.deepEqual(new Set(sent.values()), new Set([1]))
  assert.equal(most, 5)
  assert.deepEqual(await readCountsOf(outbox), { delivered: 200, acceptedTotal: 200, deliveredTotal: 200 })
  assert.deepEqual(await readCountsOf(outbox, MAIL), { delivered: 100, acceptedTotal: 100, deliveredTotal: 100 })
}

async function retries({ open }: OutboxFixture): Promise<void> {
  const clock = new TestClock()
  const outbox = await open({ clock })
  const [id] = await acceptAll(outbox, ['😀'])
  const seen: string[] = []
  const results: AttemptResult[] = [RETRY, { ...RETRY, cause: 'HTTP 500' }, DELIVERED]
  const schedule = { delayMs: 1000 }
  const run = runOf(
    outbox,
    async ({ event, attempts, cause }) => {
      seen.push(`${event} ${attempts} ${cause}`)
      return results.shift()!
    },
    { schedule },
  )
  await runDue(run)
  assert.equal(await readState(outbox, id!), 'waiting 1 HTTP 503')
  assert.equal((await outbox.get(TENANT, id!))!.atMs, clock.ms + 1000)
  clock.ms += 999
  await runDue(run)
  clock.ms += 1
  await runDue(run)
  assert.equal(await readState(outbox, id!), 'waiting 2 HTTP 500')
  clock.ms += 2000
  await runDue(run)
  assert.equal(await readState(outbox, id!), 'delivered 3 HTTP 202')
  assert.deepEqual(seen, ['{"text":"😀"} 0 ', '{"text":"😀"} 1 HTTP 503', '{"text":"😀"} 2 HTTP 500'])
  assert.deepEqual(await readCountsOf(outbox), { delivered: 1, acceptedTotal: 1, deliveredTotal: 1, retriedTotal: 2 })
}

async function givesUp({ open }: OutboxFixture): Promise<void> {
  const clock = new TestClock()
  const outbox = await open({ clock })
  const schedule = { delayMs: 1000, attemptsMax: 2, ageMsMax: 60_000 }
  const [attempts] = await acceptAll(outbox, ['attempts'])
  const run = runOf(outbox, async () => RETRY, { schedule })
  await runDue(run)
  clock.ms += 1000
  await runDue(run)
  assert.equal(await readState(outbox, attempts!), 'dead 2 given up after 2 attempts: HTTP 503')
  const [age] = await acceptAll(outbox, ['age'])
  clock.ms += 60_001
  await runDue(run)
  assert.equal(await readState(outbox, age!), 'dead 1 not sent within 60 s')
  const [refused] = await acceptAll(outbox, ['refused'])
  await runDue(runOf(outbox, async () => ({ kind: 'failed', cause: `HTTP 400 ${'ü'.repeat(600)}` })))
  const { state, cause } = (await outbox.get(TENANT, refused!))!
  assert.deepEqual([state, cause.length], ['dead', 500])
  assert.deepEqual(await readCountsOf(outbox), { dead: 3, acceptedTotal: 3, deadTotal: 3, retriedTotal: 1 })
}

async function pauses({ open }: OutboxFixture): Promise<void> {
  const clock = new TestClock()
  const outbox = await open({ clock })
  const ids = await acceptAll(outbox, numbered(20))
  let attempts = 0
  const results: AttemptResult[] = [{ kind: 'retry', cause: 'HTTP 429', afterMs: 90_000 }]
  const run = runOf(
    outbox,
    async () => {
      attempts++
      return results.shift() ?? DELIVERED
    },
    { pace: () => ({ concurrency: 1, perSecond: null }), schedule: { askedMsMax: 80_000 } },
  )
  await runDue(run)
  assert.equal(attempts, 1)
  const page = await outbox.list({ tenant: TENANT, state: 'waiting' }, { before: null, limit: 100 })
  const asked = page.deliveries.filter(({ cause }) => cause === 'HTTP 429')
  assert.deepEqual(
    asked.map(({ atMs }) => atMs),
    [clock.ms + 80_000],
  )
  assert.equal(page.deliveries.length, 20)
  clock.ms += 59_999
  await run.run('acme.com/sms/SMSPublisher', NEVER)
  await runDue(run)
  assert.equal(attempts, 1)
  clock.ms += 1
  await runDue(run)
  assert.equal((await readCountsOf(outbox)).delivered, 19)
  clock.ms += 20_000
  await runDue(run)
  assert.equal((await readCountsOf(outbox)).delivered, ids.length)
}

async function keepsRate({ open }: OutboxFixture): Promise<void> {
  const clock = new TestClock()
  const outbox = await open({ clock })
  await acceptAll(outbox, numbered(3))
  const sent: number[] = []
  const compose = async (): Promise<AttemptResult> => {
    sent.push(clock.ms)
    return DELIVERED
  }
  const pace = () => ({ concurrency: 4, perSecond: 0.1 })
  const begunMs = clock.ms
  for (let i = 0; i < 4; i++) {
    // Each on another thread.
    await runDue(runOf(outbox, compose, { pace }))
    clock.ms += 9000
    await runDue(runOf(outbox, compose, { pace }))
    clock.ms += 1001
  }
  assert.deepEqual(
    sent.map(ms => Math.round((ms - begunMs) / 10_000)),
    [0, 1, 2],
  )
}

async function survivesBugs({ open }: OutboxFixture): Promise<void> {
  const outbox = await open()
  const [id] = await acceptAll(outbox, ['bug'])
  const lines: string[] = []
  const log = (level: string, event: string, { CAUSE }: Readonly<Record<string, string | number>>): void => {
    lines.push(`${level} ${event}: ${CAUSE}`)
  }
  await runDue(runOf(outbox, () => Promise.reject(new Error('a bug')), { log }))
  assert.equal(await readState(outbox, id!), 'waiting 1 internal error')
  assert.deepEqual(lines, ['error a sender has failed: a bug'])
}

async function returnsClaims({ open }: OutboxFixture): Promise<void> {
  const outbox = await open()
  await acceptAll(outbox, numbered(50))
  const sender = new HeldSender()
  const run = runOf(outbox, sender.compose, { node: 'a' })
  const ending = new AbortController()
  await run.due()
  const running = run.run('acme.com/sms/SMSPublisher', ending.signal)
  await sender.begun(8)
  sender.held[0]!(DELIVERED)
  ending.abort()
  await running
  assert.equal(sender.ids.length, 8)
  const { deliveries } = await outbox.list({ tenant: TENANT }, { before: null, limit: 100 })
  const states = Map.groupBy(deliveries, ({ state, attempts }) => `${state} ${attempts}`)
  assert.deepEqual([states.get('delivered 1')?.length, states.get('waiting 0')?.length], [1, 49])
  // The lease is given back as well.
  await runDue(runOf(outbox, async () => DELIVERED, { node: 'b' }))
  assert.equal((await readCountsOf(outbox)).delivered, 50)
}

async function oneHolder({ open }: OutboxFixture): Promise<void> {
  const clock = new TestClock()
  const [a, b] = [await open({ clock }), await open({ clock })]
  await acceptAll(a, numbered(30))
  const held = new HeldSender()
  const first = runOf(a, held.compose, { node: 'a' })
  const second = runOf(b, async () => DELIVERED, { node: 'b', lease: { leaseMs: 10_000 } })
  assert.deepEqual((await first.due()).jobs, ['acme.com/sms/SMSPublisher'])
  const lost = new AbortController()
  const running = first.run('acme.com/sms/SMSPublisher', lost.signal)
  await held.begun(8)
  assert.deepEqual((await second.due()).jobs, [])
  await second.run('acme.com/sms/SMSPublisher', NEVER)
  clock.ms += 10_000
  // As after a kill: node `a` says nothing any more, and what it had on the way is sent once more.
  const sentTwice = new Set(held.ids)
  await runDue(second)
  assert.equal((await readCountsOf(b)).delivered, 30)
  assert.equal(sentTwice.size, 8)
  assert.deepEqual((await first.due()).jobs, [])
  lost.abort()
  await running
}

async function takesOverBehindLock({ open, settings, database }: OutboxFixture): Promise<void> {
  const clock = new TestClock()
  const [a, b] = [await open({ clock }), await open({ clock })]
  await acceptAll(a, numbered(1))
  const gone = runOf(a, async () => DELIVERED, { node: 'gone' })
  assert.equal((await gone.due()).jobs.length, 1)
  const run = runOf(b, async () => DELIVERED, { node: 'b' })
  const lock = join(database.dataDir, 'lock')
  writeFileSync(lock, `${process.pid}1 5\n`)
  assert.deepEqual((await run.due()).jobs, [])
  writeFileSync(lock, `${process.pid} 5\n`)
  assert.equal((await run.due()).jobs.length, settings.server === null ? 1 : 0)
  // Others may take the tables of a server.
  rmSync(lock)
}

async function takesOverFromItself({ open }: OutboxFixture): Promise<void> {
  const clock = new TestClock()
  const [a, b, c] = [await open({ clock }), await open({ clock }), await open({ clock })]
  await acceptAll(a, numbered(20))
  const killed = new HeldSender()
  const before = runOf(a, killed.compose, { node: 'before' })
  await before.due()
  const lost = new AbortController()
  const running = before.run('acme.com/sms/SMSPublisher', lost.signal)
  await killed.begun(8)
  const other = runOf(c, async () => DELIVERED, { node: 'other' })
  assert.deepEqual((await other.due()).jobs, [])
  await runDue(runOf(b, async () => DELIVERED, { node: 'now', isGone: holder => holder === 'before' }))
  assert.equal((await readCountsOf(b)).delivered, 20)
  // What it says nevertheless changes nothing: its term is over.
  for (const end of killed.held) end({ kind: 'failed', cause: 'late' })
  lost.abort()
  await running
  assert.deepEqual(await readCountsOf(b), { delivered: 20, acceptedTotal: 20, deliveredTotal: 20 })
}

async function ignoresLateResults({ open }: OutboxFixture): Promise<void> {
  const clock = new TestClock()
  const [a, b] = [await open({ clock }), await open({ clock })]
  await acceptAll(a, numbered(4))
  const [late, later] = [new HeldSender(), new HeldSender()]
  const first = runOf(a, late.compose, { node: 'a' })
  await first.due()
  const running = first.run('acme.com/sms/SMSPublisher', NEVER)
  await late.begun(4)
  clock.ms += 10_001
  const second = runOf(b, later.compose, { node: 'b' })
  await second.due()
  const taken = second.run('acme.com/sms/SMSPublisher', NEVER)
  await later.begun(4)
  for (const end of late.held) end({ kind: 'failed', cause: 'late' })
  await running
  assert.deepEqual(await readCountsOf(b), { waiting: 4, acceptedTotal: 4 })
  for (const end of later.held) end(DELIVERED)
  await taken
  assert.deepEqual(await readCountsOf(b), { delivered: 4, acceptedTotal: 4, deliveredTotal: 4 })
}

async function stopsWithoutLease({ open }: OutboxFixture): Promise<void> {
  let isAway = false
  const outbox = await open({}, () => (isAway ? { when: 'before' } : undefined))
  const ids = await acceptAll(outbox, numbered(2))
  const sender = new HeldSender()
  const said: unknown[] = []
  const log = (...event: unknown[]) => void said.push(event)
  const run = runOf(outbox, sender.compose, { lease: { leaseMs: 500, marginMs: 200 }, log })
  await run.due()
  const running = run.run('acme.com/sms/SMSPublisher', NEVER)
  await sender.begun(2)
  isAway = true
  // The messages end because they are interrupted, and what became of them cannot be recorded.
  await assert.rejects(running, { message: '2 results of acme.com/sms/SMSPublisher could not be recorded' })
  isAway = false
  assert.equal((await outbox.get(TENANT, ids[0]!))!.state, 'sending')
  const fields = { SENDER: 'acme.com/sms/SMSPublisher', COUNT: 2, CAUSE: 'its lease was not renewed in time' }
  assert.deepEqual(said.at(-1), ['warn', 'a run of deliveries is interrupted', fields])
}

async function releasesLease({ open }: OutboxFixture): Promise<void> {
  const outbox = await open({ clock: new TestClock() })
  const [first, second] = ['a', 'b'].map(node => runOf(outbox, async () => DELIVERED, { node }))
  await acceptAll(outbox, ['one'])
  await runDue(first!)
  await acceptAll(outbox, ['two'])
  await runDue(second!)
  assert.equal((await readCountsOf(outbox)).delivered, 2)
}

async function endsQuietly({ open }: OutboxFixture): Promise<void> {
  const outbox = await open({ clock: new TestClock() })
  await acceptAll(outbox, ['one'])
  await runDue(runOf(outbox, async () => DELIVERED, { node: 'a' }))
  const said: unknown[] = []
  const log = (...event: unknown[]) => void said.push(event)
  const pace = async () => {
    // Another job of the node sees that nothing waits, and gives the lease back.
    await run.due()
    return { concurrency: 1, perSecond: null }
  }
  const run = runOf(outbox, async () => DELIVERED, { node: 'a', pace, log })
  await run.run('acme.com/sms/SMSPublisher', NEVER)
  assert.deepEqual(said, [])
}

async function recovers({ open }: OutboxFixture): Promise<void> {
  const clock = new TestClock()
  const outbox = await open({ clock })
  const [id] = await acceptAll(outbox, ['one'])
  const sender = new HeldSender()
  // Its thread dies: nothing that it says reaches the database, or it could claim the delivery again itself.
  let isDead = false
  const first = runOf(await open({ clock }, () => (isDead ? { when: 'before' } : undefined)), sender.compose, {
    node: 'a',
  })
  await first.due()
  const lost = new AbortController()
  const running = first.run('acme.com/sms/SMSPublisher', lost.signal)
  await sender.begun(1)
  isDead = true
  const second = runOf(outbox, async () => DELIVERED, { node: 'a' })
  for (let i = 0; i < 6; i++) {
    clock.ms += 9999
    await runDue(second)
    assert.equal((await outbox.get(TENANT, id!))!.state, 'sending')
  }
  clock.ms += 9999
  await runDue(runOf(outbox, async () => DELIVERED, { node: 'a' }))
  assert.equal(await readState(outbox, id!), 'delivered 1 HTTP 202')
  lost.abort()
  await assert.rejects(running)
}

async function survivesJumps({ open }: OutboxFixture): Promise<void> {
  const YEAR = 31_536_000_000
  for (const jumpMs of [-YEAR, YEAR]) {
    const clock = new TestClock()
    const outbox = await open({ clock })
    const ids = await acceptAll(outbox, numbered(4))
    const results: AttemptResult[] = [RETRY, { kind: 'failed', cause: 'dead' }]
    const sender = new HeldSender()
    await runDue(runOf(outbox, async () => results.shift() ?? DELIVERED, { node: 'a' }))
    const [waiting] = await acceptAll(outbox, ['on the way'])
    const first = runOf(outbox, sender.compose, { node: 'a' })
    await first.due()
    const lost = new AbortController()
    const running = first.run('acme.com/sms/SMSPublisher', lost.signal)
    await sender.begun(1)
    clock.ms += jumpMs
    clock.isSettled = false
    await runDue(runOf(outbox, async () => DELIVERED, { node: 'b' }))
    assert.equal(await readState(outbox, waiting!), 'delivered 1 HTTP 202')
    const counts = await readCountsOf(outbox)
    assert.deepEqual([counts.waiting, counts.dead, counts.delivered], [undefined, 1, 4])
    lost.abort()
    await running
    assert.equal(await outbox.drop({ tenant: TENANT }), 1)
    await outbox.connection.db
      .deleteFrom('delivery_messages')
      .where('id', 'in', [...ids, waiting!])
      .execute()
    await outbox.connection.db.deleteFrom('delivery_senders').execute()
  }
}

/** Every statement of the run that can be lost, before and after it ran. */
async function survivesErrors({ open }: OutboxFixture): Promise<void> {
  const patterns = [/^update delivery_messages set state/, /^update ["`]delivery_messages/, /^update delivery_senders/]
  const accepting = await open()
  for (const pattern of [...patterns, /^commit/]) {
    for (const when of ['before', 'after'] as const) {
      let left = 0
      const outbox: Outbox = await open({}, sql => (pattern.test(sql) && left-- > 0 ? { when } : undefined))
      const ids = await acceptAll(accepting, numbered(30))
      const sent = new Map<string, number>()
      const run = runOf(
        outbox,
        async ({ id }) => {
          sent.set(id, (sent.get(id) ?? 0) + 1)
          if (sent.size === 5) left = 2
          return DELIVERED
        },
        { node: 'a' },
      )
      left = 1
      const { signal } = new AbortController()
      for (;;) {
        const { jobs } = await run.due().catch(() => ({ jobs: [] }))
        for (const job of jobs) await run.run(job, signal).catch(() => {})
        if ((await readCountsOf(accepting)).waiting === undefined) break
      }
      assert.deepEqual(new Set(sent.keys()), new Set(ids), `${pattern} ${when}`)
      assert.equal(await readState(accepting, ids[29]!), 'delivered 1 HTTP 202')
    }
  }
  assert.deepEqual(await readCountsOf(accepting), { delivered: 240, acceptedTotal: 240, deliveredTotal: 240 })
}
