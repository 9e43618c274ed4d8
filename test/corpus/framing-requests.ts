/** Where a request ends: Content-Length and Transfer-Encoding (RFC 9112 6). */
import { GET_X, get, POST_X, post, type RequestCase } from './request-case.ts'

const HELLO = '5\r\nhello\r\n0\r\n\r\n'
const SMUGGLED = 'GET /echo/smuggled HTTP/1.1\r\nHost: evil\r\n\r\n'

const refusedCodings: readonly (readonly [string, string, number])[] = [
  ['RFC 9112 6.3: a coding that does not end in chunked leaves the length unknown', 'gzip', 400],
  ['RFC 9112 6.3: identity is not a transfer coding any more', 'identity', 400],
  ['RFC 9112 6.3: chunked must come last', 'chunked, gzip', 400],
  ['RFC 9112 6.1: a coding in front of chunked that is not offered', 'gzip, chunked', 501],
  ['RFC 9112 7.1: chunked may be applied once only', 'chunked, chunked', 400],
  ['RFC 9112 6.1: a name that only begins like chunked', 'chunkedx', 400],
  ['RFC 9112 6.1: a name that only ends like chunked', 'xchunked', 400],
  ['RFC 9112 6.1: chunked in quotes is another name', '"chunked"', 400],
  ['RFC 9112 7: chunked takes no parameters', 'chunked;q=1', 400],
  ['RFC 9112 6.1: chunked behind a bracket', '[chunked', 400],
  ['RFC 9110 5.5: vertical tab in front of chunked', '\x0bchunked', 400],
  ['RFC 9110 5.5: vertical tab behind chunked', 'chunked\x0b', 400],
  ['RFC 9110 5.5: NUL behind chunked', 'chunked\0', 400],
  ['RFC 9110 5.5: DEL behind chunked', 'chunked\x7f', 400],
  ['RFC 9112 6.1: a non-breaking space is no white space', 'chunked\xa0', 400],
  ['RFC 9112 6.1: an empty list of codings', '', 400],
  ['RFC 9112 6.1: a tab behind the coding, which parsers read in two ways,', 'chunked \t', 400],
]

const refusedLengths: readonly (readonly [string, string])[] = [
  ['RFC 9110 8.6: Content-Length with a plus sign', '+5'],
  ['RFC 9110 8.6: Content-Length with a minus sign', '-5'],
  ['RFC 9110 8.6: Content-Length of minus nothing', '-0'],
  ['RFC 9110 8.6: Content-Length in hexadecimal', '0x5'],
  ['RFC 9110 8.6: Content-Length with hexadecimal digits', 'a'],
  ['RFC 9110 8.6: Content-Length with white space inside', '5 5'],
  ['RFC 9110 8.6: Content-Length with a tab inside', '5\t5'],
  ['RFC 9112 6.3: Content-Length as a list of equal numbers', '5, 5'],
  ['RFC 9112 6.3: Content-Length as a list of different numbers', '5, 6'],
  ['RFC 9112 6.3: Content-Length with an empty list element', '5,'],
  ['RFC 9110 8.6: Content-Length with a fraction', '5.0'],
  ['RFC 9110 8.6: Content-Length with an exponent', '5e0'],
  ['RFC 9110 8.6: Content-Length with a suffix', '5;'],
  ['RFC 9110 8.6: Content-Length in quotes', '"5"'],
  ['RFC 9110 8.6: Content-Length with digits beyond ASCII', '\xb2'],
  ['RFC 9110 8.6: an empty Content-Length', ''],
  ['RFC 9110 8.6: Content-Length with a tab behind, which parsers read in two ways,', '5\t'],
  ['RFC 9110 8.6: Content-Length behind a form feed', '\x0c5'],
  ['RFC 9110 8.6: Content-Length that overflows 64 bits to 5', '18446744073709551621'],
  ['RFC 9110 8.6: Content-Length that overflows 64 bits to 0', '18446744073709551616'],
  ['RFC 9110 8.6: Content-Length with more digits than numbers can hold', '9007199254740993'],
]

const bothWays: readonly (readonly [string, readonly string[]])[] = [
  ['Transfer-Encoding beside Content-Length', ['Transfer-Encoding: chunked', 'Content-Length: 5']],
  ['Content-Length beside Transfer-Encoding', ['Content-Length: 5', 'Transfer-Encoding: chunked']],
  ['Content-Length 0 beside Transfer-Encoding', ['Content-Length: 0', 'Transfer-Encoding: chunked']],
  ['Content-Length beside an unknown coding', ['Content-Length: 5', 'Transfer-Encoding: x']],
  ['Transfer-Encoding in odd case beside Content-Length', ['tRANSFER-eNCODING: chunked', 'Content-Length: 5']],
  ['both framings far apart', ['Content-Length: 5', 'A: b', 'C: d', 'Transfer-Encoding: chunked']],
  ['both framings, the coding behind white space', ['Content-Length: 5', 'Transfer-Encoding: \t chunked']],
]

const twice: readonly (readonly [string, readonly string[]])[] = [
  ['RFC 9112 6.3: equal Content-Length fields', ['Content-Length: 5', 'Content-Length: 5']],
  ['RFC 9112 6.3: differing Content-Length fields', ['Content-Length: 5', 'Content-Length: 6']],
  ['RFC 9112 6.3: Content-Length twice in odd case', ['Content-Length: 5', 'cONTENT-lENGTH: 5']],
  ['RFC 9112 6.1: chunked twice in two fields', ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked']],
  ['RFC 9112 6.1: TE.TE, identity behind', ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity']],
  ['RFC 9112 6.1: TE.TE, identity in front', ['Transfer-Encoding: identity', 'Transfer-Encoding: chunked']],
  ['RFC 9112 6.1: TE.TE, an empty one behind', ['Transfer-Encoding: chunked', 'Transfer-Encoding:']],
  ['RFC 9112 6.1: TE.TE, case differs', ['Transfer-Encoding: chunked', 'Transfer-encoding: cow']],
]

const disguised: readonly (readonly [string, readonly string[]])[] = [
  ['white space before the colon of Transfer-Encoding', ['Transfer-Encoding : chunked']],
  ['a tab before the colon of Transfer-Encoding', ['Transfer-Encoding\t: chunked']],
  ['white space before the colon of Content-Length', ['Content-Length : 5']],
  ['white space in front of Transfer-Encoding', ['A: b', ' Transfer-Encoding: chunked']],
  ['a tab in front of Content-Length', ['A: b', '\tContent-Length: 5']],
  ['a folded Transfer-Encoding', ['Transfer-Encoding:', ' chunked']],
  ['a folded Content-Length', ['Content-Length: 1', ' 5']],
  ['a framing field behind a bare CR', ['A: b\rTransfer-Encoding: chunked']],
  ['a framing field behind a bare LF', ['A: b\nTransfer-Encoding: chunked']],
  ['a framing field behind NUL', ['A: b\0Transfer-Encoding: chunked']],
  ['a control character in the name of Transfer-Encoding', ['Transfer\x01Encoding: chunked']],
  ['a byte order mark in front of Content-Length', ['\xef\xbb\xbfContent-Length: 5']],
]

const served: readonly RequestCase[] = [
  {
    name: 'RFC 9112 6.2: a body of Content-Length bytes',
    raw: post(['Content-Length: 5'], 'hello'),
    status: 200,
    reaches: { line: POST_X, fields: ['Content-Length: 5'], body: 'hello' },
  },
  {
    name: 'RFC 9112 6.2: white space around the number is none of it',
    raw: post(['Content-Length: \t 5  '], 'hello'),
    status: 200,
    reaches: { line: POST_X, fields: ['Content-Length: \t 5  '], body: 'hello' },
  },
  {
    name: 'RFC 9110 8.6: leading zeros are decimal',
    raw: post(['Content-Length: 0005'], 'hello'),
    status: 200,
    reaches: { line: POST_X, fields: ['Content-Length: 0005'], body: 'hello' },
  },
  {
    name: 'RFC 9112 6.2: Content-Length 0 is no body',
    raw: post(['Content-Length: 0'], ''),
    status: 200,
    reaches: { line: POST_X, fields: ['Content-Length: 0'] },
  },
  {
    name: 'RFC 9112 6.3: without a framing field there is no body',
    raw: post([], ''),
    status: 200,
    reaches: { line: POST_X },
  },
  {
    name: 'RFC 9112 6.2: a GET may have a body',
    raw: `${get('Content-Length: 5')}hello`,
    status: 200,
    reaches: { line: GET_X, fields: ['Content-Length: 5'], body: 'hello' },
  },
  {
    name: 'RFC 9112 6.2: the body is opaque, a request within it is none',
    raw: post([`Content-Length: ${SMUGGLED.length}`], SMUGGLED),
    status: 200,
    reaches: { line: POST_X, fields: [`Content-Length: ${SMUGGLED.length}`], body: SMUGGLED },
  },
  {
    name: 'RFC 9112 7.1: the name of the coding is case-insensitive',
    raw: post(['transfer-ENCODING: ChUnKeD'], HELLO),
    status: 200,
    reaches: { line: POST_X, body: 'hello', chunked: true },
  },
  {
    name: 'RFC 9112 6.1: white space around the coding is none of it',
    raw: post(['Transfer-Encoding:\t chunked  '], HELLO),
    status: 200,
    reaches: { line: POST_X, body: 'hello', chunked: true },
  },
  {
    name: 'RFC 9110 5.1: fields that only look like framing pass and frame nothing',
    raw: get('Transfer_Encoding: chunked', 'Content_Length: 5', 'Transfer-Encodin: chunked', 'X-Content-Length: 5'),
    status: 200,
    reaches: {
      line: GET_X,
      fields: ['Transfer_Encoding: chunked', 'Content_Length: 5', 'Transfer-Encodin: chunked', 'X-Content-Length: 5'],
    },
  },
  {
    name: 'RFC 9110 5.1: fields as long as the framing fields frame nothing',
    raw: get('Fourteen-Bytes: 5', 'Seventeen-Bytes-X: chunked'),
    status: 200,
    reaches: { line: GET_X, fields: ['Fourteen-Bytes: 5', 'Seventeen-Bytes-X: chunked'] },
  },
  {
    name: 'RFC 9112 6.1: Transfer-Encoding in HTTP/1.0 is refused',
    raw: `POST /echo/x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n${HELLO}`,
    status: 400,
  },
  {
    name: 'RFC 9112 6.2: Content-Length in HTTP/1.0',
    raw: 'POST /echo/x HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello',
    status: 200,
    closes: true,
    reaches: { line: POST_X, fields: ['Content-Length: 5'], body: 'hello', host: '' },
  },
]

export const FRAMING_REQUESTS: readonly RequestCase[] = [
  ...served,
  ...bothWays.map(([name, fields]) => ({
    name: `RFC 9112 6.1: ${name} is refused`,
    raw: post(fields, HELLO),
    status: 400,
  })),
  ...twice.map(([name, fields]) => ({ name: `${name} are refused`, raw: post(fields, HELLO), status: 400 })),
  ...disguised.map(([name, fields]) => ({
    name: `RFC 9112 5: ${name} is refused`,
    raw: post(fields, HELLO),
    status: 400,
  })),
  ...refusedLengths.map(([name, value]) => ({
    name: `${name} is refused`,
    raw: post([`Content-Length: ${value}`], 'hello'),
    status: 400,
  })),
  ...refusedCodings.map(([name, value, status]) => ({
    name: `${name}: refused`,
    raw: post([`Transfer-Encoding: ${value}`], HELLO),
    status,
  })),
]
