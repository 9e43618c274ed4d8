/** Shapes of schemas, which a thread keeps for the messages to come. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Shape } from '../../src/mediation/openapi/schema-shape.ts'

test('a recursive schema has as many shapes as schemas, however deep clients nest', () => {
  const node = { $ref: '#/$defs/node' }
  const shape = Shape.named('node', {
    node: { properties: { left: node, right: node, list: { type: 'array', items: node } }, additionalProperties: node },
  })
  const first = shape.property('left')
  for (const step of ['left', 'right', 'any', 'other'] as const) assert.equal(first.property(step), first, step)
  assert.equal(first.property('list').item(7), first)
})
