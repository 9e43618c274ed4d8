/**
 * Edits beside many places of JSON are those of one place after the other, from the last one to the first, and keep
 * the notation of numbers.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isObject, jsonOf, jsonPayload, valueInNotation, writtenValue } from '../../src/mediation/formats/json-text.ts'
import { editAt, type Location, locate, withChild, withKeys, withSiblings } from '../../src/mediation/json-edit.ts'
import type { Json } from '../../src/mediation/value.ts'
import { Random, SEED } from '../harness/random.ts'
import { causes, run } from './test-sequences.ts'

function withSibling(json: Json, location: Location, sibling: Json): Json {
  return editAt(json, location.slice(0, -1), holder => {
    if (!Array.isArray(holder)) return withChild(holder, sibling)
    return holder.flatMap((item, at) => (at === location.at(-1) ? [item, sibling] : [item]))
  })
}

function withKey(json: Json, location: Location, name: string): Json {
  return editAt(json, location.slice(0, -1), holder => {
    if (!isObject(holder)) return holder
    const entries = Object.entries(holder)
    return Object.fromEntries(entries.map(([key, value]) => [key === location.at(-1) ? name : key, value]))
  })
}

function randomJson(random: Random, depth: number): Json {
  if (depth === 0 || random.once(4)) return random.below(3)
  const items = Array.from({ length: random.below(4) }, () => randomJson(random, depth - 1))
  if (random.once(2)) return items
  return Object.fromEntries(items.map(item => [random.pick(['a', 'b', 'c']), item]))
}

const PATHS = ['$..*', '$[*]', '$..a', '$..[0]', '$..[0,0,1]', '$..[-1]', '$.a.b', '$', '$..b[*]', '$["b","a"]']

test('edits beside random places', () => {
  const random = new Random(SEED)
  for (let round = 0; round < 2000; round++) {
    const [json, text] = [randomJson(random, 4), random.pick(PATHS)]
    const places = locate({ text, keys: null }, json)
    const backward = [...places].reverse()
    const [sibling, name] = [random.pick<Json>([9, { a: 7 }, { d: 8, e: 9 }, [6]]), random.pick(['a', 'z'])]
    const what = `seed ${SEED}: ${text} in ${JSON.stringify(json)}`
    const beside = backward.reduce((whole, at) => withSibling(whole, at, sibling), json)
    assert.equal(JSON.stringify(withSiblings(json, places, sibling)), JSON.stringify(beside), what)
    const renamed = backward.reduce((whole, at) => withKey(whole, at, name), json)
    assert.equal(JSON.stringify(withKeys(json, places, name)), JSON.stringify(renamed), what)
  }
})

test('places that a path names backwards have their siblings too', () => {
  const places = locate({ text: '$[1,0]', keys: null }, [1, 2])
  assert.deepEqual(withSiblings([1, 2], places, 9), [1, 9, 2, 9])
})

const NOTED = '{"fee":1.50,"list":[{"n":7000.0},2e1],"name":"x"}'

/** Steps over that body, and the body after them. */
const EDITS: readonly (readonly [steps: string, expected: string])[] = [
  ['<enrich><source type="inline">y</source><target xpath="json-eval($.name)"/></enrich>', NOTED.replace('x', 'y')],
  [
    '<enrich><source type="inline">{"a":0.10}</source><target type="body" action="child"/></enrich>',
    NOTED.replace('"x"', '"x","a":0.10'),
  ],
  [
    '<enrich><source xpath="json-eval($.name)"/><target type="body" action="remove"/></enrich>',
    NOTED.replace(',"name":"x"', ''),
  ],
  [
    '<enrich><source type="body"/><target type="property" property="p"/></enrich>' +
      '<enrich><source type="property" property="p"/><target xpath="json-eval($.name)"/></enrich>',
    NOTED.replace('"x"', NOTED),
  ],
  ['<foreach expression="json-eval($.list)"><sequence><property name="p" value="1"/></sequence></foreach>', NOTED],
  ['<foreach collection="json-eval($.list)"><sequence><property name="p" value="1"/></sequence></foreach>', NOTED],
]

for (const [steps, expected] of EDITS) {
  test(`an edit keeps the notation of numbers: ${steps}`, async () => {
    const given = `<payloadFactory media-type="json"><format>${NOTED}</format><args/></payloadFactory>`
    const ran = await run(given + steps)
    assert.deepEqual(causes(ran), [])
    assert.equal((ran.message.payload as { readonly text: string }).text, expected)
  })
}

test('D898: after an edit, XPath and JSONPath find numbers by their values', async () => {
  const given = '<payloadFactory media-type="json"><format>{"power":1e2,"name":"x"}</format><args/></payloadFactory>'
  const edit = '<enrich><source type="inline">y</source><target xpath="json-eval($.name)"/></enrich>'
  const read = '<property name="it" expression="//power = 100 and json-eval($.power) = 100"/>'
  assert.equal((await run(given + edit + read)).message.get('default', 'it'), 'true')
})

test('what wants doubles gets doubles from an edited payload, and the digits of numbers that no double holds', () => {
  const value = valueInNotation('{"a":7000.0,"b":1e2,"c":12345678901234567890}')
  const payload = jsonPayload(value)
  assert.equal(JSON.stringify(jsonOf(payload)), '{"a":7000,"b":100,"c":12345678901234567890}')
  assert.equal(jsonOf(payload), jsonOf(payload))
  assert.equal(writtenValue(payload), value)
})

test('a property of a bare number is a number on another thread', async () => {
  const given = '<payloadFactory media-type="json"><format>1e2</format><args/></payloadFactory>'
  const read = '<enrich><source type="body"/><target type="property" property="p"/></enrich>'
  const { message } = await run(given + read)
  assert.deepEqual(structuredClone(message.state().default), [['p', 100]])
})
