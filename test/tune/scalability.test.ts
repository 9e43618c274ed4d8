/** Coefficients of the Universal Scalability Law are found again in throughputs that were made from them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fitScaling, throughputAt } from '../../src/tune/scalability.ts'
import { bootstrap, median, pairedRatio, quantile, SeededRandom } from '../../src/tune/statistics.ts'

const LEVELS = [1, 2, 4, 8, 16, 32, 64, 128]

function near(found: number, expected: number, tolerance: number): void {
  assert.ok(Math.abs(found - expected) <= tolerance, `${found} is not within ${tolerance} of ${expected}`)
}

/** Rate, contention, crosstalk; the number of clients at the peak. */
const LAWS = [
  [1000, 0.05, 0.001, Math.sqrt(0.95 / 0.001)],
  [1000, 0, 0.0005, Math.sqrt(1 / 0.0005)],
  [50, 0.2, 0, Number.POSITIVE_INFINITY],
  [50, 0, 0, Number.POSITIVE_INFINITY],
] as const

for (const [rate, contention, crosstalk, peak] of LAWS) {
  test(`rate ${rate}, contention ${contention}, crosstalk ${crosstalk}`, () => {
    const law = { rate, contention, crosstalk }
    const exact = LEVELS.map(clients => ({ clients, throughputs: [throughputAt(law, clients)] }))
    const fit = fitScaling(exact, new SeededRandom(1))!
    near(fit.rate, rate, rate * 1e-6)
    near(fit.contention, contention, 1e-6)
    near(fit.crosstalk, crosstalk, 1e-6)
    near(fit.explained, 1, 1e-6)
    if (Number.isFinite(peak)) near(fit.peakClients, peak, peak * 1e-4)

    const random = new SeededRandom(3)
    const noisy = exact.map(({ clients, throughputs: [value = 0] }) => ({
      clients,
      throughputs: Array.from({ length: 7 }, () => value * (1 + 0.04 * (random.next() - 0.5))),
    }))
    const found = fitScaling(noisy, random)!
    assert.ok(found.intervals.rate.low <= rate * 1.01 && found.intervals.rate.high >= rate * 0.99)
    assert.ok(found.contention >= 0 && found.crosstalk >= 0)
    near(found.contention, contention, 0.02)
  })
}

test('fewer than four numbers of clients have no fit', () => {
  const points = [1, 2, 4].map(clients => ({ clients, throughputs: [clients] }))
  assert.equal(fitScaling(points, new SeededRandom(1)), null)
})

test('medians and quantiles', () => {
  assert.equal(median([3, 1, 2]), 2)
  assert.equal(median([4, 1, 2, 3]), 2.5)
  assert.equal(quantile([0, 10], 0.25), 2.5)
  assert.ok(Number.isNaN(median([])))
})

test('a bootstrap interval of paired ratios covers what both rows have in common', () => {
  const random = new SeededRandom(5)
  const base = Array.from({ length: 9 }, () => 100 * (1 + random.next()))
  const { ratio, low, high } = pairedRatio(
    base.map(value => value * 1.1),
    base,
    random,
  )
  for (const value of [ratio, low, high]) near(value, 1.1, 1e-9)
  const spread = bootstrap(9, random, indexes => median(indexes.map(at => base[at]!)))
  assert.ok(spread.low < spread.high)
})

test('the same seed shuffles in the same order, and loses nothing', () => {
  const order = (seed: number) => new SeededRandom(seed).shuffled(LEVELS)
  assert.deepEqual(order(1), order(1))
  assert.notDeepEqual(order(1), order(2))
  assert.deepEqual(
    order(3).toSorted((one, other) => one - other),
    LEVELS,
  )
})
