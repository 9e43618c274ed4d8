/** Content codings of bodies that are read and go on changed (RFC 9110 8.4, 12.5.3). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { DEFAULT_LIMITS } from '../../../src/mediation/formats/body-limits.ts'
import { acceptsCoding, decodeContent, encodeContent } from '../../../src/mediation/formats/content-coding.ts'
import { build, shown } from './build-body.ts'

const TEXT = '{"a":1}'

const CODED: readonly (readonly [coding: string, bytes: Buffer])[] = [
  ['gzip', gzipSync(TEXT)],
  ['x-gzip', gzipSync(TEXT)],
  ['GZIP', gzipSync(TEXT)],
  ['deflate', deflateSync(TEXT)],
  ['deflate', deflateRawSync(TEXT)],
  ['br', brotliCompressSync(TEXT)],
  ['identity', Buffer.from(TEXT)],
  ['deflate, gzip', gzipSync(deflateSync(TEXT))],
]

for (const [coding, bytes] of CODED) {
  test(`a body with the coding ${coding} and ${bytes.length} bytes is decoded, and coded again`, () => {
    assert.equal(shown(build(bytes, 'application/json', coding)), `json ${TEXT}`)
    const again = encodeContent(Buffer.from('changed'), coding, null)
    const decoded = decodeContent(again.bytes, again.contentEncoding, DEFAULT_LIMITS)
    assert.equal(Buffer.from(decoded).toString(), 'changed')
  })
}

const ACCEPTED: readonly (readonly [accepted: string, coding: string, isAccepted: boolean])[] = [
  ['gzip', 'gzip', true],
  ['GZip;q=0.5, br', 'gzip', true],
  ['gzip;q=0', 'gzip', false],
  ['gzip;q=0, *', 'gzip', false],
  ['*', 'br', true],
  ['*;q=0', 'br', false],
  ['x-gzip', 'gzip', true],
  ['gzip', 'x-gzip', true],
  ['', 'gzip', false],
  ['br', 'gzip', false],
]

for (const [accepted, coding, isAccepted] of ACCEPTED) {
  test(`Accept-Encoding "${accepted}" ${isAccepted ? 'takes' : 'refuses'} ${coding}`, () => {
    assert.equal(acceptsCoding(accepted, coding), isAccepted)
    assert.equal(encodeContent(Buffer.from('a'), coding, accepted).contentEncoding, isAccepted ? coding : '')
  })
}

test('a body that no unknown coding was read from goes on without that coding once it is replaced', () => {
  assert.deepEqual(encodeContent(Buffer.from('a'), 'compress', null), { bytes: Buffer.from('a'), contentEncoding: '' })
})
