/** Request lines: method, target, version (RFC 9112 3), and what stands in their place. */
import { GET_X, get, line, type RequestCase } from './request-case.ts'

/** Request lines (or what is none), and the status of their refusal. */
const refused: readonly (readonly [string, string, number])[] = [
  ['RFC 9112 3: two spaces behind the method', 'GET  /echo/x HTTP/1.1', 400],
  ['RFC 9112 3: two spaces in front of the version', 'GET /echo/x  HTTP/1.1', 400],
  ['RFC 9112 3: a tab behind the method', 'GET\t/echo/x HTTP/1.1', 400],
  ['RFC 9112 3: a tab in front of the version', 'GET /echo/x\tHTTP/1.1', 400],
  ['RFC 9112 3: a space in front of the method', ' GET /echo/x HTTP/1.1', 400],
  ['RFC 9112 3: a space behind the version', 'GET /echo/x HTTP/1.1 ', 400],
  ['RFC 9112 3: a fourth word', 'GET /echo/x HTTP/1.1 HTTP/1.1', 400],
  ['RFC 9112 3: a space within the target', 'GET /echo/a b HTTP/1.1', 400],
  ['RFC 9112 3: no version', 'GET /echo/x', 400],
  ['RFC 9112 3: no target', 'GET HTTP/1.1', 400],
  ['RFC 9112 3: an empty target', 'GET  HTTP/1.1', 400],
  ['RFC 9112 3: no method', '/echo/x HTTP/1.1', 400],
  ['RFC 9112 3: NUL behind the target', 'GET /echo/x\0 HTTP/1.1', 400],
  ['RFC 9112 3: a control character in the target', 'GET /echo/\x01 HTTP/1.1', 400],
  ['RFC 9112 3: DEL in the target', 'GET /echo/\x7f HTTP/1.1', 400],
  ['RFC 3986 2: bytes beyond ASCII in the target', 'GET /echo/\xe4 HTTP/1.1', 400],
  ['RFC 9112 2.2: a bare CR within the request line', 'GET /echo/x\rHTTP/1.1', 400],
  ['RFC 9112 2.2: a bare CR in front of the request line', '\rGET /echo/x HTTP/1.1', 400],
  ['RFC 9112 2.2: a bare LF in front of the request line', '\nGET /echo/x HTTP/1.1', 400],
  ['RFC 9112 2.2: a bare LF behind an empty line', '\r\n\nGET /echo/x HTTP/1.1', 400],
  ['RFC 9112 2.2: two CRs in front of the request line', '\r\r\nGET /echo/x HTTP/1.1', 400],
  ['RFC 9112 2.2: two CRs behind the version', 'GET /echo/x HTTP/1.1\r', 400],
  ['RFC 9112 2.2: CR CR for a line end', 'GET /echo/x HTTP/1.1\r\rName: a', 400],
  ['RFC 9112 2.2: CR CR CR LF for two line ends', 'GET /echo/x HTTP/1.1\r\r\r\n', 400],
  ['RFC 9112 3.2: a fragment', 'GET /echo/x#y HTTP/1.1', 400],
  ['RFC 9112 3.2: an empty fragment', 'GET /echo/x# HTTP/1.1', 400],
  ['RFC 9112 3.2: a fragment behind a query', 'GET /echo/x?a=b#c HTTP/1.1', 400],
  ['RFC 9112 3.2.1: a path without a slash', 'GET echo/x HTTP/1.1', 400],
  ['RFC 9112 3.2.3: authority-form is for CONNECT alone', 'GET gateway.test:80 HTTP/1.1', 400],
  ['RFC 9112 3.2.4: something behind the asterisk', 'OPTIONS *x HTTP/1.1', 400],
  ['RFC 9112 3.2.4: a path behind the asterisk', 'OPTIONS */echo HTTP/1.1', 400],
  ['RFC 9112 2.3: a version without digits', 'GET /echo/x HTTP/a.b HTTP/1.1', 400],
  ['RFC 9112 2.3: a version with a comma', 'GET /echo/x HTTP/1,1', 400],
  ['RFC 9112 2.3: a version without a minor number', 'GET /echo/x HTTP/1', 400],
  ['RFC 9112 2.3: a version with two digits', 'GET /echo/x HTTP/1.10', 400],
  ['RFC 9112 2.3: a version with a leading zero', 'GET /echo/x HTTP/01.1', 400],
  ['RFC 9112 2.3: a version with a minus sign', 'GET /echo/x HTTP/-1.1', 400],
  ['RFC 9112 2.3: the name of the protocol in lower case', 'GET /echo/x http/1.1', 400],
  ['RFC 9112 2.3: another protocol', 'GET /echo/x HTTPS/1.1', 400],
  ['RFC 9112 2.3: RTSP', 'OPTIONS /echo/x RTSP/1.0', 400],
  ['RFC 9112 2.3: ICE', 'SOURCE /echo/x ICE/1.0', 400],
  ['RFC 9110 15.6.6: HTTP/0.9 by name', 'GET /echo/x HTTP/0.9', 505],
  ['RFC 9110 15.6.6: HTTP/1.2', 'GET /echo/x HTTP/1.2', 505],
  ['RFC 9110 15.6.6: HTTP/2.0', 'GET /echo/x HTTP/2.0', 505],
  ['RFC 9110 15.6.6: HTTP/3.0', 'GET /echo/x HTTP/3.0', 505],
  ['RFC 9110 9.1: an unknown method', 'FROBNICATE /echo/x HTTP/1.1', 501],
  ['RFC 9110 9.1: a method is case-sensitive', 'get /echo/x HTTP/1.1', 501],
  ['RFC 9110 9.1: a method that only begins like another', 'GETX /echo/x HTTP/1.1', 501],
  ['RFC 9110 9.1: a method that ends too early', 'GE /echo/x HTTP/1.1', 501],
  ['RFC 9110 9.1: an unknown method with a hyphen', 'M-FROB /echo/x HTTP/1.1', 501],
  ['RFC 9110 9.1: a word of letters alone', 'HELLO', 400],
  ['RFC 9110 9.1: a word without end', 'X'.repeat(100), 400],
  ['RFC 9110 9.1: a method that is no token', 'G(T /echo/x HTTP/1.1', 400],
  ['RFC 9110 9.1: NUL in the method', 'GE\0T /echo/x HTTP/1.1', 400],
  ['RFC 9110 9.3.6: CONNECT', 'CONNECT gateway.test:443 HTTP/1.1', 405],
  ['RFC 9110 9.3.8: TRACE', 'TRACE /echo/x HTTP/1.1', 405],
  ['RFC 9112 3.2.2: https over a plain connection', 'GET https://gateway.test/echo/x HTTP/1.1', 400],
  ['RFC 9112 3.2.2: another scheme', 'GET ftp://gateway.test/echo/x HTTP/1.1', 400],
  ['RFC 9112 3.2.2: ws', 'GET ws://gateway.test/echo/x HTTP/1.1', 400],
  ['RFC 9110 4.2.4: user information', 'GET http://user@gateway.test/echo/x HTTP/1.1', 400],
  ['RFC 9110 4.2.4: user information with a password', 'GET http://user:pass@gateway.test/echo/x HTTP/1.1', 400],
  ['RFC 9110 4.2.4: an empty user', 'GET http://@gateway.test/echo/x HTTP/1.1', 400],
  ['RFC 9110 4.2.1: an empty host', 'GET http:///echo/x HTTP/1.1', 400],
  ['RFC 9110 4.2.1: a port without a host', 'GET http://:80/echo/x HTTP/1.1', 400],
  ['RFC 9112 3.2.2: a bad port', 'GET http://gateway.test:x/echo/x HTTP/1.1', 400],
  ['RFC 9112 3.2.2: a port beyond 65535', 'GET http://gateway.test:65536/echo/x HTTP/1.1', 400],
  ['RFC 9112 3.2.2: one slash behind the scheme', 'GET http:/echo/x HTTP/1.1', 400],
  ['RFC 9112 3.2.2: no slashes behind the scheme', 'GET http:echo/x HTTP/1.1', 400],
  ['RFC 9112 3.2.2: a fragment', 'GET http://gateway.test/echo/x#y HTTP/1.1', 400],
  ['RFC 9112 3.2.2: a backslash in the authority', 'GET http://gateway.test\\echo/x HTTP/1.1', 400],
]

/** Targets that pass to the byte: what is sent, what arrives. */
const targets: readonly (readonly [string, string, string])[] = [
  ['a query', '/echo/x?a=b&c=d', '/x?a=b&c=d'],
  ['an empty query', '/echo/x?', '/x?'],
  ['question marks within a query', '/echo/x?a?b?', '/x?a?b?'],
  ['a URL within a query', '/echo/x?to=http://evil.test/y', '/x?to=http://evil.test/y'],
  ['what only a path must not hold', '/echo/x?a;b=%2F..%5c//%00%zz"', '/x?a;b=%2F..%5c//%00%zz"'],
  ['delimiters', "/echo/!$&'()*+,=:@~", "/!$&'()*+,=:@~"],
  ['the context alone', '/echo', '/'],
  ['the context and a query', '/echo?a=b', '/?a=b'],
  ['the context and a slash', '/echo/', '/'],
  ['the context once more', '/echo/echo', '/echo'],
]

/** Absolute-form targets: what arrives, and the host that the client asked for. */
const absolute: readonly (readonly [string, string, string, string])[] = [
  ['its authority wins over Host', 'http://other.test/echo/x', '/x', 'other.test'],
  ['it never selects a backend', 'http://127.0.0.1:1/echo/x', '/x', '127.0.0.1:1'],
  ['the scheme in any case', 'HTTP://gateway.test/echo/x', '/x', 'gateway.test'],
  ['with a query', 'http://gateway.test:8290/echo/x?a=b', '/x?a=b', 'gateway.test:8290'],
  ['an IPv6 literal', 'http://[::1]:80/echo/x', '/x', '[::1]:80'],
  ['an at sign in the path is no user information', 'http://gateway.test/echo/a@b', '/a@b', 'gateway.test'],
]

/** Targets whose path has another canonical form, in which it passes (src/structure/canonical-path.ts). */
const straightened: readonly (readonly [string, string, string])[] = [
  ['an encoded dot', '/echo/a%2eb/%2e/x', '/a.b/x'],
  ['dot segments', '/echo/a/../b/./c', '/b/c'],
  ['double slashes', '/echo//a///b', '/a/b'],
  ['quotes and brackets', '/echo/"<>[]^`{|}', '/%22%3C%3E%5B%5D%5E%60%7B%7C%7D'],
  ['letters', '/%65cho/%78', '/x'],
  ['dots in front of the context', '/a/../echo/x', '/x'],
  ['a URL', 'http://gateway.test/echo/http://evil.test/', '/http:/evil.test/'],
]

/** Targets whose path has no form that everybody reads in the same way. */
const ambiguous: readonly (readonly [string, string])[] = [
  ['an encoded slash', '/echo/a%2Fb'],
  ['an encoded slash in lower case', '/echo/a%2fb'],
  ['matrix parameters', '/echo/a;b=c;d/e'],
  ['an encoded NUL', '/echo/%00'],
  ['an encoding that is none', '/echo/%zz%'],
  ['an encoded line end', '/echo/a%0d%0aX:%20y'],
  ['a backslash', '/echo/a\\b'],
  ['dots that lead above the root', '/echo/../../x'],
]

const special: readonly RequestCase[] = [
  { name: 'RFC 9110 9.3.7: OPTIONS * is about the gateway', raw: line('OPTIONS * HTTP/1.1'), status: 200, keeps: true },
  { name: 'RFC 9112 3.2.4: GET * is refused', raw: line('GET * HTTP/1.1'), status: 400, keeps: true },
  { name: 'RFC 9110 15.5.5: a path of no API', raw: line('GET /other/x HTTP/1.1'), status: 404, keeps: true },
  { name: 'RFC 9110 15.5.5: a context is whole segments', raw: line('GET /echox HTTP/1.1'), status: 404, keeps: true },
  {
    name: 'RFC 9110 15.5.5: a context is matched as it is written',
    raw: line('GET /ECHO HTTP/1.1'),
    status: 404,
    keeps: true,
  },
  {
    name: 'RFC 3986 5.2: a context is left by dots',
    raw: line('GET /echo/%2e%2e/x HTTP/1.1'),
    status: 404,
    keeps: true,
  },
  { name: 'the root is a page of the gateway', raw: line('GET / HTTP/1.1'), status: 200, keeps: true },
  {
    name: 'RFC 9112 3.2.2: absolute-form without a path',
    raw: line('GET http://gateway.test HTTP/1.1'),
    status: 404,
    keeps: true,
  },
  {
    name: 'RFC 9112 3.2.2: absolute-form with a query for a path',
    raw: line('GET http://gateway.test?/echo/x HTTP/1.1'),
    status: 404,
    keeps: true,
  },
  {
    name: 'RFC 9112 2.2: empty lines in front of a request are ignored',
    raw: `\r\n\r\n${get()}`,
    status: 200,
    reaches: { line: GET_X },
  },
  {
    name: 'RFC 9113 3.4: the preface of HTTP/2',
    raw: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x12\x04\0\0\0\0\0',
    status: 505,
  },
  {
    name: 'RFC 8446 4.1.2: a TLS ClientHello on the plain port',
    raw: '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n',
    status: 400,
  },
  {
    name: 'SSLv2: an old ClientHello on the plain port',
    raw: '\x80\x2e\x01\0\x02\0\x15\0\0\0\x10\r\n\r\n',
    status: 400,
  },
  { name: 'SOCKS: a greeting on the plain port', raw: '\x05\x01\0\r\n\r\n', status: 400 },
  {
    name: 'PROXY protocol: a line that was not agreed',
    raw: `PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n${get()}`,
    status: 501,
  },
]

const methods = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND', 'REPORT', 'PURGE', 'M-SEARCH', 'QUERY']

export const START_LINE_REQUESTS: readonly RequestCase[] = [
  ...refused.map(([name, start, status]) => ({ name: `${name} is refused`, raw: line(start), status })),
  ...targets.map(([name, sent, arrives]) => ({
    name: `RFC 9112 3.2.1: ${name} in a target passes unchanged`,
    raw: line(`GET ${sent} HTTP/1.1`),
    status: 200,
    reaches: { line: `GET ${arrives} HTTP/1.1` },
  })),
  ...straightened.map(([name, sent, arrives]) => ({
    name: `RFC 3986 6.2: ${name} in a path pass in canonical form`,
    raw: line(`GET ${sent} HTTP/1.1`),
    status: 200,
    reaches: { line: `GET ${arrives} HTTP/1.1` },
  })),
  ...ambiguous.map(([name, sent]) => ({
    name: `RFC 3986 6.2: ${name} in a path is refused`,
    raw: line(`GET ${sent} HTTP/1.1`),
    status: 400,
    keeps: true,
  })),
  ...absolute.map(([name, sent, arrives, host]) => ({
    name: `RFC 9112 3.2.2: absolute-form, ${name}`,
    raw: line(`GET ${sent} HTTP/1.1`),
    status: 200,
    reaches: { line: `GET ${arrives} HTTP/1.1`, host },
  })),
  ...methods.map(method => ({
    name: `RFC 9110 9.1: ${method} passes`,
    raw: line(`${method} /echo/x HTTP/1.1`),
    status: 200,
    reaches: { line: `${method} /x HTTP/1.1` },
  })),
  ...special,
]
