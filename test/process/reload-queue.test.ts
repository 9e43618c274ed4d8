/** Who waits for whom, and who shares an answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReloadQueue } from '../../src/primary/reload-queue.ts'
import {
  NO_APIS_CHANGED,
  NO_SEQUENCES_CHANGED,
  type ReloadAnswer,
  type ReloadScope,
} from '../../src/primary/reload-report.ts'
import { quiet } from '../harness/peers.ts'

const ANSWER: ReloadAnswer = {
  outcome: 'in force',
  apis: NO_APIS_CHANGED,
  sequences: NO_SEQUENCES_CHANGED,
  ...{ keys: [], restart: [], faults: [], warnings: [], failures: [] },
}

/** Reloads end when the test says so. */
function queue() {
  const begun: ReloadScope[] = []
  const ends: PromiseWithResolvers<ReloadAnswer>[] = []
  const reloads = new ReloadQueue(scope => {
    begun.push(scope)
    ends.push(Promise.withResolvers())
    return ends.at(-1)!.promise
  })
  return { reloads, begun, ends }
}

test('one runs at a time; one of each scope waits, and later callers share it', async () => {
  const { reloads, begun, ends } = queue()
  const first = reloads.request('all')
  await quiet()
  const waiting = reloads.request('all')
  const apis = reloads.request('apis')
  assert.notEqual(waiting, first)
  assert.equal(reloads.request('all'), waiting)
  assert.equal(reloads.request('apis'), apis)
  await quiet()
  assert.deepEqual(begun, ['all'])
  ends[0]!.resolve(ANSWER)
  assert.equal(await first, ANSWER)
  await quiet()
  assert.deepEqual(begun, ['all', 'all'])
  // What is asked for now has not been read by the one that runs.
  assert.notEqual(reloads.request('all'), waiting)
  ends[1]!.resolve(ANSWER)
  await waiting
  await quiet()
  assert.deepEqual(begun, ['all', 'all', 'apis'])
})

test('one that fails keeps nobody from the next', async () => {
  const { reloads, begun, ends } = queue()
  const first = reloads.request('all')
  await quiet()
  const second = reloads.request('all')
  ends[0]!.reject(new Error('no'))
  await assert.rejects(first, /no/)
  await quiet()
  assert.equal(begun.length, 2)
  ends[1]!.resolve(ANSWER)
  await second
})

test('another change waits for the reload that runs, and the next reload for the change', async () => {
  const { reloads, begun, ends } = queue()
  const order: string[] = []
  const first = reloads.request('all').then(() => order.push('reload'))
  await quiet()
  const changing = Promise.withResolvers<string>()
  const change = reloads.alone(() => {
    order.push('change begins')
    return changing.promise
  })
  const second = reloads.request('all')
  await quiet()
  assert.deepEqual([order, begun.length], [[], 1])
  ends[0]!.resolve(ANSWER)
  await first
  await quiet()
  assert.deepEqual([order, begun.length], [['reload', 'change begins'], 1])
  changing.resolve('changed')
  assert.equal(await change, 'changed')
  await quiet()
  assert.equal(begun.length, 2)
  ends[1]!.resolve(ANSWER)
  assert.equal(await second, ANSWER)
})

test('a change that fails keeps nobody from the next', async () => {
  const { reloads } = queue()
  await assert.rejects(
    reloads.alone(() => Promise.reject(new Error('no'))),
    /no/,
  )
  assert.equal(await reloads.alone(async () => 'yes'), 'yes')
})
