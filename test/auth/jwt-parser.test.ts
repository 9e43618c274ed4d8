/** Parts of a parsed JWT, and what the parser refuses before any signature is verified. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isJose, parseJwt } from '../../src/auth/jwt-parser.ts'
import { Random, SEED } from '../harness/random.ts'
import { base64url } from './token-maker.ts'

const HEADER = { typ: 'at+jwt', alg: 'RS256', kid: 'k' }

function read(header: object | string, claims: object | string) {
  return parseJwt(`${base64url(header)}.${base64url(claims)}.${base64url('signature')}`)
}

test('a JWT is parsed into algorithm, kid, type, claims, signed part and signature', () => {
  const jwt = read(HEADER, { iss: 'i', exp: 1.5, nested: { list: [{ a: 1 }, { a: 2 }], name: 'a"b\\' } })
  assert.ok(typeof jwt === 'object')
  assert.deepEqual([jwt.algorithm, jwt.kid, jwt.type, jwt.claims.exp], ['RS256', 'k', 'at+jwt', 1.5])
  assert.equal(jwt.signature.toString(), 'signature')
  assert.equal(jwt.signedPart.toString(), `${base64url(HEADER)}.${base64url(jwt.claims)}`)
})

for (const typ of ['JWT', 'jwt', 'at+jwt', 'application/at+jwt', 'AT+JWT', undefined]) {
  test(`typ ${typ} is accepted`, () => assert.equal(typeof read({ ...HEADER, typ }, {}), 'object'))
}

/** Equal member names in two spellings. */
const SAME: readonly (readonly [one: string, other: string])[] = [
  ['"iss"', '"iss"'],
  ['"iss"', '"\\u0069ss"'],
  ['"\\u0069ss"', '"i\\u0073s"'],
  ['""', '""'],
  ['"\\""', '"\\u0022"'],
  ['"\\\\"', '"\\u005c"'],
  ['"/"', '"\\/"'],
  ['"\u00e9"', '"\\u00e9"'],
]
const TWICE = 'claims: a duplicate member, or __proto__'
for (const [one, other] of SAME) {
  test(`members ${one} and ${other} are duplicates`, () => {
    assert.equal(read(HEADER, `{${one}:1,${other}:2}`), TWICE)
    assert.equal(read(HEADER, `{"a":{${one}:1},"b":[1,"x",{${one}:1,"z":[],${other}:{}}]}`), TWICE)
  })
}

test('equal strings, array items and members of different objects are no duplicates', () => {
  for (const claims of [
    '{"a":"a","b":["a","a","b"],"c":{"a":1,"b":2},"d":[{"a":1},{"a":1}]}',
    '{"a":"{\\"a\\":1,","b":"\\\\\\"","c":"\\"a\\":"}',
    '{"A":1,"a":1,"a ":1,"\\u00e9":1,"e\\u0301":1}',
    ' {\n"a" : [ ] , "b":{ } } ',
  ]) {
    assert.equal(typeof read(HEADER, claims), 'object', claims)
  }
})

test('nesting is limited to 16', () => {
  const deep = (depth: number) => `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`
  assert.equal(typeof read(HEADER, deep(15)), 'object')
  assert.equal(read(HEADER, deep(16)), 'claims: deeper than 16')
  assert.equal(read(HEADER, deep(3000)), 'claims: deeper than 16')
})

for (const [date, value] of [
  ['exp', '1e999'],
  ['nbf', '-1e999'],
  ['iat', '"1"'],
  ['exp', 'true'],
  ['exp', '{}'],
] as const) {
  test(`${date} ${value} is refused as a date`, () =>
    assert.equal(read(HEADER, `{"${date}":${value}}`), `${date} is not a number of seconds`))
}

test('a token of 8 KiB is parsed, one byte more is refused', () => {
  const rest = `${base64url(HEADER)}..${base64url('s')}`.length
  const filler = (length: number) => parseJwt(`${base64url(HEADER)}.${'A'.repeat(length - rest)}.${base64url('s')}`)
  assert.notEqual(filler(8192), 'longer than 8192 bytes')
  assert.equal(filler(8193), 'longer than 8192 bytes')
})

test('a token that begins with base64url of { and has a dot is not opaque', () => {
  const compact = `${base64url(HEADER)}.${base64url({})}.`
  for (const token of [compact, `${compact}a.b`, `${base64url(HEADER)}.`, `${base64url('{ "alg":1}')}.x`]) {
    assert.equal(isJose(token), true, token)
  }
  for (const token of ['2YotnFZFEjr1zCsicMWpAA', base64url(HEADER), 'a.b.c', '.eyJ', '', 'ea.b.c']) {
    assert.equal(isJose(token), false, token)
  }
})

test('random input never throws', () => {
  const random = new Random(SEED)
  const alphabet = [...'{}[]",:\\u0041eyJ\n \ttrue1.-\u00ff']
  for (let round = 0; round < 3000; round++) {
    const text = Array.from({ length: random.below(40) }, () => random.pick(alphabet)).join('')
    const form = typeof read(HEADER, `{${text}}`)
    const isJson = (() => {
      try {
        return JSON.parse(`{${text}}`) !== undefined
      } catch {
        return false
      }
    })()
    assert.ok(isJson || form === 'string', text)
    assert.equal(typeof parseJwt(text), 'string')
  }
})
