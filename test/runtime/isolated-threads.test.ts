/** Threads for code of operators: each task alone, within its time and memory. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { silentPipe } from '../harness/silent-pipe.ts'
import { IsolatedThreads, START_MS, type ThreadFailure } from '../../src/runtime/isolated-threads.ts'

/** Evaluates each task as text and posts the result. */
const ECHO = `
  import { parentPort } from 'node:worker_threads'
  parentPort.on('message', async text => parentPort.postMessage(await (0, eval)(text)))
  parentPort.postMessage('ready')`

interface Given {
  readonly threadsMax?: number
  readonly timeoutMs?: number
  readonly code?: string
}

/** Calls of the observer of a pool. */
class Heard {
  readonly used: number[] = []
  readonly failures: string[] = []
  waits = 0
  waited = 0
}

function threads(
  t: TestContext,
  { threadsMax = 1, timeoutMs = 20_000, code = ECHO }: Given = {},
  heard = new Heard(),
): IsolatedThreads {
  const entry = new URL(`data:text/javascript,${encodeURIComponent(code)}`)
  const pool = new IsolatedThreads({
    entry,
    workerData: null,
    threadsMax,
    timeoutMs,
    heapBytes: 32 * 1_048_576,
    memory: [],
    observer: {
      used: count => void heard.used.push(count),
      waits: () => void heard.waits++,
      waited: () => void heard.waited++,
      failed: reason => void heard.failures.push(reason),
    },
  })
  t.after(() => pool.close())
  return pool
}

function reasonOf(result: Promise<unknown>): Promise<unknown> {
  return result.catch((error: ThreadFailure) => error.reason)
}

test('tasks run one after the other on one thread, with what the thread keeps', async t => {
  const pool = threads(t)
  const texts = ['globalThis.n = 1', 'n += 1', 'n += 1']
  assert.deepEqual(await Promise.all(texts.map(text => pool.run(text))), [1, 2, 3])
  assert.equal(pool.size, 1)
})

const FAILURES = [
  ['for (;;) {}', 'late'],
  ['new Promise(() => {})', 'late'],
  ['const all = []; for (;;) all.push(new Array(1e5).fill(all.length))', 'memory'],
  ['process.exit(3)', 'died'],
  ['setTimeout(() => { throw new Error() }); new Promise(() => {})', 'died'],
] as const

for (const [text, reason] of FAILURES) {
  test(`a task that does ${text} fails alone: ${reason}`, async t => {
    const heard = new Heard()
    const pool = threads(t, { threadsMax: 2, timeoutMs: 3000 }, heard)
    const others = Array.from({ length: 4 }, (_, index) => pool.run(`${index}`))
    assert.equal(await reasonOf(pool.run(text)), reason)
    assert.deepEqual(await Promise.all(others), [0, 1, 2, 3])
    assert.equal(await pool.run('5'), 5)
    assert.deepEqual(heard.failures, [reason])
    assert.equal(heard.used.at(-1), 0)
    assert.ok(heard.used.every(count => count <= 2))
    assert.ok(heard.waits >= 5 && heard.waited === heard.waits, `${heard.waits} of which ${heard.waited} had an end`)
  })
}

test('no more threads start than are allowed, and the queue of tasks is bounded', async t => {
  const heard = new Heard()
  const pool = threads(t, { threadsMax: 2, timeoutMs: 1000 }, heard)
  const tasks = Array.from({ length: 250 }, () => reasonOf(pool.run('new Promise(() => {})')))
  assert.equal(pool.size, 2)
  const first = await Promise.race(tasks)
  assert.equal(first, 'queue-full')
  pool.close()
  const reasons = await Promise.all(tasks)
  assert.equal(reasons.filter(reason => reason === 'queue-full').length, 50)
  assert.equal(heard.failures.filter(reason => reason === 'queue-full').length, 50)
  assert.equal(heard.waits, 200)
})

test('a thread that cannot start fails the tasks that wait for it', async t => {
  const pool = threads(t, { code: 'throw new Error()' })
  assert.equal(await reasonOf(pool.run('1')), 'died')
  assert.equal(await reasonOf(pool.run('1')), 'died')
})

test('a thread that hangs while it starts fails the task that waits for it', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const timeoutMs = 1000
  const pool = threads(t, { code: 'setInterval(() => {}, 1e6)', timeoutMs })
  const reason = reasonOf(pool.run('1'))
  t.mock.timers.tick(START_MS)
  t.mock.timers.tick(timeoutMs)
  assert.equal(await reason, 'died')
})

test('threads that calls of the system block cost their tasks, and as many as the limit are replaced', async t => {
  const pool = threads(t, { timeoutMs: 300 })
  const read = `process.getBuiltinModule('fs').readFileSync(${JSON.stringify(silentPipe(t))})`
  assert.equal(await reasonOf(pool.run(read)), 'late')
  assert.equal(await pool.run('1 + 1'), 2)
  assert.equal(await reasonOf(pool.run(read)), 'late')
  // Once the second one is stuck too, a task has no thread to wait for.
  while ((await reasonOf(pool.run('1 + 1'))) !== 'died');
  await assert.rejects(pool.run('1 + 1'), /calls of the system that do not return: restart the gateway/)
})
