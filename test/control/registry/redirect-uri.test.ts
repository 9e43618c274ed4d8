/** Redirect URIs that may receive codes (RFC 6749 3.1.2, RFC 8252 7, RFC 9700 2.1). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isAllowedRedirectUri } from '../../../src/control/registry/redirect-uri.ts'

const ROWS: readonly (readonly [uri: string, may: boolean])[] = [
  ['https://app.example/back?a=b', true],
  ['http://localhost:8080/back', true],
  ['http://127.0.0.1/back', true],
  ['http://[::1]/back', true],
  ['com.example.app:/back', true],
  ['http://app.example/back', false],
  ['http://localhost.example/back', false],
  ['https://app.example/#here', false],
  ['https://user@app.example/back', false],
  ['https://*.example/back', false],
  ['https://app.example/a b', false],
  ['javascript:alert(1)', false],
  ['data:text/html,x', false],
  ['myapp:/back', false],
  ['/back', false],
  ['', false],
]

for (const [uri, may] of ROWS) {
  test(`${uri === '' ? 'an empty text' : uri} is ${may ? 'allowed' : 'refused'} as redirect URI`, () => {
    assert.equal(isAllowedRedirectUri(uri), may)
  })
}
