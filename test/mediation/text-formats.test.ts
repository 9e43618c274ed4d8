/** Formats of OpenAPI documents (JSON Schema 2020-12 validation 7.3, OpenAPI 3.1.1 4.4). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FORMATS } from '../../src/mediation/openapi/text-formats.ts'

type Values = readonly (string | number)[]

/** Per format: values that it allows, and values that it does not. */
const TABLE: Readonly<Record<string, readonly [valid: Values, invalid: Values]>> = {
  date: [
    ['2024-02-29', '2000-02-29', '1999-12-31'],
    ['2023-02-29', '1900-02-29', '2024-13-01', '2024-04-31', '24-1-1', ''],
  ],
  'date-time': [
    ['2024-02-29T23:59:60Z', '2024-01-01t00:00:00.123+01:30'],
    ['2024-02-29', '2024-02-30T10:00:00Z', '2024-01-01T10:00:00', '2024-01-01T24:00:00Z'],
  ],
  time: [
    ['10:00:00Z', '23:59:59.5-12:00'],
    ['10:00Z', '25:00:00Z', '10:00:00'],
  ],
  duration: [
    ['P1D', 'PT1H30M', 'P2W', 'P1Y2M3DT4H5M6.7S'],
    ['P', 'PT', '1D', 'P1H', 'P1W2D'],
  ],
  uuid: [
    ['123e4567-e89b-12d3-a456-426614174000'],
    ['123e4567e89b12d3a456426614174000', '123e4567-e89b-12d3-a456-42661417400g'],
  ],
  email: [
    ['a@b', 'a.b+c@d.example'],
    ['a', '@b', 'a@', 'a b@c', 'a@-b'],
  ],
  hostname: [
    ['a', 'a-b.example', 'A1.b2'],
    ['', '-a', 'a-', 'a..b', 'a_b', 'a'.repeat(64)],
  ],
  ipv4: [
    ['0.0.0.0', '255.255.255.255'],
    ['256.1.1.1', '1.1.1', '1.1.1.1.', '01.1.1.1.1'],
  ],
  ipv6: [
    ['::', '::1', '2001:db8::1', '::ffff:1.2.3.4'],
    ['1.2.3.4', ':::', '12345::', '1:2:3:4:5:6:7:8:9', 'g::'],
  ],
  uri: [
    ['https://h/p?q#f', 'urn:a:b', 'mailto:a@b'],
    ['/p', 'h', 'http://a b', '1a:b'],
  ],
  byte: [
    ['', 'YQ==', 'YWI='],
    ['YQ', 'Y===Q', 'YQ=*'],
  ],
  int32: [
    [-(2 ** 31), 2 ** 31 - 1],
    [2 ** 31, -(2 ** 31) - 1, 0.5],
  ],
  int64: [
    [2 ** 53, -(2 ** 63)],
    [2 ** 64, 1.5],
  ],
}

for (const [name, [valid, invalid]] of Object.entries(TABLE)) {
  test(`the format ${name}`, () => {
    const { validate } = FORMATS[name]!
    assert.deepEqual(
      valid.filter(value => !validate(value as never)),
      [],
      'valid',
    )
    assert.deepEqual(
      invalid.filter(value => validate(value as never)),
      [],
      'invalid',
    )
  })
}
