import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as key from '../../src/config/key.ts'

const whole = key.count(5, 'bytes', 1, 10, 'm')
const unlimited = key.except(-1, 'unlimited', whole)
const quoted = key.orText(unlimited)
const ms = key.duration(5, 'ms', 1, 3_600_000, 'm')
const seconds = key.duration(5, 's', 0, 100, 'm')

const TAKEN: readonly (readonly [definition: key.Key<unknown>, given: unknown, value: unknown])[] = [
  [key.flag(true, 'm'), false, false],
  [key.flag(true, 'm'), 'true', true],
  [key.flag(true, 'm'), 'false', false],
  [whole, 1, 1],
  [whole, 10, 10],
  [unlimited, -1, -1],
  [quoted, '7', 7],
  [quoted, '-1', -1],
  [ms, 30, 30],
  [ms, '500ms', 500],
  [ms, '2s', 2000],
  [ms, '1h', 3_600_000],
  [seconds, '1m', 60],
  [seconds, '2000ms', 2],
  [key.port(1, 'm'), 65_535, 65_535],
  [key.port(1, 'm'), 0, 0],
  [key.text('', 'm'), 'any text, "quoted" too', 'any text, "quoted" too'],
  [key.secret('m'), 'a\nb', 'a\nb'],
  [key.choice('a', ['a', 'b'], 'm'), 'b', 'b'],
  [key.words([], 'm'), 'a, b,,c ', ['a', 'b', 'c']],
  [key.words([], 'm'), ['a', ' b'], ['a', 'b']],
  [key.words([], 'm'), '', []],
  [key.fieldName('x', 'm'), 'X-Request-Id', 'X-Request-Id'],
  [key.fieldNames([], 'm'), 'Server,Date', ['Server', 'Date']],
  [key.host('', 'm'), '', ''],
  [key.host('x', 'm'), 'gw-1.example.com', 'gw-1.example.com'],
  [key.host('x', 'm'), '10.0.0.1', '10.0.0.1'],
  [key.host('x', 'm'), '::1', '::1'],
  [key.required(key.words([], 'm')), 'a', ['a']],
  [key.required(key.secret('m')), 'a', 'a'],
  [key.cidrs([], 'm'), '10.0.0.0/8,192.168.1.1', ['10.0.0.0/8', '192.168.1.1/32']],
  [key.cidrs([], 'm'), ['2001:DB8:0::/32', '::1', '0.0.0.0/0'], ['2001:db8::/32', '::1/128', '0.0.0.0/0']],
  [key.cidrs([], 'm'), '::ffff:10.0.0.0/104', ['::ffff:a00:0/104']],
]

const REFUSED: readonly (readonly [definition: key.Key<unknown>, ...given: readonly unknown[]])[] = [
  [key.flag(true, 'm'), 1, 'yes', 'True', '', [], null],
  [whole, 0, 11, 1.5, '5', true, Number.NaN, Number.POSITIVE_INFINITY, 5n, [5]],
  [unlimited, -2, 0, '-1'],
  [quoted, '', ' 7', '7.0', '0x7', '11', '-2'],
  [ms, 0, '30', '0ms', '2d', '2 s', '2h', '1.5s', 'ms'],
  [seconds, '1500ms', '101s', '-1s'],
  [key.port(1, 'm'), -1, 65_536, '80'],
  [key.text('', 'm'), 5, true, ['a'], 'a\r\nb', 'a\u0000'],
  [key.secret('m'), 5, ['a']],
  [key.choice('a', ['a', 'b'], 'm'), 'A', 'c', '', 1, ['a']],
  [key.words([], 'm'), 5, [1], [['a']], 'a\nb', { a: 1 }],
  [key.required(key.words([], 'm')), [], '', ',', 5],
  [key.required(key.secret('m')), '', 5],
  [key.fieldName('x', 'm'), '', 'a b', 'a:', 'é', 5],
  [key.fieldNames([], 'm'), 'a b', ['ok', 'a:']],
  [key.host('x', 'm'), '', 'a b', 'http://a', 'a/8', '::1/128', 'a..b', '-a', '1::2::3', `${'a'.repeat(64)}.b`],
  [
    key.cidrs([], 'm'),
    '10.0.0.1/8',
    '10.0.0.0/33',
    '10.0.0/8',
    '010.0.0.0/8',
    '10.0.0.256',
    '10.0.0.0/',
    '10.0.0.0/08',
    '::1/64',
    '::/129',
    'fe80::1%eth0',
    ':::',
    'localhost',
    '::1]x[',
    ['10.0.0.0/8', 5],
  ],
]

for (const [definition, given, value] of TAKEN) {
  test(`a ${definition.kind} takes ${JSON.stringify(given)}`, () => assert.deepEqual(definition.read(given), value))
}

for (const [definition, ...listed] of REFUSED) {
  for (const given of listed) {
    const name = typeof given === 'bigint' ? `${given}n` : (JSON.stringify(given) ?? String(given))
    test(`a ${definition.kind} refuses ${name}`, () => assert.equal(definition.read(given), undefined))
  }
}

test('an inert key reads as it did and has its reason', () => {
  const wrapped = key.inert(whole, 'nobody asks')
  assert.equal(wrapped.inertReason, 'nobody asks')
  assert.equal(wrapped.read(7), 7)
})
