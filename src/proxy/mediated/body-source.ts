/** Bodies that are read in pieces, as a feed sends them: from memory, or from a file. */
import type { TransferredBody } from '../../mediation/worker-task.ts'
import type { HeldBody } from './body-collector.ts'
import { type BodyStore, deleteFile, files } from './body-store.ts'

/** A body on its way out. A worker that streams implements it too. */
export interface BodySource {
  /** Bytes of the whole body; -1: not known before its end. */
  readonly length: number
  /** Every byte was taken, and none follows. */
  readonly isAtEnd: boolean
  /** The next bytes, at most `most`; null: none are there yet, and the reader hears of the next ones. */
  take(most: number): Uint8Array | null
  /** Sets who hears of further bytes; called once, before the first `take`. */
  open(reader: SourceReader): void
  /** Releases what the source holds, at its end too. A second call changes nothing. */
  close(): void
}

export interface SourceReader {
  /** `take` has bytes again, or the end. */
  sourceReady(): void
  /** No further byte comes. `cause`: without any text of a client. */
  sourceFailed(cause: string): void
}

const READ_BYTES = 65_536

/** Bytes in memory. */
class MemorySource implements BodySource {
  readonly length: number
  #pieces: readonly Uint8Array[]
  #at = 0
  #from = 0
  #left: number
  readonly #release: () => void

  /** `release`: gives the memory back; called once. */
  constructor(pieces: readonly Uint8Array[], length: number, release: () => void) {
    this.#pieces = pieces
    this.length = length
    this.#left = length
    this.#release = once(release)
  }

  get isAtEnd(): boolean {
    return this.#left === 0
  }

  open(): void {}

  take(most: number): Uint8Array {
    const piece = this.#pieces[this.#at]
    if (piece === undefined) return NOTHING
    const bytes = piece.subarray(this.#from, this.#from + most)
    this.#from += bytes.length
    this.#left -= bytes.length
    if (this.#from === piece.length) {
      this.#at++
      this.#from = 0
    }
    return bytes
  }

  close(): void {
    this.#pieces = []
    this.#release()
  }
}

/** Bytes of a file, which it deletes. One read ahead is in memory. */
class FileSource implements BodySource {
  readonly length: number
  readonly #path: string
  #reader: SourceReader = NOBODY
  /** `idle`: bytes are there, or none are left. */
  #state: 'new' | 'reading' | 'idle' | 'closed' = 'new'
  #file = -1
  #unread: number
  readonly #buffer = Buffer.allocUnsafeSlow(READ_BYTES)
  #bytes: Uint8Array = NOTHING

  constructor(path: string, length: number) {
    this.#path = path
    this.length = length
    this.#unread = length
  }

  get isAtEnd(): boolean {
    return this.#unread === 0 && this.#bytes.length === 0
  }

  open(reader: SourceReader): void {
    this.#reader = reader
    void this.#read()
  }

  take(most: number): Uint8Array | null {
    if (this.#state === 'reading') return null
    const bytes = this.#bytes.subarray(0, most)
    this.#bytes = this.#bytes.subarray(bytes.length)
    // The buffer is free only once the taken bytes were used.
    if (this.#bytes.length === 0 && this.#unread > 0) {
      this.#state = 'reading'
      queueMicrotask(() => void this.#read())
    }
    return bytes
  }

  close(): void {
    if (this.#state === 'closed') return
    const isReading = this.#state === 'reading'
    this.#state = 'closed'
    if (!isReading) this.#end()
  }

  async #read(): Promise<void> {
    if (this.#state !== 'closed') this.#state = 'reading'
    try {
      if (this.#file < 0) this.#file = await files.open(this.#path, 'r', 0)
      const wanted = Math.min(READ_BYTES, this.#unread)
      const { bytesRead } = await files.read(this.#file, this.#buffer, 0, wanted, null)
      if (bytesRead === 0 && wanted > 0) throw new Error('the file is shorter than its length')
      this.#bytes = this.#buffer.subarray(0, bytesRead)
      this.#unread -= bytesRead
    } catch (error) {
      this.#fail(error)
      return
    }
    if (this.#hasClosed) {
      this.#end()
      return
    }
    this.#state = 'idle'
    this.#reader.sourceReady()
  }

  get #hasClosed(): boolean {
    return this.#state === 'closed'
  }

  #fail(error: unknown): void {
    const hadClosed = this.#hasClosed
    this.#state = 'closed'
    this.#end()
    const { code } = error as NodeJS.ErrnoException
    if (!hadClosed) this.#reader.sourceFailed(`a body cannot be read from its file (${code ?? String(error)})`)
  }

  #end(): void {
    if (this.#file >= 0) void files.close(this.#file).catch(() => undefined)
    this.#file = -1
    deleteFile(this.#path)
  }
}

/** The source of a body that the reactor has collected. */
export function sourceOfHeld(held: HeldBody, store: BodyStore): BodySource {
  if (held.kind === 'file') return new FileSource(held.path, held.length)
  if (held.kind === 'none') return emptySource()
  return new MemorySource(held.pieces, held.length, () => store.release(held.length))
}

/** A body that a worker has made; the reactor owns it from now on. */
export function heldOf(body: TransferredBody, store: BodyStore): HeldBody {
  if (body.kind === 'file') return body
  if (body.kind !== 'bytes') return { kind: 'none' }
  const { bytes } = body
  store.hold(bytes.length)
  return { kind: 'memory', pieces: [bytes], length: bytes.length }
}

/** The source of a body that a worker has made. */
export function sourceOfTransferred(body: TransferredBody, store: BodyStore): BodySource {
  return sourceOfHeld(heldOf(body, store), store)
}

export function emptySource(): BodySource {
  return memorySource(NOTHING)
}

/** The source of bytes that nobody else counts. */
export function memorySource(bytes: Uint8Array): BodySource {
  return new MemorySource(bytes.length === 0 ? [] : [bytes], bytes.length, () => undefined)
}

/** Releases a body that nobody sends. */
export function dropHeld(held: HeldBody, store: BodyStore): void {
  sourceOfHeld(held, store).close()
}

/** The pieces of a body in one buffer of its own, which can be moved to a thread. */
export function joined(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}

function once(release: () => void): () => void {
  let next = release
  return () => {
    const now = next
    next = () => undefined
    now()
  }
}

const NOTHING: Uint8Array = new Uint8Array()
const NOBODY: SourceReader = { sourceReady: () => undefined, sourceFailed: () => undefined }
