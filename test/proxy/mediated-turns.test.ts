/** Messages that come at once to a reactor share out the turns of its event loop, on their way to workers and back. */
import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import type { FlowResult, FlowTask } from '../../src/mediation/worker-task.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, quiet } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { raising, responding, ScriptedWorker, unchanged, workerFlows } from '../harness/scripted-worker.ts'

/** The quota of D590. */
const PER_TURN = 3
const MESSAGES = 20

const worker = new ScriptedWorker()
const { mediation } = workerFlows('request')
const admission = { sequence: 'find-operations', operations: [] }
const gateway = await startGateway(
  [
    { context: '/flow', port: 1, overrides: { mediation } },
    { context: '/admitted', port: 1, overrides: { mediation: { ...mediation!, admission } } },
  ],
  { worker },
)
const clients: Peer[] = []
after(() => gateway.stop())
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy()
  await eventually('the end of all connections of clients', () => gateway.metrics().counts.connectionsOpen === 0)
  worker.tasks.length = 0
})

/** Sends one message on each of `count` connections, all of them before the gateway reads. */
async function sendAtOnce(path: string, count: number): Promise<void> {
  for (let each = 0; each < count; each++) clients.push(await connectPeer(gateway.port))
  await quiet()
  for (const client of clients) client.send(`POST ${path}/x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}`)
}

/** Calls `look` in each turn of the loop, before the quota of messages is renewed. Returns the end of it. */
function eachTurn(look: () => void): () => void {
  let isOver = false
  const turn = (): void => {
    look()
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  return () => {
    isOver = true
  }
}

/** Waits until `count` gives `all`; returns the most that it grew in a turn. */
async function mostInTurn(count: () => number, all: number, begin: () => Promise<void> | void): Promise<number> {
  // A renewal under way would come before the first look.
  await quiet()
  let known = count()
  const wanted = known + all
  let most = 0
  const end = eachTurn(() => {
    most = Math.max(most, count() - known)
    known = count()
  })
  try {
    await begin()
    await eventually(`${all} of them`, () => known >= wanted)
  } finally {
    end()
  }
  return most
}

/** Holds the tasks of a sequence until `finish`. */
function heldTasks(sequence: string, decide: (task: FlowTask) => FlowResult) {
  const finishes: (() => void)[] = []
  worker.script = task => {
    if (!task.sequences.includes(sequence)) return decide(task)
    return new Promise(resolve => finishes.push(() => resolve(decide(task))))
  }
  const finish = (): void => {
    for (const each of finishes) each()
  }
  return { count: () => finishes.length, finish }
}

async function statuses(): Promise<number[]> {
  return Promise.all(clients.map(async client => (await takeResponse(client)).status))
}

test(`of ${MESSAGES} messages at once, at most ${PER_TURN} go to workers in a turn, and all are answered`, async () => {
  worker.script = task => responding(task, 200, 'ok')
  const send = () => sendAtOnce('/flow', MESSAGES)
  const most = await mostInTurn(() => worker.tasks.length, MESSAGES, send)
  assert.ok(most <= PER_TURN, `${most} in one turn`)
  assert.deepEqual(await statuses(), Array<number>(MESSAGES).fill(200))
})

test(`of ${MESSAGES} results at once, at most ${PER_TURN} come back in one turn, and each is sent`, async () => {
  const { count, finish } = heldTasks('request-sequence', task => raising(task, 900800))
  await sendAtOnce('/flow', MESSAGES)
  await eventually('all tasks', () => count() === MESSAGES)
  const most = await mostInTurn(() => gateway.reports.length, MESSAGES, finish)
  assert.ok(most <= PER_TURN, `${most} in one turn`)
  assert.equal(new Set(await statuses()).size, 1)
})

test(`of ${MESSAGES} requests whose operations are known at once, at most ${PER_TURN} go on in one turn`, async () => {
  const decide = (task: FlowTask) =>
    task.sequences.includes(admission.sequence) ? unchanged(task) : responding(task, 200, 'ok')
  const { count, finish } = heldTasks(admission.sequence, decide)
  await sendAtOnce('/admitted', MESSAGES)
  await eventually('all first tasks', () => count() === MESSAGES)
  const most = await mostInTurn(() => worker.tasks.length, MESSAGES, finish)
  assert.ok(most <= PER_TURN, `${most} in one turn`)
  assert.deepEqual(await statuses(), Array<number>(MESSAGES).fill(200))
})

test('messages whose clients leave while they wait for their turn go to no worker', async () => {
  const count = 8 * PER_TURN
  worker.script = task => responding(task, 200, 'ok')
  let isLeft = false
  const end = eachTurn(() => {
    if (isLeft || worker.tasks.length === 0) return
    isLeft = true
    for (const client of clients) client.reset()
  })
  await sendAtOnce('/flow', count)
  await eventually('the end of all connections', () => isLeft && gateway.metrics().counts.connectionsOpen === 0)
  // As many turns as all messages would take.
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate)
  end()
  // Tasks of the turn in which the clients leave, and of the next one.
  assert.ok(worker.tasks.length <= 2 * PER_TURN, `${worker.tasks.length} tasks`)
})
