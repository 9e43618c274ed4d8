/**
 * Reads the host name (SNI, RFC 6066 3) out of a ClientHello before any byte reaches OpenSSL. So each virtual host has
 * its own context from the first byte on, for sessions and client certificates too. Bytes that are no ClientHello have
 * no name here; OpenSSL reports what is wrong with them.
 */

/** A longer ClientHello gets the default host. */
export const HELLO_MAX = 16_384
/** A ClientHello in more records gets the default host; real ones come in one or two. */
const RECORDS_MAX = 8

const RECORD_HANDSHAKE = 22
const RECORD_HEAD = 5
const CLIENT_HELLO = 1
const HANDSHAKE_HEAD = 4
const EXTENSION_SERVER_NAME = 0
const NAME_TYPE_HOST = 0
const VERSION_AND_RANDOM = 34

/** The name in lower case, '' without one; null while more bytes are needed. */
export function serverNameIn(bytes: Uint8Array): string | null {
  const message = handshakeBytes(bytes)
  if (message === null) return bytes.length >= HELLO_MAX ? '' : null
  const hello = new Reader(message)
  hello.skip(HANDSHAKE_HEAD + VERSION_AND_RANDOM)
  hello.skip(hello.uint(1))
  hello.skip(hello.uint(2))
  hello.skip(hello.uint(1))
  const extensions = hello.block(hello.uint(2))
  while (extensions.left >= 4) {
    const type = extensions.uint(2)
    const content = extensions.block(extensions.uint(2))
    if (type === EXTENSION_SERVER_NAME) return hostIn(content)
  }
  return ''
}

function hostIn(extension: Reader): string {
  const names = extension.block(extension.uint(2))
  const type = names.uint(1)
  const name = names.block(names.uint(2)).latin1()
  return type === NAME_TYPE_HOST ? name.toLowerCase() : ''
}

/** The first handshake message, out of its records; empty if it is no ClientHello, null while it is incomplete. */
function handshakeBytes(bytes: Uint8Array): Uint8Array | null {
  let message = bytes.subarray(0, 0)
  let at = 0
  for (let records = 0; records < RECORDS_MAX; records++) {
    if (at < bytes.length && bytes[at] !== RECORD_HANDSHAKE) break
    if (bytes.length - at < RECORD_HEAD) return null
    const from = at + RECORD_HEAD
    at = from + bytes[at + 3]! * 256 + bytes[at + 4]!
    const piece = bytes.subarray(from, at)
    message = records === 0 ? piece : Buffer.concat([message, piece])
    if (message.length > 0 && message[0] !== CLIENT_HELLO) break
    const length = message.length < HANDSHAKE_HEAD ? Number.POSITIVE_INFINITY : HANDSHAKE_HEAD + lengthIn(message)
    if (message.length >= length) return message.subarray(0, length)
    if (at > bytes.length) return null
  }
  return bytes.subarray(0, 0)
}

function lengthIn(message: Uint8Array): number {
  return message[1]! * 65_536 + message[2]! * 256 + message[3]!
}

/** Reads forward; beyond the end everything is 0 or empty. */
class Reader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get left(): number {
    return Math.max(0, this.#bytes.length - this.#at)
  }

  uint(size: 1 | 2): number {
    const high = this.#bytes[this.#at] ?? 0
    const value = size === 1 ? high : high * 256 + (this.#bytes[this.#at + 1] ?? 0)
    this.#at += size
    return value
  }

  skip(length: number): void {
    this.#at += length
  }

  block(length: number): Reader {
    const block = new Reader(this.#bytes.subarray(this.#at, this.#at + length))
    this.#at += length
    return block
  }

  latin1(): string {
    return Buffer.from(this.#bytes).toString('latin1')
  }
}
