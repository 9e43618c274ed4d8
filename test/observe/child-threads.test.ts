/** Memory of the threads that a reactor has started, from the rows that they write to the metrics. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ChildThreads, readChildThreads } from '../../src/observe/child-threads.ts'
import { allocateMetrics, clearGauges, METRIC, MetricsColumn } from '../../src/observe/metrics.ts'
import { allocateMarks, WorkerMarks } from '../../src/observe/worker-marks.ts'
import { allocateMemoryRows, memoryRows, writeMemory } from '../../src/runtime/thread-memory.ts'

const REACTORS = 2

function made() {
  const shared = allocateMetrics(REACTORS + 2)
  const column = new MetricsColumn(shared, 1)
  const names = () => readChildThreads(shared, REACTORS).map(({ thread }) => thread)
  return { shared, column, names }
}

test('a worker and its scripts are listed while they run, and keep their names', () => {
  const { column, names, shared } = made()
  const memory = allocateMemoryRows(3)
  const rows = memoryRows(memory)
  const worker = new ChildThreads(column, row => (row === 0 ? 'mediation' : 'script'), memory)
  worker.tick()
  assert.deepEqual(names(), [])
  writeMemory(rows[0]!)
  writeMemory(rows[2]!)
  worker.tick()
  assert.deepEqual(names(), ['reactor-1/mediation-0', 'reactor-1/script-1'])
  const [{ memory: read } = assert.fail()] = readChildThreads(shared, REACTORS)
  assert.ok(read.heap_used > 1e6 && read.heap_size >= read.heap_used && read.heap_limit > read.heap_size)
  writeMemory(rows[1]!)
  rows[2]!.fill(0)
  worker.tick()
  assert.deepEqual(names(), ['reactor-1/mediation-0', 'reactor-1/script-2'])
  worker.close()
  assert.deepEqual(names(), [])
})

test('threads beyond 64 of a reactor are not listed, and get the rows of those that end', () => {
  const { column, names } = made()
  const many = [30, 30, 30].map(count => {
    const memory = allocateMemoryRows(count)
    for (const row of memoryRows(memory)) writeMemory(row)
    return new ChildThreads(column, () => 'handler', memory)
  })
  for (const threads of many) threads.tick()
  assert.equal(names().length, 64)
  many[0]!.close()
  many[2]!.tick()
  assert.equal(names().length, 60)
  assert.equal(new Set(names()).size, 60)
})

test('the threads of a dead reactor are gone with its gauges', () => {
  const { column, names, shared } = made()
  const memory = allocateMemoryRows(1)
  writeMemory(memoryRows(memory)[0]!)
  new ChildThreads(column, () => 'background', memory).tick()
  assert.deepEqual(names(), ['reactor-1/background-0'])
  clearGauges(shared, 1)
  assert.deepEqual(names(), [])
})

test('a worker shows the delays of its loop and what it uses of its pools until it ends', () => {
  const { column, shared } = made()
  const memory = allocateMemoryRows(2)
  for (const row of memoryRows(memory)) writeMemory(row)
  const given = allocateMarks()
  const marks = new WorkerMarks(given, 500, 0)
  marks.begin(10)
  marks.tick(700)
  marks.setUsed('scripts', 2)
  marks.setUsed('connections', 3)
  const worker = new ChildThreads(column, row => (row === 0 ? 'long' : 'script'), memory, given)
  worker.tick()
  const [own, script] = readChildThreads(shared, REACTORS)
  assert.deepEqual([own?.delays.reduce((sum, count) => sum + count, 0), own?.delaySeconds], [1, 0.2])
  assert.deepEqual(script?.delays, [])
  const used = () => [column.read(METRIC.scriptThreadsUsed), column.read(METRIC.mountedConnectionsUsed)]
  assert.deepEqual(used(), [2, 3])
  marks.setUsed('scripts', 1)
  worker.tick()
  assert.deepEqual(used(), [1, 3])
  worker.close()
  assert.deepEqual(used(), [0, 0])
  const next = new ChildThreads(column, () => 'long', memory, allocateMarks())
  next.tick()
  assert.equal(readChildThreads(shared, REACTORS)[0]?.delaySeconds, 0, 'a row begins anew')
})
