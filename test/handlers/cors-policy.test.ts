/** What a CORS policy says to which origin, to the byte; and that whoever asks much does not make it grow. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CorsDefinition } from '../../src/config/api-definition.ts'
import { CorsPolicy, policyOf } from '../../src/handlers/cors-policy.ts'
import { OPEN_CORS } from '../harness/chained.ts'

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
  { name: 'any, to one', cors: {}, origin: A, lines: allow('*') },
  { name: 'any, to nobody: a cache may give it to everybody', cors: {}, origin: '', lines: allow('*') },
  { name: 'any, to a page without an origin', cors: {}, origin: 'null', lines: allow('*') },
  { name: 'any beside a name is any', cors: { origins: [A, '*'] }, origin: A, lines: allow('*') },
  { name: 'any never has credentials', cors: { credentials: true }, origin: A, lines: allow('*') },
  { name: 'a name, to it', cors: { origins: [A] }, origin: A, lines: allow(A) + VARY },
  { name: 'a name, to another', cors: { origins: [A] }, origin: 'https://b.example', lines: VARY },
  { name: 'a name, to nobody', cors: { origins: [A] }, origin: '', lines: VARY },
  { name: 'a name is compared exactly', cors: { origins: [A] }, origin: 'https://A.example', lines: VARY },
  { name: 'a name with a port, to it', cors: { origins: [`${A}:8`] }, origin: `${A}:8`, lines: allow(`${A}:8`) + VARY },
  { name: 'a name with a port, to none', cors: { origins: [`${A}:8`] }, origin: A, lines: VARY },
  {
    name: 'a name in capitals is that of browsers',
    cors: { origins: ['HTTPS://A.Example'] },
    origin: A,
    lines: allow(A) + VARY,
  },
  { name: 'null only by name', cors: { origins: [A, 'https://*.x'] }, origin: 'null', lines: VARY },
  { name: 'null by name', cors: { origins: ['null'] }, origin: 'null', lines: allow('null') + VARY },
  { name: 'no origin at all: every answer is the same', cors: { origins: [] }, origin: A, lines: '' },
  {
    name: 'a name with credentials',
    cors: { origins: [A], credentials: true },
    origin: A,
    lines: allow(A) + CREDENTIALS + VARY,
  },
  { name: 'credentials, to another', cors: { origins: [A], credentials: true }, origin: 'https://b', lines: VARY },
  {
    name: 'a pattern with credentials names who asked',
    cors: { origins: ['https://*.x.example'], credentials: true },
    origin: 'https://b.x.example',
    lines: allow('https://b.x.example') + CREDENTIALS + VARY,
  },
  // What lets in every page is the wildcard, however it is written.
  ...['https://*', '*://*', 'HTTPS://*', 'https://*:*', 'https://**'].map(origin => ({
    name: `a pattern of every host never has credentials: ${origin}`,
    cors: { origins: [origin], credentials: true },
    origin: 'https://b.example',
    lines: origin.includes(':*') ? VARY : allow('https://b.example') + VARY,
  })),
  { name: 'any in two stars is any', cors: { origins: ['**'], credentials: true }, origin: 'null', lines: allow('*') },
  {
    name: 'a page that hides where it comes from never has credentials',
    cors: { origins: ['null', A], credentials: true },
    origin: 'null',
    lines: allow('null') + VARY,
  },
  {
    name: 'a name beside a pattern of every host has credentials',
    cors: { origins: ['https://*', A], credentials: true },
    origin: A,
    lines: allow(A) + CREDENTIALS + VARY,
  },
  {
    name: 'so has who fits a pattern that names somebody',
    cors: { origins: ['https://*', 'https://*.x.example'], credentials: true },
    origin: 'https://b.x.example',
    lines: allow('https://b.x.example') + CREDENTIALS + VARY,
  },
  {
    name: 'a pattern, to a name that is too long for one',
    cors: { origins: ['https://*.x.example'] },
    origin: `https://${'b'.repeat(300)}.x.example`,
    lines: VARY,
  },
  {
    name: 'fields to expose',
    cors: { exposedHeaders: ['ETag', 'Link'] },
    origin: A,
    lines: `${allow('*')}Access-Control-Expose-Headers: ETag, Link\r\n`,
  },
  {
    name: 'what cannot be a name is not said',
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
    assert.equal(grant.credentials, lines.includes(CREDENTIALS))
    assert.equal(policy.grant(origin), grant, 'made once')
  })
}

test('an origin that is too long for one is granted nothing, whoever has configured it', () => {
  const long = `https://${'a'.repeat(300)}`
  assert.equal(new CorsPolicy({ ...OPEN_CORS, origins: [long] }).grant(long).lines, VARY)
})

test('names that are judged leave as they are, all of them', () => {
  const names = Array.from({ length: 200 }, (_, i) => `X-${i}`)
  assert.equal(new CorsPolicy({ ...OPEN_CORS, exposedHeaders: names }).grant('').exposes, names.join(', '))
})

test('of origins that fit a pattern the latest are kept, and those by name always', () => {
  const policy = new CorsPolicy({ ...OPEN_CORS, origins: [A, 'https://*.x.example'] })
  const first = policy.grant('https://first.x.example')
  const named = policy.grant(A)
  for (let i = 0; i < 255; i++) policy.grant(`https://a${i}.x.example`)
  assert.equal(policy.grant('https://first.x.example'), first)
  policy.grant('https://one-more.x.example')
  assert.notEqual(policy.grant('https://first.x.example'), first)
  assert.equal(policy.grant(A), named)
})

test('those who are granted nothing share that', () => {
  const policy = new CorsPolicy({ ...OPEN_CORS, origins: ['https://*.x.example'] })
  assert.equal(policy.grant('https://b.example'), policy.grant('https://c.example'))
})

test('APIs with the same definition share a policy; one that is not enabled has none', () => {
  assert.equal(policyOf(OPEN_CORS), policyOf(OPEN_CORS))
  assert.equal(policyOf(null), null)
  assert.equal(policyOf({ ...OPEN_CORS, enabled: false }), null)
})
