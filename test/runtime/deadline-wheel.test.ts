/** Timer wheel: punctuality, changes of deadlines, and errors of their owners. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Deadline, DeadlineWheel } from '../../src/runtime/deadline-wheel.ts'
import { Random, SEED } from '../harness/random.ts'

const TICK_MS = 100

class Probe extends Deadline {
  readonly errors: unknown[] = []
  fired = 0
  act: () => void = () => {}

  override onDeadline(): void {
    this.fired++
    this.act()
  }

  override onError(error: unknown): void {
    this.errors.push(error)
  }
}

function advance(wheel: DeadlineWheel, ticks: number): void {
  for (let i = 0; i < ticks; i++) wheel.advance()
}

/** Milliseconds, and the tick at which the deadline fires: never early, at most two ticks late. */
const waits: readonly (readonly [ms: number, ticks: number])[] = [
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
  test(`a deadline in ${ms} ms fires at tick ${after}`, () => {
    const wheel = new DeadlineWheel(TICK_MS)
    advance(wheel, 37)
    const probe = new Probe()
    wheel.set(probe, ms)
    advance(wheel, after - 1)
    assert.equal(probe.fired, 0)
    wheel.advance()
    assert.equal(probe.fired, 1)
    advance(wheel, 2000)
    assert.equal(probe.fired, 1, 'a deadline fires once')
  })
}

test('setting a deadline again moves it back or forward', () => {
  const wheel = new DeadlineWheel(TICK_MS)
  const probe = new Probe()
  wheel.set(probe, 1000)
  advance(wheel, 8)
  wheel.set(probe, 1000)
  advance(wheel, 10)
  assert.equal(probe.fired, 0)
  wheel.set(probe, 100_000)
  wheel.set(probe, 100)
  advance(wheel, 2)
  assert.equal(probe.fired, 1)
})

test('a suspended deadline does not fire and can be set again', () => {
  const wheel = new DeadlineWheel(TICK_MS)
  const probe = new Probe()
  wheel.set(probe, 200)
  wheel.suspend(probe)
  advance(wheel, 600)
  assert.equal(probe.fired, 0)
  wheel.set(probe, 200)
  advance(wheel, 3)
  assert.equal(probe.fired, 1)
})

test('a cleared deadline leaves the wheel', () => {
  const wheel = new DeadlineWheel(TICK_MS)
  const probe = new Probe()
  wheel.set(probe, 200)
  wheel.clear(probe)
  assert.equal(probe.slotTick, 0)
  assert.equal(probe.previous, null)
  advance(wheel, 600)
  assert.equal(probe.fired, 0)
  wheel.clear(probe)
})

test('onDeadline can set its own deadline, clear a neighbour and set others', () => {
  const wheel = new DeadlineWheel(TICK_MS)
  const [a, b, c] = [new Probe(), new Probe(), new Probe()]
  a.act = b.act = () => {
    // The first of the two clears the other.
    wheel.clear(a.fired > 0 ? b : a)
    wheel.set(c, 100)
  }
  c.act = () => wheel.set(c, 100)
  wheel.set(a, 100)
  wheel.set(b, 100)
  advance(wheel, 2)
  assert.equal(a.fired + b.fired, 1)
  advance(wheel, 10)
  assert.equal(c.fired, 5)
})

test('an error of onDeadline goes to onError, and the other deadlines of the tick fire', () => {
  const wheel = new DeadlineWheel(TICK_MS)
  const probes = [new Probe(), new Probe(), new Probe()]
  const error = new Error('planted')
  probes[1]!.act = () => {
    throw error
  }
  for (const probe of probes) wheel.set(probe, 100)
  advance(wheel, 2)
  assert.deepEqual(
    probes.map(({ fired }) => fired),
    [1, 1, 1],
  )
  assert.deepEqual(probes[1]!.errors, [error])
})

test(`any sequence of calls behaves like one timer per entry (seed ${SEED})`, () => {
  const random = new Random(SEED)
  const wheel = new DeadlineWheel(TICK_MS)
  const probes = Array.from({ length: 200 }, () => new Probe())
  /** Tick at which each entry is due in the model; 0 for never. */
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
    wheel.advance()
    for (const [at, tick] of due.entries()) {
      if (tick !== now) continue
      expected[at]!++
      due[at] = 0
    }
    if (now % 500 === 0)
      assert.deepEqual(
        probes.map(({ fired }) => fired),
        expected,
        `at tick ${now}`,
      )
  }
})
