/**
 * The only file that calls the llhttp WebAssembly. Owns its memory (the arena of the thread), its parsers and the
 * callbacks. Strict mode: no lenient flag is ever set. Parsing is synchronous and not re-entrant, so the callbacks
 * write to the one parser that runs; every finding is an offset into the arena.
 */
import { createRequire } from 'node:module'
import { Arena, ARENA_BYTES } from '../runtime/arena.ts'
import type { BodySpans } from './body.ts'
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

/** Return values of `execute`: the llhttp error numbers that callers tell apart. */
export const PARSE_RESULT = {
  /** All bytes were parsed; the message goes on. */
  MORE: 0,
  INVALID_METHOD: 6,
  INVALID_VERSION: 9,
  /** Parsing stopped behind a message, or behind the head of a request that has a body. */
  PAUSED: 21,
  /** The preface of HTTP/2. */
  PRI_UPGRADE: 23,
} as const

const REQUEST = 1
const RESPONSE = 2
/** sizeof(llhttp_t) is 80 in this build; a test checks that parsers copied at this stride are independent. */
const PARSER_BYTES = 96
const PAUSE = 21
const STOP = -1

/** The parser in `execute`, and where it records; set by each call. */
let running: Parser
let spans: BodySpans
let head: Head
let trailers: Head
/** The head or trailer section under way. */
let section: Head
let skipBody = false

function recordName(at: number, length: number): number {
  const { spans, count } = section
  const last = (count - 1) * SPAN
  // A name that is split over two reads arrives as two adjacent pieces.
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
  // An empty value is reported behind its line end; it stays behind the colon, where the name left it.
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

/**
 * Tells by the name length alone: 14 is Content-Length, 17 Transfer-Encoding. Other fields of that length do no harm.
 */
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
    running.isHeadComplete = true
    section = trailers
    if (skipBody) return 1
    // A request with a body stops behind its head, until its target is known.
    return running.isOfRequests && announcesBody() ? PAUSE : 0
  },
  wasm_on_body(_parser: number, at: number, length: number): number {
    const { offsets, count } = spans
    const i = count * 2
    if (i >= offsets.length) return STOP
    offsets[i] = at
    offsets[i + 1] = length
    spans.count = count + 1
    return 0
  },
  wasm_on_message_complete(): number {
    running.isMessageComplete = true
    return PAUSE
  },
}

const load = createRequire(import.meta.url)

function instantiate(): Exports {
  // Its own `require`, which ends with this function: else the module keeps 0.2 MB of text and bytes in every reactor.
  const loadOnce = createRequire(import.meta.url)
  const path = loadOnce.resolve('undici/lib/llhttp/llhttp_simd-wasm.js')
  const binary = loadOnce(path) as Uint8Array<ArrayBuffer>
  delete loadOnce.cache[path]
  const instance = new WebAssembly.Instance(new WebAssembly.Module(binary), { env: callbacks })
  const exports = instance.exports as unknown as Exports
  exports._initialize()
  return exports
}

const llhttp = instantiate()

/** One parser of each type, made by llhttp itself; every other parser is a copy in the arena. */
const templates = { [REQUEST]: llhttp.llhttp_alloc(REQUEST), [RESPONSE]: llhttp.llhttp_alloc(RESPONSE) }
const arenaAt = llhttp.malloc(ARENA_BYTES)

/** Arena of this thread: holds the bytes of all messages. `arena.bytes` stays valid, because the memory never grows. */
export const arena = new Arena(llhttp.memory.buffer, arenaAt, arenaAt + ARENA_BYTES)

/** Memory of the arena, for other WebAssembly over the same bytes (`constant-time-equal.ts`, `arena-copy.ts`). */
export const arenaMemory = llhttp.memory

const { METHODS } = load('undici/lib/llhttp/constants.js') as { METHODS: Readonly<Record<string, number>> }
const METHOD_NAMES: string[] = []
for (const [name, method] of Object.entries(METHODS)) METHOD_NAMES[method] = name

function text(at: number): string {
  const { bytes } = arena
  return bytes.latin1Slice(at, bytes.indexOf(0, at))
}

/** Name of an llhttp method number: 'GET'. */
export function methodName(method: number): string {
  return METHOD_NAMES[method]!
}

const idleParsers: Record<number, number[]> = { [REQUEST]: [], [RESPONSE]: [] }

/** The parser of one connection. `release` returns its memory. */
export class Parser {
  /** Parsers that are not released. */
  static inUse = 0
  readonly isOfRequests: boolean
  /** Body bytes of the last read of the thread; read `spanCount` before its offsets. */
  readonly body: BodySpans
  /** The last `execute` completed the head. */
  isHeadComplete = false
  /** The last `execute` completed the message. */
  isMessageComplete = false
  /** Position where the last `execute` stopped: behind a complete message, else the end of the bytes. */
  end = 0
  #at: number

  private constructor(isOfRequests: boolean, at: number, body: BodySpans) {
    this.isOfRequests = isOfRequests
    this.#at = at
    this.body = body
  }

  /** Undefined when the arena is exhausted. `body`: record of the reactor. */
  static forRequests(body: BodySpans): Parser | undefined {
    return Parser.#make(REQUEST, body)
  }

  /** Undefined when the arena is exhausted. `body`: record of the reactor. */
  static forResponses(body: BodySpans): Parser | undefined {
    return Parser.#make(RESPONSE, body)
  }

  static #make(type: number, body: BodySpans): Parser | undefined {
    let at = idleParsers[type]!.pop() ?? -1
    if (at >= 0) llhttp.llhttp_reset(at)
    else {
      at = arena.reserve(PARSER_BYTES)
      if (at < 0) return undefined
      const template = templates[type as 1]!
      arena.bytes.copyWithin(at, template, template + PARSER_BYTES)
    }
    Parser.inUse++
    return new Parser(type === REQUEST, at, body)
  }

  release(): void {
    if (this.#at === 0) throw new Error('a parser was released twice')
    Parser.inUse--
    idleParsers[this.isOfRequests ? REQUEST : RESPONSE]!.push(this.#at)
    this.#at = 0
  }

  /**
   * Parses the bytes from `from` up to `to` of the arena. `intoHead` is null once the head is complete. Returns a
   * PARSE_RESULT or another llhttp error, see `reason`; the fields of the parser and of `body` say what was found. A
   * request with a body stops behind its head; call again for the body.
   */
  execute(from: number, to: number, intoHead: Head | null, intoTrailers: Head, withoutBody: boolean): number {
    const { body } = this
    running = this
    spans = body
    body.filledBy = this
    body.count = 0
    this.isHeadComplete = false
    this.isMessageComplete = false
    this.end = to
    trailers = intoTrailers
    skipBody = withoutBody
    if (intoHead !== null) head = intoHead
    section = intoHead ?? intoTrailers
    const result = llhttp.llhttp_execute(this.#at, from, to - from)
    if (result === PARSE_RESULT.MORE) return result
    this.end = llhttp.llhttp_get_error_pos(this.#at)
    if (result === PAUSE && this.isHeadComplete && !this.isMessageComplete) llhttp.llhttp_resume(this.#at)
    return result
  }

  /**
   * Parses the request line from `from` up to `to` alone, into a head that is clear. Returns whether the parser expects
   * fields behind it. Then `complete` or `next` must follow.
   */
  executeLine(from: number, to: number, intoHead: Head): boolean {
    running = this
    spans = this.body
    this.isHeadComplete = false
    head = intoHead
    section = intoHead
    skipBody = false
    return llhttp.llhttp_execute(this.#at, from, to - from) === PARSE_RESULT.MORE && !this.isHeadComplete
  }

  /** The message is known up to its end `to`: it need not be parsed. Its last `bodyBytes` are its body. */
  complete(to: number, bodyBytes: number): void {
    const { body } = this
    body.filledBy = this
    body.count = bodyBytes === 0 ? 0 : 1
    body.offsets[0] = to - bodyBytes
    body.offsets[1] = bodyBytes
    this.end = to
    this.isHeadComplete = true
    this.isMessageComplete = true
  }

  /** Number of body spans that the last `execute` found. Throws when another parser of the reactor has run since. */
  get spanCount(): number {
    const { body } = this
    if (body.filledBy !== this) throw new Error('body spans were used after another parser had run')
    return body.count
  }

  /** Resets the parser for the next message of the same connection. */
  next(): void {
    llhttp.llhttp_reset(this.#at)
  }

  /** llhttp number of the request's method. */
  get method(): number {
    return llhttp.llhttp_get_method(this.#at)
  }

  /** Message of the last llhttp error. */
  get reason(): string {
    return text(llhttp.llhttp_get_error_reason(this.#at))
  }
}
