/** Errors of `tune` about a gateway that refuses every request. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refusalText } from '../../src/tune/refusals.ts'

/** Failures, and the end of the message. */
const REFUSALS: readonly (readonly [Readonly<Record<string, number>>, RegExp])[] = [
  [{ '401 (900902)': 1200 }, /\(401 \(900902\) x 1,200\): give a token: --header 'Authorization: Bearer TOKEN'$/],
  [{ '403 (900908)': 3 }, /may not use this API$/],
  [{ 404: 3 }, /no API of this home serves this path, or its backend does not$/],
  [{ 405: 3 }, /give the method with -X$/],
  [{ '429 (900802)': 3 }, /a quota is used up/],
  [{ '502 (101503)': 1, '503 (303001)': 90 }, /\(503 \(303001\) x 90, 502 \(101503\) x 1\): .*: sluice why explains/],
  [{ 500: 3 }, /the backend fails$/],
  [{ 302: 3 }, /the backend redirects/],
  [{ 'lost connection': 3 }, /try the path with sluice walk$/],
  [{ 'no response': 1 }, /the backend is silent, or slower than --seconds$/],
  [{}, /give more --seconds$/],
]
for (const [failures, reason] of REFUSALS) {
  test(`a gateway that serves nothing: ${JSON.stringify(failures)}`, () => assert.match(refusalText(failures), reason))
}
