/**
 * Turns of searches on the embedded database, whose statements block the thread: one search at a time. Between two of
 * them the thread reads its messages, so that reads pass searches that wait, and those of clients that have left end.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { RequestAborted } from '../interface.ts'

export class SearchTurns {
  #last: Promise<unknown> = Promise.resolve()

  /** Rejects with RequestAborted without running `search` where `isAbandoned` holds in its turn. */
  run<T>(search: () => Promise<T>, isAbandoned: () => boolean): Promise<T> {
    const turn = this.#last.then(async () => {
      await nextTurn()
      if (isAbandoned()) throw new RequestAborted('the client has left')
      return search()
    })
    this.#last = turn.catch(() => undefined)
    return turn
  }
}
