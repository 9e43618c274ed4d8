/** Times of a flow on a worker, as its exchange counts them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FlowTask, NO_STATE } from '../../../src/mediation/worker-task.ts'
import type { TaskWait } from '../../../src/mediation/worker-service.ts'
import { timedWorkers } from '../../../src/proxy/mediated/mediation-services.ts'
import { unchanged } from '../../harness/scripted-worker.ts'

const MESSAGE = { method: 'GET', target: '/', status: 0, reason: '', fields: [], state: NO_STATE } as const
const TASK: FlowTask = {
  kind: 'flow',
  api: 'a',
  flow: 'request',
  sequences: [],
  message: { ...MESSAGE, body: { kind: 'none' } },
}
const TURN_MS = 10
const PERMIT_MS = 5
const WORKER_MS = 100

test('the wait for a turn before the worker is time of the queue, that of the result time of mediation', async () => {
  let nowMs = 1000
  const turns = {
    next: async () => {
      nowMs += TURN_MS
    },
  }
  const worker = {
    mediate: async (task: FlowTask, _bytes: number, wait?: TaskWait) => {
      nowMs += PERMIT_MS
      wait?.waited(PERMIT_MS)
      nowMs += WORKER_MS
      return unchanged(task)
    },
  }
  const exchange = { isSecured: false, queueMs: 0, mediationMs: 0 }
  const services = { workers: { plain: worker, secured: worker }, turns }
  const { begin, mediate, account } = timedWorkers(services, exchange, () => nowMs, {
    entered: () => undefined,
    queued: () => undefined,
  })
  await begin()
  await mediate(TASK, 0)
  account()
  assert.deepEqual([exchange.queueMs, exchange.mediationMs], [TURN_MS + PERMIT_MS, WORKER_MS + TURN_MS])
})
