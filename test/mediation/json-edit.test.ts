/** Edits beside many places of JSON are those of one place after the other, from the last one to the first. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isObject } from '../../src/mediation/formats/json-text.ts'
import { editAt, type Location, locate, withChild, withKeys, withSiblings } from '../../src/mediation/json-edit.ts'
import type { Json } from '../../src/mediation/value.ts'
import { Random, SEED } from '../harness/random.ts'

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
