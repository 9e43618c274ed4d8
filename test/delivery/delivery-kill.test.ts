/** Nodes that are killed in the middle of their deliveries lose none, and repeat at most what they had on the way. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { UNRECORDED_MAX } from '../../src/delivery/sender-run.ts'
import { KINDS } from '../control/registry/real-databases.ts'
import { SEED } from '../harness/random.ts'
import { acceptAll, numbered, outboxDatabase, readCountsOf } from './outbox-databases.ts'

const DELIVERING = fileURLToPath(new URL('./delivering-process.ts', import.meta.url))
/** Events, and the results of the first two nodes after which each is killed; the third one runs to the end. */
const LOADS = {
  h2: { events: 2000, kills: [500, 700] },
  postgre: { events: 1000, kills: [250, 350] },
  mysql: { events: 1000, kills: [250, 350] },
}
const CONCURRENCY = 16
/** One attempt of so many fails. */
const FAILING = 5
for (const kind of KINDS) {
  test(`kill -9 of two nodes on ${kind} while another one waits loses no event and repeats few`, async t => {
    const { events, kills } = LOADS[kind]
    const fixture = await outboxDatabase(kind)
    if (typeof fixture === 'string') return t.skip(fixture)
    t.after(() => fixture.remove())
    const outbox = await fixture.open()
    const taken = new Map((await acceptAll(outbox, numbered(events))).map(id => [id, 0]))
    const settings = JSON.stringify(fixture.settings)
    const nodes = ['a', 'b', 'c'].map(node => {
      const args = [DELIVERING, settings, node, String(SEED + node.charCodeAt(0)), String(FAILING), String(CONCURRENCY)]
      return new DeliveringNode(spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] }), taken)
    })
    for (const after of kills) {
      // Whichever of the nodes holds the lease.
      const holder = await Promise.race(nodes.map(node => node.heard(after)))
      await holder.kill()
      nodes.splice(nodes.indexOf(holder), 1)
    }
    assert.equal(await nodes[0]!.ended(), 0)
    const lost = [...taken].filter(([, times]) => times === 0)
    const duplicates = [...taken.values()].reduce((sum, times) => sum + times - 1, 0)
    assert.deepEqual(lost, [], `${lost.length} events were lost, seed ${SEED}`)
    assert.ok(duplicates <= kills.length * (CONCURRENCY + UNRECORDED_MAX), `${duplicates} duplicates, seed ${SEED}`)
    assert.ok(Math.max(...taken.values()) <= 1 + kills.length, 'an event is repeated once per kill at most')
    const counts = await readCountsOf(outbox)
    assert.deepEqual([counts.delivered, counts.deliveredTotal, counts.waiting], [events, events, undefined])
    t.diagnostic(`${duplicates} duplicates after ${kills.length} kills, seed ${SEED}`)
  })
}

/** A process that delivers, and what its provider has heard. */
class DeliveringNode {
  readonly #child: ChildProcess
  readonly #closed: Promise<unknown>
  #heard = 0
  #expected = Number.POSITIVE_INFINITY
  #resolve: (node: DeliveringNode) => void = () => {}

  constructor(child: ChildProcess, taken: Map<string, number>) {
    this.#child = child
    const lines = createInterface({ input: child.stdout! })
    this.#closed = Promise.all([once(child, 'close'), once(lines, 'close')])
    lines.on('line', line => {
      const [, word, id] = /^(ok|no) (\S{36})$/.exec(line) ?? []
      if (word === 'ok') taken.set(id!, taken.get(id!)! + 1)
      if (++this.#heard >= this.#expected) this.#resolve(this)
    })
  }

  /** Resolves with this node after so many lines. */
  heard(count: number): Promise<DeliveringNode> {
    const { promise, resolve } = Promise.withResolvers<DeliveringNode>()
    this.#expected = count
    this.#resolve = resolve
    if (this.#heard >= count) resolve(this)
    return promise
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#closed
  }

  async ended(): Promise<number | null> {
    await this.#closed
    return this.#child.exitCode
  }
}
