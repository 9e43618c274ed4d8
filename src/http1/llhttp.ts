/**
 * The only file that touches the llhttp WebAssembly. Owns its memory, its parsers and the callbacks; everything it
 * finds is recorded as offsets. Strict mode: no lenient flag is ever set. Parsing is synchronous and not re-entrant, so
 * one record of findings per thread is enough.
 */
import { createRequire } from 'node:module'
import { Arena, ARENA_BYTES } from '../structure/arena.ts'
import { type Head, SPAN } from './head.ts'

/** The exports this file relies on; test/http1/llhttp.test.ts pins them and the version that carries them. */
interface Exports {
  readonly memory: WebAssembly.Memory
  _initialize(): void
  malloc(size: number): number
  llhttp_alloc(type: number): number
  llhttp_reset(parser: number): void
  llhttp_resume(parser: number): void
  llhttp_execute(parser: number, at: number, length: number): number
  llhttp_get_method(parser: number): number
  llhttp_get_error_pos(parser: number): number
  llhttp_get_error_reason(parser: number): number
}

/** What `execute` returns: llhttp's error numbers, as far as they are told apart. */
export const OUTCOME = {
  /** All bytes were taken; the message goes on. */
  MORE: 0,
  INVALID_METHOD: 6,
  INVALID_VERSION: 9,
  /** Stopped behind the last byte of a message, or of the head of a request that has a body. */
  PAUSED: 21,
  /** The preface of HTTP/2. */
  PRI_UPGRADE: 23,
} as const

const REQUEST = 1
const RESPONSE = 2
/** sizeof(llhttp_t) is 80 in this build; the test checks that parsers copied at this stride are independent. */
const PARSER_BYTES = 96
const PAUSE = 21
const STOP = -1
/** Body spans of one read; a chunk takes six bytes at least, and what is read at once is at most 128 KiB. */
const BODY_SPANS_MAX = 24_576

/** What the last `execute` found. Overwritten by the next one. */
export const found = {
  /** The head was completed by this call. */
  head: false,
  /** The message was completed by this call. */
  message: false,
  /** Where parsing stopped: behind the message when it is complete, else the end of the bytes. */
  end: 0,
  /** Spans of body bytes, in `bodySpans`. */
  body: 0,
}

/** Pairs of offset and length of the body bytes that the last `execute` found. */
export const bodySpans = new Int32Array(2 * BODY_SPANS_MAX)

let head: Head
let trailers: Head
let section: Head
let skipBody = false
let requests = false

function recordName(at: number, length: number): number {
  const { spans, count } = section
  const last = (count - 1) * SPAN
  // A name split over two reads arrives in two pieces that touch.
  if (count > 0 && !section.lastWasValue && at === spans[last]! + spans[last + 1]!) {
    spans[last + 1] = spans[last + 1]! + length
    spans[last + 2] = at + length + 1
    return 0
  }
  if (count >= section.capacity) {
    section.overflowed = true
    return STOP
  }
  const next = count * SPAN
  spans[next] = at
  spans[next + 1] = length
  spans[next + 2] = at + length + 1
  spans[next + 3] = 0
  section.count = count + 1
  section.lastWasValue = false
  return 0
}

function recordValue(at: number, length: number): number {
  // An empty value is reported behind its line end: it stays where the name left it, behind the colon.
  if (length === 0) return 0
  const { spans } = section
  const last = (section.count - 1) * SPAN
  if (section.lastWasValue && at === spans[last + 2]! + spans[last + 3]!) spans[last + 3] = spans[last + 3]! + length
  else {
    spans[last + 2] = at
    spans[last + 3] = length
  }
  section.lastWasValue = true
  return 0
}

/** By the length of the name alone: 14 is Content-Length, 17 Transfer-Encoding. Others of that length do no harm. */
function announcesBody(): boolean {
  const { spans, count } = head
  for (let i = 1; i < count * SPAN; i += SPAN) if (spans[i] === 14 || spans[i] === 17) return true
  return false
}

const callbacks = {
  wasm_on_message_begin: () => 0,
  wasm_on_url(_parser: number, at: number, length: number): number {
    if (head.targetLength !== 0) head.targetLength += length
    else {
      head.targetAt = at
      head.targetLength = length
    }
    return 0
  },
  wasm_on_status: () => 0,
  wasm_on_header_field: (_parser: number, at: number, length: number) => recordName(at, length),
  wasm_on_header_value: (_parser: number, at: number, length: number) => recordValue(at, length),
  wasm_on_headers_complete(_parser: number, status: number): number {
    head.status = status
    found.head = true
    section = trailers
    if (skipBody) return 1
    // A request waits behind its head until it is known where its body goes.
    return requests && announcesBody() ? PAUSE : 0
  },
  wasm_on_body(_parser: number, at: number, length: number): number {
    const i = found.body * 2
    if (i >= bodySpans.length) return STOP
    bodySpans[i] = at
    bodySpans[i + 1] = length
    found.body++
    return 0
  },
  wasm_on_message_complete(): number {
    found.message = true
    return PAUSE
  },
}

const load = createRequire(import.meta.url)

function instantiate(): Exports {
  const binary = load('undici/lib/llhttp/llhttp_simd-wasm.js') as Uint8Array<ArrayBuffer>
  const instance = new WebAssembly.Instance(new WebAssembly.Module(binary), { env: callbacks })
  const exports = instance.exports as unknown as Exports
  exports._initialize()
  return exports
}

const llhttp = instantiate()

/** One parser of each type, made by llhttp itself; every other one is a copy in the arena. */
const templates = { [REQUEST]: llhttp.llhttp_alloc(REQUEST), [RESPONSE]: llhttp.llhttp_alloc(RESPONSE) }
const arenaAt = llhttp.malloc(ARENA_BYTES)

/** All bytes of this thread's messages. `arena.bytes` stays valid: the memory never grows again. */
export const arena = new Arena(llhttp.memory.buffer, arenaAt, arenaAt + ARENA_BYTES)

/** For code that looks at the same bytes (`same-bytes.ts`). */
export const arenaMemory = llhttp.memory

const { METHODS } = load('undici/lib/llhttp/constants.js') as { METHODS: Readonly<Record<string, number>> }
const METHOD_NAMES: string[] = []
for (const [name, method] of Object.entries(METHODS)) METHOD_NAMES[method] = name

function text(at: number): string {
  const { bytes } = arena
  return bytes.latin1Slice(at, bytes.indexOf(0, at))
}

/** 'GET' for llhttp's number of it. */
export function methodName(method: number): string {
  return METHOD_NAMES[method]!
}

const idleParsers: Record<number, number[]> = { [REQUEST]: [], [RESPONSE]: [] }

/** The parser of one connection. Give it back with `release`. */
export class Parser {
  /** Parsers that somebody holds. */
  static inUse = 0
  readonly #type: number
  #at: number

  /** `at` is undefined only when the arena is exhausted; then there is no parser. */
  private constructor(type: number, at: number) {
    this.#type = type
    this.#at = at
  }

  static forRequests(): Parser | undefined {
    return Parser.#make(REQUEST)
  }

  static forResponses(): Parser | undefined {
    return Parser.#make(RESPONSE)
  }

  static #make(type: number): Parser | undefined {
    const at = idleParsers[type]!.pop() ?? arena.carve(PARSER_BYTES)
    if (at < 0) return undefined
    const template = templates[type as 1]!
    arena.bytes.copyWithin(at, template, template + PARSER_BYTES)
    Parser.inUse++
    return new Parser(type, at)
  }

  release(): void {
    if (this.#at === 0) throw new Error('a parser was released twice')
    Parser.inUse--
    idleParsers[this.#type]!.push(this.#at)
    this.#at = 0
  }

  /**
   * Parses the bytes from `from` up to `to`, which stand in the arena. `intoHead` is null once the head is known.
   * What is found is in `found`; the answer is an OUTCOME or another of llhttp's errors, see `reason`. A request with a
   * body stops behind its head; call again for the body.
   */
  execute(from: number, to: number, intoHead: Head | null, intoTrailers: Head, withoutBody: boolean): number {
    found.head = false
    found.message = false
    found.body = 0
    found.end = to
    trailers = intoTrailers
    skipBody = withoutBody
    requests = this.#type === REQUEST
    if (intoHead !== null) head = intoHead
    section = intoHead ?? intoTrailers
    const outcome = llhttp.llhttp_execute(this.#at, from, to - from)
    if (outcome === OUTCOME.MORE) return outcome
    found.end = llhttp.llhttp_get_error_pos(this.#at)
    if (outcome === PAUSE && found.head && !found.message) llhttp.llhttp_resume(this.#at)
    return outcome
  }

  /** Ready for the next message of the same connection. */
  next(): void {
    llhttp.llhttp_reset(this.#at)
  }

  /** llhttp's number of the request's method. */
  get method(): number {
    return llhttp.llhttp_get_method(this.#at)
  }

  /** What llhttp says of its last error. */
  get reason(): string {
    return text(llhttp.llhttp_get_error_reason(this.#at))
  }
}
