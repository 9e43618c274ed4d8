/** Requests at the limits that the configuration sets, and one unit beyond each limit. */
import { chunked, GET_X, get, line, POST_X, post, type RequestCase } from './request-case.ts'

const HEAD = { 'header.max_bytes': 512, 'target.max_bytes': 256 }
const COUNT = { 'header.max_count': 4 }
const TARGET = { 'target.max_bytes': 32 }
const BODY = { 'body.max_bytes': 10 }

/** A GET whose head has `length` bytes. */
function headOf(length: number): { readonly raw: string; readonly field: string } {
  const field = `A: ${'a'.repeat(length - get('A: ').length)}`
  return { raw: get(field), field }
}

/** A target of `length` bytes below /echo. */
const targetOf = (length: number) => `/echo${'/'.padEnd(length - 5, 'a')}`

const TEN = '0123456789'

export const LIMIT_REQUESTS: readonly RequestCase[] = [
  {
    name: 'header.max_bytes: a head at the limit is accepted',
    raw: headOf(512).raw,
    status: 200,
    reaches: { line: GET_X, fields: [headOf(512).field] },
    http: HEAD,
  },
  {
    name: 'header.max_bytes: a head one byte over the limit is refused with 431',
    raw: headOf(513).raw,
    status: 431,
    http: HEAD,
  },
  {
    name: 'header.max_bytes: a head far over the limit is refused with 431',
    raw: headOf(5000).raw,
    status: 431,
    http: HEAD,
  },
  {
    name: 'header.max_bytes: an unfinished value over the limit is refused with 431',
    raw: `GET /echo/x HTTP/1.1\r\nHost: gateway.test\r\nA: ${'a'.repeat(600)}`,
    status: 431,
    http: HEAD,
  },
  {
    name: 'header.max_bytes: an unfinished field name over the limit is refused with 431',
    raw: `GET /echo/x HTTP/1.1\r\nHost: gateway.test\r\n${'a'.repeat(600)}`,
    status: 431,
    http: HEAD,
  },
  {
    name: 'header.max_bytes: unfinished fields over the limit are refused with 431',
    raw: `GET /echo/x HTTP/1.1\r\nHost: gateway.test\r\n${'A: b\r\n'.repeat(100)}`,
    status: 431,
    http: HEAD,
  },
  {
    name: 'header.max_bytes: the limit does not include the body',
    raw: post(['Content-Length: 600'], 'a'.repeat(600)),
    status: 200,
    reaches: { line: POST_X, fields: ['Content-Length: 600'], body: 'a'.repeat(600) },
    http: HEAD,
  },
  {
    name: 'header.max_count: a request with as many fields as the limit is accepted',
    raw: get('A: 1', 'B: 2', 'C: 3'),
    status: 200,
    reaches: { line: GET_X, fields: ['A: 1', 'B: 2', 'C: 3'] },
    http: COUNT,
  },
  {
    name: 'header.max_count: one field more than the limit is refused with 431',
    raw: get('A: 1', 'B: 2', 'C: 3', 'D: 4'),
    status: 431,
    http: COUNT,
  },
  {
    name: 'header.max_count: many more fields than the limit are refused with 431',
    raw: get(...Array(40).fill('A: 1')),
    status: 431,
    http: COUNT,
  },
  {
    name: 'target.max_bytes: a target at the limit is accepted',
    raw: line(`GET ${targetOf(32)} HTTP/1.1`),
    status: 200,
    reaches: { line: `GET ${targetOf(32).slice(5)} HTTP/1.1` },
    http: TARGET,
  },
  {
    name: 'target.max_bytes: a target one byte over the limit is refused with 414',
    raw: line(`GET ${targetOf(33)} HTTP/1.1`),
    status: 414,
    http: TARGET,
  },
  {
    name: 'target.max_bytes: a target longer than header.max_bytes is refused with 414',
    raw: line(`GET ${targetOf(700)} HTTP/1.1`),
    status: 414,
    http: HEAD,
  },
  {
    name: 'target.max_bytes: an unfinished target over the limit is refused with 414',
    raw: `GET ${targetOf(700)}`,
    status: 414,
    http: HEAD,
  },
  {
    name: 'body.max_bytes: a body at the limit is accepted',
    raw: post(['Content-Length: 10'], TEN),
    status: 200,
    reaches: { line: POST_X, fields: ['Content-Length: 10'], body: TEN },
    http: BODY,
  },
  {
    name: 'body.max_bytes: a Content-Length over the limit is refused with 102511',
    raw: post(['Content-Length: 11'], `${TEN}x`),
    status: 400,
    http: BODY,
  },
  {
    name: 'body.max_bytes: a Content-Length over the limit is refused before the body arrives',
    raw: post(['Content-Length: 99999999999'], ''),
    status: 400,
    http: BODY,
  },
  {
    name: 'body.max_bytes: a chunked body at the limit is accepted',
    raw: chunked(`5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n`),
    status: 200,
    reaches: { line: POST_X, body: TEN, chunked: true },
    http: BODY,
  },
  {
    name: 'body.max_bytes: a chunked body one byte over the limit is refused with 102511',
    raw: chunked(`a\r\n${TEN}\r\n1\r\nx\r\n0\r\n\r\n`),
    status: 400,
    mayReachPartially: true,
    http: BODY,
  },
  {
    name: 'body.max_bytes: an unfinished chunked body over the limit is refused with 102511',
    raw: chunked('5\r\nhello\r\n'.repeat(10)),
    status: 400,
    mayReachPartially: true,
    http: BODY,
  },
  {
    name: 'body.max_bytes: a chunk size over the limit is refused with 102511',
    raw: chunked(`1000\r\n${'a'.repeat(20)}`),
    status: 400,
    mayReachPartially: true,
    http: BODY,
  },
]
