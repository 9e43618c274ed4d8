/**
 * Inspects the messages that the client of a tunnel sends: each whole message goes to a check, in order, and the
 * backend gets what the check lets pass. While one is checked, the client is read once more, so that its end is seen.
 */
import type { TunnelMeter } from './late-charges.ts'
import { BrokenFrames, CLOSE_STATUS, frameOf, OPCODE, WebSocketReader } from './websocket-reader.ts'

/** Decision on a message. `text`: the text that goes on in its place; null: the message itself. */
export type MessageVerdict =
  | { readonly kind: 'passes'; readonly text: string | null }
  /** The client gets `answer`, and the backend nothing. */
  | { readonly kind: 'answered'; readonly answer: string }
  | { readonly kind: 'closes'; readonly status: number; readonly reason: string }

/** Checks messages of text. Binary ones are refused. */
export interface MessageCheck {
  /** A promise never rejects. */
  check(text: string, length: number): MessageVerdict | Promise<MessageVerdict>
  /** Nobody waits for the verdict on a message any more. */
  end(): void
}

interface InspectionSink {
  /** The backend or the client takes no bytes now: `MessageInspection.resume` follows. */
  readonly isBlocked: boolean
  /** Both sides are gone, or are being closed. */
  readonly isOver: boolean
  /** Sends the backend one whole frame, one character per byte. */
  forward(frame: string): void
  /** Sends the client one whole frame between two messages of the backend. */
  answer(frame: string): void
  /** Closes the tunnel with a close frame. `reason`: ASCII. */
  close(status: number, reason: string): void
  /** The client may be read again. */
  ready(): void
  threw(error: unknown): void
}

/** Bytes of one message: those of the longest query, and what is around it. */
const MESSAGE_BYTES_MAX = 1_100_000

export class MessageInspection {
  readonly #check: MessageCheck
  readonly #sink: InspectionSink
  readonly #reader = new WebSocketReader(MESSAGE_BYTES_MAX)
  /** Bytes that are not read yet: those of one read at most. */
  #rest: Buffer = EMPTY
  #isChecking = false

  constructor(check: MessageCheck, sink: InspectionSink) {
    this.#check = check
    this.#sink = sink
  }

  /** No further byte should be read now. */
  get isBusy(): boolean {
    return this.#rest.length > 0
  }

  /** Takes bytes of the client, which are copied. */
  take(bytes: Uint8Array): void {
    this.#rest = Buffer.concat([this.#rest, bytes])
    this.resume()
  }

  resume(): void {
    const sink = this.#sink
    while (this.#rest.length > 0 && !this.#isChecking && !sink.isBlocked && !sink.isOver) this.#step()
    if (sink.isOver) this.#rest = EMPTY
  }

  /** The peer sends no more, or gets no more. */
  end(): void {
    this.#check.end()
  }

  #step(): void {
    const reader = this.#reader
    try {
      reader.position = 0
      const message = reader.next(this.#rest)
      this.#rest = this.#rest.subarray(reader.position)
      if (message === null) return
      const { opcode, payload } = message
      if (opcode === OPCODE.BINARY) {
        throw new BrokenFrames(CLOSE_STATUS.UNSUPPORTED, 'messages of this subprotocol are text')
      }
      if (opcode === OPCODE.TEXT) this.#inspect(payload)
      else this.#sink.forward(frameOf(opcode, payload, true))
    } catch (error) {
      if (!(error instanceof BrokenFrames)) throw error
      this.#sink.close(error.status, error.message)
    }
  }

  #inspect(payload: Buffer): void {
    const verdict = this.#check.check(textOf(payload), payload.length)
    if (!(verdict instanceof Promise)) {
      this.#apply(verdict, payload)
      return
    }
    this.#isChecking = true
    verdict
      .then(verdict => {
        this.#isChecking = false
        if (!this.#sink.isOver) this.#apply(verdict, payload)
        this.resume()
        if (!this.isBusy) this.#sink.ready()
      })
      .catch((error: unknown) => this.#sink.threw(error))
  }

  #apply(verdict: MessageVerdict, payload: Buffer): void {
    const sink = this.#sink
    if (verdict.kind === 'closes') sink.close(verdict.status, verdict.reason)
    else if (verdict.kind === 'answered') sink.answer(frameOf(OPCODE.TEXT, Buffer.from(verdict.answer), false))
    else {
      const passed = verdict.text === null ? payload : Buffer.from(verdict.text)
      sink.forward(frameOf(OPCODE.TEXT, passed, true))
    }
  }
}

/** Meter of a tunnel whose messages are inspected: that of its limits, which may be none, and closing by the check. */
export class InspectedMeter implements TunnelMeter {
  readonly hasMessages = true
  readonly #limits: TunnelMeter | null
  #closing: { readonly status: number; readonly reason: string } | null = null

  constructor(limits: TunnelMeter | null) {
    this.#limits = limits
  }

  get isClosing(): boolean {
    return this.#closing !== null || this.#limits?.isClosing === true
  }

  get closeReason(): string {
    return this.#closing?.reason ?? this.#limits?.closeReason ?? ''
  }

  get closeStatus(): number {
    return this.#closing?.status ?? this.#limits?.closeStatus ?? CLOSE_STATUS.PROTOCOL
  }

  close(status: number, reason: string): void {
    this.#closing = { status, reason }
  }

  admitsMessage(): boolean {
    return this.#limits === null || this.#limits.admitsMessage()
  }

  charge(bytes: number): boolean {
    return this.#limits === null || this.#limits.charge(bytes)
  }
}

function textOf(payload: Buffer): string {
  try {
    return UTF_8.decode(payload)
  } catch {
    throw new BrokenFrames(CLOSE_STATUS.INVALID_TEXT, 'a message is not valid UTF-8')
  }
}

const UTF_8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const EMPTY = Buffer.alloc(0)
