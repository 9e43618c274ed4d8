/** Host name of an authority (RFC 3986 3.2.2). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hostName } from '../../src/http1/host-name.ts'

const NAMES: readonly (readonly [authority: string, name: string])[] = [
  ['a.example', 'a.example'],
  ['A.Example:8290', 'a.example'],
  ['a.example:', 'a.example'],
  ['a.example.', 'a.example'],
  ['a.example.:8290', 'a.example'],
  ['a.example..', 'a.example.'],
  ['a1:8290', 'a1'],
  ['10.1.2.3', '10.1.2.3'],
  ['10.1.2.3:80', '10.1.2.3'],
  ['[::1]', '[::1]'],
  ['[::1]:8290', '[::1]'],
  ['[FE80::1]:', '[fe80::1]'],
  // Invalid names stay invalid.
  ['http://a', 'http://a'],
  ['a:b', 'a:b'],
  ['fe80::1', 'fe80:'],
  ['.', '.'],
  ['.:80', '.'],
  [':80', ''],
  ['', ''],
]

for (const [authority, name] of NAMES) {
  test(`${JSON.stringify(authority)} names ${JSON.stringify(name)}`, () => assert.equal(hostName(authority), name))
}
