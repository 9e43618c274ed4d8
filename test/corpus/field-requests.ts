/** Requests with unusual field lines (RFC 9112 5) and Host fields (RFC 9112 3.2): refused, or forwarded to the byte. */
import { GET_X, get, only, type RequestCase } from './request-case.ts'

/** Invalid field lines, sent between Host and a valid last field. */
const refused: readonly (readonly [string, readonly string[]])[] = [
  ['5.1: an empty field name', [': value']],
  ['5.1: a space in a field name', ['A B: value']],
  ['5.1: a space before the colon', ['Name : value']],
  ['5.1: a tab before the colon', ['Name\t: value']],
  ['5: a line without a colon', ['Name']],
  ['5: a line of white space only', [' ']],
  ['5.2: a folded line', ['Name: a', ' b']],
  ['5.2: a line folded with a tab', ['Name: a', '\tb']],
  ['5.2: a folded empty value', ['Name:', ' b']],
  ['5.1: an at sign in a field name', ['N@me: value']],
  ['5.1: a slash in a field name', ['N/me: value']],
  ['5.1: a bracket in a field name', ['N[0]: value']],
  ['5.1: a quote in a field name', ['"Name": value']],
  ['5.1: a comma in a field name', ['Na,me: value']],
  ['5.1: a semicolon in a field name', ['Na;me: value']],
  ['5.1: an equals sign in a field name', ['Na=me: value']],
  ['5.1: NUL in a field name', ['Na\0me: value']],
  ['5.1: a control character in a field name', ['Na\x1fme: value']],
  ['5.1: DEL in a field name', ['Na\x7fme: value']],
  ['5.1: a byte beyond ASCII in a field name', ['N\xe4me: value']],
  ['5.5: NUL in a value', ['Name: a\0b']],
  ['5.5: a bare CR in a value', ['Name: a\rb']],
  ['5.5: a bare CR at the end of a value', ['Name: a\r']],
  ['5.5: a bare LF at the end of a line', ['Name: a\nMore: b']],
  ['5.5: a bare LF before a field name', ['\nName: a']],
  ['5.5: a control character in a value', ['Name: a\x01b']],
  ['5.5: a backspace in a value', ['Name: a\bb']],
  ['5.5: ESC in a value', ['Name: \x1b[31m']],
  ['5.5: DEL in a value', ['Name: a\x7fb']],
  ['2.2: an empty line of a bare LF', ['Name: a\n\n']],
  ['2.2: LF CR instead of CR LF', ['Name: a\n\rMore: b']],
  ['5: another request line among the fields', ['GET /echo/evil HTTP/1.1']],
]

/** Valid field lines, forwarded to the byte. */
const passing: readonly (readonly [string, readonly string[]])[] = [
  ['5: the order, case and number of fields', ['b: 1', 'A: 2', 'B: 3', 'b: 1', 'a: 4']],
  ['5.1: field names with every allowed character', ["!#$%&'*+-.^_`|~09azAZ: value"]],
  ['5.1: long field names', [`${'Long-Name-'.repeat(20)}: value`]],
  ['5.5: bytes beyond ASCII in values', ['Name: M\xfcller', 'Utf-8: \xe2\x82\xac \xf0\x9f\x98\x80', 'All: \x80\xff']],
  ['5.5: spaces and tabs around values', ['None:a', 'Many:  \t a \t ', 'Tab:\ta\t']],
  ['5.5: spaces and tabs within values', ['Name: a  b\tc']],
  ['5.5: empty values', ['Empty:', 'Spaces:   ', 'Next: a']],
  ['5.5: delimiters in values', ['Name: "a,b;c=d" (e) <f> {g} [h] \\i/ @j: k?l']],
  ['5.3: lists in several fields', ['Accept: a', 'Accept: b, c', 'Accept: ,']],
  ['5: Cookie lines', ['Cookie: a=b; c=d', 'Cookie: e=f']],
  ['5: credentials', ['Authorization: Bearer abc.def', 'apikey: secret']],
  ['5: conditional and range fields', ['If-None-Match: "a", W/"b"', 'Range: bytes=0-1,5-', 'If-Range: "a"']],
  [
    '5: representation fields',
    ['Content-Type: text/plain; charset="utf-8"', 'Content-Encoding: gzip', 'Accept-Encoding: br'],
  ],
  ['5: User-Agent and Referer', ['User-Agent: curl/8', 'Referer: http://gateway.test/']],
  ['5: Cache-Control, Pragma and Max-Forwards', ['Cache-Control: no-cache', 'Pragma: no-cache', 'Max-Forwards: 0']],
  [
    '5: fields that CGI programs and frameworks read as other fields',
    ['Content_Type: text/x', 'Proxy: http://evil.test', 'X-HTTP-Method-Override: PUT'],
  ],
  ['5: Via fields of other proxies', ['Via: 1.0 fred, 1.1 p.example']],
]

const badHosts: readonly (readonly [string, string])[] = [
  ['with a space', 'a b'],
  ['with a tab', 'a\tb'],
  ['with a slash', 'a/b'],
  ['with a path', 'gateway.test/echo'],
  ['with userinfo', 'user@gateway.test'],
  ['with a list of names', 'gateway.test, evil.test'],
  ['with a comma', 'gateway.test,'],
  ['with a backslash', 'a\\b'],
  ['with a question mark', 'a?b'],
  ['with a fragment', 'a#b'],
  ['with a quote', '"gateway.test"'],
  ['with a bracket inside', 'a[b]'],
  ['with angle brackets', '<a>'],
  ['with a caret', 'a^b'],
  ['with bytes beyond ASCII', 'g\xe4teway.test'],
  ['with a control character', 'a\x01b'],
  ['with a URL', 'http://gateway.test'],
  ['with two ports', 'a:80:90'],
  ['with an empty port', 'a:'],
  ['with a port that is not a number', 'a:http'],
  ['with a signed port', 'a:+80'],
  ['with a space before the port', 'a: 80'],
  ['with port 0', 'a:0'],
  ['with a port beyond 65535', 'a:65536'],
  ['with a port of 20 digits', 'a:00000000000000000080'],
  ['with a port and no name', ':80'],
  ['that is empty', ''],
  ['that is white space only', ' \t '],
  ['with a bracket that is never closed', '[::1'],
  ['with a bracket that was never opened', '::1]'],
  ['with an IPv6 address without brackets', '::1'],
  ['with empty brackets', '[]'],
  ['with a name in brackets', '[gateway]'],
  ['with a letter after the closing bracket', '[::1]a'],
  ['with a zone identifier in brackets', '[fe80::1%25eth0]'],
  ['with two pairs of brackets', '[::1][::1]'],
  // The backend gets this value in X-Forwarded-Host and Forwarded as well, so its length is limited.
  ['longer than 512 bytes', 'a'.repeat(513)],
]

const goodHosts: readonly (readonly [string, string])[] = [
  ['a name', 'gateway.test'],
  ['a name and a port', 'gateway.test:8290'],
  ['a name in mixed case', 'GateWay.TEST'],
  ['a name with a trailing dot', 'gateway.test.'],
  ['a name with an underscore', 'my_host'],
  ['an IPv4 address', '192.0.2.1'],
  ['an IPv6 address', '[2001:db8::1]'],
  ['an IPv6 address and a port', '[::1]:443'],
  ['an IPv6 address with an IPv4 tail', '[::ffff:192.0.2.1]'],
  ['one character', 'a'],
  ['a name of 512 bytes', 'a'.repeat(512)],
  ['a long name', `${'a'.repeat(63)}.`.repeat(4)],
]

const badHostFields: readonly (readonly [string, readonly string[]])[] = [
  ['a request without Host', ['A: b']],
  ['a repeated Host field with the same value', ['Host: gateway.test', 'Host: gateway.test']],
  ['a repeated Host field with another value', ['Host: gateway.test', 'Host: evil.test']],
  ['a repeated Host field with a name in another case', ['Host: gateway.test', 'A: b', 'hOST: evil.test']],
  ['a Host field on a folded line', ['A: b', ' Host: gateway.test']],
  ['a space before the colon of Host', ['Host : gateway.test']],
]

/**
 * `http.headers.preserve` with Host: the request, the forwarded Host (undefined: that of the backend),
 * X-Forwarded-Host.
 */
const preservedHosts: readonly (readonly [name: string, raw: string, forwarded: string | undefined, host: string])[] = [
  ['a name is preserved', only('A: b', 'Host: shop.example'), 'shop.example', 'shop.example'],
  [
    'a name and a port in white space are preserved',
    only('A: b', 'host:  shop.example:81 \t'),
    'shop.example:81',
    'shop.example:81',
  ],
  [
    'the authority of an absolute-form target is preserved',
    'GET http://other.example/echo/x HTTP/1.1\r\nHost: shop.example\r\nA: b\r\n\r\n',
    'other.example',
    'other.example',
  ],
  [
    'a request of HTTP/1.0 without Host gets that of the backend',
    'GET /echo/x HTTP/1.0\r\nA: b\r\n\r\n',
    undefined,
    '',
  ],
]

export const FIELD_REQUESTS: readonly RequestCase[] = [
  ...refused.map(([name, lines]) => ({
    name: `RFC 9112 ${name} is refused`,
    raw: get(...lines, 'Last: z'),
    status: 400,
  })),
  {
    name: 'RFC 9112 2.2: white space before the first field is refused',
    raw: only(' Host: gateway.test'),
    status: 400,
  },
  ...passing.map(([name, fields]) => ({
    name: `RFC 9110 ${name} are forwarded unchanged`,
    raw: get(...fields),
    status: 200,
    reaches: { line: GET_X, fields },
  })),
  ...badHostFields.map(([name, fields]) => ({
    name: `RFC 9112 3.2: ${name} is refused`,
    raw: only(...fields),
    status: 400,
  })),
  ...badHosts.map(([name, host]) => ({
    name: `RFC 9112 3.2: a Host field ${name} is refused`,
    raw: only(`Host: ${host}`),
    status: 400,
  })),
  ...goodHosts.map(([name, host]) => ({
    name: `RFC 9112 3.2: a Host field of ${name} is accepted`,
    raw: only(`Host: ${host}`),
    status: 200,
    reaches: { line: GET_X, host },
  })),
  ...preservedHosts.map(([name, raw, backendHost, host]) => ({
    name: `http.headers.preserve with Host: ${name}`,
    raw,
    status: 200,
    closes: raw.includes('HTTP/1.0'),
    reaches: { line: GET_X, fields: ['A: b'], host, ...(backendHost === undefined ? {} : { backendHost }) },
    http: { 'http.headers.preserve': ['host'] },
  })),
  {
    name: 'RFC 9112 3.2: white space around the Host value is ignored',
    raw: only('Host: \t gateway.test \t'),
    status: 200,
    reaches: { line: GET_X },
  },
  {
    name: 'RFC 9112 3.2: an HTTP/1.0 request without Host is accepted',
    raw: 'GET /echo/x HTTP/1.0\r\n\r\n',
    status: 200,
    closes: true,
    reaches: { line: GET_X, host: '' },
  },
  {
    name: 'RFC 9112 3.2: an HTTP/1.0 request with two Host fields is refused',
    raw: 'GET /echo/x HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n',
    status: 400,
  },
  {
    name: 'RFC 9112 3.2: a request in absolute-form without Host is refused',
    raw: 'GET http://gateway.test/echo/x HTTP/1.1\r\nA: b\r\n\r\n',
    status: 400,
  },
]
