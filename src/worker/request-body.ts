/** The body of a request to a mounted API, as its implementation reads it: bytes are asked for while it reads. */
import { BodyTooLong, type MountedBody, RequestAborted } from '../mounted/interface.ts'
import { type RequestBodyData, WINDOW_BYTES } from '../plan/mounted-messages.ts'

/** Bytes that are read before more are asked for. */
const ASKED_BYTES_MIN = WINDOW_BYTES / 2

/** `open`: more follows. `whole`: every byte is here. `cut`: the rest never comes. */
type BodyState = 'open' | 'whole' | 'cut'

export class RequestBody implements MountedBody {
  readonly length: number
  readonly #ask: (bytes: number) => void
  readonly #waits: () => void
  readonly #pieces: Uint8Array[] = []
  #state: BodyState
  /** `asked`: bytes were asked for. */
  #reader: 'none' | 'asked' = 'none'
  #readBytes = 0
  /** Wakes the reader; null: it does not wait. */
  #wake: (() => void) | null = null

  /** `ask`: asks for that many further bytes. `waits`: the reader waits for some from now on. */
  constructor(data: RequestBodyData, ask: (bytes: number) => void, waits: () => void = () => undefined) {
    this.#ask = ask
    this.#waits = waits
    const first = data.kind === 'whole' ? data.bytes : data.first
    this.length = data.kind === 'whole' ? data.bytes.length : data.length
    this.#state = data.kind === 'whole' ? 'whole' : 'open'
    if (first.length > 0) this.#pieces.push(first)
  }

  receive(bytes: Uint8Array, last: boolean): void {
    if (this.#state !== 'open') return
    if (bytes.length > 0) this.#pieces.push(bytes)
    if (last) this.#state = 'whole'
    this.#wakeReader()
  }

  cut(): void {
    if (this.#state === 'open') this.#state = 'cut'
    this.#wakeReader()
  }

  /** The implementation waits for bytes of the client. */
  get isAwaited(): boolean {
    return this.#wake !== null
  }

  #wakeReader(): void {
    this.#wake?.()
    this.#wake = null
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      const piece = this.#pieces.shift()
      if (piece !== undefined) {
        this.#count(piece.length)
        yield piece
      } else if (this.#state === 'whole') return
      else await this.#next()
    }
  }

  async bytes(most: number): Promise<Uint8Array> {
    if (this.length > most) throw new BodyTooLong(`a body of ${this.length} bytes`)
    const [only] = this.#pieces
    if (this.#state === 'whole' && this.#pieces.length === 1 && only!.length <= most) {
      this.#pieces.length = 0
      return only!
    }
    const pieces: Uint8Array[] = []
    let length = 0
    for await (const piece of this) {
      length += piece.length
      if (length > most) throw new BodyTooLong(`a body of more than ${most} bytes`)
      pieces.push(piece)
    }
    return Buffer.concat(pieces, length)
  }

  async text(most: number): Promise<string> {
    return Buffer.from(await this.bytes(most)).toString('utf8')
  }

  async #next(): Promise<void> {
    if (this.#state === 'cut') throw new RequestAborted('the request has no end')
    if (this.#reader === 'none') {
      this.#reader = 'asked'
      this.#ask(WINDOW_BYTES)
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    this.#waits()
    await promise
  }

  /** Asks again before the window is used up. What came unasked counts too: it makes the window larger, once. */
  #count(bytes: number): void {
    this.#readBytes += bytes
    if (this.#reader !== 'asked' || this.#state !== 'open' || this.#readBytes < ASKED_BYTES_MIN) return
    this.#ask(this.#readBytes)
    this.#readBytes = 0
  }
}
