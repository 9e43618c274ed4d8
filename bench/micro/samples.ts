/** Sample messages in the arena, with their readers. */
import { FieldKinds } from '../../src/http1/field-kinds.ts'
import { BodySpans } from '../../src/http1/body.ts'
import { HeadPool } from '../../src/http1/head.ts'
import { arena, Parser } from '../../src/http1/llhttp.ts'
import { MessageReader } from '../../src/http1/message-reader.ts'
import { requestHead } from '../request-head.ts'

const FIELDS_MAX = 128
const LIMITS = { headBytesMax: 16_384, targetBytesMax: 8192, extensionBytesMax: 1024, trailerBytesMax: 8192 }

interface MessageSample {
  readonly name: string
  readonly at: number
  readonly end: number
  readonly reader: MessageReader
}

const spans = new BodySpans()

function sample(name: string, text: string, parser: Parser | undefined): MessageSample {
  const chunk = arena.acquire(text.length)
  if (chunk === undefined || parser === undefined) throw new Error('the arena is exhausted')
  arena.bytes.latin1Write(text, chunk.offset)
  const heads = new HeadPool(FIELDS_MAX)
  const reader = new MessageReader(parser, new FieldKinds('activityid'), heads, new HeadPool(FIELDS_MAX), LIMITS)
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

/** Reads the head of a sample, without its body. */
export function readHead({ reader, at, end }: MessageSample): void {
  reader.begin(at)
  if (!reader.readHead(at, end, false)) throw new Error(reader.error?.rule ?? 'the head is incomplete')
}

export const REQUEST_SAMPLE = sample('request head, 1 KB', requestHead('GET', '/bench/1k'), Parser.forRequests(spans))
export const RESPONSE_SAMPLE = sample(
  'response head and 1 KiB body',
  `${RESPONSE}\r\n\r\n${'x'.repeat(1024)}`,
  Parser.forResponses(spans),
)
