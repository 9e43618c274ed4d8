/** Frames of WebSocket clients and servers, made by hand. */
const MASK = Buffer.from([0x12, 0x34, 0x56, 0x78])

export interface FrameParts {
  readonly opcode?: number
  readonly isLast?: boolean
  /** Bits of the first byte beside FIN and opcode. */
  readonly reserved?: number
  readonly isMasked?: boolean
  /** 7, 16 or 64: bits of the length field; by default the fewest. */
  readonly lengthBits?: 7 | 16 | 64
}

/** One frame; of a client by default. */
export function frame(payload: string | Buffer, parts: FrameParts = {}): Buffer {
  const { opcode = 1, isLast = true, reserved = 0, isMasked = true } = parts
  const bytes = Buffer.from(payload)
  const { lengthBits = bytes.length < 126 ? 7 : bytes.length < 65_536 ? 16 : 64 } = parts
  const header = Buffer.alloc(lengthBits === 7 ? 2 : lengthBits === 16 ? 4 : 10)
  header[0] = (isLast ? 0x80 : 0) | reserved | opcode
  header[1] = (isMasked ? 0x80 : 0) | (lengthBits === 7 ? bytes.length : lengthBits === 16 ? 126 : 127)
  if (lengthBits === 16) header.writeUInt16BE(bytes.length, 2)
  if (lengthBits === 64) header.writeBigUInt64BE(BigInt(bytes.length), 2)
  if (!isMasked) return Buffer.concat([header, bytes])
  return Buffer.concat([header, MASK, Buffer.from(bytes.map((byte, at) => byte ^ MASK[at % 4]!))])
}
