/**
 * Finds the messages of one direction of a WebSocket connection in its bytes (RFC 6455 5.2). Reads frame headers where
 * they stand and copies nothing. The first byte of a frame decides on it, so a header that is split between reads needs
 * a few numbers and no memory.
 */
import { randomBytes } from 'node:crypto'

const FIN = 0x80
const OPCODE_BITS = 0x0f
const CONTINUATION = 0
const CLOSE = 8
const MASK_BIT = 0x80
const MASK_BYTES = 4
const LENGTH_BITS = 0x7f
const LENGTH_16 = 126
const LENGTH_64 = 127
const CLOSE_FRAME = 0x88
/** A control frame holds at most 125 bytes, two of them the status. */
const REASON_BYTES_MAX = 123

/** Decides on the messages of both directions. */
export interface MessageGate {
  /** The connection is being closed: no frame that begins now passes. */
  readonly isClosing: boolean
  /** A message begins; returns whether it passes. */
  admitsMessage(): boolean
}

export class MessageStream {
  /** True if the bytes that the last `next` has returned pass. */
  passes = true
  /** A close frame has begun while the gate was closing. */
  hasClosed = false
  readonly #gate: MessageGate
  /** The gateway has sent a close frame behind the frames that have passed. */
  #isEnded = false
  /** All frames of a message share its fate. */
  #passesMessage = true
  /** The frame at the next byte was decided on: whether it passes. Null: it was not. */
  #decided: boolean | null = null
  /** Further frames of a message follow, between which no other message may stand. */
  #isFragmented = false
  /** The next byte is the second one of a frame. */
  #awaitsLength = false
  /** Bytes of the extended length, of the mask, and of the payload that are still to come. */
  #lengthLeft = 0
  #maskLeft = 0
  #payloadLeft = 0

  constructor(gate: MessageGate) {
    this.#gate = gate
  }

  /**
   * True if a close frame of the gateway may follow now: once, behind a whole frame. `isWhole`: only whole frames were
   * sent on.
   */
  endWithClose(isWhole: boolean): boolean {
    if (this.#isEnded || (!isWhole && this.passes && !this.#isBetween)) return false
    this.#isEnded = true
    return true
  }

  get #isBetween(): boolean {
    return !this.#awaitsLength && this.#lengthLeft + this.#maskLeft + this.#payloadLeft === 0
  }

  /** True if another message may stand here. */
  get isBetweenMessages(): boolean {
    return this.#isBetween && !this.#isFragmented
  }

  /**
   * Returns the end of the bytes from `from` that share one fate, at most `to`; `passes` is that fate. `stops`: not
   * beyond the end of a message.
   */
  next(bytes: Uint8Array, from: number, to: number, stops = false): number {
    let at = from
    while (at < to) {
      if (!this.#isBetween) {
        at = this.#proceed(bytes, at, to)
        continue
      }
      if (stops && at > from && !this.#isFragmented) return at
      this.#decided ??= this.#decide(bytes[at]!)
      if (at > from && this.#decided !== this.passes) return at
      this.passes = this.#decided
      this.#decided = null
      const first = bytes[at]!
      if ((first & OPCODE_BITS) < CLOSE) this.#isFragmented = (first & FIN) === 0
      this.#awaitsLength = true
      at++
    }
    return to
  }

  /** True if the frame that begins with this byte passes. */
  #decide(first: number): boolean {
    const opcode = first & OPCODE_BITS
    if (this.#gate.isClosing) {
      if (opcode === CLOSE) this.hasClosed = true
      return false
    }
    // Control frames may stand between the frames of a message (RFC 6455 5.4).
    if (opcode >= CLOSE) return true
    if (opcode !== CONTINUATION) this.#passesMessage = this.#gate.admitsMessage()
    return this.#passesMessage
  }

  /** Reads on within a frame; returns the position behind what it has read. */
  #proceed(bytes: Uint8Array, at: number, to: number): number {
    if (this.#awaitsLength) {
      const second = bytes[at]!
      const length = second & LENGTH_BITS
      this.#awaitsLength = false
      this.#maskLeft = (second & MASK_BIT) === 0 ? 0 : MASK_BYTES
      this.#lengthLeft = length === LENGTH_16 ? 2 : length === LENGTH_64 ? 8 : 0
      this.#payloadLeft = this.#lengthLeft === 0 ? length : 0
      return at + 1
    }
    if (this.#lengthLeft > 0) {
      this.#lengthLeft--
      this.#payloadLeft = this.#payloadLeft * 256 + bytes[at]!
      return at + 1
    }
    const isMask = this.#maskLeft > 0
    const step = Math.min(isMask ? this.#maskLeft : this.#payloadLeft, to - at)
    if (isMask) this.#maskLeft -= step
    else this.#payloadLeft -= step
    return at + step
  }
}

/** A close frame (RFC 6455 5.5.1), one character per byte. `isMasked`: frames of clients are (5.3). `reason`: ASCII. */
export function closeFrame(status: number, reason: string, isMasked: boolean): string {
  const payload = Buffer.from(`\0\0${reason.slice(0, REASON_BYTES_MAX)}`, 'latin1')
  payload.writeUInt16BE(status)
  const mask = isMasked ? randomBytes(MASK_BYTES) : Buffer.alloc(0)
  if (isMasked) for (let i = 0; i < payload.length; i++) payload[i]! ^= mask[i % MASK_BYTES]!
  const header = [CLOSE_FRAME, payload.length | (isMasked ? MASK_BIT : 0)]
  return Buffer.concat([Buffer.from(header), mask, payload]).toString('latin1')
}
