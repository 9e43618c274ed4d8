import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyJsonPatch } from '../../../src/mounted/healthcare/json-patch.ts'
import { type JsonObject, readJson, writeJson } from '../../../src/mounted/healthcare/json-text.ts'
import { PatchError, patchKind } from '../../../src/mounted/healthcare/patch-result.ts'
import { fullService, serviceWith } from './service-example.ts'

function patched(document: string, patch: string): string {
  return writeJson(applyJsonPatch(readJson(document) as JsonObject, readJson(patch)))
}

function situationOf(document: string, patch: string): string {
  try {
    patched(document, patch)
  } catch (error) {
    if (error instanceof PatchError) return error.situation
    throw error
  }
  return 'applied'
}

/** RFC 6902 appendix A, in its order. */
const APPENDIX_A: readonly (readonly [title: string, document: string, patch: string, result: string])[] = [
  ['A.1 adds a member', '{"foo":"bar"}', '[{"op":"add","path":"/baz","value":"qux"}]', '{"foo":"bar","baz":"qux"}'],
  [
    'A.2 adds an item',
    '{"foo":["bar","baz"]}',
    '[{"op":"add","path":"/foo/1","value":"qux"}]',
    '{"foo":["bar","qux","baz"]}',
  ],
  ['A.3 removes a member', '{"baz":"qux","foo":"bar"}', '[{"op":"remove","path":"/baz"}]', '{"foo":"bar"}'],
  ['A.4 removes an item', '{"foo":["bar","qux","baz"]}', '[{"op":"remove","path":"/foo/1"}]', '{"foo":["bar","baz"]}'],
  [
    'A.5 replaces a value',
    '{"baz":"qux","foo":"bar"}',
    '[{"op":"replace","path":"/baz","value":"boo"}]',
    '{"baz":"boo","foo":"bar"}',
  ],
  [
    'A.6 moves a value',
    '{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}',
    '[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]',
    '{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}',
  ],
  [
    'A.7 moves an item',
    '{"foo":["all","grass","cows","eat"]}',
    '[{"op":"move","from":"/foo/1","path":"/foo/3"}]',
    '{"foo":["all","cows","eat","grass"]}',
  ],
  [
    'A.8 tests a value',
    '{"baz":"qux","foo":["a",2,"c"]}',
    '[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]',
    '{"baz":"qux","foo":["a",2,"c"]}',
  ],
  [
    'A.10 adds a nested object',
    '{"foo":"bar"}',
    '[{"op":"add","path":"/child","value":{"grandchild":{}}}]',
    '{"foo":"bar","child":{"grandchild":{}}}',
  ],
  [
    'A.11 ignores members that it does not know',
    '{"foo":"bar"}',
    '[{"op":"add","path":"/baz","value":"qux","xyz":123}]',
    '{"foo":"bar","baz":"qux"}',
  ],
  [
    'A.14 reads the escapes of a pointer',
    '{"/":9,"~1":10}',
    '[{"op":"test","path":"/~01","value":10}]',
    '{"/":9,"~1":10}',
  ],
  [
    'A.16 adds an array',
    '{"foo":["bar"]}',
    '[{"op":"add","path":"/foo/-","value":["abc","def"]}]',
    '{"foo":["bar",["abc","def"]]}',
  ],
]

for (const [title, document, patch, result] of APPENDIX_A) {
  test(`RFC 6902 ${title}`, () => {
    assert.equal(patched(document, patch), result)
  })
}

for (const [title, document, patch] of [
  ['A.9 a test that fails', '{"baz":"qux"}', '[{"op":"test","path":"/baz","value":"bar"}]'],
  ['A.12 an add to what does not exist', '{"foo":"bar"}', '[{"op":"add","path":"/baz/bat","value":"qux"}]'],
  ['A.15 a test of a string against a number', '{"~1":10}', '[{"op":"test","path":"/~01","value":"10"}]'],
  ['a removal of nothing', '{"a":1}', '[{"op":"remove","path":"/b"}]'],
  ['a replacement of nothing', '{"a":1}', '[{"op":"replace","path":"/b","value":1}]'],
  ['a move of nothing', '{"a":1}', '[{"op":"move","from":"/b","path":"/c"}]'],
  ['an index beyond the list', '{"a":[1]}', '[{"op":"add","path":"/a/2","value":1}]'],
  ['an index with a leading zero', '{"a":[1,2]}', '[{"op":"remove","path":"/a/01"}]'],
  ['a negative index', '{"a":[1,2]}', '[{"op":"remove","path":"/a/-1"}]'],
  ['an index that is a name', '{"a":[1,2]}', '[{"op":"remove","path":"/a/length"}]'],
  ['"-" where an item must exist', '{"a":[1]}', '[{"op":"replace","path":"/a/-","value":1}]'],
  ['a path into a string', '{"a":"b"}', '[{"op":"add","path":"/a/0","value":1}]'],
  ['an inherited member', '{"a":{}}', '[{"op":"copy","from":"/a/toString","path":"/b"}]'],
  [
    'the resource type',
    '{"resourceType":"HealthcareService"}',
    '[{"op":"replace","path":"/resourceType","value":"Patient"}]',
  ],
  ['a removed resource type', '{"resourceType":"HealthcareService"}', '[{"op":"remove","path":"/resourceType"}]'],
  ['the id', '{"id":"a"}', '[{"op":"replace","path":"/id","value":"b"}]'],
  ['a moved id', '{"id":"a"}', '[{"op":"move","from":"/id","path":"/name"}]'],
  ['the version', '{"meta":{"versionId":"1"}}', '[{"op":"replace","path":"/meta/versionId","value":"2"}]'],
  [
    'the time of the last change',
    '{"meta":{"lastUpdated":"2024-01-01T00:00:00Z"}}',
    '[{"op":"replace","path":"/meta","value":{"lastUpdated":"2025-01-01T00:00:00Z"}}]',
  ],
] as const) {
  test(`a JSON Patch with ${title} cannot be applied`, () => {
    assert.equal(situationOf(document, patch), 'patch-not-applicable')
  })
}

for (const [title, patch] of [
  ['no array', '{"op":"add","path":"/a","value":1}'],
  ['an operation that is no object', '[1]'],
  ['an operation without op', '[{"path":"/a"}]'],
  ['an unknown op', '[{"op":"merge","path":"/a","value":1}]'],
  ['op of a prototype', '[{"op":"constructor","path":"/a"}]'],
  ['no path', '[{"op":"remove"}]'],
  ['a path that is no string', '[{"op":"remove","path":["a"]}]'],
  ['a path without slash', '[{"op":"remove","path":"a"}]'],
  ['a path that is a URI fragment', '[{"op":"remove","path":"#/a"}]'],
  ['an escape that is none', '[{"op":"remove","path":"/a~2"}]'],
  ['a tilde at the end', '[{"op":"remove","path":"/a~"}]'],
  ['no value', '[{"op":"add","path":"/a"}]'],
  ['no from', '[{"op":"move","path":"/a"}]'],
  ['a move into itself', '[{"op":"move","from":"/a","path":"/a/b"}]'],
  ['a change of the whole', '[{"op":"replace","path":"","value":{"resourceType":"Patient"}}]'],
  ['a removal of the whole', '[{"op":"remove","path":""}]'],
  ['__proto__ in a path', '[{"op":"add","path":"/__proto__/isAdmin","value":true}]'],
  ['constructor in a path', '[{"op":"add","path":"/constructor/prototype/isAdmin","value":true}]'],
  ['prototype in from', '[{"op":"copy","from":"/prototype","path":"/a"}]'],
  ['65 levels in a path', `[{"op":"add","path":"${'/a'.repeat(65)}","value":1}]`],
  ['501 operations', JSON.stringify(Array.from({ length: 501 }, () => ({ op: 'test', path: '/a', value: 1 })))],
] as const) {
  test(`a JSON Patch with ${title} is malformed`, () => {
    assert.equal(situationOf('{"a":1}', patch), 'patch-malformed')
  })
}

test('a patch is applied as a whole or not at all', () => {
  const service = fullService()
  const patch = [
    { op: 'remove', path: '/name' },
    { op: 'test', path: '/active', value: false },
  ]
  assert.throws(() => applyJsonPatch(service, patch), { message: /^operation 2: / })
  assert.deepEqual(service, fullService())
})

test('a patch changes a copy, and what it adds is a copy', () => {
  const service = serviceWith({ identifier: [{ value: '1' }] })
  const value = { value: '2' }
  const result = applyJsonPatch(service, [{ op: 'add', path: '/identifier/-', value }])
  value.value = '3'
  assert.deepEqual(result.identifier, [{ value: '1' }, { value: '2' }])
  assert.deepEqual(service.identifier, [{ value: '1' }])
})

test('a test compares numbers by value, and other values deeply', () => {
  const document = '{"a":1.00,"b":{"c":[1,null],"d":"x"}}'
  const patch = '[{"op":"test","path":"/a","value":1},{"op":"test","path":"/b","value":{"d":"x","c":[1.0,null]}}]'
  assert.equal(patched(document, patch), document)
})

test('a patch keeps the precision of decimals', () => {
  assert.equal(
    patched('{"a":1.00}', '[{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/c","value":2.50}]'),
    '{"a":1.00,"b":1.00,"c":2.50}',
  )
})

test('a value __proto__ in a patch changes no prototype', () => {
  const result = readJson(patched('{"a":1}', '[{"op":"add","path":"/b","value":{"__proto__":{"isAdmin":true}}}]'))
  assert.equal(((result as JsonObject).b as JsonObject).isAdmin, undefined)
})

test('copies of copies are refused before they fill the memory', () => {
  const double = [...'abcdefghijklmnopqrstuvwxyz'].map(name => ({ op: 'copy', from: '', path: `/${name}` }))
  assert.throws(
    () => applyJsonPatch({ x: [1, 2, 3] }, double),
    (error: unknown) => error instanceof PatchError,
  )
  const nested = Array.from({ length: 400 }, () => ({ op: 'copy', from: '/x', path: '/x/-' }))
  assert.throws(
    () => applyJsonPatch({ x: [1] }, nested),
    (error: unknown) => error instanceof PatchError,
  )
})

test('id, version and time may be tested', () => {
  const service = fullService()
  const patch = [
    { op: 'test', path: '/meta/versionId', value: '1' },
    { op: 'test', path: '/id', value: 'example' },
  ]
  assert.deepEqual(applyJsonPatch(service, patch), service)
})

test('a generated narrative goes with the content that it tells of; another one stays', () => {
  const change = { op: 'replace', path: '/active', value: false }
  assert.equal(applyJsonPatch(fullService(), [change]).text, undefined)
  const own = { status: 'additional', div: '<div xmlns="http://www.w3.org/1999/xhtml">x</div>' }
  assert.deepEqual(applyJsonPatch({ ...fullService(), text: own }, [change]).text, own)
  const written = applyJsonPatch(fullService(), [
    change,
    { op: 'replace', path: '/text', value: { ...own, status: 'generated' } },
  ])
  assert.deepEqual(written.text, { ...own, status: 'generated' })
})

test('the kind of a patch follows its media type; merge patches and XML have none', () => {
  assert.equal(patchKind('application/json-patch+json'), 'json-patch')
  assert.equal(patchKind('application/fhir+json'), 'fhirpath-patch')
  assert.equal(patchKind('application/health+json'), 'fhirpath-patch')
  for (const type of [
    'application/merge-patch+json',
    'application/xml-patch+xml',
    'application/json',
    'text/plain',
    '',
  ]) {
    assert.equal(patchKind(type), undefined, type)
  }
})
