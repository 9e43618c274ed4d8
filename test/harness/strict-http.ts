/**
 * A strict HTTP/1.1 parser that shares no code with the gateway: it accepts only what a sender may send (RFC 9112).
 * Tests parse with it what the gateway sent to a backend or to a client.
 */

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~\x80-\xff]+) HTTP\/1\.1$/
const STATUS_LINE = /^HTTP\/1\.1 ([1-9]\d\d) [\t -~\x80-\xff]*$/
const FIELD_VALUE = /^[\t -~\x80-\xff]*$/

/** What a sender must not send. */
export class Malformed extends Error {}

export interface StrictMessage {
  /** Request line or status line. */
  readonly start: string
  readonly method: string
  readonly target: string
  readonly status: number
  /** Field lines as they came, without CRLF. */
  readonly lines: readonly string[]
  readonly framing: 'none' | 'length' | 'chunked' | 'close'
  readonly body: Buffer
  readonly trailers: readonly string[]
  /** Position behind the message. */
  readonly end: number
}

/** Values of a field, by its name in any case. */
export function valuesOf(lines: readonly string[], name: string): string[] {
  const prefix = `${name.toLowerCase()}:`
  return lines.filter(line => line.toLowerCase().startsWith(prefix)).map(line => line.slice(prefix.length).trim())
}

interface Section {
  readonly lines: readonly string[]
  readonly end: number
}

/** Lines from `at` up to an empty one; undefined when that has not come yet. */
function readLines(bytes: Buffer, at: number): Section | undefined {
  const lines: string[] = []
  let from = at
  for (;;) {
    const feed = bytes.indexOf(10, from)
    if (feed < 0) return undefined
    if (feed === from || bytes[feed - 1] !== 13) throw new Malformed('a line ends without CR')
    const line = bytes.toString('latin1', from, feed - 1)
    if (line.includes('\r') || line.includes('\0')) throw new Malformed('CR or NUL within a line')
    from = feed + 1
    if (line === '') return { lines, end: from }
    lines.push(line)
  }
}

function checkFields(lines: readonly string[]): void {
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon < 1 || !TOKEN.test(line.slice(0, colon))) throw new Malformed(`bad field name: ${JSON.stringify(line)}`)
    if (!FIELD_VALUE.test(line.slice(colon + 1))) throw new Malformed(`bad field value: ${JSON.stringify(line)}`)
  }
}

/** 'chunked', a length, or -1: neither is declared. */
function declared(lines: readonly string[]): 'chunked' | number {
  const lengths = valuesOf(lines, 'content-length')
  const codings = valuesOf(lines, 'transfer-encoding')
  if (lengths.length + codings.length > 1) throw new Malformed('more than one framing field')
  if (codings.length === 1) {
    if (codings[0] !== 'chunked') throw new Malformed(`transfer coding ${codings[0]}`)
    return 'chunked'
  }
  if (lengths.length === 0) return -1
  if (!/^\d{1,15}$/.test(lengths[0]!)) throw new Malformed(`Content-Length ${lengths[0]}`)
  return Number(lengths[0])
}

interface Content {
  readonly body: Buffer
  readonly trailers: readonly string[]
  readonly end: number
}

function readChunks(bytes: Buffer, at: number): Content | undefined {
  const parts: Buffer[] = []
  let from = at
  for (;;) {
    const feed = bytes.indexOf(10, from)
    if (feed < 0) {
      if (bytes.length - from > 18) throw new Malformed('a size line does not end')
      return undefined
    }
    const line = bytes.toString('latin1', from, feed + 1)
    if (!/^[0-9a-f]{1,8}\r\n$/.test(line)) throw new Malformed(`size line ${JSON.stringify(line)}`)
    const size = Number.parseInt(line, 16)
    from = feed + 1
    if (size === 0) {
      const section = readLines(bytes, from)
      if (section === undefined) return undefined
      checkFields(section.lines)
      return { body: Buffer.concat(parts), trailers: section.lines, end: section.end }
    }
    if (bytes.length < from + size + 2) return undefined
    if (bytes[from + size] !== 13 || bytes[from + size + 1] !== 10) throw new Malformed('a chunk ends without CRLF')
    parts.push(bytes.subarray(from, from + size))
    from += size + 2
  }
}

function readContent(bytes: Buffer, at: number, framing: 'chunked' | number): Content | undefined {
  if (framing === 'chunked') return readChunks(bytes, at)
  const end = at + Math.max(framing, 0)
  return bytes.length < end ? undefined : { body: bytes.subarray(at, end), trailers: [], end }
}

function nameOf(framing: 'chunked' | number): StrictMessage['framing'] {
  if (framing === 'chunked') return 'chunked'
  return framing < 0 ? 'none' : 'length'
}

/** The request that begins at `at`; undefined while it is incomplete. Throws `Malformed`. */
export function parseRequest(bytes: Buffer, at: number): StrictMessage | undefined {
  if (at >= bytes.length) return undefined
  const head = readLines(bytes, at)
  if (head === undefined) return undefined
  const [start = '', ...lines] = head.lines
  const match = REQUEST_LINE.exec(start)
  if (match === null) throw new Malformed(`request line ${JSON.stringify(start)}`)
  checkFields(lines)
  if (valuesOf(lines, 'host').length !== 1) throw new Malformed('not exactly one Host')
  const framing = declared(lines)
  const content = readContent(bytes, head.end, framing)
  if (content === undefined) return undefined
  return { start, method: match[1]!, target: match[2]!, status: 0, lines, framing: nameOf(framing), ...content }
}

/**
 * The response that begins at `at`, to a request with `method`; undefined while it is incomplete. `ended`: the
 * connection has ended. Throws `Malformed`.
 */
export function parseResponse(bytes: Buffer, at: number, method: string, ended: boolean): StrictMessage | undefined {
  if (at >= bytes.length) return undefined
  const head = readLines(bytes, at)
  if (head === undefined) return undefined
  const [start = '', ...lines] = head.lines
  const match = STATUS_LINE.exec(start)
  if (match === null) throw new Malformed(`status line ${JSON.stringify(start)}`)
  checkFields(lines)
  const status = Number(match[1])
  const framing = declared(lines)
  const common = { start, method, target: '', status, lines }
  const none = { body: Buffer.alloc(0), trailers: [], end: head.end }
  if (status < 200 || status === 204) {
    if (framing !== -1) throw new Malformed(`${status} with a framing field`)
    return { ...common, framing: 'none', ...none }
  }
  if (method === 'HEAD' || status === 304) return { ...common, framing: 'none', ...none }
  if (framing === -1) {
    if (!ended) return undefined
    return { ...common, framing: 'close', body: bytes.subarray(head.end), trailers: [], end: bytes.length }
  }
  const content = readContent(bytes, head.end, framing)
  return content === undefined ? undefined : { ...common, framing: nameOf(framing), ...content }
}
