/**
 * Frames between gateways and traffic managers: 4 bytes of length, 1 byte of type, and a body; numbers are big-endian.
 * A gateway sends HELLO and then REPORTs; the traffic manager answers each with an ACK of its number.
 *
 * HELLO: JSON `{"version":1,"node","username","password"}`. REPORT: number (4), time in milliseconds since 1970 (8),
 * rows; a row is length of the key (2), key in UTF-8, type and unit (1 each), units (4), limit (8), amount (8).
 * ACK: number (4). REFUSED: a reason in UTF-8.
 */
import type { Quota, TimeUnit } from '../throttle/policy.ts'
import type { UsageRow } from '../throttle/cluster-limits.ts'

export const FRAME = { HELLO: 1, REPORT: 2, ACK: 3, REFUSED: 4 } as const

interface Hello {
  readonly version: 1
  /** Identity of the gateway's process: reports are numbered per node. */
  readonly node: string
  readonly username: string
  readonly password: string
}

export interface UsageReport {
  readonly number: number
  /** When the rows were added up, in milliseconds since 1970. */
  readonly atMs: number
  readonly rows: readonly UsageRow[]
}

/** A peer that sends longer frames is cut. */
export const FRAME_BYTES_MAX = 8 * 1024 * 1024
const HEADER = 5
const KEY_BYTES_MAX = 4096
const ROW = 2 + 1 + 1 + 4 + 8 + 8
const TYPES: readonly Quota['type'][] = ['requests', 'bandwidth', 'events']
const UNITS: readonly TimeUnit[] = ['sec', 'min', 'hour', 'day', 'month']
/** Bit beside the type of a sliding window. */
const SLIDING = 0x80

/** The error of a peer that sends no frame of this protocol. */
export class ReportMalformed extends Error {
  override readonly name = 'ReportMalformed'
}

export function frame(type: number, body: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER + body.length)
  bytes.writeUInt32BE(body.length + 1, 0)
  bytes[4] = type
  bytes.set(body, HEADER)
  return bytes
}

export function encodeReport({ number, atMs, rows }: UsageReport): Buffer {
  const keys = rows.map(({ key }) => Buffer.from(key.slice(0, KEY_BYTES_MAX / 4)))
  const bytes = Buffer.allocUnsafe(12 + keys.reduce((sum, key) => sum + key.length + ROW, 0))
  bytes.writeUInt32BE(number, 0)
  bytes.writeDoubleBE(atMs, 4)
  let at = 12
  for (const [index, { quota, amount }] of rows.entries()) {
    const key = keys[index]!
    at = bytes.writeUInt16BE(key.length, at)
    at += key.copy(bytes, at)
    bytes[at++] = TYPES.indexOf(quota.type) | (quota.window === 'sliding' ? SLIDING : 0)
    bytes[at++] = UNITS.indexOf(quota.unit)
    at = bytes.writeUInt32BE(quota.units, at)
    at = bytes.writeDoubleBE(quota.limit, at)
    at = bytes.writeDoubleBE(amount, at)
  }
  return bytes
}

/** Throws ReportMalformed. */
export function decodeReport(bytes: Buffer): UsageReport {
  if (bytes.length < 12) throw new ReportMalformed('a report is too short')
  const rows: UsageRow[] = []
  let at = 12
  while (at < bytes.length) {
    const length = at + 2 <= bytes.length ? bytes.readUInt16BE(at) : KEY_BYTES_MAX + 1
    if (length === 0 || length > KEY_BYTES_MAX || at + length + ROW > bytes.length) {
      throw new ReportMalformed('a row of a report is cut off')
    }
    const key = bytes.toString('utf8', at + 2, at + 2 + length)
    at += 2 + length
    rows.push({ key, ...rowAt(bytes, at) })
    at += ROW - 2
  }
  return { number: bytes.readUInt32BE(0), atMs: bytes.readDoubleBE(4), rows }
}

function rowAt(bytes: Buffer, at: number): Omit<UsageRow, 'key'> {
  const type = TYPES[bytes[at]! & ~SLIDING]
  const unit = UNITS[bytes[at + 1]!]
  const units = bytes.readUInt32BE(at + 2)
  const limit = bytes.readDoubleBE(at + 6)
  const amount = bytes.readDoubleBE(at + 14)
  const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0
  if (type === undefined || unit === undefined || units === 0 || limit < 1 || !isCount(limit) || !isCount(amount)) {
    throw new ReportMalformed('a row of a report has a wrong quota or amount')
  }
  return { quota: { type, unit, units, limit, window: bytes[at]! & SLIDING ? 'sliding' : 'tumbling' }, amount }
}

/** Throws ReportMalformed. */
export function decodeHello(bytes: Buffer): Hello {
  try {
    const { version, node, username, password } = JSON.parse(bytes.toString()) as Record<string, unknown>
    if (version === 1 && [node, username, password].every(text => typeof text === 'string' && text.length <= 1024)) {
      return { version, node, username, password } as Hello
    }
  } catch {
    // Falls through.
  }
  throw new ReportMalformed('the greeting is none of version 1')
}

/** Cuts a stream of bytes into frames. Memory: at most one frame and one read. */
export class FrameReader {
  #bytes: Buffer = Buffer.alloc(0)
  /** Longest frame; may be raised between two reads. */
  bytesMax: number

  constructor(bytesMax = FRAME_BYTES_MAX) {
    this.bytesMax = bytesMax
  }

  /** Throws ReportMalformed for a frame that is empty or too long. */
  *read(chunk: Buffer): Generator<{ readonly type: number; readonly body: Buffer }> {
    this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk])
    while (this.#bytes.length >= HEADER) {
      const length = this.#bytes.readUInt32BE(0)
      if (length === 0 || length > this.bytesMax) throw new ReportMalformed('a frame is empty or too long')
      if (this.#bytes.length < 4 + length) return
      const found = { type: this.#bytes[4]!, body: this.#bytes.subarray(HEADER, 4 + length) }
      this.#bytes = this.#bytes.subarray(4 + length)
      yield found
    }
  }
}
