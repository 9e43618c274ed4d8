/** Schemas of operators and of contracts: a property that an object inherits is none of the message. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileSchema } from '../../src/mediation/json-schema.ts'
import { ContractSchemas } from '../../src/mediation/openapi/contract-schemas.ts'

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
]
const DRAFTS = [
  'http://json-schema.org/draft-04/schema#',
  'http://json-schema.org/draft-06/schema#',
  'http://json-schema.org/draft-07/schema#',
  'https://json-schema.org/draft/2019-09/schema',
  'https://json-schema.org/draft/2020-12/schema',
]

for (const [schema, message, isValid] of CASES) {
  const title = JSON.stringify(schema).slice(0, 60)
  test(`of ${message.slice(0, 40)}, ${title} holds: ${isValid}`, () => {
    const value = JSON.parse(message)
    for (const $schema of DRAFTS)
      assert.equal(compileSchema(JSON.stringify({ $schema, ...schema }))(value) === '', isValid, $schema)
    const contract = new ContractSchemas({ A: schema })
    assert.equal(contract.violations('A', value, 'body').length === 0, isValid, 'contract')
  })
}
