/**
 * Copies of a message that run beside each other (`<clone>`, `<iterate>`, `<scatter-gather>`), and the place where an
 * aggregate gathers them. Runs on workers.
 */
import { servicesOf, withVariables } from './backend-calls.ts'
import { LimitReached, TOO_LONG } from './flow-limits.ts'
import { MediationFault } from './mediation-fault.ts'
import type { Run } from './mediator.ts'
import type { Message } from './message.ts'
import { settledParameters } from './template-frame.ts'

/** Copies of one task that run at once: each may wait for a backend. */
const AT_ONCE_MAX = 16
const INCOMPLETE = 102554
const QUEUE_FULL = 102540

/** When an aggregate is complete, and what becomes of it. */
export interface Aggregation {
  /** From the first copy that arrives; 0: no limit. */
  readonly timeoutMs: number
  /** Fewer copies are a fault; 0: any number is enough. */
  readonly min: number
  /** So many copies are enough; 0: all that arrive. */
  readonly max: number
  /** Turns the first of the copies into the aggregate; returns as `Run` does. */
  complete(first: Message, arrived: readonly Message[]): ReturnType<Run>
}

interface Arrival {
  readonly message: Message
  /** The copy that has come, or that the message stands for: an aggregate of copies of that copy. */
  readonly copy: Message
  readonly settle: (goesOn: boolean | Promise<boolean>) => void
  readonly fail: (fault: MediationFault) => void
}

/** The copies of one message. `open`: they arrive. `complete`: the aggregate is made, and later ones end. */
export class Gathering {
  readonly #copies: readonly Message[]
  readonly #arrivals: Arrival[] = []
  #aggregation: Aggregation | null = null
  #state: 'open' | 'complete' = 'open'
  #ended = 0
  #timer: NodeJS.Timeout | undefined
  readonly #allEnded = Promise.withResolvers<null>()
  /** Told of the arrival of copies that run. */
  readonly #waiters = new Map<Message, () => void>()
  readonly #id: string
  /** The message that was copied, which may be a copy itself; null: its copies are gathered by nothing else. */
  readonly #original: Message | null
  /** The copy that became the aggregate; null for none. */
  leader: Message | null = null

  /** `id`: by which an `<aggregate>` names the copies; '' for any. */
  constructor(copies: readonly Message[], id = '', original: Message | null = null) {
    this.#copies = copies
    this.#id = id
    this.#original = original
    for (const copy of copies) copy.gathering = this
  }

  /** How many copies there are. */
  get size(): number {
    return this.#copies.length
  }

  /** Tells whether an `<aggregate>` of that id gathers the copies. */
  isOf(id: string): boolean {
    return id === '' || this.#id === '' || id === this.#id
  }

  /** A copy has come to the aggregate. Resolves with true for the one that goes on as the aggregate. */
  arrive(message: Message, aggregation: Aggregation): Promise<boolean> {
    if (this.#state === 'complete') return Promise.resolve(false)
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    const copy = message.standsFor ?? message
    this.#arrivals.push({ message, copy, settle: resolve, fail: reject })
    this.#aggregation ??= aggregation
    if (aggregation.timeoutMs > 0) this.#timer ??= setTimeout(() => this.#complete(), aggregation.timeoutMs)
    this.#waiters.get(copy)?.()
    this.#check()
    return promise
  }

  /**
   * Runs the copies. Resolves when the aggregate has run to its end, or all copies have; the others end with their next
   * call. `atOnce`: how many run at once.
   */
  async run(run: Run, atOnce = AT_ONCE_MAX): Promise<readonly CopyResult[]> {
    const results: CopyResult[] = []
    const waiting = [...this.#copies]
    const leading = Promise.withResolvers<null>()
    const runNext = async (): Promise<void> => {
      for (let copy = waiting.shift(); copy !== undefined && this.#state === 'open'; copy = waiting.shift()) {
        // A copy that waits in the aggregate leaves its place to the next one.
        await Promise.race([this.#arrivalOf(copy), this.#runOne(copy, run, results, leading.resolve)])
      }
    }
    const all = Array.from({ length: Math.min(atOnce, waiting.length) }, runNext)
    await Promise.race([leading.promise, Promise.all(all).then(() => this.#allEnded.promise)])
    clearTimeout(this.#timer)
    return results
  }

  #arrivalOf(copy: Message): Promise<void> {
    return new Promise(resolve => this.#waiters.set(copy, resolve))
  }

  async #runOne(copy: Message, run: Run, results: CopyResult[], led: (value: null) => void): Promise<void> {
    let result: CopyResult
    try {
      result = { copy, goesOn: await run(copy), error: null }
    } catch (error) {
      result = { copy, goesOn: false, error: error as Error }
    }
    results.push(result)
    this.#ended++
    if (this.leader === copy) led(null)
    this.#check()
  }

  /** Completes the aggregate where its condition holds. */
  #check(): void {
    if (this.#state === 'open' && this.#aggregation !== null) {
      const { max } = this.#aggregation
      const arrived = this.#arrivals.length
      if ((max > 0 && arrived >= max) || arrived + this.#ended >= this.#copies.length) this.#complete()
    }
    if (this.#ended === this.#copies.length) this.#allEnded.resolve(null)
  }

  #complete(): void {
    if (this.#state === 'complete') return
    this.#state = 'complete'
    clearTimeout(this.#timer)
    const order = new Map(this.#copies.map((copy, at) => [copy, at]))
    const arrivals = this.#arrivals.sort((a, b) => order.get(a.copy)! - order.get(b.copy)!)
    const arrived = arrivals.map(({ message }) => message)
    const [first, ...others] = arrivals as [Arrival, ...Arrival[]]
    this.leader = first.copy
    // The rest of the copies ends with its next call.
    for (const copy of this.#copies) if (copy !== first.copy) copy.task = null
    // The aggregate of copies of a copy goes on to the aggregate of that one.
    first.message.gathering = this.#original?.gathering ?? null
    first.message.standsFor = this.#original
    for (const { message, settle } of others) {
      message.task = null
      settle(false)
    }
    const { min, complete } = this.#aggregation!
    if (arrived.length >= min) first.settle(invoke(() => complete(first.message, arrived)))
    else {
      const cause = `${arrived.length} of ${min} copies have come to the aggregate`
      first.fail(new MediationFault({ code: INCOMPLETE, message: 'Incomplete aggregation', cause }))
    }
  }
}

/** The outcome of a copy. `error`: what its run has thrown; null for nothing. */
interface CopyResult {
  readonly copy: Message
  readonly goesOn: boolean
  readonly error: Error | null
}

async function invoke(run: () => ReturnType<Run>): Promise<boolean> {
  return await run()
}

/**
 * Runs copies of `message` to their end. The aggregate of them becomes the message; without one, the first copy that
 * goes on, or has an outcome other than a drop; without such a copy the message is dropped. Rejects with the first
 * fault where every copy has failed.
 */
export async function runCopies(
  message: Message,
  copies: readonly Message[],
  run: Run,
  { id, isSequential }: { readonly id: string; readonly isSequential: boolean },
): Promise<boolean> {
  const gathering = new Gathering(copies, id, message)
  const results = await gathering.run(run, isSequential ? 1 : AT_ONCE_MAX)
  const { leader } = gathering
  // Copies beside those that ran within the time of the message are missing, not failed.
  const late = results.find(({ error }) => error instanceof LimitReached && error.fault === TOO_LONG)
  if (leader === null && late !== undefined) throw late.error!
  const chosen =
    leader === null
      ? copies
          .map(copy => results.find(result => result.copy === copy))
          .find(result => result?.error === null && (result.goesOn || !isOver(result.copy)))
      : results.find(({ copy }) => copy === leader)
  if (chosen !== undefined) {
    if (chosen.error !== null) throw chosen.error
    message.adopt(chosen.copy)
    return chosen.goesOn
  }
  const failed = results.find(({ error }) => error !== null)
  if (failed !== undefined && results.every(({ error }) => error !== null)) throw failed.error
  message.outcome = 'dropped'
  return false
}

/** Tells whether nothing of a copy goes on. An audit log drops its copy, and another copy is the message then. */
function isOver({ outcome }: Message): boolean {
  return outcome === 'ended' || outcome === 'dropped'
}

const POOL_IS_FULL =
  'the background pool is full: synapse.max_threads, synapse.threads_queue_length, worker_pool_queue_bytes bound it'

/**
 * Hands copies to the background pool, where the sequence of that name runs on each. The message goes on without those
 * that the pool refuses.
 */
export async function runInBackground(copies: readonly Message[], sequence: string): Promise<void> {
  const refused = await handOver(copies, sequence)
  if (refused === 0) return
  const { api, report } = servicesOf(copies[0]!)
  report('warn', 'copies not made', { API: api, COPIES: refused, CAUSE_OF_ERROR: POOL_IS_FULL })
}

/**
 * Hands a request over whose client gets 202 then. Rejects with MediationFault where the pool refuses it: nobody else
 * would send it.
 */
export async function sendInBackground(message: Message, sequence: string): Promise<void> {
  if ((await handOver([message], sequence)) === 0) return
  throw new MediationFault({ code: QUEUE_FULL, message: 'Mediation queue full', cause: POOL_IS_FULL })
}

/** Returns how many copies the background pool has refused. */
async function handOver(copies: readonly Message[], sequence: string): Promise<number> {
  const [first] = copies
  if (first === undefined) return 0
  // All descendants of a message share its limit: a sequence that copies into itself ends.
  const copiesMax = servicesOf(first).shareCopies(copies.length)
  let refused = 0
  for (const copy of copies) {
    const services = servicesOf(copy)
    const { api, flow, own, trace } = services
    const parameters = settledParameters(copy)
    const transferred = services.transfer(copy)
    const withOwn = withVariables(transferred.state, copy)
    const state = parameters === undefined ? withOwn : { ...withOwn, parameters }
    const message = { ...transferred, state }
    // No task waits for the copy, so that its calls hold no permit that they could wait for.
    const calls = { ...services.calls, plain: 0, secured: 0 }
    const common = { kind: 'flow', api, flow, own, sequences: [sequence], message, calls, copiesMax } as const
    const task = trace === null ? common : { ...common, trace }
    if (!(await services.call({ kind: 'background', task }))) refused++
  }
  return refused
}
