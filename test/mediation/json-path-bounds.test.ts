/** JSONPath over documents that clients choose: the same nodes as the library alone, within bounds. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { beginTurn, LimitReached } from '../../src/mediation/flow-limits.ts'
import { exactValue, writtenValue } from '../../src/mediation/formats/json-text.ts'
import { compileJsonPath } from '../../src/mediation/lazy-libraries.ts'
import { MediationFault } from '../../src/mediation/mediation-fault.ts'
import { type Json, memberOf } from '../../src/mediation/value.ts'
import { unboundedLibrary } from './unbounded-libraries.ts'

const PATHS = [
  '$',
  '$.items[*].v',
  '$..v',
  '$..*',
  '$..[0, 1, "v"]',
  '$..["v", "v"]',
  '$.items[::2]',
  '$.items[-1:0:-2]',
  '$..[-1]',
  '$.items[?@.v == 2]',
  '$.items[?@.v != $.wanted].name',
  '$.items[?@.v >= 2 && @.name < "c"]',
  '$.items[?!@.tags || @.v <= 1]',
  '$.items[?@.none == $.none].v',
  '$.items[?@.none <= $.none].v',
  '$.items[?@.none < 1].v',
  '$.items[?@.tags == $.items[1].tags].v',
  '$.items[?@.tags != $.items[1].tags].v',
  '$.items[?count(@.*) > 2].v',
  '$.items[?length(@.tags) == 2].v',
  '$.items[?length(@) == 2].v',
  '$.items[?value(@..deep) == true].v',
  '$.items[?@..deep].v',
  '$.items[?@[?@ == "x"]].v',
  '$[?@.a]',
  '$.by[?@ > 1]',
  '$.items[?match(@.name, "[ab]")].v',
]

const DOCUMENT = {
  wanted: 2,
  by: { a: 1, b: 2, c: null },
  items: [
    { v: 1, name: 'a' },
    { v: 2, name: 'b', tags: ['x', { y: 1, z: [] }] },
    { v: 3, name: 'c', tags: ['x', { z: [], y: 1 }], more: { deep: true } },
    { v: 2, name: 'd', tags: ['x'] },
    [[1, [2]], {}],
  ],
}

interface Library {
  compile(path: string): ReturnType<typeof compileJsonPath>
}

const unbounded = unboundedLibrary<Library>('json-p3')

test('every path finds the nodes that the library alone finds', () => {
  for (const path of PATHS) {
    const [found, expected] = [compileJsonPath(path), unbounded.compile(path)].map(query => query.query(DOCUMENT))
    assert.deepEqual(found!.locations(), expected!.locations(), path)
    assert.deepEqual(found!.values(), expected!.values(), path)
  }
})

const REPEATING_PATHS = ['$..*..*', '$..a..b', '$..a[*]..v', '$..[*]..[0]..*', '$..more..deep', '$..x..a..b']

function locationsOf(library: Library, path: string, document: Json): string[] {
  return library.compile(path).query(document).locations().map(String).sort()
}

test('D925: a node that descendants of descendants are is found once, where RFC 9535 repeats it', () => {
  const bounded = { compile: compileJsonPath }
  for (const path of REPEATING_PATHS) {
    for (const document of [DOCUMENT, { a: { a: { b: 1, a: [] }, b: 2 } }]) {
      const once = [...new Set(locationsOf(unbounded, path, document))]
      assert.deepEqual(locationsOf(bounded, path, document), once, path)
    }
  }
})

test('an object that a sequence has put into two places is found at both', () => {
  const shared = { a: { b: 1 } }
  const found = compileJsonPath('$..a..b').query({ x: [shared, { y: shared }] })
  assert.deepEqual(found.locations().map(String), ['x,0,a,b', 'x,1,y,a,b'])
})

test('D925: descendants of descendants take no more steps than the document has nodes', () => {
  beginTurn()
  assert.equal(compileJsonPath('$..a..a..a..a..a..a..b').query(chain(200)).values().length, 200 - 6)
})

/** An object within objects. */
function chain(depth: number): Json {
  let json: Json = 1
  for (let level = 0; level < depth; level++) json = { a: json, b: 1 }
  return json
}

test('within a filter of a filter `$` is the root of the document (RFC 9535 2.3.5)', () => {
  const document = { b: 5, list: [[{ a: 5 }], [{ a: 1 }], { deep: [{ a: 5 }] }] }
  for (const [path, found] of [
    ['$.list[?@[?@.a == $.b]]', ['list,0']],
    ['$..[?@[?@.a == $.b]]', ['list,0', 'list,2,deep']],
    ['$.list[?@..[?$.list[?@ == $.list[1]]]]', ['list,0', 'list,1', 'list,2']],
  ] as const) {
    assert.deepEqual(compileJsonPath(path).query(document).locations().map(String), found, path)
  }
})

test('a number beyond a double has no members, equals its text, and is compared as a number', () => {
  const json = exactValue(
    '{"items":[{"v":12345678901234567890},{"v":12345678901234567891},{"v":5}],"v":12345678901234567891}',
  )
  const count = (path: string) => compileJsonPath(path).query(json).values().length
  assert.equal(count('$..*'), 8)
  assert.equal(count('$.items[?@.v == $.v]'), 1)
  assert.equal(count('$.items[?@.v > 5]'), 2)
})

/** An array within arrays. */
function nested(depth: number): Json {
  let json: Json = { a: 1 }
  for (let level = 0; level < depth; level++) json = [json]
  return json
}

test('a path finds what is as deep as bodies may be, and deeper', () => {
  for (const depth of [60, 200, 10_000]) {
    const found = compileJsonPath('$..a').query(nested(depth))
    assert.deepEqual([found.values(), found.locations()[0]!.length], [[1], depth + 1])
  }
  assert.equal(
    compileJsonPath('$[?@ == $[1]]')
      .query([nested(10_000), nested(10_000)])
      .values().length,
    2,
  )
})

test('a path finds all members of a long list', () => {
  const list = Array.from({ length: 300_000 }, (_, at) => at)
  for (const path of ['$[*]', '$..*', '$[?@ >= 0]', '$[::1]']) {
    assert.equal(compileJsonPath(path).query(list).values().length, list.length, path)
  }
})

test('D313: a path that takes too long ends its message with 102542', () => {
  beginTurn()
  assert.throws(
    () => compileJsonPath('$..[?count(@..a..a) == 1]').query(chain(2000)),
    (error: unknown) =>
      (error instanceof MediationFault && error.raised.code === 102542) ||
      (error instanceof LimitReached && error.fault.code === 102542),
  )
})

test('a number with its own notation has no members, and a negative zero equals zero', () => {
  const value = writtenValue({ text: '{"fee":7000.0,"zero":-0,"list":[-0.0]}' })
  for (const path of ['$.fee.rawJSON', '$..rawJSON', '$[?@.rawJSON]'])
    assert.deepEqual(compileJsonPath(path).query(value).values(), [], path)
  assert.equal(memberOf(memberOf(value, 'fee'), 'rawJSON'), undefined)
  assert.equal(compileJsonPath('$[?@ == 0]').query(value).values().length, 1)
  assert.equal(compileJsonPath('$.list[?@ == 0]').query(value).values().length, 1)
})
