/**
 * What the Connection field says: whether the connection can carry another message (RFC 9112 9.3), and which other
 * fields it names for removal (RFC 9110 7.6.1).
 */
import { isName, KIND } from './field-kinds.ts'
import type { Head } from './head.ts'

const SPACE = 32
const TAB = 9
const COMMA = 44

/** Kinds that a Connection field cannot name away: framing, routing, and what the gateway itself writes. */
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
])
/** More fields of the gateway's own, which pass as OTHER. */
const PROTECTED_NAMES = ['via']

/** The tokens of Connection that decide something; filled by `readConnection`. */
export const connection = { close: false, keepAlive: false, upgrade: false }

/**
 * Reads every Connection field: notes close, keep-alive and upgrade in `connection`, and marks the fields that it names
 * as NOMINATED. Answers whether the connection persists after this message. The head passed strictness.ts, which bounds
 * the number of names.
 */
export function readConnection(bytes: Buffer, head: Head): boolean {
  connection.close = false
  connection.keepAlive = false
  connection.upgrade = false
  for (let field = head.connection; field >= 0 && field < head.count; field++) {
    if (head.kinds[field] === KIND.CONNECTION) readTokens(bytes, head, head.valueAt(field), head.valueLength(field))
  }
  if (connection.close) return false
  return head.minorVersion === 1 || connection.keepAlive
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
  if (isName(bytes, at, length, 'keep-alive')) connection.keepAlive = true
  else if (isName(bytes, at, length, 'close')) connection.close = true
  else if (isName(bytes, at, length, 'upgrade')) connection.upgrade = true
  else nominate(bytes, head, bytes.latin1Slice(at, at + length).toLowerCase())
}

function nominate(bytes: Buffer, head: Head, name: string): void {
  if (PROTECTED_NAMES.includes(name)) return
  for (let field = 0; field < head.count; field++) {
    if (!PROTECTED.has(head.kinds[field]!) && isName(bytes, head.nameAt(field), head.nameLength(field), name)) {
      head.kinds[field] = KIND.NOMINATED
    }
  }
}

/** `timeout` of a Keep-Alive field in seconds (RFC 2068 19.7.1.1 as still sent by servers), or -1. */
export function keepAliveTimeout(bytes: Buffer, head: Head): number {
  const field = head.find(KIND.KEEP_ALIVE)
  if (field < 0) return -1
  const match = /(?:^|[,\s])timeout\s*=\s*"?(\d{1,6})/i.exec(head.value(bytes, field))
  return match === null ? -1 : Number(match[1])
}
