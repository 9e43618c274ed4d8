/** Questions that were sent by message and have not been answered yet: limited in number and in time. */

/** There is no answer; the message says why. */
export class NotAnswered extends Error {
  override readonly name = 'NotAnswered'
}

interface PendingLimits {
  /** Questions that wait at once. */
  readonly waitingMax: number
  readonly answerMs: number
}

interface Pending<T> {
  readonly resolve: (value: T) => void
  readonly reject: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

export class PendingAnswers<T> {
  readonly #whom: string
  readonly #limits: PendingLimits
  readonly #Failure: new (
    cause: string,
  ) => Error
  readonly #pending = new Map<number, Pending<T>>()
  #last = 0

  /** `whom`: is asked, for messages. `Failure`: what questions are rejected with. */
  constructor(whom: string, limits: PendingLimits, Failure: new (cause: string) => Error = NotAnswered) {
    this.#whom = whom
    this.#limits = limits
    this.#Failure = Failure
  }

  /** `post` sends the question with its number. */
  ask(post: (id: number) => void): Promise<T> {
    const { waitingMax, answerMs } = this.#limits
    if (this.#pending.size >= waitingMax) {
      return Promise.reject(new this.#Failure(`${waitingMax} questions wait for ${this.#whom} already`))
    }
    const id = ++this.#last
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const late = (): void => this.fail(id, `${this.#whom} has not answered within ${answerMs} ms`)
    // A thread that has nothing else to do may end.
    const timer = setTimeout(late, answerMs).unref()
    this.#pending.set(id, { resolve, reject, timer })
    post(id)
    return promise
  }

  /** Nothing where it was given up. */
  answer(id: number, value: T): void {
    this.#take(id)?.resolve(value)
  }

  fail(id: number, cause: string): void {
    this.#take(id)?.reject(new this.#Failure(cause))
  }

  /** Whoever was asked is gone. */
  failAll(cause: string): void {
    for (const id of [...this.#pending.keys()]) this.fail(id, cause)
  }

  #take(id: number): Pending<T> | undefined {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    clearTimeout(pending?.timer)
    return pending
  }
}
