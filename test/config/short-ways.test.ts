/** The fast path for plain texts gives the same result as the full reader. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readOperations } from '../../src/apis/operations.ts'
import { YamlFile } from '../../src/apis/yaml-file.ts'
import { isTemplateError, parseTemplate } from '../../src/route/path-template.ts'

/** [operation as exports write it, the same operation in another form] */
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
  assert.deepEqual(file.errors, [])
  return operations?.all
}

for (const [plain, other] of SAME) {
  test(`an operation is read the same in either form: ${plain}`, () =>
    assert.deepEqual(operationsOf(plain), operationsOf(other)))
}

for (const name of ['authType: toString', 'authType: constructor', 'authType: __proto__']) {
  test(`${name} is no operation`, () => {
    const rest = `{ target: /a, verb: GET, ${name}, throttlingPolicy: Gold, scopes: [] }`
    const file = new YamlFile('api.yaml', `data:\n  operations:\n    - ${rest}\n`)
    readOperations(file)
    assert.equal(file.errors.length, 1)
  })
}

/** [segment, its pieces; null: not a template] */
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
  test(`the segment ${JSON.stringify(text)} is ${pieces === null ? 'no template' : JSON.stringify(pieces)}`, () => {
    const read = parseTemplate(`/${text}/end`)
    assert.deepEqual(isTemplateError(read) ? null : read.segments[0], pieces)
  })
}
