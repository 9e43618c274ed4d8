/** Schemas of operators and of contracts: a property that an object inherits is none of the message. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { LimitReached } from '../../src/mediation/flow-limits.ts'
import { exactValue } from '../../src/mediation/formats/json-text.ts'
import { compileSchema } from '../../src/mediation/json-schema.ts'
import { ContractSchemas, VIOLATIONS_MAX } from '../../src/mediation/openapi/contract-schemas.ts'
import type { Json } from '../../src/mediation/value.ts'

const MANY = Array.from({ length: 300 }, (_, at) => `p${at}`)
const WITH_MANY = JSON.stringify(Object.fromEntries(MANY.map(name => [name, 1])))

/** [schema, message, is valid]. */
const CASES: readonly (readonly [schema: object, message: string, isValid: boolean])[] = [
  [{ required: ['constructor'] }, '{}', false],
  [{ required: ['constructor'] }, '{"constructor":1}', true],
  [{ required: ['__proto__', 'toString'] }, '{"__proto__":1,"toString":2}', true],
  [{ required: ['__proto__'] }, '{"a":1}', false],
  [{ required: [...MANY, 'valueOf'] }, WITH_MANY, false],
  [{ properties: { constructor: { type: 'string' } } }, '{}', true],
  [{ properties: { constructor: { type: 'string' } } }, '{"constructor":1}', false],
  [{ additionalProperties: { type: 'integer' } }, '{"a":1,"__proto__":"x"}', false],
  [{ uniqueItems: true }, '[{"valueOf":1},{"valueOf":1}]', false],
  [{ uniqueItems: true }, '[{"toString":1},{"toString":2}]', true],
  [{ uniqueItems: true }, '[{"a":1,"b":[2]},{"b":[2],"a":1}]', false],
  [{ uniqueItems: true }, '[1,"1",true,null,[1],{"a":1},"null"]', true],
  [{ uniqueItems: true }, '[1,1.0]', false],
  [{ uniqueItems: true }, `[${Array.from({ length: 100_000 }, (_, at) => at).join()}]`, true],
  [{ uniqueItems: false }, '[1,1]', true],
  [{ uniqueItems: true }, '[[1,[{"b":2,"a":[]}]],[1,[{"a":[],"b":2}]]]', false],
  [{ uniqueItems: true }, '[[],["#0"],[[]],{},{"a":[]},{"a":"#0"}]', true],
  [{ uniqueItems: true, items: { uniqueItems: true } }, '[[1,2],[2,1],[1]]', true],
  [{ uniqueItems: true, items: { uniqueItems: true } }, '[[1,1],[2]]', false],
  [{ enum: [{ toString: 1 }, 'a', 0] }, '{"toString":1}', true],
  [{ enum: [{ a: 1, b: 2 }] }, '{"b":2,"a":1}', true],
  [{ enum: ['1', 'a'] }, '1', false],
  [{ required: ['for(let a of b){'] }, '{"for(let a of b){":1}', true],
  [{ enum: ['a'] }, '{"constructor":1}', false],
  [{ enum: [null, 0] }, '-0', true],
  [{ multipleOf: 0.01 }, '0.07', true],
  [{ properties: { a: { pattern: '^a$' }, b: { pattern: '^b$' } } }, '{"a":"a","b":"b"}', true],
  [{ properties: { a: { pattern: '^a$' }, b: { pattern: '^b$' } } }, '{"a":"a","b":"a"}', false],
  [{ patternProperties: { '^a': { type: 'string' }, '^b': { type: 'number' } } }, '{"a":"x","b":1}', true],
  [{ patternProperties: { '^a': { type: 'string' }, '^b': { type: 'number' } } }, '{"a":"x","b":"x"}', false],
]
const DRAFTS = [
  'http://json-schema.org/draft-04/schema#',
  'http://json-schema.org/draft-06/schema#',
  'http://json-schema.org/draft-07/schema#',
  'https://json-schema.org/draft/2019-09/schema',
  'https://json-schema.org/draft/2020-12/schema',
]

/** Keywords of draft 06 and later. */
const CASES_06: typeof CASES = [
  [{ const: { valueOf: 1 } }, '{"valueOf":1}', true],
  [{ const: { a: [1, { b: null }] } }, '{"a":[1,{"b":null}]}', true],
  [{ const: { a: 1 } }, '{"a":1,"b":2}', false],
  [{ const: null }, '{}', false],
  [{ propertyNames: { enum: ['a'] } }, '{"__proto__":1}', false],
]
/** Keywords of draft 2019-09 and later. */
const CASES_2019: typeof CASES = ['constructor', 'toString', '__proto__', 'valueOf'].flatMap(name => {
  const message = `{"a":1,"${name}":2}`
  const either = { anyOf: [{ properties: { a: true } }] }
  return [
    [{ ...either, unevaluatedProperties: false }, message, false],
    [{ ...either, unevaluatedProperties: { type: 'integer' } }, message, true],
    [{ ...either, unevaluatedProperties: { type: 'string' } }, message, false],
    [{ anyOf: [{ patternProperties: { '^[a-z_]': true } }], unevaluatedProperties: false }, message, true],
    [{ anyOf: [{ patternProperties: { '^a': true } }], unevaluatedProperties: false }, message, false],
  ] as const
})

for (const [schema, message, isValid] of [...CASES, ...CASES_06, ...CASES_2019]) {
  const title = JSON.stringify(schema).slice(0, 60)
  test(`of ${message.slice(0, 40)}, ${title} holds: ${isValid}`, () => {
    const value = JSON.parse(message)
    const from = CASES_2019.some(([each]) => each === schema) ? 3 : CASES_06.some(([each]) => each === schema) ? 1 : 0
    for (const $schema of DRAFTS.slice(from))
      assert.equal(compileSchema(JSON.stringify({ $schema, ...schema }))(value) === '', isValid, $schema)
    const contract = new ContractSchemas({ A: schema })
    assert.equal(contract.violations('A', value, 'body').length === 0, isValid, 'contract')
  })
}

test('a recursive schema with uniqueItems reads each item a fixed number of times, however deep it stands', () => {
  const readsAt = (depth: number): number => {
    let reads = 0
    const leaf = Object.defineProperty({}, 'a', { enumerable: true, get: () => ++reads })
    let value: unknown = [leaf, 0]
    for (let level = 1; level < depth; level++) value = [value, 0]
    const list = { uniqueItems: true, items: { $ref: '#/$defs/list' } }
    assert.deepEqual(new ContractSchemas({ list }).violations('list', value, 'body'), [])
    return reads
  }
  assert.equal(readsAt(100), readsAt(2))
})

/** A recursive schema in which one rule sees what another one has evaluated. */
const RECURSIVE = {
  node: { properties: { a: true, child: { $ref: '#/$defs/outer' } } },
  outer: {
    $ref: '#/$defs/node',
    anyOf: [{ properties: { b: { const: 1 } }, required: ['b'] }, true],
    unevaluatedProperties: false,
  },
}

test('what one message has evaluated is not evaluated in the next one', () => {
  const schema = { $schema: DRAFTS.at(-1), $defs: RECURSIVE, $ref: '#/$defs/node' }
  const check = compileSchema(JSON.stringify(schema))
  const contract = new ContractSchemas(RECURSIVE)
  for (const [b, isValid] of [
    [2, false],
    [1, true],
    [2, false],
  ] as const) {
    assert.equal(check({ child: { b } }) === '', isValid)
    assert.equal(contract.violations('node', { child: { b } }, 'body').length === 0, isValid, 'contract')
  }
})

for (const keyword of ['properties', 'patternProperties', 'dependencies', 'dependentSchemas']) {
  test(`a schema whose ${keyword} has a rule for __proto__ is refused`, () => {
    const schema = `{"allOf":[{"${keyword}":{"a":{},"__proto__":{"type":"string"}}}]}`
    assert.throws(() => compileSchema(schema), /has a rule for __proto__, which cannot be checked/)
    const contract = new ContractSchemas({ A: JSON.parse(schema) as object })
    assert.throws(() => contract.compile('A'), /__proto__/)
  })
}

test('a value that names __proto__ is no rule for it', () => {
  assert.equal(
    compileSchema('{"const":{"properties":{"__proto__":1}}}')(JSON.parse('{"properties":{"__proto__":1}}')),
    '',
  )
})

test('a number with more digits than a double has is a number', () => {
  const value = exactValue('{"n":12345678901234567890}')
  assert.equal(compileSchema('{"properties":{"n":{"type":"number"}}}')(value), '')
  assert.notEqual(compileSchema('{"properties":{"n":{"type":"object"}}}')(value), '')
  assert.notEqual(compileSchema('{"properties":{"n":{"maximum":5}}}')(value), '')
})

/** Schemas that Ajv applies both to each level of `of`. No value follows B, because its innermost object lacks `of`. */
function trees(rules: object) {
  const properties = { of: { anyOf: [{ $ref: '#/$defs/A' }, { $ref: '#/$defs/B' }] }, ...rules }
  return { A: { type: 'object', properties }, B: { type: 'object', properties, required: ['of'] } }
}
const EQUAL = Array.from({ length: 30_000 }, (_, at) => [at >> 1])
const nested = (inner: unknown, levels: number): unknown => (levels === 0 ? inner : { of: nested(inner, levels - 1) })

const inDraft =
  ($schema?: string) =>
  ($defs: ContractSchemas['definitions']): ((value: unknown) => boolean) => {
    const check = compileSchema(JSON.stringify({ $schema, $defs, $ref: '#/$defs/A' }))
    return value => check(value as Json) === ''
  }

const inContract = ($defs: ContractSchemas['definitions']): ((value: unknown) => boolean) => {
  const contract = new ContractSchemas($defs)
  return value => contract.violations('A', value, 'body').length === 0
}

for (const [rule, rules, inner] of [
  ['type', { n: { type: 'integer' } }, { n: 'x' }],
  ['uniqueItems', { list: { uniqueItems: true } }, { list: EQUAL }],
  ['pattern', { text: { pattern: 'a+b' } }, { text: 'a'.repeat(1_000_000) }],
] as const) {
  for (const compile of [inDraft(), inDraft(DRAFTS.at(-1)), inContract]) {
    test(`D926: a recursive schema with alternatives and ${rule} checks each object a fixed number of times`, () => {
      const isValid = compile(trees(rules))
      for (const levels of [3, 40, 190]) {
        assert.ok(isValid(nested({}, levels)), `${levels}`)
        assert.ok(!isValid(nested(inner, levels)), `${levels}`)
      }
    })
  }
}

test('D926: what a long check remembers is right for names that alternatives have evaluated', () => {
  const $defs = {
    node: {
      anyOf: [
        { properties: { a: { type: 'integer' }, next: { $ref: '#/$defs/closed' } }, required: ['a'] },
        { properties: { b: true, next: { $ref: '#/$defs/closed' } } },
      ],
    },
    closed: { $ref: '#/$defs/node', unevaluatedProperties: false },
  }
  const check = compileSchema(JSON.stringify({ $schema: DRAFTS.at(-1), $defs, $ref: '#/$defs/closed' }))
  const chain = (levels: number, last: Json): Json => {
    let json = last
    for (let level = 0; level < levels; level++)
      json = level % 2 === 0 ? { a: level, next: json } : { b: 1, next: json }
    return json
  }
  const unlimited = new Ajv2020({ strict: false }).compile({ $defs, $ref: '#/$defs/closed' })
  for (const last of [{ a: 1 }, { c: 1 }, { a: 'x' }, { b: 1, next: { a: 1, b: 1 } }]) {
    for (const levels of [5, 13]) {
      const json = chain(levels, last)
      const expected = unlimited(json) ? '' : `${unlimited.errors![0]!.instancePath} ${unlimited.errors![0]!.message}`
      assert.equal(check(json), expected)
    }
    assert.equal(check(chain(500, last)) === '', check(chain(13, last)) === '')
  }
})

test('D926: a long list of small objects leaves nothing to remember', t => {
  const item = { properties: { a: { $ref: '#/$defs/part' } } }
  const contract = new ContractSchemas({ A: { items: { $ref: '#/$defs/item' } }, item, part: { type: 'object' } })
  const list = Array.from({ length: 20_000 }, () => ({ a: {} }))
  assert.deepEqual(contract.violations('A', [], 'body'), [])
  const remembers = t.mock.method(Map.prototype, 'set')
  assert.deepEqual(contract.violations('A', list, 'body'), [])
  assert.ok(remembers.mock.callCount() < 10, `${remembers.mock.callCount()}`)
})

test('D880: a check that compares a long list very often ends with 102542, and the next check is right', () => {
  const allOf = Array.from({ length: 1000 }, () => ({ uniqueItems: true }))
  const check = compileSchema(JSON.stringify({ allOf }))
  assert.throws(
    () => check(Array.from({ length: 100_000 }, (_, at) => [at])),
    (error: Error) => error instanceof LimitReached && error.fault.code === 102542,
  )
  assert.equal(check([1, 2]), '')
  assert.notEqual(check([1, 1]), '')
})

test('a value with very many violations in its alternatives has as many as a check lists', () => {
  const contract = new ContractSchemas(trees({ n: { type: 'integer' } }))
  assert.ok(contract.violations('A', nested({ n: 'x' }, 14), 'body').length <= VIOLATIONS_MAX)
})

/** [schema, message, is valid]. */
const NUMBERS: readonly (readonly [schema: object, message: string, isValid: boolean])[] = [
  [{ maximum: 10 }, '10.0000000000000000001', false],
  [{ maximum: 10 }, '9.99999999999999999999', true],
  [{ maximum: 9007199254740992 }, '9007199254740993', false],
  [{ minimum: 10 }, '9.99999999999999999999', false],
  [{ minimum: 0 }, '-1e-400', false],
  [{ minimum: 0 }, '1e-400', true],
  [{ minimum: -1 }, '-1.00000000000000000001', false],
  [{ maximum: 0.5 }, '0.50000000000000000000', true],
  [{ multipleOf: 1 }, '3.00000000000000000001', false],
  [{ multipleOf: 5 }, '12345678901234567895', true],
  [{ multipleOf: 5 }, '12345678901234567896', false],
  [{ multipleOf: 0.01 }, '0.07000000000000000001', false],
  [{ multipleOf: 3 }, `3${'0'.repeat(2000)}`, false],
  [{ type: 'integer' }, '1.00000000000000000001', false],
  [{ type: 'integer' }, '12345678901234567890', true],
  [{ type: 'number' }, '1.00000000000000000001', true],
  [{ items: { maximum: 1 } }, '[1, 1.0000000000000000001, 7.0]', false],
  [{ items: { properties: { a: { maximum: 1 } } } }, '[{"a":0.99999999999999999999,"__proto__":1}]', true],
  [{ items: { properties: { a: { maximum: 1 } } } }, '[{"a":1.00000000000000000001}]', false],
  [{ maximum: 1, properties: { a: { multipleOf: 0.1 } } }, '{"a":0.3,"b":1.00000000000000000001}', true],
  [{ properties: { b: { maximum: 1 } } }, '{"a":1.00000000000000000001,"b":2}', false],
]
for (const [schema, message, isValid] of NUMBERS) {
  test(`D901: of ${message.slice(0, 40)}, ${JSON.stringify(schema)} holds: ${isValid}`, () => {
    const value = exactValue(message)
    for (const $schema of DRAFTS)
      assert.equal(compileSchema(JSON.stringify({ $schema, ...schema }))(value) === '', isValid, $schema)
    assert.equal(new ContractSchemas({ A: schema }).violations('A', value, 'body').length === 0, isValid, 'contract')
  })
}

test('D901: exclusive limits compare the digits, in the form of each draft', () => {
  for (const [at, $schema] of DRAFTS.entries()) {
    const schema = at === 0 ? { maximum: 1, exclusiveMaximum: true } : { exclusiveMaximum: 1 }
    const check = compileSchema(JSON.stringify({ $schema, ...schema }))
    assert.deepEqual(
      ['0.99999999999999999999', '1.00000000000000000000', '1'].map(digits => check(exactValue(digits)) === ''),
      [true, false, false],
      $schema,
    )
  }
  const strict = new ContractSchemas({ A: { exclusiveMinimum: 1 } })
  const rules = strict.violations('A', exactValue('0.99999999999999999999'), 'body').map(({ rule }) => rule)
  assert.deepEqual(rules, ['must be > 1'])
})
