/**
 * The part of WebSocket (RFC 6455) that the load needs: the opening handshake, and data frames without fragmentation.
 * Written for speed, because the load generator must not be the bottleneck.
 */
import { createHash } from 'node:crypto'
import { requestHead } from './request-head.ts'

/** The example key of RFC 6455 1.3. It never changes, because proxies do not check it. */
const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const MASK = [0x37, 0xfa, 0x21, 0x3d] as const

const FINAL_BINARY = 0x82
const MASKED = 0x80
const TWO_BYTE_LENGTH = 126
const EIGHT_BYTE_LENGTH = 127

export const ECHO_PATH = '/ws/echo'
/** On this path the backend answers the first message with an endless stream of messages of this size. */
export function streamPath(messageBytes: number): string {
  return `/ws/stream/${messageBytes}`
}

export function upgradeRequest(path: string): Buffer {
  const fields = {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': KEY,
  }
  return Buffer.from(requestHead('GET', path, fields), 'latin1')
}

/** Value of Sec-WebSocket-Accept for a key. */
export function acceptValue(key: string = KEY): string {
  return createHash('sha1')
    .update(key + GUID)
    .digest('base64')
}

function frameHead(bytes: number, masked: number): number[] {
  if (bytes < TWO_BYTE_LENGTH) return [FINAL_BINARY, masked | bytes]
  if (bytes < 65_536) return [FINAL_BINARY, masked | TWO_BYTE_LENGTH, bytes >> 8, bytes & 0xff]
  const length = Buffer.alloc(8)
  length.writeBigUInt64BE(BigInt(bytes))
  return [FINAL_BINARY, masked | EIGHT_BYTE_LENGTH, ...length]
}

/** A frame of a client (RFC 6455 5.3). */
export function maskedFrame(payload: Uint8Array): Buffer {
  const body = Buffer.from(payload)
  unmask(body, 0, body.length, MASK)
  return Buffer.concat([Buffer.from([...frameHead(payload.length, MASKED), ...MASK]), body])
}

/** A frame of a server. */
export function unmaskedFrame(payload: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(frameHead(payload.length, 0)), payload])
}

/** XORs in place; masking and unmasking are the same operation. */
export function unmask(bytes: Uint8Array, from: number, to: number, mask: ArrayLike<number>): void {
  for (let at = from; at < to; at++) bytes[at]! ^= mask[(at - from) & 3]!
}

interface Frame {
  /** Offset of the mask; without a mask, that of the payload. */
  readonly maskAt: number
  readonly payloadAt: number
  readonly end: number
}

/** The frame that begins at `at`; undefined while it is incomplete. */
export function readFrame(bytes: Buffer, at: number): Frame | undefined {
  if (bytes.length < at + 2) return undefined
  const lengthByte = bytes[at + 1]!
  const short = lengthByte & 0x7f
  const lengthBytes = short < TWO_BYTE_LENGTH ? 0 : short === TWO_BYTE_LENGTH ? 2 : 8
  const maskAt = at + 2 + lengthBytes
  if (bytes.length < maskAt) return undefined
  const length =
    lengthBytes === 0 ? short : bytes.readUIntBE(maskAt - Math.min(6, lengthBytes), Math.min(6, lengthBytes))
  const payloadAt = maskAt + (lengthByte >= MASKED ? 4 : 0)
  const end = payloadAt + length
  return end > bytes.length ? undefined : { maskAt, payloadAt, end }
}
