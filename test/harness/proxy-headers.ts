/** PROXY headers in bytes, written by hand from the specification. */

const SIGNATURE = '\r\n\r\n\0\r\nQUIT\n'

/** A header of version 2; `command` has the version in its upper half. */
export function version2(command: number, family: number, body: readonly number[], length = body.length): string {
  return SIGNATURE + Buffer.from([command, family, length >> 8, length & 255, ...body]).toString('latin1')
}

/** 203.0.113.7:4711 to 192.0.2.1:443. */
export const V4_BODY = [203, 0, 113, 7, 192, 0, 2, 1, 0x12, 0x67, 0x01, 0xbb]
/** [2001:db8::7]:4711 to [2001:db8::1]:443. */
export const V6_BODY = [
  ...[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7],
  ...[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
  ...[0x12, 0x67, 0x01, 0xbb],
]

/** [name, header, address of the client; null where the proxy speaks for itself] */
export const GOOD_HEADERS: readonly (readonly [name: string, header: string, client: string | null])[] = [
  ['version 1, IPv4', 'PROXY TCP4 203.0.113.7 192.0.2.1 4711 443\r\n', '203.0.113.7'],
  ['version 1, IPv6', 'PROXY TCP6 2001:0DB8::7 2001:db8::1 4711 443\r\n', '2001:db8::7'],
  ['version 1, an IPv4 address in IPv6', 'PROXY TCP6 ::ffff:203.0.113.7 ::ffff:192.0.2.1 4711 443\r\n', '203.0.113.7'],
  ['version 1, unknown', 'PROXY UNKNOWN\r\n', null],
  ['version 1, unknown with more words', `PROXY UNKNOWN ${'f'.repeat(91)}\r\n`, null],
  ['version 2, IPv4', version2(0x21, 0x11, V4_BODY), '203.0.113.7'],
  ['version 2, IPv6', version2(0x21, 0x21, V6_BODY), '2001:db8::7'],
  ['version 2, IPv4 with TLVs', version2(0x21, 0x11, [...V4_BODY, 4, 0, 3, 0, 0, 0]), '203.0.113.7'],
  ['version 2, the longest', version2(0x21, 0x11, [...V4_BODY, ...new Array<number>(4068).fill(0)]), '203.0.113.7'],
  ['version 2, local', version2(0x20, 0x00, []), null],
  ['version 2, local with a family and addresses', version2(0x20, 0x11, V4_BODY), null],
  ['version 2, local with a family that is unknown', version2(0x20, 0xff, [1, 2]), null],
  ['version 2, unspecified', version2(0x21, 0x00, [1, 2, 3]), null],
]

/** [name, bytes, cause] */
export const BAD_HEADERS: readonly (readonly [name: string, bytes: string, cause: RegExp])[] = [
  ['a request without a header', 'GET / HTTP/1.1\r\n', /no PROXY header/],
  ['the start of a ClientHello', '\x16\x03\x01\x02\0', /no PROXY header/],
  ['a lower-case signature of version 1', 'proxy TCP4 ', /no PROXY header/],
  ['a signature of version 2 that ends wrong', '\r\n\r\n\0\r\nQUIT\r', /no PROXY header/],
  ['an empty line in front of version 1', '\r\nPROXY UNKNOWN\r\n', /no PROXY header/],
  ['version 1 of a family that is unknown', 'PROXY UDP4 203.0.113.7 192.0.2.1 1 2\r\n', /malformed/],
  ['version 1 with the address of another family', 'PROXY TCP4 2001:db8::7 192.0.2.1 1 2\r\n', /malformed/],
  ['version 1 with IPv4 as TCP6', 'PROXY TCP6 203.0.113.7 192.0.2.1 1 2\r\n', /malformed/],
  ['version 1 without a port', 'PROXY TCP4 203.0.113.7 192.0.2.1 1\r\n', /malformed/],
  ['version 1 with one word more', 'PROXY TCP4 203.0.113.7 192.0.2.1 1 2 3\r\n', /malformed/],
  ['version 1 with two spaces', 'PROXY TCP4  203.0.113.7 192.0.2.1 1 2\r\n', /malformed/],
  ['version 1 with a tab', 'PROXY TCP4\t203.0.113.7 192.0.2.1 1 2\r\n', /malformed/],
  ['version 1 that ends with LF alone', 'PROXY TCP4 203.0.113.7 192.0.2.1 1 2\n', /malformed/],
  ['version 1 unknown that ends with LF alone', 'PROXY UNKNOWN\n', /malformed/],
  ['version 1 with CR within', 'PROXY UNKNOWN a\rb\r\n', /malformed/],
  ['version 1 with a port of 65536', 'PROXY TCP4 203.0.113.7 192.0.2.1 65536 2\r\n', /malformed/],
  ['version 1 with a leading zero in a port', 'PROXY TCP4 203.0.113.7 192.0.2.1 01 2\r\n', /malformed/],
  ['version 1 with a leading zero in an address', 'PROXY TCP4 203.0.113.07 192.0.2.1 1 2\r\n', /malformed/],
  ['version 1 with a negative port', 'PROXY TCP4 203.0.113.7 192.0.2.1 -1 2\r\n', /malformed/],
  ['version 1 with a host name', 'PROXY TCP4 localhost 192.0.2.1 1 2\r\n', /malformed/],
  ['version 1 with a zone', 'PROXY TCP6 fe80::1%eth0 2001:db8::1 1 2\r\n', /malformed/],
  ['version 1 of 107 bytes without an end', `PROXY UNKNOWN ${'f'.repeat(93)}`, /at most 107 bytes/],
  ['version 1 with its end at byte 108', `PROXY UNKNOWN ${'f'.repeat(92)}\r\n`, /at most 107 bytes/],
  ['version 3', version2(0x31, 0x11, V4_BODY), /version or command 0x31/],
  ['version 1 in binary', version2(0x11, 0x11, V4_BODY), /version or command 0x11/],
  ['a command that is unknown', version2(0x22, 0x11, V4_BODY), /version or command 0x22/],
  ['UDP over IPv4', version2(0x21, 0x12, V4_BODY), /family 0x12, which is not TCP/],
  ['a Unix socket', version2(0x21, 0x31, new Array<number>(216).fill(0)), /family 0x31, which is not TCP/],
  ['a family that is unknown', version2(0x21, 0x41, V4_BODY), /family 0x41, which is not TCP/],
  ['a length below that of the addresses', version2(0x21, 0x11, V4_BODY.slice(1)), /shorter than its addresses/],
  ['IPv4 addresses in an IPv6 header', version2(0x21, 0x21, V4_BODY), /shorter than its addresses/],
  ['a length of 64 KiB', version2(0x21, 0x11, V4_BODY, 65_535), /at most 4096/],
  ['one byte too long', version2(0x21, 0x11, V4_BODY, 4081), /at most 4096/],
  ['a local header that is too long', version2(0x20, 0x00, [], 4081), /at most 4096/],
]
