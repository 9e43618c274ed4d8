/** `flow.statistics.*` and `statistics.*`: counts of sequences and mediators, reported in intervals. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CompiledSequences } from '../../src/mediation/compiled-sequences.ts'
import { FlowStatistics, type StatisticsSettings } from '../../src/mediation/flow-statistics.ts'
import { Message } from '../../src/mediation/message.ts'
import { planOf } from './test-sequences.ts'

const INTERVAL_MS = 1000
const STEPS = '<property name="a" value="1"/><sequence key="two"/>'
const FAILING = '<throwError type="T" errorMessage="no"/>'

/** Runs the sequence at these times, and returns what was reported: step, runs, faults, total and longest time. */
async function reported(steps: string, timesMs: readonly number[], given: Partial<StatisticsSettings> = {}) {
  const lines: (readonly unknown[])[] = []
  let now = 0
  const settings = { capturesAll: false, intervalMs: INTERVAL_MS, cleans: true, ...given }
  const statistics = new FlowStatistics(
    settings,
    (_, event, fields) => {
      if (event !== 'flow statistics') return
      const { FLOW_STEP, RUNS, FAULTS, TOTAL_MS, LONGEST_MS } = fields
      lines.push([FLOW_STEP, RUNS, FAULTS, TOTAL_MS, LONGEST_MS])
    },
    () => now++,
  )
  const plans = [await planOf(steps), await planOf('<property name="b" value="1"/>', 'two')]
  const sequences = new CompiledSequences(plans, () => undefined, null, statistics)
  for (const ms of timesMs) {
    now = ms
    await sequences.runToEnd(['one'], new Message(() => undefined))
  }
  return lines
}

test('runs and time of every sequence are reported once in an interval, and counted from zero again', async () => {
  assert.deepEqual(await reported(STEPS, [1, 100, 2000, 2100, 4000]), [
    ['two', 3, 0, 3, 1],
    ['one', 2, 0, 6, 3],
    ['one', 2, 0, 6, 3],
    ['two', 2, 0, 2, 1],
  ])
})

test('counts go on where they are not cleaned', async () => {
  const lines = await reported(STEPS, [1, 2000, 4000], { cleans: false })
  assert.deepEqual(
    lines.filter(([name]) => name === 'two').map(([, runs]) => runs),
    [2, 3],
  )
})

test('faults are counted, and each mediator where all are captured', async () => {
  const lines = await reported(FAILING, [1, 2000], { capturesAll: true })
  assert.deepEqual(lines, [
    ['one.xml:1 throwError', 2, 2, 2, 1],
    ['one', 1, 1, 3, 3],
  ])
})
