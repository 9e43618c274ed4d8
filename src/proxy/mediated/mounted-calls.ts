/** Requests to mounted APIs that are under way in a reactor, and what they need of it. */
import type { FromMounted, MountedResult, MountedTask, ToMounted } from '../../plan/mounted-messages.ts'
import type { HeldPermits } from '../../runtime/shared-permits.ts'
import type { PendingFault } from '../exchange/api-mediation.ts'
import type { ConnectionContexts, Report } from '../exchange/connection-context.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { BodyStore } from './body-store.ts'

/** Posts to the thread that has a request. `transfer`: buffers of the message, which are moved. */
export type MountedReply = (message: ToMounted, transfer?: readonly ArrayBuffer[]) => void

/** What a request brings to the pool. */
interface OpenOptions {
  /** Buffers of the task, which are moved. */
  readonly transfer: readonly ArrayBuffer[]
  /** Permits of tasks that wait for the response. */
  readonly held: HeldPermits
  /** Too many requests wait for their clients, this one for longest. */
  readonly evicted: () => void
}

/** The place of a request in the pool. */
export interface MountedPlace {
  readonly result: Promise<MountedResult>
  /**
   * `queued`: no thread has the request. `runs`: it has a permit. `suspended`: it waits for its client, without one.
   * `resuming`: it waits for a permit to go on. `ended`: its thread has it no more.
   */
  readonly state: 'new' | 'queued' | 'runs' | 'suspended' | 'resuming' | 'ended'
  /** Takes a request that has not begun off the queue: its result is needed no more. */
  leave(): void
  /** Gives the permit of a running request back. */
  suspend(): void
  /**
   * Calls `goesOn` once a suspended request has a permit. `way`: whether it is to end then. Throws WorkerFailure; then
   * it stays suspended.
   */
  resume(goesOn: () => void, way: 'go on' | 'end'): void
}

/** Runs requests on worker threads, under the permits and in the queue of one transport. */
export interface MountedService {
  /** Throws WorkerFailure where the request is refused; `result` rejects with one. */
  open(task: MountedTask, options: OpenOptions): MountedPlace
}

/** A request under way. */
export interface MountedListener {
  receive(message: FromMounted, reply: MountedReply): void
}

/** By the number of the request. */
export class MountedCalls {
  readonly #calls = new Map<number, MountedListener>()
  #lastId = 0

  get pending(): number {
    return this.#calls.size
  }

  /** Returns the number of the request. */
  add(call: MountedListener): number {
    const id = ++this.#lastId
    this.#calls.set(id, call)
    return id
  }

  remove(id: number): void {
    this.#calls.delete(id)
  }

  /** A thread that goes on with a request that is over learns of it. */
  receive(message: FromMounted, reply: MountedReply): void {
    const call = this.#calls.get(message.id)
    if (call !== undefined) call.receive(message, reply)
    else if (message.what !== 'end') reply({ kind: 'mounted', id: message.id, what: 'cut' })
  }
}

/** Services of a reactor for requests to mounted APIs. */
export interface MountedServices {
  /** By the transport of the client. */
  readonly workers: Readonly<Record<keyof ConnectionContexts, MountedService>>
  readonly calls: MountedCalls
  /** Counts the bytes of requests that no thread has yet, beside those of mediated bodies. */
  readonly store: Pick<BodyStore, 'hold' | 'release' | 'isFull'>
  readonly contexts: ConnectionContexts
  readonly report: Report
  /** Longest time without progress in milliseconds; 0: no limit. */
  readonly timeoutMs: () => number
  /** Counts a request whose implementation has not answered in time. */
  countLate(): void
  /** Answers with a fault, which the fault flow of the API may word. */
  refuse(exchange: Exchange, fault: PendingFault): void
  /** Logs an error of the gateway itself. */
  bug(exchange: Exchange, error: unknown): void
}
