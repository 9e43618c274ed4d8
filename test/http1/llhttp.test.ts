/** The llhttp build that src/http1/llhttp.ts relies on: version, exports, callbacks, and size of a parser. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { Head } from '../../src/http1/head.ts'
import { BodySpans } from '../../src/http1/body.ts'
import { arena, methodName, PARSE_RESULT, Parser } from '../../src/http1/llhttp.ts'
import { Random, SEED } from '../harness/random.ts'

const load = createRequire(import.meta.url)
const spans = new BodySpans()

/** Static members of WebAssembly.Module, which the declarations at hand do not have. */
interface ModuleReader {
  exports(module: WebAssembly.Module): readonly { readonly name: string }[]
  imports(module: WebAssembly.Module): readonly { readonly module: string; readonly name: string }[]
}

const binary = load('undici/lib/llhttp/llhttp_simd-wasm.js') as Uint8Array<ArrayBuffer>
const compiled = new WebAssembly.Module(binary)
const reader = WebAssembly.Module as unknown as ModuleReader

test('undici is pinned to the version whose llhttp build was reviewed', () => {
  const { version } = load('undici/package.json') as { version: string }
  const ours = load('../../package.json') as { dependencies: Record<string, string> }
  assert.equal(version, '8.12.4')
  assert.equal(ours.dependencies.undici, version, 'pinned exactly')
})

test('the build exports every function that is called', () => {
  const names = reader.exports(compiled).map(({ name }) => name)
  for (const name of [
    'memory',
    '_initialize',
    'malloc',
    'llhttp_alloc',
    'llhttp_reset',
    'llhttp_resume',
    'llhttp_execute',
    'llhttp_get_method',
    'llhttp_get_error_pos',
    'llhttp_get_error_reason',
  ]) {
    assert.ok(names.includes(name), name)
  }
})

test('the build calls only the callbacks that are offered; chunk extensions have none', () => {
  assert.deepEqual(
    reader.imports(compiled).map(({ module, name }) => `${module}.${name}`),
    [
      'headers_complete',
      'message_begin',
      'url',
      'status',
      'header_field',
      'header_value',
      'body',
      'message_complete',
    ].map(name => `env.wasm_on_${name}`),
  )
})

/** Messages that take a parser through most of its states. */
const MESSAGES = [
  'GET /a HTTP/1.1\r\nHost: a\r\nConnection: close, upgrade\r\nUpgrade: x\r\n\r\n',
  'POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a="b"\r\nhello\r\n0\r\nT: u\r\n\r\n',
  'PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 12345678901234\r\n\r\nhello',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'GET /a HTTP/1.1\r\nBad Name: a\r\n\r\n',
]

/** sizeof(llhttp_t) of this build; parsers are copied at a stride of 96. */
const PARSER_BYTES = 80

test(`a parser writes nothing beyond its ${PARSER_BYTES} bytes`, () => {
  const silent = () => 0
  const env = Object.fromEntries(reader.imports(compiled).map(({ name }) => [name, silent]))
  const { exports } = new WebAssembly.Instance(compiled, { env })
  const llhttp = exports as unknown as {
    memory: WebAssembly.Memory
    _initialize(): void
    malloc(size: number): number
    llhttp_alloc(type: number): number
    llhttp_execute(parser: number, at: number, length: number): number
  }
  llhttp._initialize()
  const template = llhttp.llhttp_alloc(1)
  const region = llhttp.malloc(512)
  const text = llhttp.malloc(4096)
  const bytes = new Uint8Array(llhttp.memory.buffer)
  for (const message of MESSAGES) {
    bytes.fill(0xaa, region, region + 512)
    bytes.copyWithin(region + 128, template, template + PARSER_BYTES)
    bytes.set(Buffer.from(message, 'latin1'), text)
    for (let i = 0; i < message.length; i++) llhttp.llhttp_execute(region + 128, text + i, 1)
    assert.ok(
      bytes.subarray(region, region + 128).every(byte => byte === 0xaa),
      'bytes in front',
    )
    assert.ok(
      bytes.subarray(region + 128 + PARSER_BYTES, region + 512).every(byte => byte === 0xaa),
      'bytes behind',
    )
  }
})

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH', 'M-SEARCH', 'QUERY']

for (const method of methods) {
  test(`the number of ${method} has its name`, () => {
    const parser = Parser.forRequests(spans)!
    const target = method === 'CONNECT' ? 'a:80' : '/'
    parse(parser, `${method} ${target} HTTP/1.1\r\n\r\n`, new Head(8))
    assert.equal(methodName(parser.method), method)
    parser.release()
  })
}

const chunk = arena.acquire(65_536)!

function parse(parser: Parser, text: string, head: Head | null): number {
  arena.bytes.latin1Write(text, chunk.offset)
  return parser.execute(chunk.offset, chunk.offset + text.length, head, new Head(8), false)
}

const at = (offset: number, length: number) => arena.bytes.latin1Slice(offset, offset + length)

test('spans are offsets of names and values, whole or split anywhere', () => {
  const text = 'GET /path?q HTTP/1.1\r\nHost: a.test\r\nEmpty:\r\nB:  x y \t\r\n\r\n'
  for (let cut = 0; cut <= text.length; cut++) {
    const parser = Parser.forRequests(spans)!
    const head = new Head(8)
    arena.bytes.latin1Write(text, chunk.offset)
    const ends = cut === 0 || cut === text.length ? [text.length] : [cut, text.length]
    let from = 0
    let result = -1
    for (const to of ends) {
      result = parser.execute(chunk.offset + from, chunk.offset + to, head, new Head(8), false)
      from = to
    }
    assert.equal(result, PARSE_RESULT.PAUSED, `cut at ${cut}`)
    assert.ok(parser.isMessageComplete)
    assert.equal(parser.end, chunk.offset + text.length)
    assert.equal(at(head.targetAt, head.targetLength), '/path?q')
    const fields = [0, 1, 2].map(i => [at(head.nameAt(i), head.nameLength(i)), head.value(arena.bytes, i)])
    assert.deepEqual(
      fields,
      [
        ['Host', 'a.test'],
        ['Empty', ''],
        ['B', 'x y'],
      ],
      `cut at ${cut}`,
    )
    parser.release()
  }
})

test('a request with a body stops behind its head, and goes on from there', () => {
  const parser = Parser.forRequests(spans)!
  const text = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET'
  assert.equal(parse(parser, text, new Head(8)), PARSE_RESULT.PAUSED)
  assert.ok(parser.isHeadComplete && !parser.isMessageComplete)
  assert.equal(parser.end - chunk.offset, text.indexOf('hello'))
  assert.equal(parser.execute(parser.end, chunk.offset + text.length, null, new Head(8), false), PARSE_RESULT.PAUSED)
  assert.ok(parser.isMessageComplete)
  assert.equal(parser.spanCount, 1)
  assert.equal(at(spans.offsets[0]!, spans.offsets[1]!), 'hello')
  assert.equal(parser.end - chunk.offset, text.indexOf('GET'))
  parser.release()
})

test('a head that is full reports the overflow', () => {
  const parser = Parser.forRequests(spans)!
  const head = new Head(2)
  assert.notEqual(parse(parser, 'GET / HTTP/1.1\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n', head), PARSE_RESULT.PAUSED)
  assert.ok(head.overflowed)
  parser.release()
})

test('releasing a parser twice throws', () => {
  const parser = Parser.forResponses(spans)!
  parser.release()
  assert.throws(() => parser.release(), /twice/)
})

test(`parsers copied at the stride are independent (seed ${SEED})`, () => {
  const random = new Random(SEED)
  const inUse = Parser.inUse
  const wires = Array.from({ length: 24 }, (_, i) => {
    const body = `body-${i}`.repeat(random.between(1, 9))
    const head = `POST /${i} HTTP/1.1\r\nHost: ${i}\r\nContent-Length: ${body.length}\r\n\r\n`
    return {
      text: head + body,
      body,
      parser: Parser.forRequests(spans)!,
      head: new Head(8),
      read: 0,
      got: '',
      own: arena.acquire(2048)!,
    }
  })
  for (const { text, own } of wires) arena.bytes.latin1Write(text, own.offset)
  const open = [...wires]
  while (open.length > 0) {
    const wire = random.pick(open)
    const next = Math.min(wire.text.length, wire.read + random.between(1, 5))
    const isHead = wire.read < wire.text.length - wire.body.length
    wire.parser.execute(
      wire.own.offset + wire.read,
      wire.own.offset + next,
      isHead ? wire.head : null,
      new Head(8),
      false,
    )
    for (let i = 0; i < wire.parser.spanCount; i++) wire.got += at(spans.offsets[2 * i]!, spans.offsets[2 * i + 1]!)
    wire.read = wire.parser.end - wire.own.offset
    if (wire.parser.isMessageComplete) open.splice(open.indexOf(wire), 1)
  }
  for (const [i, { got, body, head, parser, own }] of wires.entries()) {
    assert.equal(got, body)
    assert.equal(at(head.targetAt, head.targetLength), `/${i}`)
    parser.release()
    arena.release(own)
  }
  assert.equal(Parser.inUse, inUse)
})
