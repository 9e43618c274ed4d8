/**
 * Chooses the worker threads of a reactor for each message, by the size of its body, and moves messages that wait for a
 * thread which computes (D396, D927, D929).
 */
import type { FlowTask } from '../mediation/worker-task.ts'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import type { MovableSize } from './withdrawable-tasks.ts'
import type { TaskSize, WorkerThreads } from './worker-threads.ts'

/**
 * Threads by what they run. `mediation`: short messages. `long`: those whose body is longer than
 * `mediation.body.memory_bytes`, and large ones. `spare`: large ones, while `long` is held up. The last two also run
 * short messages while all threads of `mediation` are held up.
 */
const MESSAGE_LANES = ['mediation', 'long', 'spare'] as const
export const LANES = [...MESSAGE_LANES, 'background'] as const
type MessageLane = (typeof MESSAGE_LANES)[number]
type Lane = (typeof LANES)[number]
export type Lanes = Readonly<Record<Lane, WorkerThreads>>
/** Threads for large messages. A costly message is mostly a large one, and delays no short one there. */
const LARGE_LANES = ['long', 'spare'] as const
/** Threads of a reactor for long bodies: it holds one of them in its heap at a time, or few. */
const LONG_THREADS = 1
/** A message is large if its body is longer, or encoded. */
const SHORT_MAX = 16_384
/** Time between two looks for messages that wait for a thread which computes, in milliseconds. */
const LOOK_MS = 50
/** Messages that wait at most where others are to follow: the whole queue would follow each turn of costly ones. */
const MOVED_MAX = 64

interface MessageLanesOptions {
  /** Threads of the current plan. */
  readonly current: () => Lanes
  /** Threads of earlier plans whose tasks have not ended. */
  readonly retired: () => readonly Lanes[]
  /** `mediation.body.memory_bytes`. */
  readonly memoryMax: () => number
  readonly metrics: MetricsColumn
}

/** Numbers of threads by lane. `mediation`: the share of the reactor. Large messages have as many as short ones. */
export function laneSizes(mediation: number): Readonly<Record<MessageLane, number>> {
  return { mediation, long: LONG_THREADS, spare: Math.max(1, mediation - LONG_THREADS) }
}

export class MessageLanes {
  readonly #options: MessageLanesOptions
  /** Looks for messages that wait; null while there are no messages. */
  #looking: NodeJS.Timeout | null = null

  constructor(options: MessageLanesOptions) {
    this.#options = options
  }

  /** Returns the size of a message. `bytes`: length of the body; what is decoded may be much longer. */
  sizeOf({ message }: FlowTask, bytes: number): TaskSize {
    if (bytes > this.#options.memoryMax()) return 'long'
    return bytes > SHORT_MAX || (bytes > 0 && isEncoded(message)) ? 'large' : 'short'
  }

  threadsFor(size: Exclude<TaskSize, 'bound'>): WorkerThreads {
    const { current, metrics } = this.#options
    const threads = current()
    if (size === 'long') return threads.long
    this.#looking ??= setInterval(() => this.#moveWaiting(), LOOK_MS).unref()
    if (size === 'large') threads.long.start()
    const lane = laneOf(size, threads)
    if (size === 'short' && lane !== 'mediation') metrics.add(METRIC.workerDiversions, 1)
    return threads[lane]
  }

  close(): void {
    if (this.#looking !== null) clearInterval(this.#looking)
    this.#looking = null
  }

  /** Messages that wait for a thread which computes, or has not started, go to another one, of the current plan. */
  #moveWaiting(): void {
    const current = this.#options.current()
    const plans = [...this.#options.retired(), current]
    if (plans.every(threads => MESSAGE_LANES.every(lane => threads[lane].pending === 0))) this.close()
    for (const threads of plans) {
      for (const lane of MESSAGE_LANES) {
        const from = threads[lane]
        if (!from.holdsUp) continue
        const room = { short: roomFor('short', from, current), large: roomFor('large', from, current) }
        from.withdraw(size => room[size]-- > 0)
      }
    }
  }
}

/** Messages that other threads of the current plan, or others of the same lane, take now. */
function roomFor(size: MovableSize, from: WorkerThreads, current: Lanes): number {
  const next = current[laneOf(size, current)]
  if (next.isHeldUp) return 0
  if (next === from) return from.isReady ? MOVED_MAX : 0
  // Threads of this plan start where they are needed, once messages have gone there.
  const takes = next.isReady || (from.isReady && Object.values(current).includes(from))
  return takes ? MOVED_MAX - next.waiting : 0
}

function laneOf(size: MovableSize, threads: Lanes): MessageLane {
  return size === 'large' ? laneOfLarge(threads) : laneOfShort(threads)
}

/** Where all are held up, those whose thread exists: one that cannot start would take no message (D950). */
function laneOfShort(threads: Lanes): MessageLane {
  if (!threads.mediation.isHeldUp) return 'mediation'
  const free = MESSAGE_LANES.filter(lane => !threads[lane].isHeldUp)
  const isReady = (lane: MessageLane): boolean => threads[lane].isReady
  return free.find(isReady) ?? free[0] ?? MESSAGE_LANES.find(isReady) ?? 'mediation'
}

/** The first large messages start `long`; until it is there, they run with short ones. */
function laneOfLarge(threads: Lanes): MessageLane {
  if (!threads.long.isReady) return laneOfShort(threads)
  const free = LARGE_LANES.filter(lane => !threads[lane].isHeldUp)
  const [first, ...others] = free.length > 0 ? free : LARGE_LANES.filter(lane => threads[lane].isReady)
  // Where short messages have one thread, large ones share one too, until it is held up: each takes memory.
  if (free.length > 0 && threads.mediation.size === 1) return first!
  return others.reduce((best, lane) => (threads[lane].tasksEach < threads[best].tasksEach ? lane : best), first!)
}

function isEncoded({ fields }: FlowTask['message']): boolean {
  return fields.some(([name]) => name.toLowerCase() === 'content-encoding')
}
