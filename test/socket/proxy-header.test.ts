import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectionAddresses, proxyHeader, readProxyHeader } from '../../src/socket/proxy-header.ts'
import { BAD_HEADERS, GOOD_HEADERS, V4_BODY, V6_BODY, version2 } from '../harness/proxy-headers.ts'

const BEHIND = 'GET / HTTP/1.1\r\n'

for (const [name, header, client] of GOOD_HEADERS) {
  test(`PROXY ${name}: addresses and length, and no answer before its last byte`, () => {
    const bytes = Buffer.from(header + BEHIND, 'latin1')
    const read = readProxyHeader(bytes)
    assert.ok(read !== null && typeof read === 'object', String(read))
    assert.equal(read.length, header.length)
    assert.equal(read.addresses?.source ?? null, client)
    if (client !== null) assert.deepEqual([read.addresses!.sourcePort, read.addresses!.destinationPort], [4711, 443])
    for (let length = 0; length < header.length; length++)
      assert.equal(readProxyHeader(bytes.subarray(0, length)), null)
  })
}

for (const [name, text, cause] of BAD_HEADERS) {
  test(`PROXY ${name}: refused, in pieces too, and never taken for a header`, () => {
    const bytes = Buffer.from(text, 'latin1')
    assert.match(String(readProxyHeader(bytes)), cause)
    for (let length = 0; length < bytes.length; length++) {
      const read = readProxyHeader(bytes.subarray(0, length))
      assert.ok(read === null || typeof read === 'string', `${length} bytes`)
    }
  })
}

test('PROXY random bytes behind a signature of version 2: a header, a refusal or more bytes, and no exception', () => {
  for (let round = 0; round < 20_000; round++) {
    const body = Array.from({ length: Math.floor(Math.random() * 60) }, () => Math.floor(Math.random() * 256))
    const bytes = Buffer.from(version2(0x20 + (round % 4), round % 256, body), 'latin1')
    for (let change = 0; change < round % 3; change++) bytes[(12 + Math.random() * 4) | 0] = Math.random() * 256
    const read = readProxyHeader(bytes)
    assert.ok(read === null || typeof read === 'string' || read.length <= bytes.length)
  }
})

/** [source, destination, header] */
const WRITTEN: readonly (readonly [source: string, destination: string, header: string])[] = [
  ['203.0.113.7', '192.0.2.1', version2(0x21, 0x11, V4_BODY)],
  ['::ffff:203.0.113.7', '::ffff:192.0.2.1', version2(0x21, 0x11, V4_BODY)],
  ['2001:db8::7', '2001:db8::1', version2(0x21, 0x21, V6_BODY)],
  ['2001:db8:0:0:0:0:0:7', '2001:db8::1%eth0', version2(0x21, 0x21, V6_BODY)],
  ['203.0.113.7', '2001:db8::1', version2(0x21, 0x00, [])],
]
for (const [source, destination, header] of WRITTEN) {
  test(`PROXY version 2 from ${source} to ${destination}, as it is written`, () => {
    const addresses = connectionAddresses(source, 4711, destination, 443)
    assert.equal(proxyHeader(addresses).toString('latin1'), header)
  })
}

test('PROXY version 2 of the gateway itself is local', () => {
  assert.equal(proxyHeader(null).toString('latin1'), version2(0x20, 0x00, []))
})
