/** Patterns of origins: what a star may stand for, and above all what it may not. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OriginPattern } from '../../src/handlers/origin-pattern.ts'

const FITTING: readonly (readonly [pattern: string, origin: string])[] = [
  ['https://*.example.com', 'https://app.example.com'],
  ['https://*.example.com', 'https://a.b-c.d_e.example.com'],
  ['HTTPS://*.Example.COM', 'https://app.example.com'],
  ['http://localhost:*', 'http://localhost:3000'],
  ['https://*.example.com:8443', 'https://app.example.com:8443'],
  ['*://app.example.com', 'http://app.example.com'],
  ['https://app-*.example.*', 'https://app-1.example.org'],
  ['https://*aa.example.com', 'https://aaaa.example.com'],
  ['https://*.a.*.b.com', 'https://x.a.a.y.b.com'],
  ['https://**.example.com', 'https://app.example.com'],
  ['https://*.*.example.com', 'https://a.b.example.com'],
]

const OTHERS: readonly (readonly [pattern: string, origin: string])[] = [
  ['https://*.example.com', 'https://example.com'],
  ['https://*.example.com', 'https://.example.com'],
  ['https://*.example.com', 'http://app.example.com'],
  ['https://*.example.com', 'https://app.example.com:8443'],
  ['https://*.example.com', 'https://app.example.com.evil.example'],
  ['https://*.example.com', 'https://evil.example/.example.com'],
  ['https://*.example.com', 'https://evil.example#.example.com'],
  ['https://*.example.com', 'https://evil.example?.example.com'],
  ['https://*.example.com', 'https://evil.example\\.example.com'],
  ['https://*.example.com', 'https://evil.example:1.example.com'],
  ['https://*.example.com', 'https://user@evil.example.com'],
  ['https://*.example.com', 'https://evil.example%2f.example.com'],
  ['https://*.example.com', 'https://evil example.example.com'],
  ['https://*.example.com', 'https://evil.example,https://a.example.com'],
  ['https://*.example.com', 'https://\u00e9.example.com'],
  ['https://*.example.com', 'https://[::1].example.com'],
  ['https://*.example.com', 'https://app.exampleXcom'],
  ['https://*.example.com', 'https://APP.example.com'],
  ['https://*.example.com', 'prefix https://app.example.com'],
  ['https://*.example.com', 'null'],
  ['https://*.example.com', ''],
  ['https://a*a.example.com', 'https://a.example.com'],
  ['https://*.a.*.com', 'https://x.a.com'],
  ['http://localhost:*', 'http://localhost'],
  ['http://localhost:*', 'http://localhost:'],
  ['http://localhost:*', 'http://localhost:1/x'],
  ['*://*', 'null'],
  ['https://(a+)+*', `https://${'a'.repeat(200)}`],
]

for (const [pattern, origin] of FITTING) {
  test(`${pattern} lets in ${origin}`, () => assert.ok(new OriginPattern(pattern).matches(origin)))
}
for (const [pattern, origin] of OTHERS) {
  test(`${pattern} does not let in ${JSON.stringify(origin)}`, () =>
    assert.ok(!new OriginPattern(pattern).matches(origin)))
}

test('against every way to put the stars it decides as trying all of them does', () => {
  for (const pattern of words('ab:*', 5)) {
    if (!pattern.includes('*')) continue
    const fits = new OriginPattern(pattern)
    for (const origin of words('ab:', 5))
      assert.equal(fits.matches(origin), tried(pattern, origin), `${pattern} ${origin}`)
  }
})

function words(letters: string, length: number): readonly string[] {
  if (length === 0) return ['']
  const shorter = words(letters, length - 1)
  const longest = shorter.filter(word => word.length === length - 1)
  return [...shorter, ...longest.flatMap(word => [...letters].map(letter => word + letter))]
}

/** A run of stars is one of them. */
function tried(pattern: string, origin: string): boolean {
  if (pattern === '') return origin === ''
  if (pattern[0] !== '*') return origin[0] === pattern[0] && origin !== '' && tried(pattern.slice(1), origin.slice(1))
  const rest = pattern.replace(/^\*+/, '')
  for (let end = 1; end <= origin.length && origin[end - 1] !== ':'; end++) {
    if (tried(rest, origin.slice(end))) return true
  }
  return false
}
