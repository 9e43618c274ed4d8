import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Deadline, DeadlineWheel } from '../../src/structure/deadline-wheel.ts'
import { Random, SEED } from '../harness/random.ts'

const TICK_MS = 100

class Probe extends Deadline {
  readonly bugs: unknown[] = []
  fired = 0
  act: () => void = () => {}

  override onDeadline(): void {
    this.fired++
    this.act()
  }

  override onBug(error: unknown): void {
    this.bugs.push(error)
  }
}

function turns(wheel: DeadlineWheel, count: number): void {
  for (let i = 0; i < count; i++) wheel.turn()
}

/** Milliseconds, and the turns after which the deadline is met: never early, late by two turns at most. */
const waits: readonly (readonly [ms: number, turns: number])[] = [
  [1, 2],
  [99, 2],
  [100, 2],
  [101, 3],
  [1000, 11],
  [51_000, 511],
  [51_100, 512],
  [51_200, 513],
  [75_000, 751],
  [180_000, 1801],
  [86_400_000, 864_001],
]

for (const [ms, after] of waits) {
  test(`a deadline in ${ms} ms is met at turn ${after}`, () => {
    const wheel = new DeadlineWheel(TICK_MS)
    turns(wheel, 37)
    const probe = new Probe()
    wheel.set(probe, ms)
    turns(wheel, after - 1)
    assert.equal(probe.fired, 0)
    wheel.turn()
    assert.equal(probe.fired, 1)
    turns(wheel, 2000)
    assert.equal(probe.fired, 1, 'once')
  })
}

test('a deadline that is set again is put off, or brought forward', () => {
  const wheel = new DeadlineWheel(TICK_MS)
  const probe = new Probe()
  wheel.set(probe, 1000)
  turns(wheel, 8)
  wheel.set(probe, 1000)
  turns(wheel, 10)
  assert.equal(probe.fired, 0)
  wheel.set(probe, 100_000)
  wheel.set(probe, 100)
  turns(wheel, 2)
  assert.equal(probe.fired, 1)
})

test('a suspended deadline is never met, and may be set again', () => {
  const wheel = new DeadlineWheel(TICK_MS)
  const probe = new Probe()
  wheel.set(probe, 200)
  wheel.suspend(probe)
  turns(wheel, 600)
  assert.equal(probe.fired, 0)
  wheel.set(probe, 200)
  turns(wheel, 3)
  assert.equal(probe.fired, 1)
})

test('a cleared deadline leaves the wheel', () => {
  const wheel = new DeadlineWheel(TICK_MS)
  const probe = new Probe()
  wheel.set(probe, 200)
  wheel.clear(probe)
  assert.equal(probe.slotTick, 0)
  assert.equal(probe.before, null)
  turns(wheel, 600)
  assert.equal(probe.fired, 0)
  wheel.clear(probe)
})

test('a deadline may set itself again, clear its neighbour, and set others while it is met', () => {
  const wheel = new DeadlineWheel(TICK_MS)
  const [a, b, c] = [new Probe(), new Probe(), new Probe()]
  a.act = b.act = () => {
    // Whichever comes first takes the other along.
    wheel.clear(a.fired > 0 ? b : a)
    wheel.set(c, 100)
  }
  c.act = () => wheel.set(c, 100)
  wheel.set(a, 100)
  wheel.set(b, 100)
  turns(wheel, 2)
  assert.equal(a.fired + b.fired, 1)
  turns(wheel, 10)
  assert.equal(c.fired, 5)
})

test('a deadline that throws is told so, and the others of its turn are met', () => {
  const wheel = new DeadlineWheel(TICK_MS)
  const probes = [new Probe(), new Probe(), new Probe()]
  const bug = new Error('planted')
  probes[1]!.act = () => {
    throw bug
  }
  for (const probe of probes) wheel.set(probe, 100)
  turns(wheel, 2)
  assert.deepEqual(
    probes.map(({ fired }) => fired),
    [1, 1, 1],
  )
  assert.deepEqual(probes[1]!.bugs, [bug])
})

test(`any sequence of calls is as good as one timer each (seed ${SEED})`, () => {
  const random = new Random(SEED)
  const wheel = new DeadlineWheel(TICK_MS)
  const probes = Array.from({ length: 200 }, () => new Probe())
  /** Turn at which each is due by the plain reading; 0: never. */
  const due = probes.map(() => 0)
  const expected = probes.map(() => 0)
  for (let now = 1; now <= 20_000; now++) {
    for (let calls = random.below(6); calls > 0; calls--) {
      const at = random.below(probes.length)
      const probe = probes[at]!
      switch (random.below(4)) {
        case 0:
          wheel.suspend(probe)
          due[at] = 0
          break
        case 1:
          wheel.clear(probe)
          due[at] = 0
          break
        default: {
          const ms = random.between(1, random.pick([500, 20_000, 100_000, 300_000]))
          wheel.set(probe, ms)
          due[at] = now + Math.ceil(ms / TICK_MS)
        }
      }
    }
    wheel.turn()
    for (const [at, turn] of due.entries()) {
      if (turn !== now) continue
      expected[at]!++
      due[at] = 0
    }
    if (now % 500 === 0)
      assert.deepEqual(
        probes.map(({ fired }) => fired),
        expected,
        `at turn ${now}`,
      )
  }
})
