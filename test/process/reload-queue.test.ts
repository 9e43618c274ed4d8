/** The order of reloads and other changes, and which requests share a report. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReloadQueue } from '../../src/primary/reload-queue.ts'
import {
  NO_APIS_CHANGED,
  NO_SEQUENCES_CHANGED,
  type ReloadReport,
  type ReloadScope,
} from '../../src/primary/reload-report.ts'
import { quiet } from '../harness/peers.ts'

const REPORT: ReloadReport = {
  outcome: 'applied',
  apis: NO_APIS_CHANGED,
  sequences: NO_SEQUENCES_CHANGED,
  ...{ keys: [], restart: [], errors: [], warnings: [], failures: [] },
}

/** A queue whose reloads end when the test resolves them. */
function queue() {
  const begun: ReloadScope[] = []
  const ends: PromiseWithResolvers<ReloadReport>[] = []
  const reloads = new ReloadQueue(scope => {
    begun.push(scope)
    ends.push(Promise.withResolvers())
    return ends.at(-1)!.promise
  })
  return { reloads, begun, ends }
}

test('one reload runs at a time, one of each scope waits, and later requests share the waiting one', async () => {
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
  ends[0]!.resolve(REPORT)
  assert.equal(await first, REPORT)
  await quiet()
  assert.deepEqual(begun, ['all', 'all'])
  // The running reload may have read the files already.
  assert.notEqual(reloads.request('all'), waiting)
  ends[1]!.resolve(REPORT)
  await waiting
  await quiet()
  assert.deepEqual(begun, ['all', 'all', 'apis'])
})

test('a reload that fails does not stop the next one', async () => {
  const { reloads, begun, ends } = queue()
  const first = reloads.request('all')
  await quiet()
  const second = reloads.request('all')
  ends[0]!.reject(new Error('no'))
  await assert.rejects(first, /no/)
  await quiet()
  assert.equal(begun.length, 2)
  ends[1]!.resolve(REPORT)
  await second
})

test('a change waits for the running reload, and the next reload for the change', async () => {
  const { reloads, begun, ends } = queue()
  const order: string[] = []
  const first = reloads.request('all').then(() => order.push('reload'))
  await quiet()
  const changing = Promise.withResolvers<string>()
  const change = reloads.exclusively(() => {
    order.push('change begins')
    return changing.promise
  })
  const second = reloads.request('all')
  await quiet()
  assert.deepEqual([order, begun.length], [[], 1])
  ends[0]!.resolve(REPORT)
  await first
  await quiet()
  assert.deepEqual([order, begun.length], [['reload', 'change begins'], 1])
  changing.resolve('changed')
  assert.equal(await change, 'changed')
  await quiet()
  assert.equal(begun.length, 2)
  ends[1]!.resolve(REPORT)
  assert.equal(await second, REPORT)
})

test('a change that fails does not stop the next one', async () => {
  const { reloads } = queue()
  await assert.rejects(
    reloads.exclusively(() => Promise.reject(new Error('no'))),
    /no/,
  )
  assert.equal(await reloads.exclusively(async () => 'yes'), 'yes')
})
