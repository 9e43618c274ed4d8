/** Random valid messages: the bytes that one side sends, and the parts that have to arrive at the other side. */
import type { Random } from './random.ts'

export interface RandomMessage {
  /** As sent, one character per byte. */
  readonly raw: string
  readonly start: string
  /** Field lines that pass, in order. */
  readonly fields: readonly string[]
  readonly body: string
  readonly trailers: readonly string[]
  readonly framing: 'none' | 'length' | 'chunked' | 'close'
  /** Whole 1xx heads in front of a response. */
  readonly interims: readonly string[]
}

const NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_!#$%&'*+.^`|~"
const VALUE = ' \tabcXYZ019,;="/()<>@?[]{}:\\\x80\xa0\xe4\xff'
const QUERY = "abcXYZ019/%2F.;,:=&!$'()*+@~_-?"
/** Pieces of paths that the gateway forwards unchanged. */
const PATH = [...['a', 'XYZ', '019', '.b', '..c', '/d', '/.e', '%20', '%2B', '%C3%A9', '%25'], ...",:=&!$'()*+@~_-"]
const BODY = 'abc\r\n0123456789\0\xff GET / HTTP/1.1'

/** Lengths around those at which buffers end, and many small ones. */
const EDGES = [0, 1, 2, 15, 16, 255, 256, 4095, 4096, 16_383, 16_384, 16_385, 32_768, 65_535, 65_536, 65_537, 131_072]

function bodyLength(random: Random): number {
  switch (random.below(8)) {
    case 0:
      return random.pick(EDGES)
    case 1:
      return random.below(20_000)
    case 2:
      return random.once(3) ? random.below(400_000) : random.below(80_000)
    default:
      return random.below(300)
  }
}

/** A large body repeats one random text: its content does not matter, but no two bodies are equal. */
function bodyOf(random: Random): string {
  const length = bodyLength(random)
  const stretch = random.text(Math.min(length, random.between(50, 400)), BODY)
  return stretch.length === 0 ? '' : stretch.repeat(Math.ceil(length / stretch.length)).slice(0, length)
}

/** The prefix keeps random names from being names with a meaning. */
function fieldsOf(random: Random, most: number, prefix: string): string[] {
  return Array.from({ length: random.below(most + 1) }, () => {
    const name = prefix + random.text(random.between(1, random.once(10) ? 200 : 24), NAME)
    return `${name}:${random.text(random.below(random.once(8) ? 300 : 40), VALUE)}`
  })
}

/** Chunks of random sizes, with extensions and odd spellings now and then. */
function chunksOf(random: Random, body: string): string {
  let raw = ''
  const longest = random.pick([1, 7, 100, 5000, 70_000, 400_000])
  for (let at = 0; at < body.length; ) {
    // Small chunks are few, or their extensions and zeros would exceed the limit.
    const size = Math.min(body.length - at, body.length > 400 * longest ? 5000 : random.between(1, longest))
    const digits = random.once(4) ? size.toString(16).toUpperCase() : size.toString(16)
    const extension = random.once(20) ? random.pick([';a', ';a=b', ';a="b;c"']) : ''
    raw += `${random.once(8) ? '0' : ''}${digits}${extension}\r\n${body.slice(at, at + size)}\r\n`
    at += size
  }
  return raw
}

interface Framed {
  readonly framing: RandomMessage['framing']
  readonly field: readonly string[]
  readonly rest: string
  readonly body: string
  readonly trailers: readonly string[]
}

function framed(random: Random, kinds: readonly RandomMessage['framing'][]): Framed {
  const framing = random.pick(kinds)
  const none = { framing, field: [], rest: '', body: '', trailers: [] }
  if (framing === 'none') return none
  const body = bodyOf(random)
  if (framing === 'close') return { ...none, rest: body, body }
  if (framing === 'length') return { ...none, field: [`Content-Length: ${body.length}`], rest: body, body }
  const trailers = random.once(3) ? fieldsOf(random, 4, 'T-') : []
  const rest = `${chunksOf(random, body)}0\r\n${trailers.map(line => `${line}\r\n`).join('')}\r\n`
  return { framing, field: ['Transfer-Encoding: chunked'], rest, body, trailers: trailers.map(asTrailer) }
}

/** A trailer line leaves with one space behind its colon, and without white space in front of its value. */
function asTrailer(line: string): string {
  const colon = line.indexOf(':')
  return `${line.slice(0, colon)}: ${line.slice(colon + 1).replace(/^[ \t]+/, '')}`
}

function withFraming(random: Random, fields: readonly string[], framing: readonly string[]): string[] {
  const at = random.below(fields.length + 1)
  return [...fields.slice(0, at), ...framing, ...fields.slice(at)]
}

const passing = (lines: readonly string[]) => lines.filter(line => !line.startsWith('Transfer-Encoding'))
const head = (start: string, lines: readonly string[]) => `${start}\r\n${lines.map(line => `${line}\r\n`).join('')}\r\n`

/** A request to `/echo/<key>…`. */
export function randomRequest(random: Random, key: string): RandomMessage {
  const { framing, field, rest, body, trailers } = framed(random, ['none', 'none', 'length', 'chunked', 'chunked'])
  const method = random.pick(
    framing === 'none' ? ['GET', 'HEAD', 'DELETE', 'OPTIONS'] : ['POST', 'PUT', 'PATCH', 'GET'],
  )
  const path = Array.from({ length: random.below(30) }, () => random.pick(PATH)).join('')
  const query = random.once(2) ? `?${random.text(random.below(30), QUERY)}` : ''
  const target = `/${key}/x${path.replace(/%25(?=[0-9a-f]{2}|%25)/gi, '')}${query}`
  const lines = withFraming(random, fieldsOf(random, 12, 'X-'), field)
  return {
    raw: head(`${method} /echo${target} HTTP/1.1`, ['Host: gateway.test', ...lines]) + rest,
    start: `${method} ${target} HTTP/1.1`,
    fields: passing(lines),
    framing,
    body,
    trailers,
    interims: [],
  }
}

/** A response to a request with this method. With framing `close` the backend has to end the connection. */
export function randomResponse(random: Random, method: string): RandomMessage {
  const isHead = method === 'HEAD'
  const framings = isHead ? (['none'] as const) : (['length', 'length', 'chunked', 'chunked', 'close'] as const)
  const { framing, field, rest, body, trailers } = framed(random, framings)
  const start = `HTTP/1.1 ${random.pick([200, 201, 299, 404, 500, 599])} ${random.text(random.below(20), VALUE)}`
  const lines = withFraming(random, ['Date: Thu, 01 Jan 1970 00:00:00 GMT', ...fieldsOf(random, 12, 'X-')], field)
  const interims = Array.from({ length: random.once(4) ? random.between(1, 3) : 0 }, () =>
    head(`HTTP/1.1 ${random.pick([100, 102, 103, 199])} Odd`, fieldsOf(random, 3, 'X-')),
  )
  return {
    raw: interims.join('') + head(start, lines) + rest,
    start,
    fields: passing(lines),
    framing,
    body,
    trailers,
    interims,
  }
}
