/** Requests with valid and invalid framing: Content-Length and Transfer-Encoding (RFC 9112 6). */
import { GET_X, get, POST_X, post, type RequestCase } from './request-case.ts'

const HELLO = '5\r\nhello\r\n0\r\n\r\n'
const SMUGGLED = 'GET /echo/smuggled HTTP/1.1\r\nHost: evil\r\n\r\n'

const refusedCodings: readonly (readonly [string, string, number])[] = [
  ['RFC 9112 6.3: a transfer coding without chunked, which leaves the length unknown,', 'gzip', 400],
  ['RFC 9112 6.3: the removed transfer coding identity', 'identity', 400],
  ['RFC 9112 6.3: chunked that is not the last transfer coding', 'chunked, gzip', 400],
  ['RFC 9112 6.1: an unsupported transfer coding before chunked', 'gzip, chunked', 501],
  ['RFC 9112 7.1: chunked applied twice', 'chunked, chunked', 400],
  ['RFC 9112 6.1: a transfer coding that only begins with chunked', 'chunkedx', 400],
  ['RFC 9112 6.1: a transfer coding that only ends with chunked', 'xchunked', 400],
  ['RFC 9112 6.1: chunked in quotes', '"chunked"', 400],
  ['RFC 9112 7: chunked with a parameter', 'chunked;q=1', 400],
  ['RFC 9112 6.1: chunked after a bracket', '[chunked', 400],
  ['RFC 9110 5.5: a vertical tab before chunked', '\x0bchunked', 400],
  ['RFC 9110 5.5: a vertical tab after chunked', 'chunked\x0b', 400],
  ['RFC 9110 5.5: NUL after chunked', 'chunked\0', 400],
  ['RFC 9110 5.5: DEL after chunked', 'chunked\x7f', 400],
  ['RFC 9112 6.1: a non-breaking space after chunked', 'chunked\xa0', 400],
  ['RFC 9112 6.1: an empty Transfer-Encoding', '', 400],
  ['RFC 9112 6.1: a tab after chunked, which parsers read in two ways,', 'chunked \t', 400],
]

const refusedLengths: readonly (readonly [string, string])[] = [
  ['RFC 9110 8.6: Content-Length with a plus sign', '+5'],
  ['RFC 9110 8.6: Content-Length with a minus sign', '-5'],
  ['RFC 9110 8.6: Content-Length of minus zero', '-0'],
  ['RFC 9110 8.6: Content-Length with the prefix 0x', '0x5'],
  ['RFC 9110 8.6: Content-Length with a hexadecimal digit', 'a'],
  ['RFC 9110 8.6: Content-Length with a space inside', '5 5'],
  ['RFC 9110 8.6: Content-Length with a tab inside', '5\t5'],
  ['RFC 9112 6.3: Content-Length as a list of equal numbers', '5, 5'],
  ['RFC 9112 6.3: Content-Length as a list of different numbers', '5, 6'],
  ['RFC 9112 6.3: Content-Length with an empty list element', '5,'],
  ['RFC 9110 8.6: Content-Length with a fraction', '5.0'],
  ['RFC 9110 8.6: Content-Length with an exponent', '5e0'],
  ['RFC 9110 8.6: Content-Length with a suffix', '5;'],
  ['RFC 9110 8.6: Content-Length in quotes', '"5"'],
  ['RFC 9110 8.6: Content-Length with a digit beyond ASCII', '\xb2'],
  ['RFC 9110 8.6: an empty Content-Length', ''],
  ['RFC 9110 8.6: Content-Length with a trailing tab, which parsers read in two ways,', '5\t'],
  ['RFC 9110 8.6: Content-Length with a leading form feed', '\x0c5'],
  ['RFC 9110 8.6: Content-Length that overflows 64 bits to 5', '18446744073709551621'],
  ['RFC 9110 8.6: Content-Length that overflows 64 bits to 0', '18446744073709551616'],
  ['RFC 9110 8.6: Content-Length beyond the exact integers of a double', '9007199254740993'],
]

const bothFramings: readonly (readonly [string, readonly string[]])[] = [
  ['Transfer-Encoding beside Content-Length', ['Transfer-Encoding: chunked', 'Content-Length: 5']],
  ['Content-Length beside Transfer-Encoding', ['Content-Length: 5', 'Transfer-Encoding: chunked']],
  ['Content-Length 0 beside Transfer-Encoding', ['Content-Length: 0', 'Transfer-Encoding: chunked']],
  ['Content-Length beside an unknown transfer coding', ['Content-Length: 5', 'Transfer-Encoding: x']],
  ['Transfer-Encoding in mixed case beside Content-Length', ['tRANSFER-eNCODING: chunked', 'Content-Length: 5']],
  ['Content-Length far from Transfer-Encoding', ['Content-Length: 5', 'A: b', 'C: d', 'Transfer-Encoding: chunked']],
  [
    'Content-Length beside Transfer-Encoding with leading white space',
    ['Content-Length: 5', 'Transfer-Encoding: \t chunked'],
  ],
]

const repeated: readonly (readonly [string, readonly string[]])[] = [
  ['RFC 9112 6.3: two equal Content-Length fields', ['Content-Length: 5', 'Content-Length: 5']],
  ['RFC 9112 6.3: two different Content-Length fields', ['Content-Length: 5', 'Content-Length: 6']],
  ['RFC 9112 6.3: two Content-Length fields in different case', ['Content-Length: 5', 'cONTENT-lENGTH: 5']],
  [
    'RFC 9112 6.1: two Transfer-Encoding fields with chunked',
    ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'],
  ],
  [
    'RFC 9112 6.1: two Transfer-Encoding fields, chunked then identity,',
    ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'],
  ],
  [
    'RFC 9112 6.1: two Transfer-Encoding fields, identity then chunked,',
    ['Transfer-Encoding: identity', 'Transfer-Encoding: chunked'],
  ],
  [
    'RFC 9112 6.1: two Transfer-Encoding fields, chunked then empty,',
    ['Transfer-Encoding: chunked', 'Transfer-Encoding:'],
  ],
  [
    'RFC 9112 6.1: two Transfer-Encoding fields in different case',
    ['Transfer-Encoding: chunked', 'Transfer-encoding: cow'],
  ],
]

const disguised: readonly (readonly [string, readonly string[]])[] = [
  ['a space before the colon of Transfer-Encoding', ['Transfer-Encoding : chunked']],
  ['a tab before the colon of Transfer-Encoding', ['Transfer-Encoding\t: chunked']],
  ['a space before the colon of Content-Length', ['Content-Length : 5']],
  ['a space before Transfer-Encoding', ['A: b', ' Transfer-Encoding: chunked']],
  ['a tab before Content-Length', ['A: b', '\tContent-Length: 5']],
  ['a folded Transfer-Encoding', ['Transfer-Encoding:', ' chunked']],
  ['a folded Content-Length', ['Content-Length: 1', ' 5']],
  ['a framing field after a bare CR', ['A: b\rTransfer-Encoding: chunked']],
  ['a framing field after a bare LF', ['A: b\nTransfer-Encoding: chunked']],
  ['a framing field after NUL', ['A: b\0Transfer-Encoding: chunked']],
  ['a control character in the name of Transfer-Encoding', ['Transfer\x01Encoding: chunked']],
  ['a byte order mark before Content-Length', ['\xef\xbb\xbfContent-Length: 5']],
]

const served: readonly RequestCase[] = [
  {
    name: 'RFC 9112 6.2: a body of Content-Length bytes is forwarded',
    raw: post(['Content-Length: 5'], 'hello'),
    status: 200,
    reaches: { line: POST_X, fields: ['Content-Length: 5'], body: 'hello' },
  },
  {
    name: 'RFC 9112 6.2: white space around the number is ignored',
    raw: post(['Content-Length: \t 5  '], 'hello'),
    status: 200,
    reaches: { line: POST_X, fields: ['Content-Length: \t 5  '], body: 'hello' },
  },
  {
    name: 'RFC 9110 8.6: a Content-Length with leading zeros is decimal',
    raw: post(['Content-Length: 0005'], 'hello'),
    status: 200,
    reaches: { line: POST_X, fields: ['Content-Length: 0005'], body: 'hello' },
  },
  {
    name: 'RFC 9112 6.2: Content-Length 0 means an empty body',
    raw: post(['Content-Length: 0'], ''),
    status: 200,
    reaches: { line: POST_X, fields: ['Content-Length: 0'] },
  },
  {
    name: 'RFC 9112 6.3: a request without a framing field has no body',
    raw: post([], ''),
    status: 200,
    reaches: { line: POST_X },
  },
  {
    name: 'RFC 9112 6.2: the body of a GET is forwarded',
    raw: `${get('Content-Length: 5')}hello`,
    status: 200,
    reaches: { line: GET_X, fields: ['Content-Length: 5'], body: 'hello' },
  },
  {
    name: 'RFC 9112 6.2: a request inside a body is body',
    raw: post([`Content-Length: ${SMUGGLED.length}`], SMUGGLED),
    status: 200,
    reaches: { line: POST_X, fields: [`Content-Length: ${SMUGGLED.length}`], body: SMUGGLED },
  },
  {
    name: 'RFC 9112 7.1: the name of the transfer coding is case-insensitive',
    raw: post(['transfer-ENCODING: ChUnKeD'], HELLO),
    status: 200,
    reaches: { line: POST_X, body: 'hello', chunked: true },
  },
  {
    name: 'RFC 9112 6.1: white space around the transfer coding is ignored',
    raw: post(['Transfer-Encoding:\t chunked  '], HELLO),
    status: 200,
    reaches: { line: POST_X, body: 'hello', chunked: true },
  },
  {
    name: 'RFC 9110 5.1: fields with names similar to framing fields are forwarded and frame nothing',
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
    name: 'RFC 9112 6.1: Transfer-Encoding in an HTTP/1.0 request is refused',
    raw: `POST /echo/x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n${HELLO}`,
    status: 400,
  },
  {
    name: 'RFC 9112 6.2: Content-Length of an HTTP/1.0 request frames its body',
    raw: 'POST /echo/x HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello',
    status: 200,
    closes: true,
    reaches: { line: POST_X, fields: ['Content-Length: 5'], body: 'hello', host: '' },
  },
]

export const FRAMING_REQUESTS: readonly RequestCase[] = [
  ...served,
  ...bothFramings.map(([name, fields]) => ({
    name: `RFC 9112 6.1: ${name} is refused`,
    raw: post(fields, HELLO),
    status: 400,
  })),
  ...repeated.map(([name, fields]) => ({ name: `${name} are refused`, raw: post(fields, HELLO), status: 400 })),
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
    name: `${name} is refused`,
    raw: post([`Transfer-Encoding: ${value}`], HELLO),
    status,
  })),
]
