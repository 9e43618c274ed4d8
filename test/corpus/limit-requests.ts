/** Limits of what a client may send, each a key of the configuration: at the limit, and one beyond it. */
import { chunked, GET_X, get, line, POST_X, post, type RequestCase } from './request-case.ts'

const HEAD = { 'header.max_bytes': 512, 'target.max_bytes': 256 }
const COUNT = { 'header.max_count': 4 }
const TARGET = { 'target.max_bytes': 32 }
const BODY = { 'body.max_bytes': 10 }

/** A GET whose head has so many bytes. */
function headOf(length: number): { readonly raw: string; readonly field: string } {
  const field = `A: ${'a'.repeat(length - get('A: ').length)}`
  return { raw: get(field), field }
}

/** A target of so many bytes below /echo. */
const targetOf = (length: number) => `/echo${'/'.padEnd(length - 5, 'a')}`

const TEN = '0123456789'

export const LIMIT_REQUESTS: readonly RequestCase[] = [
  {
    name: 'header.max_bytes: a head as long as that',
    raw: headOf(512).raw,
    status: 200,
    reaches: { line: GET_X, fields: [headOf(512).field] },
    http: HEAD,
  },
  { name: 'header.max_bytes: one byte more is 431', raw: headOf(513).raw, status: 431, http: HEAD },
  { name: 'header.max_bytes: many bytes more are 431', raw: headOf(5000).raw, status: 431, http: HEAD },
  {
    name: 'header.max_bytes: a field without end is 431',
    raw: `GET /echo/x HTTP/1.1\r\nHost: gateway.test\r\nA: ${'a'.repeat(600)}`,
    status: 431,
    http: HEAD,
  },
  {
    name: 'header.max_bytes: a name without end is 431',
    raw: `GET /echo/x HTTP/1.1\r\nHost: gateway.test\r\n${'a'.repeat(600)}`,
    status: 431,
    http: HEAD,
  },
  {
    name: 'header.max_bytes: fields without end are 431',
    raw: `GET /echo/x HTTP/1.1\r\nHost: gateway.test\r\n${'A: b\r\n'.repeat(100)}`,
    status: 431,
    http: HEAD,
  },
  {
    name: 'header.max_bytes: the body does not count',
    raw: post(['Content-Length: 600'], 'a'.repeat(600)),
    status: 200,
    reaches: { line: POST_X, fields: ['Content-Length: 600'], body: 'a'.repeat(600) },
    http: HEAD,
  },
  {
    name: 'header.max_count: as many fields as that',
    raw: get('A: 1', 'B: 2', 'C: 3'),
    status: 200,
    reaches: { line: GET_X, fields: ['A: 1', 'B: 2', 'C: 3'] },
    http: COUNT,
  },
  { name: 'header.max_count: one more is 431', raw: get('A: 1', 'B: 2', 'C: 3', 'D: 4'), status: 431, http: COUNT },
  { name: 'header.max_count: many more are 431', raw: get(...Array(40).fill('A: 1')), status: 431, http: COUNT },
  {
    name: 'target.max_bytes: a target as long as that',
    raw: line(`GET ${targetOf(32)} HTTP/1.1`),
    status: 200,
    reaches: { line: `GET ${targetOf(32).slice(5)} HTTP/1.1` },
    http: TARGET,
  },
  {
    name: 'target.max_bytes: one byte more is 414',
    raw: line(`GET ${targetOf(33)} HTTP/1.1`),
    status: 414,
    http: TARGET,
  },
  {
    name: 'target.max_bytes: a target longer than a head may be is 414',
    raw: line(`GET ${targetOf(700)} HTTP/1.1`),
    status: 414,
    http: HEAD,
  },
  {
    name: 'target.max_bytes: a target without end is 414',
    raw: `GET ${targetOf(700)}`,
    status: 414,
    http: HEAD,
  },
  {
    name: 'body.max_bytes: a body as long as that',
    raw: post(['Content-Length: 10'], TEN),
    status: 200,
    reaches: { line: POST_X, fields: ['Content-Length: 10'], body: TEN },
    http: BODY,
  },
  {
    name: 'body.max_bytes: a length beyond it is 102511',
    raw: post(['Content-Length: 11'], `${TEN}x`),
    status: 400,
    http: BODY,
  },
  {
    name: 'body.max_bytes: 102511 comes before the body',
    raw: post(['Content-Length: 99999999999'], ''),
    status: 400,
    http: BODY,
  },
  {
    name: 'body.max_bytes: chunks as long as that',
    raw: chunked(`5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n`),
    status: 200,
    reaches: { line: POST_X, body: TEN, chunked: true },
    http: BODY,
  },
  {
    name: 'body.max_bytes: one byte more in chunks is 102511',
    raw: chunked(`a\r\n${TEN}\r\n1\r\nx\r\n0\r\n\r\n`),
    status: 400,
    breaks: true,
    http: BODY,
  },
  {
    name: 'body.max_bytes: chunks without end are 102511',
    raw: chunked('5\r\nhello\r\n'.repeat(10)),
    status: 400,
    breaks: true,
    http: BODY,
  },
  {
    name: 'body.max_bytes: one chunk that is longer is 102511',
    raw: chunked(`1000\r\n${'a'.repeat(20)}`),
    status: 400,
    breaks: true,
    http: BODY,
  },
]
