/**
 * As much of WebSocket (RFC 6455) as the load needs: the opening handshake, and data frames that are not fragmented. It
 * is written for speed: the load must not be what limits a tunnel.
 */
import { createHash } from 'node:crypto'
import { requestHead } from './request-head.ts'

/** The example of RFC 6455 1.3; a proxy neither knows nor cares that it is always the same. */
const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const MASK = [0x37, 0xfa, 0x21, 0x3d] as const

const FINAL_BINARY = 0x82
const MASKED = 0x80
const TWO_BYTE_LENGTH = 126
const EIGHT_BYTE_LENGTH = 127

export const ECHO_PATH = '/ws/echo'
/** The first message asks for frames without end, each with as many bytes as the number at the end of the path. */
export function flowPath(messageBytes: number): string {
  return `/ws/flow/${messageBytes}`
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

/** Sec-WebSocket-Accept of a key. */
export function acceptOf(key: string = KEY): string {
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

/** As a client sends it (5.3). */
export function maskedFrame(payload: Uint8Array): Buffer {
  const body = Buffer.from(payload)
  unmask(body, 0, body.length, MASK)
  return Buffer.concat([Buffer.from([...frameHead(payload.length, MASKED), ...MASK]), body])
}

/** As a server sends it. */
export function plainFrame(payload: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(frameHead(payload.length, 0)), payload])
}

/** Masking is its own inverse. */
export function unmask(bytes: Uint8Array, from: number, to: number, mask: ArrayLike<number>): void {
  for (let at = from; at < to; at++) bytes[at]! ^= mask[(at - from) & 3]!
}

interface Frame {
  /** Where the mask stands, or the payload if there is none. */
  readonly maskAt: number
  readonly payloadAt: number
  readonly end: number
}

/** The frame that begins at `at`; undefined while it is not there whole. */
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
