import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withSpecialValue, inert, type Key, required } from '../../src/config/key.ts'
import * as kinds from '../../src/config/kinds.ts'

const whole = kinds.integer(5, 'bytes', 1, 10, 'm')
const unlimited = withSpecialValue(-1, 'unlimited', whole)
const ms = kinds.duration(5, 'ms', 1, 3_600_000, 'm')
const seconds = kinds.duration(5, 's', 0, 100, 'm')

const TAKEN: readonly (readonly [definition: Key<unknown>, given: unknown, value: unknown])[] = [
  [kinds.flag(true, 'm'), false, false],
  [kinds.flag(true, 'm'), 'true', true],
  [kinds.flag(true, 'm'), 'false', false],
  [whole, 1, 1],
  [whole, 10, 10],
  [unlimited, -1, -1],
  [whole, '7', 7],
  [unlimited, '-1', -1],
  [kinds.flag(true, 'm'), 'FALSE', false],
  [ms, 30, 30],
  [ms, '30', 30],
  [ms, '500ms', 500],
  [ms, '2s', 2000],
  [ms, '1h', 3_600_000],
  [seconds, '1m', 60],
  [seconds, '2000ms', 2],
  [kinds.port(1, 'm'), 65_535, 65_535],
  [kinds.port(1, 'm'), 0, 0],
  [kinds.text('', 'm'), 'any text, "quoted" too', 'any text, "quoted" too'],
  [kinds.secret('m'), 'a\nb', 'a\nb'],
  [kinds.choice('a', ['a', 'b'], 'm'), 'b', 'b'],
  [kinds.list([], 'm'), 'a, b,,c ', ['a', 'b', 'c']],
  [kinds.list([], 'm'), ['a', ' b'], ['a', 'b']],
  [kinds.list([], 'm'), '', []],
  [kinds.fieldName('x', 'm'), 'X-Request-Id', 'X-Request-Id'],
  [kinds.fieldNames([], 'm'), 'Server,Date', ['Server', 'Date']],
  [kinds.host('', 'm'), '', ''],
  [kinds.host('x', 'm'), 'gw-1.example.com', 'gw-1.example.com'],
  [kinds.host('x', 'm'), '10.0.0.1', '10.0.0.1'],
  [kinds.host('x', 'm'), '::1', '::1'],
  [required(kinds.list([], 'm')), 'a', ['a']],
  [required(kinds.secret('m')), 'a', 'a'],
  [kinds.networks([], 'm'), '10.0.0.0/8,192.168.1.1', ['10.0.0.0/8', '192.168.1.1/32']],
  [kinds.networks([], 'm'), ['2001:DB8:0::/32', '::1', '0.0.0.0/0'], ['2001:db8::/32', '::1/128', '0.0.0.0/0']],
  [kinds.networks([], 'm'), '::ffff:10.0.0.0/104', ['::ffff:a00:0/104']],
]

const REFUSED: readonly (readonly [definition: Key<unknown>, ...given: readonly unknown[]])[] = [
  [kinds.flag(true, 'm'), 1, 'yes', 'tRUE', '', [], null],
  [whole, 0, 11, 1.5, '', ' 7', '7.0', '0x7', '11', true, Number.NaN, Number.POSITIVE_INFINITY, 5n, [5]],
  [unlimited, -2, 0, '-2', '0'],
  [ms, 0, '0', '0ms', '2d', '2 s', '2h', '1.5s', 'ms', '2w'],
  [seconds, '1500ms', '101s', '-1s'],
  [kinds.port(1, 'm'), -1, 65_536, '65536'],
  [kinds.text('', 'm'), 5, true, ['a'], 'a\r\nb', 'a\u0000'],
  [kinds.secret('m'), 5, ['a']],
  [kinds.choice('a', ['a', 'b'], 'm'), 'A', 'c', '', 1, ['a']],
  [kinds.list([], 'm'), 5, [1], [['a']], 'a\nb', { a: 1 }],
  [required(kinds.list([], 'm')), [], '', ',', 5],
  [required(kinds.secret('m')), '', 5],
  [kinds.fieldName('x', 'm'), '', 'a b', 'a:', 'é', 5],
  [kinds.fieldNames([], 'm'), 'a b', ['ok', 'a:']],
  [kinds.host('x', 'm'), '', 'a b', 'http://a', 'a/8', '::1/128', 'a..b', '-a', '1::2::3', `${'a'.repeat(64)}.b`],
  [
    kinds.networks([], 'm'),
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
  test(`a ${definition.kind} accepts ${JSON.stringify(given)}`, () => assert.deepEqual(definition.read(given), value))
}

for (const [definition, ...listed] of REFUSED) {
  for (const given of listed) {
    const name = typeof given === 'bigint' ? `${given}n` : (JSON.stringify(given) ?? String(given))
    test(`a ${definition.kind} refuses ${name}`, () => assert.equal(definition.read(given), undefined))
  }
}

test('an inert key reads values as before and has its reason', () => {
  const wrapped = inert(whole, 'nobody asks')
  assert.equal(wrapped.inertReason, 'nobody asks')
  assert.equal(wrapped.read(7), 7)
})
