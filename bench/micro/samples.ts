/** Messages in the arena for the benchmarks of the codec, and readers over them. */
import { FieldKinds } from '../../src/http1/field-kinds.ts'
import { Head } from '../../src/http1/head.ts'
import { arena, Parser } from '../../src/http1/llhttp.ts'
import { type HeadSource, MessageReader } from '../../src/http1/message-reader.ts'
import { requestHead } from '../request-head.ts'

const FIELDS_MAX = 128
const LIMITS = { headBytesMax: 16_384, targetBytesMax: 8192, extensionBytesMax: 1024, trailerBytesMax: 8192 }

interface Sample {
  readonly name: string
  readonly at: number
  readonly end: number
  readonly reader: MessageReader
}

/** The bench never splits a head, so nothing is ever pinned but by a split it asks for. */
function heads(): HeadSource {
  return { scratch: new Head(FIELDS_MAX), pin: () => new Head(FIELDS_MAX), unpin: () => {} }
}

function sample(name: string, text: string, parser: Parser | undefined): Sample {
  const chunk = arena.lend(text.length)
  if (chunk === undefined || parser === undefined) throw new Error('the arena is exhausted')
  arena.bytes.latin1Write(text, chunk.offset)
  const reader = new MessageReader(parser, arena, new FieldKinds('activityid'), heads(), heads(), LIMITS)
  return { name, at: chunk.offset, end: chunk.offset + text.length, reader }
}

const RESPONSE = [
  'HTTP/1.1 200 OK',
  'Server: nginx/1.22.1',
  'Date: Tue, 15 Nov 1994 08:12:31 GMT',
  'Content-Type: application/json',
  'Content-Length: 1024',
  'Connection: keep-alive',
].join('\r\n')

/** Reads a head whole; the body, if any, stays out. */
export function readHead({ reader, at, end }: Sample): void {
  reader.begin(at)
  if (!reader.readHead(at, end, false)) throw new Error(reader.broken?.rule ?? 'the head is incomplete')
}

export const REQUEST_SAMPLE = sample('request head, 1 KB', requestHead('GET', '/bench/1k'), Parser.forRequests())
export const RESPONSE_SAMPLE = sample(
  'response head and 1 KiB body',
  `${RESPONSE}\r\n\r\n${'x'.repeat(1024)}`,
  Parser.forResponses(),
)
