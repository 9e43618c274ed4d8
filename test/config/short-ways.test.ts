/** What is read by a short way where it is plain is read as by the long one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readOperations } from '../../src/config/api-operations.ts'
import { YamlFile } from '../../src/config/yaml-file.ts'
import { isTemplateFault, readTemplate } from '../../src/structure/path-template.ts'

/** An operation as exports write it, and one that says the same in other ways. */
const SAME: readonly (readonly [plain: string, other: string])[] = [
  [
    'verb: GET, authType: None, throttlingPolicy: Gold, scopes: []',
    'verb: get, authType: none, throttlingPolicy: Gold',
  ],
  [
    'verb: POST, authType: Application User, throttlingPolicy: Unlimited, scopes: [a, b]',
    'verb: post, authType: application_user, throttlingPolicy: "", scopes: [a, b]',
  ],
  [
    'verb: " PUT ", authType: Application & Application User, throttlingPolicy: " Gold ", scopes: ["1"]',
    'verb: PUT, throttlingPolicy: Gold, scopes: 1',
  ],
]

function operationsOf(rest: string): unknown {
  const file = new YamlFile('api.yaml', `data:\n  operations:\n    - { target: "/a/{b}", ${rest} }\n`)
  const operations = readOperations(file)
  assert.deepEqual(file.faults, [])
  return operations?.all
}

for (const [plain, other] of SAME) {
  test(`an operation with ${plain}`, () => assert.deepEqual(operationsOf(plain), operationsOf(other)))
}

for (const name of ['authType: toString', 'authType: constructor', 'authType: __proto__']) {
  test(`${name} is none`, () => {
    const rest = `{ target: /a, verb: GET, ${name}, throttlingPolicy: Gold, scopes: [] }`
    const file = new YamlFile('api.yaml', `data:\n  operations:\n    - ${rest}\n`)
    readOperations(file)
    assert.equal(file.faults.length, 1)
  })
}

/** Segments, and their pieces; null: no template. */
const SEGMENTS: readonly (readonly [text: string, pieces: readonly string[] | null])[] = [
  ['plain', ['plain']],
  ["a-._~!$&'()+,=:@9", ["a-._~!$&'()+,=:@9"]],
  ['...', ['...']],
  ['.a', ['.a']],
  ['.', null],
  ['..', null],
  ['a*', null],
  ['a;b', null],
  ['a%2Bb', ['a+b']],
  ['a b', null],
  ['a%20b', ['a%20b']],
  ['é', ['%C3%A9']],
  ['{id}', ['', '']],
  ['{é}', ['', '']],
  ['{}', null],
  ['{a b}', null],
  ['v{id}', ['v', '']],
  ['{a}{b}', null],
  ['a\n', null],
]

for (const [text, pieces] of SEGMENTS) {
  test(`the segment ${JSON.stringify(text)} is ${pieces === null ? 'none' : JSON.stringify(pieces)}`, () => {
    const read = readTemplate(`/${text}/end`)
    assert.deepEqual(isTemplateFault(read) ? null : read.segments[0], pieces)
  })
}
