/**
 * Random runs against a model: events are accepted, sent, interrupted, replayed, dropped and expired, several at once,
 * while statements fail and clocks move. After each round the rows agree with the counts, and nothing is lost.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AttemptResult } from '../../src/delivery/attempt.ts'
import type { Delivery, DeliveryState } from '../../src/delivery/delivery.ts'
import type { DeliveryRun } from '../../src/delivery/delivery-run.ts'
import type { Outbox } from '../../src/delivery/outbox.ts'
import { KINDS } from '../control/registry/real-databases.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'
import {
  DELIVERED,
  MAIL,
  outboxDatabase,
  type OutboxFixture,
  RETRY,
  runDue,
  runOf,
  SMS,
  TENANT,
  TestClock,
} from './outbox-databases.ts'

const ROUNDS = IS_LONG ? 60 : 12
const SENDERS = [SMS, MAIL, { ...SMS, name: 'third' }]
const STATES: readonly DeliveryState[] = ['waiting', 'sending', 'delivered', 'dead']

for (const kind of KINDS) {
  for (const nodes of [1, 2]) {
    test(`random runs of ${nodes} nodes on ${kind} lose nothing, and rows agree with counts`, async t => {
      const fixture = await outboxDatabase(kind)
      if (typeof fixture === 'string') return t.skip(fixture)
      t.after(() => fixture.remove())
      const model = await Model.open(fixture, nodes, SEED + nodes)
      for (let round = 0; round < ROUNDS; round++) {
        await model.round()
        await model.check(`seed ${SEED}, ${kind}, ${nodes} nodes, round ${round}`)
      }
      await model.finish(`seed ${SEED}, ${kind}, ${nodes} nodes`)
      t.diagnostic(model.summary)
    })
  }
}

class Model {
  readonly #random: Random
  readonly #clock: TestClock
  /** Without faults. */
  readonly #reader: Outbox
  readonly #outbox: Outbox
  readonly #runs: readonly DeliveryRun[]
  readonly #nodes: number
  readonly #faults: { isOn: boolean }
  readonly #accepted = new Set<string>()
  /** Messages that the provider has taken. */
  readonly #taken = new Map<string, number>()
  #orders = 0
  #lost = 0
  #isEnding = false

  static async open(fixture: OutboxFixture, nodes: number, seed: number): Promise<Model> {
    const random = new Random(seed)
    const clock = new TestClock()
    const faults = { isOn: false }
    const options = { clock, retention: { deliveredMs: 3_600_000, deliveredMax: 60, deadMs: 7_200_000, deadMax: 30 } }
    const fault = () => {
      if (!faults.isOn || !random.once(40)) return undefined
      return { when: random.pick(['before', 'after'] as const) }
    }
    const reader = await fixture.open(options)
    const outbox = await fixture.open(options, fault)
    const opened: Outbox[] = []
    for (let i = 0; i < nodes; i++) opened.push(await fixture.open(options, fault))
    return new Model({ random, clock, faults, reader, outbox, opened })
  }

  private constructor(parts: {
    readonly random: Random
    readonly clock: TestClock
    readonly faults: { isOn: boolean }
    readonly reader: Outbox
    readonly outbox: Outbox
    readonly opened: readonly Outbox[]
  }) {
    this.#random = parts.random
    this.#clock = parts.clock
    this.#faults = parts.faults
    this.#reader = parts.reader
    this.#outbox = parts.outbox
    this.#nodes = parts.opened.length
    const schedule = { delayMs: 1000, delayMsMax: 60_000, attemptsMax: 4 }
    this.#runs = parts.opened.map((outbox, node) =>
      runOf(outbox, delivery => this.#send(delivery), { node: `node ${node}`, schedule, runMs: 200 }),
    )
  }

  get summary(): string {
    const taken = [...this.#taken.values()].reduce((sum, times) => sum + times, 0)
    return `${this.#accepted.size} events, ${taken} taken, ${this.#lost} calls failed`
  }

  /** A few changes at the same time, then the clock moves. */
  async round(): Promise<void> {
    this.#faults.isOn = true
    const changes = Array.from({ length: this.#random.between(1, 4) }, () => this.#change())
    await Promise.all([this.#accept(this.#random.between(1, 40)), ...changes])
    this.#faults.isOn = false
    this.#clock.ms += this.#random.pick([0, 1, 1000, 30_000, 61_000, 600_000])
    if (this.#nodes > 1 && this.#random.once(8)) this.#clock.ms += this.#random.pick([-86_400_000, 7_200_001])
  }

  async #change(): Promise<void> {
    const random = this.#random
    const [reader, sender] = [this.#reader, random.pick(SENDERS)]
    const run = random.pick(this.#runs)
    const changes: readonly (() => Promise<unknown>)[] = [
      () => this.#accept(random.between(1, 30)),
      () => this.#accept(random.between(1, 3)),
      () => runDue(run),
      () => runDue(run, AbortSignal.timeout(random.between(1, 20))),
      () => this.#outbox.replay(random.once(2) ? { tenant: TENANT } : sender),
      () => this.#outbox.drop({ tenant: TENANT, ids: [...this.#accepted].slice(0, random.below(50)) }),
      () => this.#outbox.senderDeleted(sender),
      () => this.#outbox.expire(),
      () => reader.list({ tenant: TENANT }, { before: null, limit: 10 }),
    ]
    try {
      await random.pick(changes)()
    } catch (error) {
      if ((error as { readonly code?: string }).code !== 'ECONNRESET') throw error
      this.#lost++
    }
  }

  /** An order with a key is repeated until its answer arrives. */
  async #accept(count: number): Promise<void> {
    const [sender, key] = [this.#random.pick(SENDERS), `order ${this.#orders++}`]
    const deliveries = Array.from({ length: count }, (_, i) => ({ sender, event: JSON.stringify({ key, i }) }))
    for (;;) {
      try {
        const acceptance = await this.#outbox.accept({ tenant: TENANT, key, deliveries })
        assert.ok(acceptance.kind === 'accepted' && acceptance.ids.length === count)
        for (const id of acceptance.ids) this.#accepted.add(id)
        return
      } catch (error) {
        if ((error as { readonly code?: string }).code !== 'ECONNRESET') throw error
        this.#lost++
      }
    }
  }

  async #send({ id }: Delivery): Promise<AttemptResult> {
    const random = this.#random
    if (random.once(3)) await new Promise(resolve => setTimeout(resolve, random.below(5)))
    const result = this.#isEnding ? DELIVERED : random.pick([DELIVERED, DELIVERED, DELIVERED, RETRY, FAILED, ASKED])
    if (result.kind === 'delivered') this.#taken.set(id, (this.#taken.get(id) ?? 0) + 1)
    return result
  }

  async check(where: string): Promise<void> {
    const rows = await this.#reader.connection.db
      .selectFrom('delivery_messages as m')
      .innerJoin('delivery_senders as s', 's.pk', 'm.sender')
      .select(['m.id', 'm.state', 's.channel', 's.name'])
      .execute()
    let [stored, removed, accepted] = [0, 0, 0]
    for (const { sender, ...counts } of await this.#reader.counts(null)) {
      const own = rows.filter(({ channel, name }) => channel === sender.channel && name === sender.name)
      const [waiting, sending, delivered, dead] = STATES.map(state => own.filter(row => row.state === state).length)
      const expected = [waiting! + sending!, delivered, dead]
      assert.deepEqual([counts.waiting, counts.delivered, counts.dead], expected, where)
      stored += own.length
      removed += counts.droppedTotal + counts.expiredTotal
      accepted += counts.acceptedTotal
    }
    assert.equal(stored, rows.length, where)
    assert.equal(accepted, this.#accepted.size, `events were accepted twice or never, ${where}`)
    assert.equal(stored + removed, accepted, `events were lost, ${where}`)
    for (const { id, state } of rows) {
      assert.ok(this.#accepted.has(id), where)
      if (state === 'delivered') assert.ok(this.#taken.has(id), `${id} is delivered and was never sent, ${where}`)
    }
  }

  /** Everything that still waits is delivered, and one node repeats nothing. */
  async finish(where: string): Promise<void> {
    this.#isEnding = true
    for (let i = 0; i < 100; i++) {
      this.#clock.ms += 3_600_000
      for (const run of this.#runs) await runDue(run)
      const counts = await this.#reader.counts(null)
      if (counts.every(({ waiting }) => waiting === 0)) break
    }
    await this.check(where)
    const counts = await this.#reader.counts(null)
    assert.ok(
      counts.every(({ waiting }) => waiting === 0),
      `events still wait, ${where}`,
    )
    if (this.#nodes === 1) assert.ok(Math.max(1, ...this.#taken.values()) === 1, `an event was sent twice, ${where}`)
  }
}

const FAILED: AttemptResult = { kind: 'failed', cause: 'HTTP 400' }
const ASKED: AttemptResult = { kind: 'retry', cause: 'HTTP 429', afterMs: 5000 }
