/** The body of a response in pieces of a worker thread: what has come, and how much more the thread may send. */
import { WINDOW_BYTES } from '../../plan/mounted-messages.ts'
import type { BodySource, SourceReader } from './body-source.ts'

/** Bytes that leave before the thread hears of them: a message for each piece would cost more than the piece. */
const TOLD_BYTES_MIN = WINDOW_BYTES / 4

/** The signals to the thread. `taken`: the whole body has left. `cut`: no more of it is wanted. */
interface StreamOwner {
  wants(bytes: number): void
  streamClosed(how: 'taken' | 'cut'): void
}

/** `open`: more pieces come. `whole`: none does. `closed`: the thread has heard of the end. */
type StreamState = 'open' | 'whole' | 'closed'

export class MountedStream implements BodySource {
  readonly length: number
  readonly #owner: StreamOwner
  readonly #pieces: Uint8Array[] = []
  #state: StreamState = 'open'
  #reader: SourceReader | null = null
  #untold = 0

  constructor(owner: StreamOwner, length: number) {
    this.#owner = owner
    this.length = length
  }

  get isAtEnd(): boolean {
    return this.#pieces.length === 0 && this.#state !== 'open'
  }

  receive(bytes: Uint8Array): void {
    if (this.#state !== 'open') return
    this.#pieces.push(bytes)
    this.#reader?.sourceReady()
  }

  /** Every piece was received. */
  end(): void {
    if (this.#state !== 'open') return
    this.#state = 'whole'
    this.#reader?.sourceReady()
  }

  open(reader: SourceReader): void {
    this.#reader = reader
  }

  take(most: number): Uint8Array | null {
    const [first] = this.#pieces
    if (first === undefined) return null
    const bytes = first.subarray(0, most)
    if (bytes.length === first.length) this.#pieces.shift()
    else this.#pieces[0] = first.subarray(most)
    this.#untold += bytes.length
    if (this.#untold >= TOLD_BYTES_MIN && this.#state === 'open') {
      this.#owner.wants(this.#untold)
      this.#untold = 0
    }
    return bytes
  }

  close(): void {
    if (this.#state === 'closed') return
    const isWhole = this.#state === 'whole' && this.#pieces.length === 0
    this.#state = 'closed'
    this.#pieces.length = 0
    this.#owner.streamClosed(isWhole ? 'taken' : 'cut')
  }
}
