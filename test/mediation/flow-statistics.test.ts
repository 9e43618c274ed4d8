/** `flow.statistics.*` and `statistics.*`: counts of sequences and mediators, reported in intervals. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { CompiledSequences } from '../../src/mediation/compiled-sequences.ts'
import { FlowStatistics, type StatisticsSettings } from '../../src/mediation/flow-statistics.ts'
import { Message } from '../../src/mediation/message.ts'
import type { Report } from '../../src/proxy/exchange/connection-context.ts'
import { planOf } from './test-sequences.ts'

const INTERVAL_MS = 1000
const STEPS = '<property name="a" value="1"/><sequence key="two"/>'
const FAILING = '<throwError type="T" errorMessage="no"/>'

/** Reported counts: step, runs, faults, total and longest time. */
type Line = readonly unknown[]

/** Runs the sequence `one` so often in each interval; each reading of the clock is 1 ms later. */
async function reported(
  t: TestContext,
  steps: string,
  runs: readonly number[],
  given: Partial<StatisticsSettings> = {},
): Promise<readonly Line[]> {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const lines: Line[] = []
  let now = 0
  const settings = { capturesAll: false, intervalMs: INTERVAL_MS, cleans: true, ...given }
  const report: Report = (_, event, fields) => {
    if (event !== 'flow statistics') return
    const { FLOW_STEP, RUNS, FAULTS, TOTAL_MS, LONGEST_MS } = fields
    lines.push([FLOW_STEP, RUNS, FAULTS, TOTAL_MS, LONGEST_MS])
  }
  const statistics = new FlowStatistics(settings, report, () => now++)
  const plans = [await planOf(steps), await planOf('<property name="b" value="1"/>', 'two')]
  const sequences = new CompiledSequences(plans, () => undefined, null, statistics.counter)
  for (const count of runs) {
    for (let run = 0; run < count; run++) await sequences.runToEnd(['one'], new Message(() => undefined))
    t.mock.timers.tick(INTERVAL_MS - 1)
    const before = lines.length
    t.mock.timers.tick(1)
    assert.equal(before === lines.length, count === 0)
  }
  return lines
}

test('runs and time of every sequence are reported when an interval is over, and counted from zero again', async t => {
  assert.deepEqual(await reported(t, STEPS, [2, 0, 1]), [
    ['two', 2, 0, 2, 1],
    ['one', 2, 0, 6, 3],
    ['two', 1, 0, 1, 1],
    ['one', 1, 0, 3, 3],
  ])
})

test('counts go on where they are not cleaned', async t => {
  const lines = await reported(t, STEPS, [2, 1], { cleans: false })
  assert.deepEqual(
    lines.filter(([step]) => step === 'two').map(([, runs]) => runs),
    [2, 3],
  )
})

test('faults are counted, and each mediator where all are captured', async t => {
  const lines = await reported(t, FAILING, [2], { capturesAll: true })
  assert.deepEqual(lines, [
    ['one.xml:1 throwError', 2, 2, 2, 1],
    ['one', 2, 2, 6, 3],
  ])
})

test('counts of several threads are added, and what is left is reported at the end', () => {
  const lines: Line[] = []
  const settings = { capturesAll: false, intervalMs: INTERVAL_MS, cleans: true }
  const statistics = new FlowStatistics(settings, (_, event, { RUNS, LONGEST_MS }) =>
    lines.push([event, RUNS, LONGEST_MS]),
  )
  const counts = { step: 'a', runs: 2, faults: 0, totalMs: 5, longestMs: 4 }
  statistics.counter.add([counts])
  statistics.counter.add([{ ...counts, longestMs: 3 }])
  statistics.flush()
  statistics.flush()
  assert.deepEqual(lines, [['flow statistics', 4, 4]])
})
