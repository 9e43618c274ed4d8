/** Writes fields of Protocol Buffers messages: as much of the encoding as OTLP needs. */
const VARINT = 0
const FIXED64 = 1
const BYTES = 2
const FIXED32 = 5

/** One field, with its tag. */
export type EncodedField = Uint8Array

const TEXT = new TextEncoder()

function varint(value: number): readonly number[] {
  const bytes: number[] = []
  let rest = value
  while (rest > 127) {
    bytes.push((rest % 128) | 128)
    rest = Math.floor(rest / 128)
  }
  return [...bytes, rest]
}

function tag(field: number, type: number): readonly number[] {
  return varint(field * 8 + type)
}

/** `value`: a whole number from 0 up to 2^53. */
export function integerField(field: number, value: number): EncodedField {
  return Uint8Array.from([...tag(field, VARINT), ...varint(value)])
}

export function fixed32Field(field: number, value: number): EncodedField {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return Buffer.concat([Uint8Array.from(tag(field, FIXED32)), bytes])
}

export function fixed64Field(field: number, value: bigint): EncodedField {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(value)
  return Buffer.concat([Uint8Array.from(tag(field, FIXED64)), bytes])
}

/** Bytes, or a message that is encoded already. */
export function bytesField(field: number, bytes: Uint8Array): EncodedField {
  return Buffer.concat([Uint8Array.from([...tag(field, BYTES), ...varint(bytes.length)]), bytes])
}

export function textField(field: number, text: string): EncodedField {
  return bytesField(field, TEXT.encode(text))
}

export function messageField(field: number, fields: readonly EncodedField[]): EncodedField {
  return bytesField(field, Buffer.concat(fields))
}

/** Value of the first varint of a field in a message; 0 without one, or where the message is broken. */
export function readInteger(message: Uint8Array, field: number): number {
  const [value] = read(message).filter(([number, type]) => number === field && type === VARINT)
  return value === undefined ? 0 : Number(value[2])
}

/** Bytes of the first field of that number; none without one, or where the message is broken. */
export function readBytes(message: Uint8Array, field: number): Uint8Array {
  const [value] = read(message).filter(([number, type]) => number === field && type === BYTES)
  return value === undefined ? new Uint8Array() : (value[2] as Uint8Array)
}

type ReadField = readonly [field: number, type: number, value: number | Uint8Array]

/** Fields of a message, up to the first one that is broken. */
function read(message: Uint8Array): readonly ReadField[] {
  const fields: ReadField[] = []
  let at = 0
  const next = (): number => {
    let value = 0
    for (let factor = 1; at < message.length; factor *= 128) {
      const byte = message[at++]!
      value += (byte & 127) * factor
      if (byte < 128) return value
    }
    return Number.NaN
  }
  while (at < message.length) {
    const key = next()
    const type = key % 8
    const number = Math.floor(key / 8)
    if (type === VARINT) fields.push([number, type, next()])
    else if (type === BYTES) {
      const length = next()
      if (!(at + length <= message.length)) return fields
      fields.push([number, type, message.subarray(at, at + length)])
      at += length
    } else if (type === FIXED32) at += 4
    else if (type === FIXED64) at += 8
    else return fields
  }
  return fields
}
