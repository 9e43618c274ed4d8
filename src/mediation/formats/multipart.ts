/** Parts of multipart bodies (RFC 2046 5.1), within limits. */
import type { BodyLimits } from './body-limits.ts'
import { parameterOf } from './charset.ts'
import { FormatError } from './format-error.ts'

export interface Part {
  /** Header fields, one per line; '' for none. */
  readonly head: string
  readonly content: Buffer
  /** Byte of the body at which the part begins. */
  readonly at: number
}

const BOUNDARY_MAX = 70
const PART_HEAD_MAX = 8192

/** A repeated or extended parameter (RFC 8187): readers take different ones. */
const BOUNDARY_NAMES = /boundary(?:\*\d*\*?)?\s*=/gi
const PADDING = /^[ \t]*$/

/**
 * Yields parts in order, at most `limits.items`. `subject`: of the errors. Throws FormatError, also where other readers
 * would find other parts.
 */
export function* partsOf(bytes: Uint8Array, contentType: string, limits: BodyLimits, subject: string): Generator<Part> {
  const boundary = parameterOf(contentType, 'boundary')
  const isNamedOnce = contentType.match(BOUNDARY_NAMES)?.length === 1
  if (boundary === '' || boundary.length > BOUNDARY_MAX || !isNamedOnce) {
    throw new FormatError('malformed', `${subject} has no valid boundary`)
  }
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const delimiter = Buffer.from(`--${boundary}`, 'latin1')
  const between = Buffer.from(`\r\n--${boundary}`, 'latin1')
  let at = delimiter.length
  if (!body.subarray(0, at).equals(delimiter)) {
    const first = body.indexOf(between)
    if (first === -1) throw new FormatError('malformed', `${subject} does not begin with its boundary`)
    const early = body.indexOf(delimiter)
    if (early < first) throw new FormatError('malformed', `${subject} has a boundary in front of its first part`)
    at = first + between.length
  }
  for (let count = 1; body.toString('latin1', at, at + 2) !== '--'; count++) {
    const start = body.indexOf('\r\n', at)
    const end = start === -1 ? -1 : body.indexOf(between, start)
    if (end === -1) throw new FormatError('malformed', `${subject} ends within a part, which begins at byte ${at}`)
    if (!PADDING.test(body.toString('latin1', at, start))) {
      throw new FormatError('malformed', `${subject} has a malformed boundary at byte ${at}`)
    }
    if (count > limits.items) throw new FormatError('limit', `${subject} has more than ${limits.items} parts`)
    const part = body.subarray(start + 2, end)
    // A reader may take a single LF or CR for the end of a line.
    if (part.indexOf(`\n--${boundary}`, 0, 'latin1') !== -1 || part.indexOf(`\r--${boundary}`, 0, 'latin1') !== -1) {
      throw new FormatError('malformed', `${subject} has a boundary within the part at byte ${start + 2}`)
    }
    yield partIn(part, start + 2, limits, subject)
    at = end + between.length
  }
  const end = body.indexOf('\r\n', at)
  if (!PADDING.test(body.toString('latin1', at + 2, end === -1 ? body.length : end))) {
    throw new FormatError('malformed', `${subject} has a malformed boundary at byte ${at}`)
  }
  if (body.indexOf(delimiter, at) !== -1) {
    throw new FormatError('malformed', `${subject} has a boundary behind its last one`)
  }
}

function partIn(part: Buffer, at: number, limits: BodyLimits, subject: string): Part {
  const isBare = part.subarray(0, 2).equals(Buffer.from('\r\n'))
  const end = isBare ? 0 : part.subarray(0, PART_HEAD_MAX).indexOf('\r\n\r\n')
  if (end === -1) throw new FormatError('malformed', `${subject} has a part without a head at byte ${at}`)
  const content = part.subarray(end + (isBare ? 2 : 4))
  if (content.length > limits.textLength) {
    throw new FormatError('limit', `${subject} has too long a text at byte ${at}`)
  }
  return { head: part.toString('utf8', 0, end), content, at }
}

/** Values of a field in the head of a part, in order. `name`: in lower case. */
export function partFields(head: string, name: string): readonly string[] {
  const lines = head.split('\r\n').filter(line => line.toLowerCase().startsWith(`${name}:`))
  return lines.map(line => line.slice(name.length + 1).trim())
}

/** Name of a part of a form (RFC 7578 4.2); '' for none. */
export function partName({ head }: Part): string {
  return parameterOf(partFields(head, 'content-disposition')[0] ?? '', 'name')
}
