/**
 * The Connection field: decides whether the connection persists (RFC 9112 9.3), and marks the fields that it nominates
 * for removal (RFC 9110 7.6.1).
 */
import { isName, KIND } from './field-kinds.ts'
import type { Head } from './head.ts'

const SPACE = 32
const TAB = 9
const COMMA = 44

/** Kinds that a Connection field cannot nominate: framing, routing, and fields that the gateway writes itself. */
const PROTECTED = new Set<number>([
  KIND.HOST,
  KIND.CONTENT_LENGTH,
  KIND.TRANSFER_ENCODING,
  KIND.CONNECTION,
  KIND.CORRELATION,
  KIND.X_FORWARDED_FOR,
  KIND.X_FORWARDED_OTHER,
  KIND.X_FORWARDED_PROTO,
  KIND.X_FORWARDED_HOST,
  KIND.FORWARDED,
  KIND.EXPECT,
  KIND.DATE,
  KIND.VIA,
])

/** Bits of `Head.connectionOptions`. */
export const CONNECTION_OPTION = { CLOSE: 1, KEEP_ALIVE: 2, UPGRADE: 4 } as const

/**
 * Reads every Connection field into `head.connectionOptions`, and marks the fields that it names as NOMINATED. Returns
 * whether the connection persists after this message. The head passed `head-rules.ts`, which bounds the options.
 */
export function readConnection(bytes: Buffer, head: Head): boolean {
  head.connectionOptions = 0
  for (let field = head.connection; field >= 0 && field < head.count; field++) {
    if (head.kinds[field] === KIND.CONNECTION) readTokens(bytes, head, head.valueAt(field), head.valueLength(field))
  }
  const options = head.connectionOptions
  if ((options & CONNECTION_OPTION.CLOSE) !== 0) return false
  return head.minorVersion === 1 || (options & CONNECTION_OPTION.KEEP_ALIVE) !== 0
}

function readTokens(bytes: Buffer, head: Head, at: number, length: number): void {
  const end = at + length
  let start = at
  for (let i = at; i <= end; i++) {
    if (i < end && bytes[i] !== COMMA) continue
    let from = start
    let to = i
    while (from < to && (bytes[from] === SPACE || bytes[from] === TAB)) from++
    while (to > from && (bytes[to - 1] === SPACE || bytes[to - 1] === TAB)) to--
    if (to > from) readToken(bytes, head, from, to - from)
    start = i + 1
  }
}

function readToken(bytes: Buffer, head: Head, at: number, length: number): void {
  if (isName(bytes, at, length, 'keep-alive')) head.connectionOptions |= CONNECTION_OPTION.KEEP_ALIVE
  else if (isName(bytes, at, length, 'close')) head.connectionOptions |= CONNECTION_OPTION.CLOSE
  else if (isName(bytes, at, length, 'upgrade')) head.connectionOptions |= CONNECTION_OPTION.UPGRADE
  else nominate(bytes, head, bytes.latin1Slice(at, at + length).toLowerCase())
}

function nominate(bytes: Buffer, head: Head, name: string): void {
  for (let field = 0; field < head.count; field++) {
    if (!PROTECTED.has(head.kinds[field]!) && isName(bytes, head.nameAt(field), head.nameLength(field), name)) {
      head.kinds[field] = KIND.NOMINATED
    }
  }
}

/** `timeout` of a Keep-Alive field in seconds (RFC 2068 19.7.1.1, still sent by servers), or -1 without one. */
export function keepAliveTimeout(bytes: Buffer, head: Head): number {
  const field = head.find(KIND.KEEP_ALIVE)
  if (field < 0) return -1
  const match = /(?:^|[,\s])timeout\s*=\s*"?(\d{1,6})/i.exec(head.value(bytes, field))
  return match === null ? -1 : Number(match[1])
}
