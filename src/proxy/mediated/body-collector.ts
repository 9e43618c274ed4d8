/**
 * Collects one body: in memory, and beyond a length in a file that only this user can read. While bytes are written to
 * the file, the peer is not read; so a long body costs memory for one read.
 */
import type { BodySpans } from '../../http1/body.ts'
import { arena } from '../../http1/llhttp.ts'
import type { BodyLimits } from '../../plan/reactor-plan.ts'
import { type BodyStore, deleteFile, files } from './body-store.ts'

/** A whole body as the reactor holds it. `pieces` are in order. */
export type HeldBody =
  | { readonly kind: 'none' }
  | { readonly kind: 'memory'; readonly pieces: readonly Uint8Array[]; readonly length: number }
  | { readonly kind: 'file'; readonly path: string; readonly length: number }

export interface CollectorOwner {
  /** The collector takes bytes again. */
  collectorResumed(): void
  /** The body is whole; `CollectedBody.take` has it. */
  collected(): void
  /** The file could not be written. `cause`: errno name. */
  collectorFailed(cause: string): void
}

const FIRST_PIECE_BYTES = 4096
const PIECE_BYTES_MAX = 262_144
const OWNER_ONLY = 0o600

/**
 * `memory`: every byte is in memory. `idle`: the file has all whole pieces. `writing`: the file is opened or written.
 * `ending`: the same, and no byte follows. `whole`: the body is complete. `gone`: it was given up or taken over.
 */
type CollectorState = 'memory' | 'idle' | 'writing' | 'ending' | 'whole' | 'gone'

export class BodyCollector {
  readonly #owner: CollectorOwner
  readonly #store: BodyStore
  readonly #limits: BodyLimits
  #state: CollectorState = 'memory'
  /** Bytes that are in no file: full pieces, and the first `#used` bytes of the last one. */
  #pieces: Uint8Array[] = []
  #used = 0
  #heldBytes = 0
  #length = 0
  #path = ''
  #file = -1

  constructor(owner: CollectorOwner, store: BodyStore) {
    this.#owner = owner
    this.#store = store
    this.#limits = store.limits
  }

  /** Bytes so far. */
  get length(): number {
    return this.#length
  }

  /** No byte should be read now; `collectorResumed` follows. */
  get isBlocked(): boolean {
    return this.#state === 'writing' || this.#state === 'ending'
  }

  /** Copies the first `count` spans. Returns false where the body is longer than the limit. */
  add({ offsets }: BodySpans, count: number): boolean {
    for (let i = 0; i < 2 * count; i += 2) {
      this.#length += offsets[i + 1]!
      if (this.#length > this.#limits.bytesMax) return false
      this.#append(offsets[i]!, offsets[i + 1]!)
    }
    const isLong = this.#length > this.#limits.memoryMax || this.#store.isFull
    if (this.#state === 'memory' && isLong) void this.#begin()
    else if (this.#state === 'idle' && this.#heldBytes >= this.#limits.pieceBytes) void this.#write()
    return true
  }

  /** No byte follows: `collected` comes, during the call where the body is in memory. */
  end(): void {
    if (this.#state === 'memory') {
      this.#state = 'whole'
      this.#owner.collected()
    } else if (this.#state === 'writing') this.#state = 'ending'
    else if (this.#state === 'idle') {
      this.#state = 'ending'
      void this.#write()
    }
  }

  /** The whole body; the caller owns it and its file, and returns the memory with `BodyStore.release`. */
  take(): HeldBody {
    this.#state = 'gone'
    if (this.#path !== '') return { kind: 'file', path: this.#path, length: this.#length }
    if (this.#length === 0) return { kind: 'none' }
    return { kind: 'memory', pieces: this.#trimmed(), length: this.#length }
  }

  /** Gives the body up. A second call changes nothing. */
  cancel(): void {
    const isWriting = this.isBlocked
    if (this.#state === 'gone') return
    this.#state = 'gone'
    this.#forget()
    // Without a write under way nobody else closes the file.
    if (this.#path !== '' && !isWriting) this.#deleteFile()
  }

  #append(at: number, length: number): void {
    this.#heldBytes += length
    this.#store.hold(length)
    for (let from = at, left = length; left > 0; ) {
      const last = this.#pieces.at(-1)
      if (last === undefined || this.#used === last.length) {
        const grown = last === undefined ? FIRST_PIECE_BYTES : 2 * last.length
        this.#pieces.push(Buffer.allocUnsafeSlow(Math.max(Math.min(grown, PIECE_BYTES_MAX), Math.min(left, 65_536))))
        this.#used = 0
      }
      const piece = this.#pieces.at(-1)!
      const taken = Math.min(left, piece.length - this.#used)
      piece.set(arena.bytes.subarray(from, from + taken), this.#used)
      this.#used += taken
      from += taken
      left -= taken
    }
  }

  #trimmed(): Uint8Array[] {
    const last = this.#pieces.at(-1)
    return last === undefined ? [] : [...this.#pieces.slice(0, -1), last.subarray(0, this.#used)]
  }

  #forget(): void {
    this.#store.release(this.#heldBytes)
    this.#heldBytes = 0
    this.#pieces = []
    this.#used = 0
  }

  async #begin(): Promise<void> {
    this.#state = 'writing'
    this.#path = this.#store.newPath()
    try {
      this.#file = await files.open(this.#path, 'wx', OWNER_ONLY)
    } catch (error) {
      this.#fail(error)
      return
    }
    await this.#write()
  }

  /** Writes whole pieces, and the rest when no byte follows. */
  async #write(): Promise<void> {
    try {
      if (this.#state !== 'ending' && this.#state !== 'gone') this.#state = 'writing'
      // At most one read comes meanwhile, because the peer is not read.
      while (this.isBlocked) {
        const ends = this.#state === 'ending'
        const bytes = this.#nextBytes(ends)
        if (bytes.length > 0) await this.#writeAll(bytes)
        else if (ends) {
          await this.#closeFile()
          break
        } else break
      }
    } catch (error) {
      this.#fail(error)
      return
    }
    this.#settle()
  }

  async #writeAll(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const { bytesWritten } = await files.write(this.#file, bytes, at, bytes.length - at, null)
      at += bytesWritten
    }
  }

  async #closeFile(): Promise<void> {
    const file = this.#file
    this.#file = -1
    await files.close(file)
  }

  #settle(): void {
    switch (this.#state) {
      case 'writing':
        this.#state = 'idle'
        this.#owner.collectorResumed()
        return
      case 'ending':
        this.#state = 'whole'
        this.#owner.collected()
        return
      case 'gone':
        this.#deleteFile()
    }
  }

  /** Takes the bytes that the file gets next. */
  #nextBytes(ends: boolean): Uint8Array {
    const { pieceBytes } = this.#limits
    const all = Buffer.concat(this.#trimmed())
    const length = ends ? all.length : all.length - (all.length % pieceBytes)
    if (length === 0) return all.subarray(0, 0)
    this.#forget()
    const rest = all.subarray(length)
    if (rest.length > 0) {
      this.#pieces = [Buffer.from(rest)]
      this.#used = rest.length
      this.#heldBytes = rest.length
      this.#store.hold(rest.length)
    }
    return all.subarray(0, length)
  }

  #fail(error: unknown): void {
    const wasGone = this.#state === 'gone'
    this.#state = 'gone'
    this.#forget()
    this.#deleteFile()
    if (!wasGone) this.#owner.collectorFailed((error as NodeJS.ErrnoException).code ?? String(error))
  }

  #deleteFile(): void {
    if (this.#file >= 0) void this.#closeFile().catch(() => undefined)
    deleteFile(this.#path)
  }
}
