/** Conversion between JSON and XML with the switches of `[mediation]`, and round trips of random values. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_LIMITS } from '../../../src/mediation/formats/body-limits.ts'
import { jsonOf, parseJsonText, writtenValue } from '../../../src/mediation/formats/json-text.ts'
import type { ConversionSettings } from '../../../src/mediation/formats/json-to-xml.ts'
import { build, write } from './build-body.ts'

const NIL = '<a><b xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/></a>'
const NESTED = '<jsonArray><jsonElement>1</jsonElement><jsonElement><jsonArray/></jsonElement></jsonArray>'
const PREFIXED = '<p:a xmlns:p="urn:p"><p:b p:c="1">x</p:b></p:a>'

function converted(text: string, from: string, to: string, conversion: Partial<ConversionSettings> = {}): string {
  const bytes = write(build(text, from, '', { conversion })!, to, { conversion }).bytes
  return Buffer.from(bytes).toString().replace('<?xml version="1.0" encoding="UTF-8"?>', '')
}

/** Switches, source, and what it becomes in the other format. */
const SWITCHES: readonly (readonly [conversion: Partial<ConversionSettings>, from: string, to: string])[] = [
  [{}, PREFIXED, '{"a":{"b":{"@c":"1","$":"x"}}}'],
  [{ keepsNamespaces: true }, PREFIXED, '{"p_a":{"p_b":{"@p_c":"1","$":"x"}}}'],
  [{ writesDeclarations: true }, PREFIXED, '{"a":{"@xmlns_p":"urn:p","b":{"@c":"1","$":"x"}}}'],
  [{ keepsNamespaces: true, writesDeclarations: true }, '<a xmlns="urn:a">1</a>', '{"a":{"@xmlns":"urn:a","$":1}}'],
  // Numbers keep their notation.
  [
    {},
    '{"fee":7000.0,"e":1e2,"E":-1.50E+3,"n":[0.10,-0,-0.0],"i":12345678901234567890,"s":"1.0"}',
    '<jsonObject><fee>7000.0</fee><e>1e2</e><E>-1.50E+3</E><n>0.10</n><n>-0</n><n>-0.0</n>' +
      '<i>12345678901234567890</i><s>1.0</s></jsonObject>',
  ],
  [{}, '{"a":{"b":null}}', '<jsonObject><a><b/></a></jsonObject>'],
  [{ usesNil: true }, '{"a":{"b":null}}', `<jsonObject>${NIL}</jsonObject>`],
  [{ usesNil: true }, NIL, '{"a":{"b":null}}'],
  [{}, NIL, '{"a":{"b":{"@nil":"true"}}}'],
  [
    {},
    '<a><b>1</b><c>true</c><d>007</d><e>-1.50e3</e><f/></a>',
    '{"a":{"b":1,"c":true,"d":"007","e":-1.50e3,"f":null}}',
  ],
  [{}, '<a><b></b><c> </c><d x=""/></a>', '{"a":{"b":null,"c":" ","d":{"@x":""}}}'],
  [{ usesNil: true }, '<a><b></b><c/></a>', '{"a":{"b":"","c":""}}'],
  [
    {},
    '<a><b>null</b><c>true</c><d y="7" z="null">8</d></a>',
    '{"a":{"b":null,"c":true,"d":{"@y":"7","@z":"null","$":8}}}',
  ],
  [{ autoPrimitive: false }, '<a><b>1</b><c>true</c><d>null</d></a>', '{"a":{"b":"1","c":"true","d":"null"}}'],
  [{ staysText: '\\d{5,}' }, '<a><b>12345</b><c>1234</c></a>', '{"a":{"b":"12345","c":1234}}'],
  [{ staysText: '.*' }, '<a><b>1</b><c>true</c><d>null</d></a>', '{"a":{"b":"1","c":true,"d":null}}'],
  [{ removedFromText: '@@@' }, '<a><b>@@@12</b><c>12</c><d>1@@@</d></a>', '{"a":{"b":"12","c":12,"d":"1@@@"}}'],
  [{ removedFromText: '0+' }, '<a><b>007</b><c>true</c></a>', '{"a":{"b":"7","c":true}}'],
  [
    { staysText: '\\d{5,}', removedFromText: '@@@' },
    '<a><b>@@@12</b><c>12</c><d>12345</d></a>',
    '{"a":{"b":"12","c":12,"d":"12345"}}',
  ],
  [{ removedFromText: '@@@', autoPrimitive: false }, '<a><b>@@@12</b></a>', '{"a":{"b":"@@@12"}}'],
  [{}, '<a><b>1</b><c/><b>2</b></a>', '{"a":{"b":[1,2],"c":null}}'],
  [{ autoArray: false }, '<a><b>1</b><c/><b>2</b></a>', '{"a":{"b":1,"c":null,"b":2}}'],
  [
    {},
    '{"1 a":{"$b":2,"c/d":3}}',
    '<jsonObject><_JsonReader_PD_1_a><_JsonReader_PS_b>2</_JsonReader_PS_b><c_d>3</c_d></_JsonReader_PD_1_a></jsonObject>',
  ],
  [{}, '<a><_JsonReader_PS_b>1</_JsonReader_PS_b><_JsonReader_PD_2>3</_JsonReader_PD_2></a>', '{"a":{"$b":1,"2":3}}'],
  [{}, '<a><b_JsonReader_32_c>1</b_JsonReader_32_c></a>', '{"a":{"b_JsonReader_32_c":1}}'],
  [
    { escapesNames: true },
    '{"1 a":{"$b":2,"c/d":3}}',
    '<jsonObject><_JsonReader_PD_1_JsonReader_32_a><_JsonReader_PS_b>2</_JsonReader_PS_b><c_JsonReader_47_d>3</c_JsonReader_47_d></_JsonReader_PD_1_JsonReader_32_a></jsonObject>',
  ],
  [
    {},
    '[1,[2,3],{"a":4}]',
    '<jsonArray><jsonElement>1</jsonElement><jsonElement><jsonArray><jsonElement>2</jsonElement><jsonElement>3</jsonElement></jsonArray></jsonElement><jsonElement><a>4</a></jsonElement></jsonArray>',
  ],
  [{}, '[1,[]]', NESTED],
  [{}, NESTED, '[1,[]]'],
  [{}, '<jsonArray><jsonElement>1</jsonElement></jsonArray>', '[1]'],
  [{}, '<jsonArray/>', '[]'],
  [{}, '<jsonElement><a>1</a></jsonElement>', '{"a":1}'],
  [{}, '<jsonElement>1</jsonElement>', '1'],
  [{}, '<jsonElement><jsonArray><jsonElement>1</jsonElement></jsonArray></jsonElement>', '[1]'],
  [{}, '<b><?xml-multiple a?><a>1</a></b>', '{"b":{"a":[1]}}'],
  [{ autoArray: false }, '<b><?xml-multiple a?><a>1</a><a>2</a><c>3</c></b>', '{"b":{"a":[1,2],"c":3}}'],
  [{}, '<b><?xml-multiple?><a>1</a><c>2</c></b>', '{"b":{"a":[1],"c":2}}'],
  [{}, '<b><?xml-multiple a?></b>', '{"b":{"a":[]}}'],
  [{}, '<b><c>1</c><?xml-multiple a?><d/></b>', '{"b":{"c":1,"a":[],"d":null}}'],
  [{}, '<p:b xmlns:p="urn:p"><?xml-multiple p:a?><p:a>1</p:a></p:b>', '{"b":{"a":[1]}}'],
  [{ keepsNamespaces: true }, '<p:b xmlns:p="urn:p"><?xml-multiple p:a?><p:a/></p:b>', '{"p_b":{"p_a":[null]}}'],
  [{}, '<jsonArray><?xml-multiple jsonElement?></jsonArray>', '[]'],
  [{}, '<b><?xml-multiple jsonElement?><jsonElement>1</jsonElement></b>', '{"b":[1]}'],
  [{}, '<b><?other a?><a>1</a></b>', '{"b":{"a":1}}'],
  [{}, '{"a":1,"b":2}', '<jsonObject><a>1</a><b>2</b></jsonObject>'],
  [{}, '{"a":{"@b":1,"$":"x"}}', '<jsonObject><a b="1">x</a></jsonObject>'],
  [{}, '{}', '<jsonObject/>'],
  [{}, '"x"', '<jsonValue>x</jsonValue>'],
]

for (const [conversion, from, to] of SWITCHES) {
  const given = Object.entries(conversion).map(([name, value]) => `${name} ${String(value)}`)
  test(`${from} becomes ${to} with ${given.join(', ') || 'the defaults'}`, () => {
    const [a, b] = from.startsWith('<')
      ? ['application/xml', 'application/json']
      : ['application/json', 'application/xml']
    assert.equal(converted(from, a!, b!, conversion), to)
  })
}

/** Random numbers that depend on the seed alone (mulberry32). */
function randomFrom(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

const NAMES = ['a', 'b2', 'é', '1st', 'with space', '$dollar', 'a/b', '😀', '-', '_JsonReaderX', 'jsonObject']
const TEXTS = ['x', 'é😀', ' padded ', '<&>"\'', '007', '1.', '.5', '+1', 'Null', 'True', 'a\nb\tc', ']]>', '1e']
const NUMBERS = ['0', '-1', '12345678901234567890', '1.5', '0.30000000000000000004', '1e400', '-2.5e-7']

type Random = (below: number) => number

/** A value that XML can hold: no empty text beside null, no array of one item, no empty array or object. */
function randomJson(random: Random, depth: number): string {
  const kind = random(depth === 0 ? 3 : 6)
  if (kind === 0) return JSON.stringify(TEXTS[random(TEXTS.length)])
  if (kind === 1) return NUMBERS[random(NUMBERS.length)]!
  if (kind === 2) return ['true', 'false', 'null', '""'][random(4)]!
  if (kind === 3) return `[${Array.from({ length: 2 + random(3) }, () => randomJson(random, depth - 1)).join(',')}]`
  return randomObject(random, depth - 1)
}

function randomObject(random: Random, depth: number): string {
  const names = NAMES.filter(() => random(3) === 0)
  const members = (names.length === 0 ? ['a'] : names).map(
    name => `${JSON.stringify(name)}:${randomJson(random, depth)}`,
  )
  return `{${members.join(',')}}`
}

function randomXml(random: Random, depth: number): string {
  const name = ['a', 'b', 'c', 'd.e', 'f-g'][random(5)]!
  const attributes = random(3) === 0 ? ` x="${random(100)}" y="&lt;&amp;"` : ''
  if (depth === 0 || random(3) === 0) {
    const text = ['', '1', 'x &lt; y', 'true', '007'][random(5)]!
    return text === '' ? `<${name}${attributes}/>` : `<${name}${attributes}>${text}</${name}>`
  }
  // Repeated elements stand together, because an array holds no other order.
  const groups = ['a', 'b', 'c'].filter(() => random(2) === 0).map((each, at) => [each, at] as const)
  const children = groups.flatMap(([each]) =>
    Array.from({ length: 1 + random(3) }, () => randomXml(random, depth - 1).replace(/^<[\w.-]+/, `<${each}`)),
  )
  const closed = children.map(child => child.replace(/<\/[\w.-]+>$/, `</${/^<([\w.-]+)/.exec(child)![1]}>`))
  return closed.length === 0 ? `<${name}${attributes}/>` : `<${name}${attributes}>${closed.join('')}</${name}>`
}

const SEED = Number(process.env.FORMATS_SEED ?? Date.now() % 1_000_000)
const ROUNDS = 300

test(`JSON becomes XML and the same JSON again, with seeds from ${SEED} on`, () => {
  const conversion = { usesNil: true, escapesNames: true }
  for (let seed = SEED; seed < SEED + ROUNDS; seed++) {
    const random = randomFrom(seed)
    const json = `{"root":{"first":1,"second":${randomObject(random, 4)}}}`
    const xml = converted(json, 'application/json', 'application/xml', conversion)
    const again = converted(xml, 'application/xml', 'application/json', conversion)
    assert.equal(again, json, `seed ${seed}: ${xml}`)
  }
})

test(`XML becomes JSON and the same XML within jsonObject again, with seeds from ${SEED} on`, () => {
  for (let seed = SEED; seed < SEED + ROUNDS; seed++) {
    const xml = `<root>${randomXml(randomFrom(seed), 4)}</root>`
    const json = converted(xml, 'application/xml', 'application/json')
    const again = converted(json, 'application/json', 'application/xml')
    assert.equal(again, `<jsonObject>${xml}</jsonObject>`, `seed ${seed}: ${json}`)
  }
})

test(`Badgerfish keeps XML as it is, with seeds from ${SEED} on`, () => {
  for (let seed = SEED; seed < SEED + ROUNDS; seed++) {
    const xml = `<p:root xmlns:p="urn:p">${randomXml(randomFrom(seed), 4)}</p:root>`
    const json = converted(xml, 'application/xml', 'application/json/badgerfish')
    assert.equal(converted(json, 'application/json/badgerfish', 'application/xml'), xml, `seed ${seed}: ${json}`)
  }
})

test('a body is parsed a second time only where JavaScript writes a number of it in another way', () => {
  for (const [text, isParsedAgain] of [
    ['{"id":"6f1c2a34-0c2f-8e5b","at":"1.50","n":12.5}', false],
    ['{"a":[0,1,0.25,-3,123456789012345]}', false],
    ['{"a\\"-0.0":1}', false],
    ['{"n":12.50}', true],
    ['[1e2]', true],
    ['[-0]', true],
    ['[0.0000001]', true],
  ] as const) {
    const parsed = parseJsonText(text, DEFAULT_LIMITS)
    for (const payload of [parsed, { text }]) {
      assert.equal(jsonOf(payload) !== writtenValue(payload), isParsedAgain, text)
      assert.equal(JSON.stringify(writtenValue(payload)), text)
    }
  }
})
