/**
 * What came for an owner who does not read: bytes in their order, and the end behind them. Needed where reading cannot
 * be stopped at once, because what was read already comes in pieces (records of TLS, chunks of a stream). Bounded by
 * one read of the socket below, which is stopped meanwhile.
 */

const NOTHING = new Uint8Array(0)

/** Where the bytes go. */
export interface Receiver {
  /** Gives the owner the first bytes, as many as its view takes. Answers how many; 0 once the socket is closed. */
  receive(bytes: Uint8Array): number
  /** Everything that came is delivered and the owner reads: the socket below may go on. */
  resume(): void
  /** The owner's call threw. */
  threw(error: unknown): void
}

export class Backlog {
  readonly #receiver: Receiver
  #rest: Uint8Array = NOTHING
  /** Tells the end, once it is its turn. */
  #end: (() => void) | null = null
  #isReading = true
  #isQueued = false

  constructor(receiver: Receiver) {
    this.#receiver = receiver
  }

  get isReading(): boolean {
    return this.#isReading
  }

  /** The owner reads and nothing waits for it: what comes now may go to it directly. */
  get isClear(): boolean {
    return this.#isReading && this.#rest.length === 0
  }

  /** Whether the end was told to it and is still to be told by it. */
  get owesEnd(): boolean {
    return this.#end !== null
  }

  /** Delivers what the owner reads, and keeps the rest: the memory of `bytes` is not used again by the caller. */
  add(bytes: Uint8Array): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    if (!this.#isQueued) this.#deliver()
  }

  /** The end must not overtake what is still to be delivered. */
  end(tell: () => void): void {
    if (this.isClear) tell()
    else this.#end = tell
  }

  /** Answers whether the socket below may read: that starts later where something waits. */
  setReading(on: boolean): boolean {
    this.#isReading = on
    if (!on || (this.#rest.length === 0 && this.#end === null)) return on
    this.flushLater()
    return false
  }

  /** Delivers soon, but not from inside the owner's own call. */
  flushLater(): void {
    if (this.#isQueued) return
    this.#isQueued = true
    queueMicrotask(() => this.#flush())
  }

  #flush(): void {
    this.#isQueued = false
    try {
      this.#deliver()
      // It may have stopped again, or been closed, before this ran or while it did.
      if (!this.isClear) return
      const end = this.#end
      this.#end = null
      if (end === null) this.#receiver.resume()
      else end()
    } catch (error) {
      this.#receiver.threw(error)
    }
  }

  #deliver(): void {
    while (this.#isReading && this.#rest.length > 0) {
      const length = this.#receiver.receive(this.#rest)
      if (length === 0) return
      this.#rest = this.#rest.length === length ? NOTHING : this.#rest.subarray(length)
    }
  }
}
