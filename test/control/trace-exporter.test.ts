/** The queue of spans for one receiver: batches, attempts, and what makes room. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { TraceExporter } from '../../src/control/trace-exporter.ts'
import type { Span } from '../../src/observe/spans.ts'
import { eventually } from '../harness/peers.ts'

/** One span that is told from others by its name. */
function span(name: string): Span {
  return {
    ...{ traceId: '1', id: '2', parentId: '', hasRemoteParent: false, flags: 0, state: '', name, kind: 'server' },
    ...{ startMs: 1, endMs: 2, attributes: {}, events: [], isError: false },
  } as const
}

interface Script {
  readonly exporter: TraceExporter
  readonly sent: string[][]
  readonly events: string[]
  readonly counts: Record<'exported' | 'failed' | 'dropped' | 'waiting', number>
  /** Ends the attempt that waits. */
  answer: (refused: number | Error) => void
}

function script(t: TestContext, limits: { queueMax: number; batchMax: number; closeMs?: number }): Script {
  const sent: string[][] = []
  const events: string[] = []
  const counts = { exported: 0, failed: 0, dropped: 0, waiting: 0 }
  const add = (name: keyof typeof counts) => (by: number) => {
    counts[name] += by
  }
  const made: Script = {
    ...{ sent, events, counts, answer: () => assert.fail('nothing is sent') },
    exporter: new TraceExporter({
      ...{ ...limits, intervalMs: 10, pausesMs: [1, 2] },
      receiver: {
        name: 'r',
        send: spans => {
          sent.push(spans.map(({ name }) => name))
          return new Promise((resolve, reject) => {
            made.answer = refused =>
              typeof refused === 'number' ? resolve({ refused, cause: 'no room' }) : reject(refused)
          })
        },
      },
      counts: { exported: add('exported'), failed: add('failed'), dropped: add('dropped'), waiting: add('waiting') },
      report: (_level, event) => void events.push(event),
    }),
  }
  t.after(() => made.exporter.close())
  return made
}

test('while a receiver fails, one batch is tried again and the oldest spans of the queue make room', async t => {
  const receiver = script(t, { queueMax: 4, batchMax: 2, closeMs: 10 })
  const { exporter, sent, counts, events } = receiver
  exporter.add([span('a'), span('b')])
  await eventually('the first attempt', () => sent.length === 1)
  for (let i = 0; i < 1000; i++) exporter.add([span(`n${i}`)])
  assert.deepEqual(counts, { exported: 0, failed: 0, dropped: 996, waiting: 6 })
  for (let attempt = 1; attempt < 4; attempt++) {
    receiver.answer(new Error('down'))
    await eventually('the next attempt', () => sent.length === attempt + 1)
    assert.deepEqual(sent.at(-1), ['a', 'b'])
  }
  assert.deepEqual(events, ['traces not exported'])
  for (const batch of [
    ['n996', 'n997'],
    ['n998', 'n999'],
  ]) {
    const { length } = sent
    receiver.answer(0)
    await eventually('the next batch', () => sent.length > length)
    assert.deepEqual(sent.at(-1), batch)
  }
  receiver.answer(1)
  await eventually('the last batch', () => counts.waiting === 0)
  assert.deepEqual(counts, { exported: 5, failed: 1, dropped: 996, waiting: 0 })
  assert.deepEqual(events, ['traces not exported', 'traces are exported again', 'traces refused by their receiver'])
})

test('the end waits for a slow receiver for a bounded time, and drops what is left', async t => {
  const receiver = script(t, { queueMax: 10, batchMax: 2, closeMs: 20 })
  receiver.exporter.add([span('a'), span('b'), span('c')])
  await receiver.exporter.close()
  assert.deepEqual(receiver.counts, { exported: 0, failed: 0, dropped: 3, waiting: 0 })
  receiver.answer(0)
  receiver.exporter.add([span('d')])
  assert.deepEqual(receiver.sent, [['a', 'b']])
})
