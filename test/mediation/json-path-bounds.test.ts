/** JSONPath over documents that clients choose: the same nodes as the library alone, within bounds. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { beginTurn, LimitReached } from '../../src/mediation/flow-limits.ts'
import { exactValue, writtenValue } from '../../src/mediation/formats/json-text.ts'
import { compileJsonPath } from '../../src/mediation/lazy-libraries.ts'
import { MediationFault } from '../../src/mediation/mediation-fault.ts'
import { type Json, memberOf } from '../../src/mediation/value.ts'
import { dice, looksOf, unboundedLibrary } from './unbounded-libraries.ts'

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

type Roll = (sides: number) => number

function pick<T>(roll: Roll, from: readonly T[]): T {
  return from[roll(from.length)]!
}

function several(roll: Roll, most: number, make: () => string): string {
  return Array.from({ length: roll(most + 1) }, make).join('')
}

function randomJson(roll: Roll, depth: number): Json {
  if (depth === 0 || roll(4) === 0) return pick(roll, [0, 1, 2, 'x', 'xy', true, null])
  const inner = Array.from({ length: roll(4) }, () => randomJson(roll, depth - 1))
  return roll(2) === 0 ? inner : Object.fromEntries(inner.map(value => [pick(roll, ['a', 'b', 'c']), value]))
}

const CHILDREN = ['.a', '.b', '.*', '[0]', '[-1]', '[1:]', '["a","b"]'] as const
const DESCENDANTS = ['..a', '..b', '..*', '..[0]', '..["a",0]'] as const

/** A query with one `..` at most: the library alone counts a node once for each way to it. */
function randomQuery(roll: Roll, root: string): string {
  const before = several(roll, 1, () => pick(roll, CHILDREN))
  const deep = several(roll, 1, () => pick(roll, DESCENDANTS))
  return root + before + deep + several(roll, 2, () => pick(roll, CHILDREN))
}

/** `nested`: the filter is within another one, where the library alone takes the item for the root. */
function randomFilter(roll: Roll, depth: number, nested: boolean): string {
  const root = nested || roll(3) > 0 ? '@' : '$'
  const singular = root + several(roll, 2, () => pick(roll, ['.a', '.b', '[0]']))
  const right = pick(roll, ['0', '1', '2', "'x'", 'true', singular, '@.c'])
  const inner = depth === 0 ? '@.a' : randomFilter(roll, depth - 1, true)
  const other = depth === 0 ? '@.b' : randomFilter(roll, depth - 1, nested)
  const operator = pick(roll, ['==', '!=', '<', '<=', '>', '>='])
  return pick(roll, [
    () => `${randomQuery(roll, root)}${several(roll, 1, () => pick(roll, DESCENDANTS))}`,
    () => `!${randomQuery(roll, root)}`,
    () => `@${pick(roll, ['', '..'])}[?${inner}]`,
    () => `${singular} ${operator} ${right}`,
    () => `count(${randomQuery(roll, root)}) ${operator} ${roll(4)}`,
    () => `value(${randomQuery(roll, root)}) ${operator} ${right}`,
    () => `length(${singular}) ${operator} ${roll(4)}`,
    () => `(${inner.startsWith('$') ? '@.a' : inner}) ${pick(roll, ['&&', '||'])} (${other})`,
    () => `!(${other})`,
  ])()
}

const RUNS = 3000

test(`random filters select what the library alone selects (seeds 1 to ${RUNS})`, () => {
  for (let seed = 1; seed <= RUNS; seed++) {
    const roll = dice(seed)
    const document = randomJson(roll, 5)
    const path = `$${pick(roll, ['', '..', '.a', '.*', '..*'])}[?${randomFilter(roll, 2, false)}]`
    const [found, expected] = [compileJsonPath(path), unbounded.compile(path)].map(query => query.query(document))
    const told = `seed ${seed}: ${path} on ${JSON.stringify(document)}`
    assert.deepEqual(found!.locations(), expected!.locations(), told)
  }
})

/** A chain of `depth` objects, beside as many items. */
function wideAndDeep(size: number): Json {
  const items = Array.from({ length: size }, (_, at) => ({ v: at, w: {} }))
  const names = Object.fromEntries(items.map(({ v }) => [`n${v}`, v]))
  return { items, names, deep: chain(size) }
}

const GROWING = [
  '$..*',
  '$..[?@..c]',
  '$..[?!@..c]',
  '$..[?@..a..c]',
  '$..[?@..[?@.c]]',
  '$..[?@[?@..c]]',
  '$..[?count(@..*) > 3]',
  '$..[?value(@..c) == 1]',
  '$.items[?$..c]',
  '$.items[?count($..b) == @.v]',
  '$.items[?value($..c) == @.v]',
  '$.items[?$.items[?@.v == 1.5]]',
  '$.items[?@.w == $.names]',
  '$.items[?@.v == length($.names)]',
]

test('the steps of a filter grow as the document does', () => {
  for (const path of GROWING) {
    const query = compileJsonPath(path)
    const [small, large] = [4000, 16_000].map(size => {
      const document = wideAndDeep(size)
      return looksOf(() => query.query(document))
    })
    assert.ok(large! < 6 * small!, `${path}: ${small} looks, then ${large}`)
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
    () => compileJsonPath('$..[?count(@..a..a) == 1]').query(chain(4000)),
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
