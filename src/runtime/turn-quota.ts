/**
 * Spreads pieces of work over the turns of an event loop. A turn begins with the check phase of the loop: at most
 * `perTurn` pieces run in it. Timers and sockets are served after at most twice as many: pieces that sockets bring, and
 * those of the check phase behind them. Pieces that wait keep their order.
 */
export class TurnQuota {
  readonly #perTurn: number
  #left: number
  readonly #waiting: (() => void)[] = []

  constructor(perTurn: number) {
    this.#perTurn = perTurn
    this.#left = perTurn
  }

  /** The caller runs one piece once it is resolved; undefined: at once. */
  next(): Promise<void> | undefined {
    if (this.#left === this.#perTurn) setImmediate(this.#renew)
    if (this.#left === 0) return new Promise(resolve => this.#waiting.push(resolve))
    this.#left--
    return undefined
  }

  /** Runs in the check phase of the loop, behind timers and sockets. */
  readonly #renew = (): void => {
    const begins = this.#waiting.splice(0, this.#perTurn)
    this.#left = this.#perTurn - begins.length
    if (begins.length > 0) setImmediate(this.#renew)
    for (const begin of begins) begin()
  }
}
