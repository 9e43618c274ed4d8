/** Requests with valid and invalid request lines: method, target, version (RFC 9112 3). */
import { GET_X, get, line, type RequestCase } from './request-case.ts'

/** Invalid request lines, and the status of the response. */
const refused: readonly (readonly [string, string, number])[] = [
  ['RFC 9112 3: a second space after the method', 'GET  /echo/x HTTP/1.1', 400],
  ['RFC 9112 3: a second space before the version', 'GET /echo/x  HTTP/1.1', 400],
  ['RFC 9112 3: a tab after the method', 'GET\t/echo/x HTTP/1.1', 400],
  ['RFC 9112 3: a tab before the version', 'GET /echo/x\tHTTP/1.1', 400],
  ['RFC 9112 3: a space before the method', ' GET /echo/x HTTP/1.1', 400],
  ['RFC 9112 3: a space after the version', 'GET /echo/x HTTP/1.1 ', 400],
  ['RFC 9112 3: a fourth word', 'GET /echo/x HTTP/1.1 HTTP/1.1', 400],
  ['RFC 9112 3: a space in the target', 'GET /echo/a b HTTP/1.1', 400],
  ['RFC 9112 3: a request line without a version', 'GET /echo/x', 400],
  ['RFC 9112 3: a request line without a target', 'GET HTTP/1.1', 400],
  ['RFC 9112 3: an empty target', 'GET  HTTP/1.1', 400],
  ['RFC 9112 3: a request line without a method', '/echo/x HTTP/1.1', 400],
  ['RFC 9112 3: NUL after the target', 'GET /echo/x\0 HTTP/1.1', 400],
  ['RFC 9112 3: a control character in the target', 'GET /echo/\x01 HTTP/1.1', 400],
  ['RFC 9112 3: DEL in the target', 'GET /echo/\x7f HTTP/1.1', 400],
  ['RFC 3986 2: a byte beyond ASCII in the target', 'GET /echo/\xe4 HTTP/1.1', 400],
  ['RFC 9112 2.2: a bare CR in the request line', 'GET /echo/x\rHTTP/1.1', 400],
  ['RFC 9112 2.2: a bare CR before the request line', '\rGET /echo/x HTTP/1.1', 400],
  ['RFC 9112 2.2: a bare LF before the request line', '\nGET /echo/x HTTP/1.1', 400],
  ['RFC 9112 2.2: a bare LF after an empty line', '\r\n\nGET /echo/x HTTP/1.1', 400],
  ['RFC 9112 2.2: CR CR LF before the request line', '\r\r\nGET /echo/x HTTP/1.1', 400],
  ['RFC 9112 2.2: CR CR LF after the version', 'GET /echo/x HTTP/1.1\r', 400],
  ['RFC 9112 2.2: CR CR instead of a line end', 'GET /echo/x HTTP/1.1\r\rName: a', 400],
  ['RFC 9112 2.2: CR CR CR LF instead of two line ends', 'GET /echo/x HTTP/1.1\r\r\r\n', 400],
  ['RFC 9112 3.2: a fragment', 'GET /echo/x#y HTTP/1.1', 400],
  ['RFC 9112 3.2: an empty fragment', 'GET /echo/x# HTTP/1.1', 400],
  ['RFC 9112 3.2: a fragment after a query', 'GET /echo/x?a=b#c HTTP/1.1', 400],
  ['RFC 9112 3.2.1: a path without a leading slash', 'GET echo/x HTTP/1.1', 400],
  ['RFC 9112 3.2.3: authority-form in a request other than CONNECT', 'GET gateway.test:80 HTTP/1.1', 400],
  ['RFC 9112 3.2.4: a letter after the asterisk', 'OPTIONS *x HTTP/1.1', 400],
  ['RFC 9112 3.2.4: a path after the asterisk', 'OPTIONS */echo HTTP/1.1', 400],
  ['RFC 9112 2.3: a version without digits', 'GET /echo/x HTTP/a.b HTTP/1.1', 400],
  ['RFC 9112 2.3: a version with a comma', 'GET /echo/x HTTP/1,1', 400],
  ['RFC 9112 2.3: a version without a minor number', 'GET /echo/x HTTP/1', 400],
  ['RFC 9112 2.3: a version with two digits', 'GET /echo/x HTTP/1.10', 400],
  ['RFC 9112 2.3: a version with a leading zero', 'GET /echo/x HTTP/01.1', 400],
  ['RFC 9112 2.3: a version with a minus sign', 'GET /echo/x HTTP/-1.1', 400],
  ['RFC 9112 2.3: the protocol name in lower case', 'GET /echo/x http/1.1', 400],
  ['RFC 9112 2.3: the protocol HTTPS', 'GET /echo/x HTTPS/1.1', 400],
  ['RFC 9112 2.3: the protocol RTSP', 'OPTIONS /echo/x RTSP/1.0', 400],
  ['RFC 9112 2.3: the protocol ICE', 'SOURCE /echo/x ICE/1.0', 400],
  ['RFC 9110 15.6.6: version HTTP/0.9', 'GET /echo/x HTTP/0.9', 505],
  ['RFC 9110 15.6.6: version HTTP/1.2', 'GET /echo/x HTTP/1.2', 505],
  ['RFC 9110 15.6.6: version HTTP/2.0', 'GET /echo/x HTTP/2.0', 505],
  ['RFC 9110 15.6.6: version HTTP/3.0', 'GET /echo/x HTTP/3.0', 505],
  ['RFC 9110 9.1: an unknown method', 'FROBNICATE /echo/x HTTP/1.1', 501],
  ['RFC 9110 9.1: a method in lower case', 'get /echo/x HTTP/1.1', 501],
  ['RFC 9110 9.1: a method that only begins with a known method', 'GETX /echo/x HTTP/1.1', 501],
  ['RFC 9110 9.1: a truncated method', 'GE /echo/x HTTP/1.1', 501],
  ['RFC 9110 9.1: an unknown method with a hyphen', 'M-FROB /echo/x HTTP/1.1', 501],
  ['RFC 9110 9.1: a method without anything after it', 'HELLO', 400],
  ['RFC 9110 9.1: a method of 100 letters', 'X'.repeat(100), 400],
  ['RFC 9110 9.1: a method that is not a token', 'G(T /echo/x HTTP/1.1', 400],
  ['RFC 9110 9.1: NUL in the method', 'GE\0T /echo/x HTTP/1.1', 400],
  ['RFC 9110 9.3.6: CONNECT', 'CONNECT gateway.test:443 HTTP/1.1', 405],
  ['RFC 9110 9.3.8: TRACE', 'TRACE /echo/x HTTP/1.1', 405],
  ['RFC 9112 3.2.2: an https URL on a plain connection', 'GET https://gateway.test/echo/x HTTP/1.1', 400],
  ['RFC 9112 3.2.2: a URL of the scheme ftp', 'GET ftp://gateway.test/echo/x HTTP/1.1', 400],
  ['RFC 9112 3.2.2: a URL of the scheme ws', 'GET ws://gateway.test/echo/x HTTP/1.1', 400],
  ['RFC 9110 4.2.4: userinfo', 'GET http://user@gateway.test/echo/x HTTP/1.1', 400],
  ['RFC 9110 4.2.4: userinfo with a password', 'GET http://user:pass@gateway.test/echo/x HTTP/1.1', 400],
  ['RFC 9110 4.2.4: empty userinfo', 'GET http://@gateway.test/echo/x HTTP/1.1', 400],
  ['RFC 9110 4.2.1: an empty host', 'GET http:///echo/x HTTP/1.1', 400],
  ['RFC 9110 4.2.1: a port without a host', 'GET http://:80/echo/x HTTP/1.1', 400],
  ['RFC 9112 3.2.2: a port that is not a number', 'GET http://gateway.test:x/echo/x HTTP/1.1', 400],
  ['RFC 9112 3.2.2: a port beyond 65535', 'GET http://gateway.test:65536/echo/x HTTP/1.1', 400],
  ['RFC 9112 3.2.2: a single slash after the scheme', 'GET http:/echo/x HTTP/1.1', 400],
  ['RFC 9112 3.2.2: a scheme without slashes', 'GET http:echo/x HTTP/1.1', 400],
  ['RFC 9112 3.2.2: a fragment in absolute-form', 'GET http://gateway.test/echo/x#y HTTP/1.1', 400],
  ['RFC 9112 3.2.2: a backslash in the authority', 'GET http://gateway.test\\echo/x HTTP/1.1', 400],
]

/** Targets that are forwarded to the byte: what the client sends, what reaches the backend. */
const targets: readonly (readonly [string, string, string])[] = [
  ['a query', '/echo/x?a=b&c=d', '/x?a=b&c=d'],
  ['an empty query', '/echo/x?', '/x?'],
  ['a query with question marks', '/echo/x?a?b?', '/x?a?b?'],
  ['a query with a URL', '/echo/x?to=http://evil.test/y', '/x?to=http://evil.test/y'],
  ['a query with characters that are refused in a path', '/echo/x?a;b=%2F..%5c//%00%zz"', '/x?a;b=%2F..%5c//%00%zz"'],
  ['a path with delimiters', "/echo/!$&'()*+,=:@~", "/!$&'()*+,=:@~"],
  ['a target of the context alone', '/echo', '/'],
  ['a target of the context and a query', '/echo?a=b', '/?a=b'],
  ['a target of the context and a slash', '/echo/', '/'],
  ['a target that repeats the context', '/echo/echo', '/echo'],
]

/** Absolute-form targets: what reaches the backend, and the host that the client requested. */
const absolute: readonly (readonly [string, string, string, string])[] = [
  ['the authority of the target overrides Host', 'http://other.test/echo/x', '/x', 'other.test'],
  ['the authority of the target never selects the backend', 'http://127.0.0.1:1/echo/x', '/x', '127.0.0.1:1'],
  ['a scheme in upper case is accepted', 'HTTP://gateway.test/echo/x', '/x', 'gateway.test'],
  ['a query is forwarded', 'http://gateway.test:8290/echo/x?a=b', '/x?a=b', 'gateway.test:8290'],
  ['an IPv6 literal is accepted', 'http://[::1]:80/echo/x', '/x', '[::1]:80'],
  ['an at sign in the path is not userinfo', 'http://gateway.test/echo/a@b', '/a@b', 'gateway.test'],
]

/** Targets whose path is forwarded in its canonical form (src/route/canonical-path.ts). */
const canonicalised: readonly (readonly [string, string, string])[] = [
  ['a path with encoded dots', '/echo/a%2eb/%2e/x', '/a.b/x'],
  ['a path with dot segments', '/echo/a/../b/./c', '/b/c'],
  ['a path with double slashes', '/echo//a///b', '/a/b'],
  ['a path with quotes and brackets', '/echo/"<>[]^`{|}', '/%22%3C%3E%5B%5D%5E%60%7B%7C%7D'],
  ['a path with encoded letters', '/%65cho/%78', '/x'],
  ['a path with dot segments before the context', '/a/../echo/x', '/x'],
  ['a path with a URL', 'http://gateway.test/echo/http://evil.test/', '/http:/evil.test/'],
]

/** Targets whose path other programs could read in another way. */
const ambiguous: readonly (readonly [string, string])[] = [
  ['an encoded slash', '/echo/a%2Fb'],
  ['an encoded slash in lower case', '/echo/a%2fb'],
  ['a matrix parameter', '/echo/a;b=c;d/e'],
  ['an encoded NUL', '/echo/%00'],
  ['an invalid percent-encoding', '/echo/%zz%'],
  ['an encoded line end', '/echo/a%0d%0aX:%20y'],
  ['a backslash', '/echo/a\\b'],
  ['a dot segment above the root', '/echo/../../x'],
]

const special: readonly RequestCase[] = [
  {
    name: 'RFC 9110 9.3.7: the gateway itself responds to OPTIONS *',
    raw: line('OPTIONS * HTTP/1.1'),
    status: 200,
    staysOpen: true,
  },
  { name: 'RFC 9112 3.2.4: GET * is refused', raw: line('GET * HTTP/1.1'), status: 400, staysOpen: true },
  {
    name: 'RFC 9110 15.5.5: a path of no API is refused with 404',
    raw: line('GET /other/x HTTP/1.1'),
    status: 404,
    staysOpen: true,
  },
  {
    name: 'RFC 9110 15.5.5: a context matches whole segments only',
    raw: line('GET /echox HTTP/1.1'),
    status: 404,
    staysOpen: true,
  },
  {
    name: 'RFC 9110 15.5.5: a context is matched case-sensitively',
    raw: line('GET /ECHO HTTP/1.1'),
    status: 404,
    staysOpen: true,
  },
  {
    name: 'RFC 3986 5.2: encoded dot segments leave the context',
    raw: line('GET /echo/%2e%2e/x HTTP/1.1'),
    status: 404,
    staysOpen: true,
  },
  { name: 'the gateway itself responds to the root path', raw: line('GET / HTTP/1.1'), status: 200, staysOpen: true },
  {
    name: 'RFC 9112 3.2.2: absolute-form without a path is refused with 404',
    raw: line('GET http://gateway.test HTTP/1.1'),
    status: 404,
    staysOpen: true,
  },
  {
    name: 'RFC 9112 3.2.2: absolute-form with a query instead of a path is refused with 404',
    raw: line('GET http://gateway.test?/echo/x HTTP/1.1'),
    status: 404,
    staysOpen: true,
  },
  {
    name: 'RFC 9112 2.2: empty lines before a request are ignored',
    raw: `\r\n\r\n${get()}`,
    status: 200,
    reaches: { line: GET_X },
  },
  {
    name: 'RFC 9113 3.4: the connection preface of HTTP/2 is refused with 505',
    raw: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x12\x04\0\0\0\0\0',
    status: 505,
  },
  {
    name: 'RFC 8446 4.1.2: a TLS ClientHello on the plain port is refused',
    raw: '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n',
    status: 400,
  },
  {
    name: 'RFC 5246 E.2: an SSLv2 ClientHello on the plain port is refused',
    raw: '\x80\x2e\x01\0\x02\0\x15\0\0\0\x10\r\n\r\n',
    status: 400,
  },
  { name: 'RFC 1928 3: a SOCKS greeting on the plain port is refused', raw: '\x05\x01\0\r\n\r\n', status: 400 },
  {
    name: 'PROXY protocol: a PROXY line is refused with 501',
    raw: `PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n${get()}`,
    status: 501,
  },
]

const methods = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND', 'REPORT', 'PURGE', 'M-SEARCH', 'QUERY']

export const START_LINE_REQUESTS: readonly RequestCase[] = [
  ...refused.map(([name, start, status]) => ({ name: `${name} is refused`, raw: line(start), status })),
  ...targets.map(([name, sent, arrives]) => ({
    name: `RFC 9112 3.2.1: ${name} is forwarded without the context`,
    raw: line(`GET ${sent} HTTP/1.1`),
    status: 200,
    reaches: { line: `GET ${arrives} HTTP/1.1` },
  })),
  ...canonicalised.map(([name, sent, arrives]) => ({
    name: `RFC 3986 6.2: ${name} is forwarded in canonical form`,
    raw: line(`GET ${sent} HTTP/1.1`),
    status: 200,
    reaches: { line: `GET ${arrives} HTTP/1.1` },
  })),
  ...ambiguous.map(([name, sent]) => ({
    name: `RFC 3986 6.2: ${name} in a path is refused`,
    raw: line(`GET ${sent} HTTP/1.1`),
    status: 400,
    staysOpen: true,
  })),
  ...absolute.map(([name, sent, arrives, host]) => ({
    name: `RFC 9112 3.2.2: absolute-form: ${name}`,
    raw: line(`GET ${sent} HTTP/1.1`),
    status: 200,
    reaches: { line: `GET ${arrives} HTTP/1.1`, host },
  })),
  ...methods.map(method => ({
    name: `RFC 9110 9.1: a request with the method ${method} is forwarded`,
    raw: line(`${method} /echo/x HTTP/1.1`),
    status: 200,
    reaches: { line: `${method} /x HTTP/1.1` },
  })),
  ...special,
]
