/** Finds the end of one response at a time: Content-Length, chunked, or no body. */

const HEAD_END = Buffer.from('\r\n\r\n')
const HEAD_BYTES_MAX = 1_048_576
const NO_BODY = [204, 304]

/** The part of a response that the next bytes belong to. */
type Part = 'head' | 'body' | 'chunk-size' | 'chunk' | 'trailers'

export class ResponseEnd {
  status = 0
  #part: Part = 'head'
  #left = 0
  #kept: Buffer = Buffer.alloc(0)
  #isHead = false

  /** `isHead`: the response to HEAD has no body, whatever its fields say. */
  begin(isHead = false): void {
    this.#isHead = isHead
    this.status = 0
    this.#part = 'head'
    this.#left = 0
    this.#kept = Buffer.alloc(0)
  }

  /** True: the response ends with these bytes. Throws for a response that is delimited by the end of its connection. */
  read(fresh: Buffer): boolean {
    let bytes = this.#kept.length === 0 ? fresh : Buffer.concat([this.#kept, fresh])
    this.#kept = Buffer.alloc(0)
    for (;;) {
      if (this.#part === 'body' || this.#part === 'chunk') {
        const taken = Math.min(this.#left, bytes.length)
        this.#left -= taken
        bytes = bytes.subarray(taken)
        if (this.#left > 0) return false
        if (this.#part === 'body') return true
        this.#part = 'chunk-size'
      } else if (this.#part === 'head') {
        const end = bytes.indexOf(HEAD_END)
        if (end === -1) return this.#keep(bytes)
        this.#readHead(bytes.toString('latin1', 0, end))
        bytes = bytes.subarray(end + HEAD_END.length)
      } else {
        const end = bytes.indexOf('\r\n')
        if (end === -1) return this.#keep(bytes)
        const line = bytes.toString('latin1', 0, end)
        bytes = bytes.subarray(end + 2)
        if (this.#part === 'trailers' && line === '') return true
        if (this.#part === 'chunk-size') this.#readSize(line)
      }
    }
  }

  #keep(bytes: Buffer): false {
    if (bytes.length > HEAD_BYTES_MAX) throw new Error('the head of a response is too long')
    this.#kept = Buffer.from(bytes)
    return false
  }

  #readHead(head: string): void {
    this.status = Number(head.slice(9, 12))
    if (this.status < 200) return
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    this.#part = 'body'
    if (this.#isHead || NO_BODY.includes(this.status)) this.#left = 0
    else if (/\r\ntransfer-encoding: *chunked/i.test(head)) this.#part = 'chunk-size'
    else if (length === undefined) throw new Error(`a response has no length:\n${head}`)
    else this.#left = Number(length)
  }

  /** The line break behind a chunk counts as part of it. */
  #readSize(line: string): void {
    const size = Number.parseInt(line, 16)
    if (size === 0) this.#part = 'trailers'
    else {
      this.#part = 'chunk'
      this.#left = size + 2
    }
  }
}
