/** W3C Trace Context: which `traceparent` is valid, what is kept of `tracestate`, and how ids are made. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boundedTraceState, IdSource, randomBitsOf, readTraceParent } from '../../src/http1/trace-parent.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'

interface ReadParent {
  readonly flags: number
  readonly traceId: string
  readonly parentId: string
}

function read(value: string): ReadParent {
  const bytes = Buffer.from(`xx${value}yy`, 'latin1')
  const traceId = Buffer.alloc(34, '-')
  const parentId = Buffer.alloc(16, '-')
  const flags = readTraceParent(bytes, 2, bytes.length - 4, traceId, 1, parentId)
  return { flags, traceId: traceId.toString('latin1', 1, 33), parentId: parentId.toString('latin1') }
}

const VALID: readonly (readonly [value: string, flags: number])[] = [
  [`00-${TRACE}-${PARENT}-00`, 0],
  [`00-${TRACE}-${PARENT}-01`, 1],
  [`00-${TRACE}-${PARENT}-03`, 3],
  // Flags that nobody knows yet are not passed on.
  [`00-${TRACE}-${PARENT}-ff`, 3],
  [`00-${TRACE}-${PARENT}-fc`, 0],
  // A later version is read as far as it is known.
  [`01-${TRACE}-${PARENT}-01`, 1],
  [`cc-${TRACE}-${PARENT}-01-what-the-future-brings`, 1],
]

test('a valid traceparent gives its ids, and the flags that level 2 knows', () => {
  for (const [value, flags] of VALID) assert.deepEqual(read(value), { flags, traceId: TRACE, parentId: PARENT }, value)
})

const INVALID = [
  '',
  '00',
  `00-${TRACE}-${PARENT}`,
  `00-${TRACE}-${PARENT}-`,
  `00-${TRACE}-${PARENT}-0`,
  `00-${TRACE}-${PARENT}-01-`,
  `00-${TRACE}-${PARENT}-01-more`,
  `00-${TRACE}-${PARENT}-010`,
  `ff-${TRACE}-${PARENT}-01`,
  `cc-${TRACE}-${PARENT}-01.more`,
  `0x-${TRACE}-${PARENT}-01`,
  `00-${TRACE.toUpperCase()}-${PARENT}-01`,
  `00-${TRACE}-${PARENT.toUpperCase()}-01`,
  `00-${'0'.repeat(32)}-${PARENT}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
  `00-${TRACE.slice(1)}g-${PARENT}-01`,
  `00-${TRACE.slice(1)}-${PARENT}0-01`,
  `00_${TRACE}_${PARENT}_01`,
  `00-${TRACE}-${PARENT}-0g`,
  `00-${TRACE}-${PARENT}-0\xe9`,
  ` 00-${TRACE}-${PARENT}-01`,
]

test('an invalid traceparent is none, and changes nothing', () => {
  for (const value of INVALID) {
    const untouched = { flags: -1, traceId: '-'.repeat(32), parentId: '-'.repeat(16) }
    assert.deepEqual(read(value), untouched, JSON.stringify(value))
  }
})

test('a tracestate within the limits is passed on as it is', () => {
  for (const given of ['a=1', 'a=1, b=2', ' a=1 ,\tb@c=2 ', `a=${'x'.repeat(500)}`, 'not a list at all']) {
    assert.equal(boundedTraceState(given), given)
  }
})

test('a longer tracestate loses long members, then the last ones; one of 33 members is none', () => {
  const long = `long=${'x'.repeat(200)}`
  const short = Array.from({ length: 10 }, (_, i) => `m${i}=${'y'.repeat(30)}`)
  assert.equal(boundedTraceState([long, ...short, long].join(',')), short.join(','))
  const members = Array.from({ length: 32 }, (_, i) => `m${String(i).padStart(2, '0')}=${'z'.repeat(20)}`)
  assert.equal(boundedTraceState(members.join(',')), members.slice(0, 20).join(','))
  assert.equal(boundedTraceState(Array.from({ length: 32 }, (_, i) => `${i}=1`).join(',')).split(',').length, 32)
  assert.equal(boundedTraceState(Array.from({ length: 33 }, (_, i) => `${i}=1`).join(',')), '')
  assert.equal(boundedTraceState('a'.repeat(8000)), '')
})

test('made ids are of lower-case digits, differ, and have every digit about equally often', () => {
  const sources = [new IdSource(), new IdSource()]
  const ids = new Set<string>()
  const digits = new Map<string, number>()
  for (let i = 0; i < 4000; i++) {
    const bytes = Buffer.alloc(10, '-')
    const word = sources[i & 1]!.put(bytes, 1)
    const id = (word >>> 0).toString(16).padStart(8, '0')
    assert.equal(bytes.toString(), `-${id}-`)
    ids.add(id)
    for (const digit of id) digits.set(digit, (digits.get(digit) ?? 0) + 1)
  }
  assert.ok(ids.size > 3990)
  assert.equal(digits.size, 16)
  for (const count of digits.values()) assert.ok(count > 1600 && count < 2400, String(count))
})

test('the bits of a trace id that decide are the first of its last 56', () => {
  for (const [digits, expected] of [
    ['00000000000000', 0],
    ['80000000000000', 0x800000],
    ['c0000100000000', 0xc00001],
    ['00000012345678', 0],
  ] as const) {
    assert.equal(randomBitsOf(Buffer.from(`ffffffffffffffffff${digits}`), 0), expected)
  }
})
