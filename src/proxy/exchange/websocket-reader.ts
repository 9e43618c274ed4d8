/**
 * Reads the whole messages that the client of a WebSocket connection sends (RFC 6455 5): unmasks and joins their
 * frames, and refuses what the protocol does not allow. Bytes may come in any pieces.
 */
import { randomBytes } from 'node:crypto'

const FIN = 0x80
const RESERVED = 0x70
const OPCODE_BITS = 0x0f
const MASK_BIT = 0x80
const LENGTH_BITS = 0x7f
const LENGTH_16 = 126
const LENGTH_64 = 127
const MASK_BYTES = 4
const CONTROL_MAX = 125
const FIRST_LENGTH_64 = 65_536

export const OPCODE = { CONTINUATION: 0, TEXT: 1, BINARY: 2, CLOSE: 8, PING: 9, PONG: 10 } as const
const EMPTY: Buffer = Buffer.alloc(0)
const KNOWN: readonly number[] = Object.values(OPCODE)

/** Status of a close frame (7.4.1). */
export const CLOSE_STATUS = { PROTOCOL: 1002, UNSUPPORTED: 1003, INVALID_TEXT: 1007, TOO_LONG: 1009 } as const

/** A whole message, or a control frame. */
interface WebSocketMessage {
  readonly opcode: number
  readonly payload: Buffer
}

/** The client breaks a rule. `status`: of the close frame; `message`: the rule. */
export class BrokenFrames extends Error {
  override readonly name = 'BrokenFrames'
  readonly status: number

  constructor(status: number, rule: string) {
    super(rule)
    this.status = status
  }
}

export class WebSocketReader {
  readonly #payloadMax: number
  /** The longest header has 14 bytes. */
  readonly #header = Buffer.alloc(14)
  #headerLength = 0
  /** Opcode of the frame once its header is whole; -1 before. */
  #opcode = -1
  #isLast = false
  /** Bytes of the payload that are still to come. */
  #left = 0
  readonly #control = new Payload()
  /** The message whose further frames follow; opcode -1: there is none. */
  #messageOpcode = -1
  readonly #message = new Payload()
  /** Position behind what the last `next` has read. */
  position = 0

  /** `payloadMax`: bytes of a whole message. */
  constructor(payloadMax: number) {
    this.#payloadMax = payloadMax
  }

  /** Reads from `position` on; null: every byte was read, and no message is whole. Throws BrokenFrames. */
  next(bytes: Buffer): WebSocketMessage | null {
    while (this.position < bytes.length) {
      if (this.#opcode === -1) this.#readHeader(bytes)
      if (this.#opcode === -1) continue
      const end = this.position + Math.min(this.#left, bytes.length - this.position)
      this.#payload.add(bytes, this.position, end)
      this.#left -= end - this.position
      this.position = end
      const message = this.#left === 0 ? this.#endFrame() : null
      if (message !== null) return message
    }
    return null
  }

  #readHeader(bytes: Buffer): void {
    this.#header[this.#headerLength++] = bytes[this.position++]!
    if (this.#headerLength === 1) this.#checkFirst(this.#header[0]!)
    if (this.#headerLength < 2 || this.#headerLength < this.#headerBytes) return
    const length = this.#length()
    this.#opcode = this.#header[0]! & OPCODE_BITS
    this.#isLast = (this.#header[0]! & FIN) !== 0
    this.#headerLength = 0
    this.#left = length
    const isControl = this.#opcode >= OPCODE.CLOSE
    if (isControl && (length > CONTROL_MAX || !this.#isLast)) broken('a control frame is in one piece, of 125 bytes')
    if (!isControl && this.#message.length + length > this.#payloadMax) {
      throw new BrokenFrames(CLOSE_STATUS.TOO_LONG, `a message has more than ${this.#payloadMax} bytes`)
    }
    this.#payload.frameAt = this.#payload.length
  }

  #checkFirst(first: number): void {
    const opcode = first & OPCODE_BITS
    if ((first & RESERVED) !== 0) broken('a reserved bit is set')
    if (!KNOWN.includes(opcode)) broken('the opcode is reserved')
    const isBegun = this.#messageOpcode !== -1
    if (opcode === OPCODE.CONTINUATION && !isBegun) broken('a continuation without a message')
    if (isBegun && opcode !== OPCODE.CONTINUATION && opcode < OPCODE.CLOSE) broken('a message within another one')
  }

  /** Bytes of the header, once its second byte is there. */
  get #headerBytes(): number {
    const second = this.#header[1]!
    if ((second & MASK_BIT) === 0) broken('a frame of a client is not masked')
    const length = second & LENGTH_BITS
    return 2 + MASK_BYTES + (length === LENGTH_16 ? 2 : length === LENGTH_64 ? 8 : 0)
  }

  #length(): number {
    const length = this.#header[1]! & LENGTH_BITS
    if (length < LENGTH_16) return length
    const long = length === LENGTH_16 ? this.#header.readUInt16BE(2) : Number(this.#header.readBigUInt64BE(2))
    if (long < (length === LENGTH_16 ? LENGTH_16 : FIRST_LENGTH_64)) broken('a length is longer than needed')
    return long
  }

  /** The payload of the frame. */
  get #payload(): Payload {
    return this.#opcode >= OPCODE.CLOSE ? this.#control : this.#message
  }

  #endFrame(): WebSocketMessage | null {
    const opcode = this.#opcode
    this.#payload.unmask(this.#header.subarray(this.#maskAt, this.#maskAt + MASK_BYTES))
    this.#opcode = -1
    if (opcode >= OPCODE.CLOSE) {
      const payload = this.#control.take()
      if (opcode === OPCODE.CLOSE) checkClose(payload)
      return { opcode, payload }
    }
    if (opcode !== OPCODE.CONTINUATION) this.#messageOpcode = opcode
    if (!this.#isLast) return null
    const message = { opcode: this.#messageOpcode, payload: this.#message.take() }
    this.#messageOpcode = -1
    return message
  }

  /** The header of the frame stays until the next one begins. */
  get #maskAt(): number {
    const length = this.#header[1]! & LENGTH_BITS
    return 2 + (length === LENGTH_16 ? 2 : length === LENGTH_64 ? 8 : 0)
  }
}

/** Bytes that come in pieces, in memory that grows with them. */
class Payload {
  #bytes: Buffer = EMPTY
  length = 0
  /** Where the frame begins. */
  frameAt = 0

  add(bytes: Buffer, from: number, to: number): void {
    const length = this.length + to - from
    if (length > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#bytes.length))
      this.#bytes.copy(grown, 0, 0, this.length)
      this.#bytes = grown
    }
    bytes.copy(this.#bytes, this.length, from, to)
    this.length = length
  }

  unmask(mask: Uint8Array): void {
    unmask(this.#bytes.subarray(this.frameAt, this.length), mask)
  }

  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.length)
    this.#bytes = EMPTY
    this.length = 0
    return taken
  }
}

/** One whole frame, one character per byte. `isMasked`: frames of clients are (5.3). */
export function frameOf(opcode: number, payload: Uint8Array, isMasked: boolean): string {
  const { length } = payload
  const header = Buffer.alloc(length < LENGTH_16 ? 2 : length < FIRST_LENGTH_64 ? 4 : 10)
  header[0] = FIN | opcode
  header[1] = length < LENGTH_16 ? length : length < FIRST_LENGTH_64 ? LENGTH_16 : LENGTH_64
  if (header.length === 4) header.writeUInt16BE(length, 2)
  else if (header.length === 10) header.writeBigUInt64BE(BigInt(length), 2)
  if (!isMasked) return Buffer.concat([header, payload]).toString('latin1')
  header[1]! |= MASK_BIT
  const mask = randomBytes(MASK_BYTES)
  const masked = Buffer.from(payload)
  unmask(masked, mask)
  return Buffer.concat([header, mask, masked]).toString('latin1')
}

/** A second call restores the bytes. */
function unmask(payload: Buffer, mask: Uint8Array): void {
  for (let at = 0; at < payload.length; at++) payload[at]! ^= mask[at & 3]!
}

/** 5.5.1, 7.4. */
function checkClose(payload: Buffer): void {
  if (payload.length === 0) return
  const status = payload.length === 1 ? 0 : payload.readUInt16BE(0)
  const isDefined = status >= 1000 && status <= 1014 && ![1004, 1005, 1006].includes(status)
  if (!isDefined && !(status >= 3000 && status < 5000)) broken('a close frame has no valid status')
}

function broken(rule: string): never {
  throw new BrokenFrames(CLOSE_STATUS.PROTOCOL, rule)
}
