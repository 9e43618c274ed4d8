/** Questions that were sent by message and have not been answered yet: limited in number and in time. */

interface Pending {
  readonly resolve: (value: object) => void
  readonly reject: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

/** There is no answer; the message says why. */
export class NotAnswered extends Error {
  override readonly name = 'NotAnswered'
}

const PENDING_MAX = 256

export class PendingAnswers {
  readonly #pending = new Map<number, Pending>()
  readonly #waitMs: number
  #last = 0

  constructor(waitMs: number) {
    this.#waitMs = waitMs
  }

  /** `post` sends the question with its number. Rejects with NotAnswered. */
  ask(post: (id: number) => void): Promise<object> {
    if (this.#pending.size >= PENDING_MAX) return Promise.reject(new NotAnswered('too many questions are waiting'))
    const id = ++this.#last
    const { promise, resolve, reject } = Promise.withResolvers<object>()
    const timer = setTimeout(() => this.fail(id, `no answer within ${this.#waitMs} ms`), this.#waitMs)
    this.#pending.set(id, { resolve, reject, timer })
    post(id)
    return promise
  }

  answer(id: number, value: object): void {
    this.#take(id)?.resolve(value)
  }

  fail(id: number, cause: string): void {
    this.#take(id)?.reject(new NotAnswered(cause))
  }

  /** Whoever was asked is gone. */
  failAll(cause: string): void {
    for (const id of [...this.#pending.keys()]) this.fail(id, cause)
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    clearTimeout(pending?.timer)
    return pending
  }
}
