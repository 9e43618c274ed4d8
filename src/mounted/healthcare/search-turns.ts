/**
 * Turns of searches on the embedded database, whose statements block the thread: one search at a time. Between two of
 * them the thread reads its messages, so that reads pass searches that wait, and those of clients that have left end.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ConnectionUnavailable } from '../../database/connection-pool.ts'
import { RequestAborted } from '../interface.ts'
import type { Waiter } from './interaction.ts'

interface Turn {
  readonly waiter: Waiter
  run(): Promise<void>
  reject(error: Error): void
}

/** Searches that wait although their clients may have left. */
const DOUBTFUL_MAX = 8

export class SearchTurns {
  /** In the order of their arrival. */
  #waiting: Turn[] = []
  #isRunning = false

  /**
   * Searches whose clients have sent FIN are run last (D540). Rejects with RequestAborted where the client has left,
   * and with ConnectionUnavailable where further ones wait that may have left, in both cases without running `search`.
   */
  run<T>(search: () => Promise<T>, waiter: Waiter): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#waiting.push({ waiter, run: () => search().then(resolve, reject), reject })
    void this.#runAll()
    return promise
  }

  async #runAll(): Promise<void> {
    if (this.#isRunning) return
    this.#isRunning = true
    while (this.#waiting.length > 0) {
      await nextTurn()
      await this.#take()?.run()
    }
    this.#isRunning = false
  }

  /** The next search of a client that is there, or else of one that may have left. */
  #take(): Turn | undefined {
    this.#drop(
      this.#waiting.filter(({ waiter }) => waiter.isGone()),
      new RequestAborted('the client has left'),
    )
    const doubtful = this.#waiting.filter(({ waiter }) => waiter.mayBeGone())
    const tooMany = new ConnectionUnavailable(`${DOUBTFUL_MAX} searches wait whose clients may have left`)
    this.#drop(doubtful.slice(DOUBTFUL_MAX), tooMany)
    const next = this.#waiting.find(turn => !doubtful.includes(turn)) ?? this.#waiting[0]
    this.#waiting = this.#waiting.filter(turn => turn !== next)
    return next
  }

  #drop(turns: readonly Turn[], error: Error): void {
    if (turns.length === 0) return
    this.#waiting = this.#waiting.filter(turn => !turns.includes(turn))
    for (const { reject } of turns) reject(error)
  }
}
