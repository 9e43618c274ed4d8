/**
 * Serves the tasks of a worker thread: gives each to the runner of its kind, within its time, and shows signs of life.
 * Log events and calls to the reactor go through a channel of this thread.
 */
import { setTimeout } from 'node:timers/promises'
import { MessageChannel, parentPort, threadId, workerData } from 'node:worker_threads'
import { move, transferableSymbol, valueSymbol } from 'piscina'
import type { StepCounts } from '../mediation/flow-statistics.ts'
import type { TaskCall, TaskCallResults, TaskServices } from '../mediation/task-calls.ts'
import { EventLog } from '../observe/events.ts'
import { allocateMarks, WorkerMarks } from '../observe/worker-marks.ts'
import {
  BEATS,
  type FromWorker,
  LIFE_BYTES,
  RUNNING,
  type ToWorker,
  TRIM,
  TURN_MS,
  type WorkerHello,
} from '../plan/worker-messages.ts'
import type { TaskEnvelope, TaskReply, WorkerData, WorkerPlan } from '../plan/worker-plan.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import type { FromMounted, ToMounted } from '../plan/mounted-messages.ts'
import { CallChannel } from '../runtime/call-channel.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { processorYield } from '../runtime/c-functions.ts'
import { collectGarbage } from '../runtime/heap-trim.ts'
import { SharedWakes } from '../runtime/shared-wakes.ts'
import { setTimeSlice, systemThreadId } from '../runtime/thread-scheduling.ts'
import { allocateMemoryRows, MemoryReport, memoryRows } from '../runtime/thread-memory.ts'
import { watchLife } from '../runtime/signs-of-life.ts'
import { TaskClaims, UNCLAIMED } from '../runtime/task-claims.ts'
import { type TaskTime, TaskTimes } from './task-time.ts'

/** Between two signs of life, in milliseconds. */
const BEAT_MS = 500
/** After a collection: V8 has freed the buffers of what it collected. */
const SWEEP_MS = 100
/** Between two signs that the event loop turns, in milliseconds. */
const TURN_INTERVAL_MS = 50
/**
 * Calls that may be pending at once; tasks are bounded by the permits of the pool. The reactor ends each call by the
 * time-outs of its endpoint, and each task by its own: this one only bounds what has no answer at all.
 */
const CALLS = { pendingMax: 100_000, timeoutMs: 86_400_000 }

/** Services of a thread for its runners. */
export interface TaskContext {
  readonly plan: WorkerPlan
  readonly report: Report
  /** Asks the reactor that owns the thread. Rejects with CallFailed. */
  readonly call: TaskServices['call']
  /** Hands counts of flows to the reactor. */
  readonly count: (counts: readonly StepCounts[]) => void
  /** Bodies of requests and responses of mounted APIs. */
  readonly streams: TaskStreams
  /** Wakes the work of mounted APIs, by identity. */
  readonly wakes: SharedWakes
  /** Rows for the memory of the script threads. */
  readonly scriptMemory: readonly Float64Array[]
  readonly marks: WorkerMarks
}

interface TaskStreams {
  readonly post: (message: FromMounted, transfer: readonly ArrayBuffer[]) => void
  /** Sets who gets the messages of the reactor. */
  readonly listen: (receive: (message: ToMounted) => void) => void
}

/** `value`: plain data. `transfer`: its buffers that are moved instead of copied. */
export interface TaskResult {
  readonly value: unknown
  readonly transfer: readonly ArrayBuffer[]
}

/** A failure whose message holds no text of a client: it is the cause that the log names. */
export class KnownCause extends Error {
  override readonly name = 'KnownCause'
}

/** Runs one task, within its time. What it throws fails the task alone. */
export type TaskRunner = (task: never, time: TaskTime) => TaskResult | Promise<TaskResult>

/** Returns the function that piscina calls with each task. `runnersOf`: runners by kind of task. */
export function serveTasks(runnersOf: (context: TaskContext) => Readonly<Record<string, TaskRunner>>) {
  // The reactor that started the thread has a short one.
  setTimeSlice('default')
  const { context, life, memory, times, claims } = openThread()
  const runners = { ...runnersOf(context), [TRIM]: trimHeap }
  watchLife(() => Atomics.add(life, BEATS, 1))
  const { marks } = context
  const yieldProcessor = processorYield()
  return async (envelope: TaskEnvelope): Promise<TaskReply> => {
    // Between two tasks: a reactor that became ready meanwhile goes first (D700).
    yieldProcessor()
    if (!claims.begin(envelope.claim ?? UNCLAIMED)) return { kind: 'withdrawn' }
    Atomics.add(life, RUNNING, 1)
    Atomics.add(life, BEATS, 1)
    const beginMs = monotonicMs()
    Atomics.store(life, TURN_MS, beginMs)
    marks.begin(beginMs)
    try {
      const { value, transfer } = await run(runners, envelope, times)
      return moved({ value }, transfer)
    } catch (error) {
      return { cause: causeOf(error) }
    } finally {
      Atomics.add(life, BEATS, 1)
      Atomics.sub(life, RUNNING, 1)
      const nowMs = monotonicMs()
      Atomics.store(life, TURN_MS, nowMs)
      marks.end(nowMs)
      memory.update(nowMs)
    }
  }
}

async function trimHeap(): Promise<TaskResult> {
  collectGarbage('last-resort')
  // V8 frees buffers beside the thread, and counts them in its next collection.
  await setTimeout(SWEEP_MS)
  collectGarbage('regular')
  return { value: null, transfer: [] }
}

function openThread() {
  const { plan: text, wakes, claims } = workerData as WorkerData
  const plan = JSON.parse(text) as WorkerPlan
  const { port1: own, port2: port } = new MessageChannel()
  const life = new Int32Array(new SharedArrayBuffer(LIFE_BYTES))
  const calls = new CallChannel<TaskCall, TaskCallResults>('the reactor', own, CALLS)
  let receive: (message: ToMounted) => void = () => undefined
  const times = new TaskTimes()
  own.on('message', (message: ToWorker) => {
    if (message.kind === 'mounted') receive(message)
    else if (message.kind === 'left') {
      if (times.leave(message.task)) own.postMessage({ kind: 'left', task: message.task } satisfies FromWorker)
    } else calls.settle(message)
  })
  const streams: TaskStreams = {
    post: (message, transfer) => own.postMessage(message satisfies FromWorker, transfer as ArrayBuffer[]),
    listen: receiver => {
      receive = receiver
    },
  }
  const events = new EventLog(event => own.postMessage({ kind: 'event', event } satisfies FromWorker), {
    level: plan.logLevel,
    nowMs: () => performance.now(),
    onSuppressed: () => undefined,
  })
  const shown = allocateMemoryRows(1 + plan.scripts.threads)
  const [ownMemory, ...scriptMemory] = memoryRows(shown)
  const memory = new MemoryReport(ownMemory!)
  const shownMarks = allocateMarks()
  const marks = new WorkerMarks(shownMarks, BEAT_MS, monotonicMs())
  setInterval(() => {
    Atomics.add(life, BEATS, 1)
    const nowMs = monotonicMs()
    marks.tick(nowMs)
    memory.update(nowMs)
  }, BEAT_MS)
  setInterval(() => Atomics.store(life, TURN_MS, monotonicMs()), TURN_INTERVAL_MS)
  const shared = { life: life.buffer as SharedArrayBuffer, memory: shown, marks: shownMarks }
  const ids = { threadId, systemThreadId: systemThreadId() }
  const hello = { kind: 'hello', ...ids, port, ...shared } satisfies WorkerHello
  parentPort!.postMessage(hello, [port])
  const report: Report = (level, event, fields) => events.report(level, event, fields)
  const call: TaskContext['call'] = given => calls.call(given)
  const count: TaskContext['count'] = counts => own.postMessage({ kind: 'counts', counts } satisfies FromWorker)
  const shares = { scriptMemory, marks, wakes: new SharedWakes(wakes) }
  const context: TaskContext = { plan, report, call, count, streams, ...shares }
  return { context, life, memory, times, claims: new TaskClaims(claims) }
}

function run(
  runners: Readonly<Record<string, TaskRunner>>,
  { task, id, endMs }: TaskEnvelope,
  times: TaskTimes,
): TaskResult | Promise<TaskResult> {
  const runner = runners[task.kind]
  if (runner === undefined) throw new KnownCause(`there is no task of the kind ${task.kind}`)
  const time = times.begin(id, endMs)
  const result = runner(task as never, time)
  if (!(result instanceof Promise)) return result
  times.waits(time)
  // A late result has no receiver: the task gives up its place, and its pending calls end with `time`.
  return time.limit(result, () => new KnownCause('not done in time')).finally(() => times.ended(id))
}

function moved(reply: TaskReply, transfer: readonly ArrayBuffer[]): TaskReply {
  if (transfer.length === 0) return reply
  return move({ [transferableSymbol]: transfer, [valueSymbol]: reply } as never) as unknown as TaskReply
}

/** Name and code of an error, and where it was thrown. Its message may hold text of a client. */
export function causeOf(error: unknown): string {
  if (error instanceof KnownCause) return error.message
  if (!(error instanceof Error)) return 'a value was thrown that is no error'
  const { code } = error as NodeJS.ErrnoException
  const name = IS_CODE.test(code ?? '') ? `${error.name} ${code}` : error.name
  const frame = /^ +at (.*)$/m.exec(error.stack ?? '')
  return frame === null ? name : `${name} at ${frame[1]}`
}

/** Codes of Node and of databases: ECONNREFUSED. */
const IS_CODE = /^[A-Z][A-Z0-9_]{1,40}$/
