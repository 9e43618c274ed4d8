/** CORS policy: response lines by origin, the cache of grants, and patterns of origins. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CorsDefinition } from '../../src/apis/api-definition.ts'
import { CorsPolicy, corsPolicyOf, OriginPattern } from '../../src/filters/cors-policy.ts'
import { OPEN_CORS } from '../harness/filter-chain.ts'

const A = 'https://a.example'
const VARY = 'Vary: Origin\r\n'
const CREDENTIALS = 'Access-Control-Allow-Credentials: true\r\n'

function allow(origin: string): string {
  return `Access-Control-Allow-Origin: ${origin}\r\n`
}

interface Case {
  readonly name: string
  readonly cors: Partial<CorsDefinition>
  readonly origin: string
  readonly lines: string
}

const CASES: readonly Case[] = [
  { name: 'every origin: a request with an origin', cors: {}, origin: A, lines: allow('*') },
  {
    name: 'every origin: a request without an origin, whose response caches may share',
    cors: {},
    origin: '',
    lines: allow('*'),
  },
  { name: 'every origin: the origin null', cors: {}, origin: 'null', lines: allow('*') },
  { name: 'every origin beside a name', cors: { origins: [A, '*'] }, origin: A, lines: allow('*') },
  { name: 'every origin never gets credentials', cors: { credentials: true }, origin: A, lines: allow('*') },
  { name: 'a named origin', cors: { origins: [A] }, origin: A, lines: allow(A) + VARY },
  { name: 'an origin that is not named', cors: { origins: [A] }, origin: 'https://b.example', lines: VARY },
  { name: 'no origin where one is named', cors: { origins: [A] }, origin: '', lines: VARY },
  {
    name: 'the origin of the request is compared as it is',
    cors: { origins: [A] },
    origin: 'https://A.example',
    lines: VARY,
  },
  {
    name: 'a named origin with its port',
    cors: { origins: [`${A}:8`] },
    origin: `${A}:8`,
    lines: allow(`${A}:8`) + VARY,
  },
  { name: 'a named origin without its port', cors: { origins: [`${A}:8`] }, origin: A, lines: VARY },
  {
    name: 'a name in capitals matches what browsers send',
    cors: { origins: ['HTTPS://A.Example'] },
    origin: A,
    lines: allow(A) + VARY,
  },
  { name: 'null that is not named', cors: { origins: [A, 'https://*.x'] }, origin: 'null', lines: VARY },
  { name: 'null that is named', cors: { origins: ['null'] }, origin: 'null', lines: allow('null') + VARY },
  { name: 'no configured origin: no response varies', cors: { origins: [] }, origin: A, lines: '' },
  {
    name: 'a named origin with credentials',
    cors: { origins: [A], credentials: true },
    origin: A,
    lines: allow(A) + CREDENTIALS + VARY,
  },
  {
    name: 'credentials for an origin that is not named',
    cors: { origins: [A], credentials: true },
    origin: 'https://b',
    lines: VARY,
  },
  {
    name: 'a pattern with credentials echoes the origin',
    cors: { origins: ['https://*.x.example'], credentials: true },
    origin: 'https://b.x.example',
    lines: allow('https://b.x.example') + CREDENTIALS + VARY,
  },
  // Every spelling of the wildcard counts as one.
  ...['https://*', '*://*', 'HTTPS://*', 'https://*:*', 'https://**'].map(origin => ({
    name: `a pattern of every host never gets credentials: ${origin}`,
    cors: { origins: [origin], credentials: true },
    origin: 'https://b.example',
    lines: origin.includes(':*') ? VARY : allow('https://b.example') + VARY,
  })),
  {
    name: 'two stars are every origin',
    cors: { origins: ['**'], credentials: true },
    origin: 'null',
    lines: allow('*'),
  },
  {
    name: 'null never gets credentials',
    cors: { origins: ['null', A], credentials: true },
    origin: 'null',
    lines: allow('null') + VARY,
  },
  {
    name: 'a named origin beside a pattern of every host gets credentials',
    cors: { origins: ['https://*', A], credentials: true },
    origin: A,
    lines: allow(A) + CREDENTIALS + VARY,
  },
  {
    name: 'an origin that matches a narrow pattern beside one of every host gets credentials',
    cors: { origins: ['https://*', 'https://*.x.example'], credentials: true },
    origin: 'https://b.x.example',
    lines: allow('https://b.x.example') + CREDENTIALS + VARY,
  },
  {
    name: 'an origin beyond 300 characters matches no pattern',
    cors: { origins: ['https://*.x.example'] },
    origin: `https://${'b'.repeat(300)}.x.example`,
    lines: VARY,
  },
  {
    name: 'exposed fields',
    cors: { exposedHeaders: ['ETag', 'Link'] },
    origin: A,
    lines: `${allow('*')}Access-Control-Expose-Headers: ETag, Link\r\n`,
  },
  {
    name: 'an exposed field that is no token is left out',
    cors: { exposedHeaders: ['ETag\r\nX-Evil: 1', 'a b', '', 'Link'] },
    origin: A,
    lines: `${allow('*')}Access-Control-Expose-Headers: Link\r\n`,
  },
]

for (const { name, cors, origin, lines } of CASES) {
  test(name, () => {
    const policy = new CorsPolicy({ ...OPEN_CORS, ...cors })
    const grant = policy.grant(origin)
    assert.equal(grant.lines, lines)
    assert.equal(grant.vary, lines.endsWith(VARY) ? VARY : '')
    assert.equal(policy.grant(origin), grant, 'a grant is composed once')
  })
}

test('a named origin beyond 300 characters gets no grant', () => {
  const long = `https://${'a'.repeat(300)}`
  assert.equal(new CorsPolicy({ ...OPEN_CORS, origins: [long] }).grant(long).lines, VARY)
})

test('all valid names are sent', () => {
  const names = Array.from({ length: 200 }, (_, i) => `X-${i}`)
  const { lines } = new CorsPolicy({ ...OPEN_CORS, exposedHeaders: names }).grant('')
  assert.ok(lines.includes(`Access-Control-Expose-Headers: ${names.join(', ')}\r\n`))
})

test('the cache keeps the last 256 origins that match a pattern, and all named ones', () => {
  const policy = new CorsPolicy({ ...OPEN_CORS, origins: [A, 'https://*.x.example'] })
  const first = policy.grant('https://first.x.example')
  const named = policy.grant(A)
  for (let i = 0; i < 255; i++) policy.grant(`https://a${i}.x.example`)
  assert.equal(policy.grant('https://first.x.example'), first)
  policy.grant('https://one-more.x.example')
  assert.notEqual(policy.grant('https://first.x.example'), first)
  assert.equal(policy.grant(A), named)
})

test('origins without a grant share one object', () => {
  const policy = new CorsPolicy({ ...OPEN_CORS, origins: ['https://*.x.example'] })
  assert.equal(policy.grant('https://b.example'), policy.grant('https://c.example'))
})

test('APIs with the same definition share a policy; disabled CORS has none', () => {
  assert.equal(corsPolicyOf(OPEN_CORS), corsPolicyOf(OPEN_CORS))
  assert.equal(corsPolicyOf(null), null)
  assert.equal(corsPolicyOf({ ...OPEN_CORS, enabled: false }), null)
})

const MATCHING: readonly (readonly [pattern: string, origin: string])[] = [
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

for (const [pattern, origin] of MATCHING) {
  test(`${pattern} matches ${origin}`, () => assert.ok(new OriginPattern(pattern).matches(origin)))
}
for (const [pattern, origin] of OTHERS) {
  test(`${pattern} does not match ${JSON.stringify(origin)}`, () =>
    assert.ok(!new OriginPattern(pattern).matches(origin)))
}

test('a pattern matches exactly what trying every placement of its stars matches', () => {
  for (const pattern of textsOf('ab:*', 5)) {
    if (!pattern.includes('*')) continue
    const matcher = new OriginPattern(pattern)
    for (const origin of textsOf('ab:', 5))
      assert.equal(matcher.matches(origin), matchesByTrial(pattern, origin), `${pattern} ${origin}`)
  }
})

function textsOf(letters: string, length: number): readonly string[] {
  if (length === 0) return ['']
  const shorter = textsOf(letters, length - 1)
  const longest = shorter.filter(text => text.length === length - 1)
  return [...shorter, ...longest.flatMap(text => [...letters].map(letter => text + letter))]
}

/** Tries every placement. A run of stars counts as one. */
function matchesByTrial(pattern: string, origin: string): boolean {
  if (pattern === '') return origin === ''
  if (pattern[0] !== '*')
    return origin[0] === pattern[0] && origin !== '' && matchesByTrial(pattern.slice(1), origin.slice(1))
  const rest = pattern.replace(/^\*+/, '')
  for (let end = 1; end <= origin.length && origin[end - 1] !== ':'; end++) {
    if (matchesByTrial(rest, origin.slice(end))) return true
  }
  return false
}
