/** The search finds a known optimum within one step, and proposes only what its repeats decide. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { caveatsOf } from '../../src/tune/caveats.ts'
import { proposalsOf, verdictText } from '../../src/tune/proposals.ts'
import { type SearchOptions, tune } from '../../src/tune/search.ts'
import type { Sizes } from '../../src/tune/system.ts'
import { SeededRandom } from '../../src/tune/statistics.ts'
import { decide, type Knob } from '../../src/tune/verdict.ts'
import { CEILING, SimulatedSystem } from './simulated-system.ts'

const CLIENTS = 64
const OPTIONS: SearchOptions = { seed: 1, clients: CLIENTS, repeats: 5, p99Ms: 0, progress: () => {} }
const GRID = [1, 2, 4, 8, 16, 32, 64]

function knob(key: string, current: number, values: readonly number[] = GRID): Knob {
  return { key, others: [], unit: 'things', values, current }
}

/** A backend that is slower for each request beyond `slots`; the gateway refuses those beyond its connections. */
function slots(count: number): (sizes: Sizes, clients: number) => number {
  return ({ connections = CLIENTS }, clients) => {
    const atOnce = Math.min(connections, clients)
    return 500 * (atOnce <= count ? atOnce : count / (1 + (atOnce - count) / count))
  }
}

/** Flows that need a processor: as many at once as there are processors, and a little less beyond. */
function processors(count: number): (sizes: Sizes, clients: number) => number {
  return ({ core = 400 }, clients) => {
    const atOnce = Math.min(core, clients)
    return atOnce <= count ? 900 * atOnce : (900 * count) / (1 + 0.02 * Math.log2(atOnce / count))
  }
}

/** A backend that is never the limit: each connection carries one request in 20 ms. */
function connectionsOnly({ connections = 1 }: Sizes, clients: number): number {
  return 50 * Math.min(connections, clients)
}

/** What it is, the system, the knob, its current value, the known optimum. */
const KNOWN: readonly (readonly [string, (sizes: Sizes, clients: number) => number, string, number, number])[] = [
  ...[2, 4, 8, 16, 32].map(count => [`a backend with ${count} slots`, slots(count), 'connections', 64, count] as const),
  ...[1, 2, 4, 8].map(
    count => [`${count} processors`, processors(count), 'core', count === 1 ? 64 : 1, count] as const,
  ),
  ['connections alone', connectionsOnly, 'connections', 2, 64],
]

for (const [what, throughput, key, current, optimum] of KNOWN) {
  test(`${what}: ${key} is found within one step of ${optimum}`, async () => {
    for (const seed of [1, 2, 3]) {
      const system = new SimulatedSystem(throughput, 0.02, seed)
      const { knobs } = await tune(system, [knob(key, current)], { ...OPTIONS, seed })
      const found = knobs[0]!
      assert.ok(Math.abs(GRID.indexOf(found.optimum) - GRID.indexOf(optimum)) <= 1, `${found.optimum}, seed ${seed}`)
      if (found.gain.low >= 1.03) assert.equal(found.verdict, 'change')
    }
  })
}

test('a size that changes nothing is not proposed, whatever the noise', async () => {
  for (const noise of [0.001, 0.01, 0.05, 0.2]) {
    for (let seed = 1; seed <= 8; seed++) {
      const system = new SimulatedSystem((_, clients) => 10 * clients, noise, seed)
      const { knobs } = await tune(system, [knob('buffer', 16)], { ...OPTIONS, seed })
      // With a noise of 20 % a run may not decide; it proposes nothing then.
      if (noise <= 0.05) assert.notEqual(knobs[0]!.verdict, 'change', `noise ${noise}, seed ${seed}`)
    }
  }
})

test('on a busy machine less than 1 of 100 searches misses the optimum by more than a step', async () => {
  const missed: string[] = []
  let searches = 0
  for (const noise of [0.1, 0.3]) {
    for (let seed = 1; seed <= 20; seed++) {
      for (const [what, throughput, key, current, optimum] of KNOWN) {
        const system = new SimulatedSystem(throughput, noise, seed)
        const { knobs } = await tune(system, [knob(key, current)], { ...OPTIONS, seed, repeats: 3 })
        const steps = GRID.indexOf(knobs[0]!.optimum) - GRID.indexOf(optimum)
        if (Math.abs(steps) > 1) missed.push(`${what}, noise ${noise}, seed ${seed}: ${steps} steps away`)
        searches++
      }
    }
  }
  assert.ok(missed.length < searches / 100, missed.join('\n'))
})

test('a proposed size holds for the sizes after it: one bottleneck behind another', async () => {
  const both = (sizes: Sizes, clients: number) =>
    Math.min(connectionsOnly(sizes, clients), processors(4)(sizes, clients))
  const system = new SimulatedSystem(both)
  const { knobs, peak } = await tune(system, [knob('core', 1), knob('connections', 2)], OPTIONS)
  // Two connections carry 100 a second, and one processor 900: only the connections limit at first.
  assert.deepEqual(
    knobs.map(({ key, verdict }) => [key, verdict]),
    [
      ['core', 'same'],
      ['connections', 'change'],
    ],
  )
  assert.ok(peak > 800, String(peak))
})

test('repeats come in random order, the same one for the same seed', async () => {
  const order = async (seed: number): Promise<readonly unknown[]> => {
    const system = new SimulatedSystem(connectionsOnly)
    await tune(system, [knob('connections', 2)], { ...OPTIONS, seed })
    return system.configured
  }
  assert.deepEqual(await order(1), await order(1))
  assert.notDeepEqual(await order(1), await order(2))
})

test('the open loop runs from 30 % to 95 % of the peak, and the knee is the last rate within the target', async () => {
  const system = new SimulatedSystem(() => 1000, 0)
  const { open, knee, peak } = await tune(system, [], { ...OPTIONS, p99Ms: 6 })
  assert.equal(peak, 1000)
  assert.deepEqual(
    open.map(({ share, p99Ms }) => [share, Math.round(p99Ms * 10) / 10]),
    [
      [0.3, 1.4],
      [0.5, 2],
      [0.7, 3.3],
      [0.8, 5],
      [0.9, 10],
      [0.95, 20],
    ],
  )
  assert.equal(knee?.share, 0.8)
  assert.equal((await tune(system, [], { ...OPTIONS, p99Ms: 1 })).knee, null)
  assert.equal((await tune(system, [], { ...OPTIONS, p99Ms: 100 })).knee?.share, 0.95)
})

test('a target for the 99th percentile excludes values that miss it', async () => {
  // More connections are faster, and later: the latency is that of the closed loop.
  const slow = ({ connections = 64 }: Sizes) => 1000 + connections
  const system = new SimulatedSystem(slow, 0)
  const { knobs } = await tune(system, [knob('connections', 64, [8, 64, 512, 4096])], { ...OPTIONS, p99Ms: 45 })
  assert.deepEqual([knobs[0]!.optimum, knobs[0]!.verdict], [4096, 'change'])
})

test('a generator near its ceiling is named as what may limit', async () => {
  for (const [most, expected] of [
    [CEILING * 0.5, false],
    [CEILING * 0.95, true],
  ] as const) {
    const { generator } = await tune(new SimulatedSystem(() => most, 0), [], OPTIONS)
    assert.equal(generator.isBottleneck, expected)
  }
})

test('sizes that change nothing: no difference is seen, the optimum is no proposal', async () => {
  const { knobs } = await tune(new SimulatedSystem((_, clients) => 10 * clients), [knob('buffer', 16)], OPTIONS)
  assert.deepEqual([knobs[0]!.verdict, knobs[0]!.current], ['same', 16])
  assert.match(verdictText(knobs[0]!), /^no difference seen, 16 stays: one of less than \d % would not show in these/)
})

test('a value that refuses requests is not as good as one that serves all of them', async () => {
  const system = new SimulatedSystem(() => 1000, 0.001)
  system.failed = ({ queue = 0 }) => (queue < 8 ? 0.5 : 0)
  const { knobs, scaling } = await tune(system, [knob('queue', 64)], OPTIONS)
  assert.deepEqual([knobs[0]!.optimum, knobs[0]!.verdict], [8, 'keep'])
  assert.equal(scaling.points[0]?.failed, 0)
  const changed = new SimulatedSystem(({ queue = 0 }) => (queue < 8 ? 2000 : 1000), 0.001)
  changed.failed = system.failed
  const [found] = (await tune(changed, [knob('queue', 64)], OPTIONS)).knobs
  assert.match(verdictText(found!), /^64 -> 1: throughput x 2\.00 \(.*\), 50 % of the requests fail \(now 0 %\)$/)
})

test('current sizes that refuse requests are named with status and code', async () => {
  const system = new SimulatedSystem(() => 1000, 0)
  system.failed = () => 0.25
  const result = await tune(system, [], OPTIONS)
  assert.match(
    caveatsOf(result).join('\n'),
    /^25 % of the requests of \d+ clients? failed .* \(503 \(102540\) x 1,665\)$/,
  )
})

test('a rate at which requests fail, or get no response, keeps no target', async () => {
  const system = new SimulatedSystem(() => 1000, 0)
  system.failed = () => 0.02
  assert.equal((await tune(system, [], { ...OPTIONS, p99Ms: 100 })).knee, null)
})

test('a backend that ends in the middle of a sweep is an error, and not a size of zero', async () => {
  let measured = 0
  const system = new SimulatedSystem(() => (measured++ < 50 ? 1000 : 0), 0)
  await assert.rejects(
    tune(system, [knob('connections', 64)], OPTIONS),
    /no request has succeeded in "connections = \d+", nor with the sizes that served before \(.*\): the backend has/,
  )
})

test('a value with which nothing is served is measured as such', async () => {
  const system = new SimulatedSystem(({ buffer = 64 }) => (buffer < 16 ? 0 : 1000), 0)
  system.failed = ({ buffer = 64 }) => (buffer < 16 ? 1 : 0)
  const { knobs } = await tune(system, [knob('buffer', 64)], OPTIONS)
  assert.deepEqual([knobs[0]!.optimum, knobs[0]!.verdict, knobs[0]!.points[0]!.failed], [16, 'keep', 1])
})

test('a backend that becomes slower for the same sizes is named with both parts', async () => {
  let measured = 0
  const system = new SimulatedSystem(() => (measured++ < 60 ? 1000 : 500), 0)
  const result = await tune(system, [knob('connections', 64)], OPTIONS)
  assert.notEqual(result.knobs[0]!.verdict, 'change')
  assert.deepEqual(result.drift?.ratio, 0.5)
  assert.match(caveatsOf(result).join('\n'), /the same sizes did 0\.50 times in ".*" what they did in ".*"/)
  assert.equal((await tune(new SimulatedSystem(() => 1000), [knob('x', 64)], OPTIONS)).drift, null)
})

/** The share of other programs from one call to the next. */
function busy(shares: (call: number) => number): SimulatedSystem['others'] {
  let call = 0
  return () => {
    const share = shares(call++)
    return { share, programs: share > 0.1 ? [`compiler (77) ${Math.round(share * 100)} %`] : [] }
  }
}

test('measurements that another program disturbed are made again, and none stays disturbed', async () => {
  const system = new SimulatedSystem(() => 1000, 0)
  system.others = busy(call => (call >= 20 && call < 26 ? 0.5 : 0.01))
  const result = await tune(system, [knob('buffer', 16)], OPTIONS)
  const { quiet, highest, repeated, disturbed } = result.others
  assert.deepEqual([quiet, highest, repeated, disturbed], [0.01, 0.5, 6, 0])
  assert.match(
    caveatsOf(result).join('\n'),
    /^other programs used up to 50 % during measurements: compiler \(77\) 50 %; 6 measurements were made again, and none/,
  )
})

test('a program that runs all the time is named; a bounded number of measurements is made again', async () => {
  const system = new SimulatedSystem(() => 1000, 0)
  system.others = busy(() => 0.4)
  const steps: number[] = []
  const progress = (_: number, total: number): void => void steps.push(total)
  const result = await tune(system, [knob('buffer', 16)], { ...OPTIONS, progress })
  const { repeated, disturbed, all } = result.others
  assert.ok(repeated > 0 && repeated <= Math.ceil(steps[0]! / 4), `${repeated} of ${steps[0]}`)
  assert.equal(disturbed, all)
  assert.equal(result.knobs[0]!.points[0]!.disturbed, OPTIONS.repeats)
  assert.match(caveatsOf(result).join('\n'), /^other programs used 40 % of the processors while nothing was measured, /)
})

test('a backend on this machine, which uses as much each time, disturbs nothing', async () => {
  const system = new SimulatedSystem(() => 1000, 0)
  system.others = isQuiet => ({ share: isQuiet ? 0.01 : 0.45, programs: [] })
  const { others } = await tune(system, [knob('buffer', 16)], OPTIONS)
  assert.deepEqual([others.repeated, others.disturbed], [0, 0])
})

test('a key that goes with another one keeps its own current value', async () => {
  const pool: Knob = { ...knob('pool.core', 2, [1, 2, 8]), others: [{ key: 'pool.max', current: 5 }] }
  const paired = new SimulatedSystem(sizes => 100 * sizes['pool.core']!, 0)
  const result = await tune(paired, [pool], OPTIONS)
  const tried = new Set(paired.configured.map(sizes => `${sizes['pool.core']} ${sizes['pool.max']}`))
  assert.deepEqual([...tried].toSorted(), ['1 1', '2 5', '8 8'])
  assert.deepEqual(
    proposalsOf(result, () => 'pool').map(({ key, current, value }) => [key, current, value]),
    [
      ['core', 2, 8],
      ['max', 5, 8],
    ],
  )
})

const NOTHING = {
  ...{ p50Ms: 1, p99Ms: 1, p999Ms: 1, errors: 0, failures: {}, requests: 1, generatorBusy: 0, others: null },
}

test('with few repeats and much noise less than 3 of 100 searches propose a size that changes nothing', async () => {
  const proposed: string[] = []
  let searches = 0
  for (const repeats of [2, 3, 5]) {
    for (const noise of [0.05, 0.6]) {
      for (let seed = 1; seed <= 20; seed++) {
        const random = new SeededRandom(seed)
        const throughput = (): number => 1000 * (1 + noise * (2 * random.next() - 1))
        const measured = () => Array.from({ length: repeats }, () => ({ ...NOTHING, throughput: throughput() }))
        const series = GRID.map(() => ({ measured: measured(), disturbed: 0 }))
        if (decide(knob('buffer', 16), series, 0, random).verdict === 'change')
          proposed.push(`${repeats} repeats, noise ${noise}, seed ${seed}`)
        searches++
      }
    }
  }
  assert.ok(proposed.length < searches * 0.03, proposed.join('\n'))
})

test('values that other programs disturbed are proposed only where no repeat of one reaches the other', async () => {
  const verdictOf = async (gain: number): Promise<string> => {
    const system = new SimulatedSystem(({ buffer = 1 }) => (buffer === 64 ? 1000 * gain : 1000), 0.15)
    system.others = busy(() => 0.5)
    return (await tune(system, [knob('buffer', 1, [1, 64])], { ...OPTIONS, repeats: 20 })).knobs[0]!.verdict
  }
  assert.deepEqual([await verdictOf(1.2), await verdictOf(2)], ['undecided', 'change'])
})
