/** Parameters in every style, with real sockets: texts are split and typed as the document says. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ParameterContract } from '../../src/mediation/openapi/api-contract.ts'
import { parameterReaders } from '../../src/mediation/openapi/parameters.ts'
import { validatedGateway, violationsIn } from '../harness/validated-gateway.ts'

type Place = 'path' | 'query' | 'header' | 'cookie'
type Row = readonly [place: Place, members: string, valid: string, invalid: string, violation: string]

const NUMBER = 'schema: {type: integer}'
const LIST = 'schema: {type: array, items: {type: integer}}'
const OBJECT = 'schema: {type: object, properties: {R: {type: integer}}, additionalProperties: {type: integer}}'
const ONE = 'explode: false'
const EACH = 'explode: true'

/** Parameters `c` of OpenAPI 3: their members, a valid and an invalid text, and how the violation begins. */
const STYLES: readonly Row[] = [
  ...[ONE, EACH].flatMap((explode): Row[] => [
    ['path', `style: simple, ${explode}, ${NUMBER}`, '5', 'x', ' must be integer'],
    ['path', `style: simple, ${explode}, ${LIST}`, '3,4', '3,x', ' /1 must be integer'],
    ['path', `style: label, ${explode}, ${NUMBER}`, '.5', '5', ' must begin with "."'],
    ['header', `style: simple, ${explode}, ${NUMBER}`, '5', 'x', ' must be integer'],
    ['header', `style: simple, ${explode}, ${LIST}`, '3, 4', '3, x', ' /1 must be integer'],
    ['query', `style: form, ${explode}, ${NUMBER}`, 'c=5', 'c=x', ' must be integer'],
    ['query', `style: form, ${explode}, ${NUMBER}`, 'c=5', 'c=5&c=5', ' must not be repeated'],
    ['query', `style: deepObject, ${explode}, ${OBJECT}`, 'c[R]=1&c[S]=2', 'c[R]=1&c[S]=x', ' /S must be integer'],
    [
      'query',
      `style: deepObject, ${explode}, ${OBJECT}`,
      'c[R]=1',
      'c[R]=1&c[R]=2',
      ' must not repeat the property "R"',
    ],
    ...['c=x', 'c', 'c[R]=1&c=x', 'c[]=1', 'c[R][a]=1', 'c[R=1', 'c[R]a=1'].map((invalid): Row => {
      return ['query', `style: deepObject, ${explode}, ${OBJECT}`, 'c[R]=1', invalid, ' must have the form c[property]']
    }),
    ['cookie', `style: form, ${explode}, ${NUMBER}`, 'c=5; a=b', 'c=x', ' must be integer'],
    ['cookie', `style: form, ${explode}, ${NUMBER}`, 'c=5; c=5', 'c=5; c=6', ' must not be repeated'],
  ]),
  ['path', `style: simple, ${ONE}, ${OBJECT}`, 'R,1,S,2', 'R,1,S,x', ' /S must be integer'],
  ['path', `style: simple, ${ONE}, ${OBJECT}`, 'R,1', 'R,1,S', ' must have a value for each name'],
  ['path', `style: simple, ${EACH}, ${OBJECT}`, 'R=1,S=2', 'R=1,S=x', ' /S must be integer'],
  ['path', `style: simple, ${EACH}, ${OBJECT}`, 'R=1', 'R=1,R=2', ' must not repeat the property "R"'],
  ['path', `style: label, ${ONE}, ${LIST}`, '.3,4', '.3,x', ' /1 must be integer'],
  ['path', `style: label, ${EACH}, ${LIST}`, '.3.4', '.3.x', ' /1 must be integer'],
  ['path', `style: label, ${ONE}, ${OBJECT}`, '.R,1,S,2', '.R,1,S,x', ' /S must be integer'],
  ['path', `style: label, ${EACH}, ${OBJECT}`, '.R=1.S=2', '.R=1.S=x', ' /S must be integer'],
  ['header', `style: simple, ${ONE}, ${OBJECT}`, 'R,1, S,2', 'R,1, S,x', ' /S must be integer'],
  ['header', `style: simple, ${EACH}, ${OBJECT}`, 'R=1, S=2', 'R=1, S=x', ' /S must be integer'],
  ['query', `style: form, ${ONE}, ${LIST}`, 'c=3,4', 'c=3,x', ' /1 must be integer'],
  ['query', `style: form, ${ONE}, ${LIST}`, 'c=3,4', 'c=3&c=4', ' must not be repeated'],
  ['query', `style: form, ${EACH}, ${LIST}`, 'c=3&c=4', 'c=3&c=x', ' /1 must be integer'],
  ['query', `style: form, ${ONE}, ${OBJECT}`, 'c=R,1,S,2', 'c=R,1,S,x', ' /S must be integer'],
  ['query', `style: form, ${EACH}, ${OBJECT}`, 'R=1&S=2', 'R=1&S=x', ' /S must be integer'],
  ['query', `style: form, ${EACH}, ${OBJECT}`, 'R=1', 'R=1&R=2', ' must not repeat the property "R"'],
  ['query', `style: spaceDelimited, ${ONE}, ${LIST}`, 'c=3%204+5', 'c=3%20x', ' /1 must be integer'],
  ['query', `style: spaceDelimited, ${EACH}, ${LIST}`, 'c=3&c=4', 'c=3&c=x', ' /1 must be integer'],
  ['query', `style: spaceDelimited, ${ONE}, ${OBJECT}`, 'c=R%201%20S%202', 'c=R%201%20S%20x', ' /S must be integer'],
  ['query', `style: spaceDelimited, ${EACH}, ${OBJECT}`, 'R=1&S=2', 'R=1&S=x', ' /S must be integer'],
  ['query', `style: pipeDelimited, ${ONE}, ${LIST}`, 'c=3%7C4%7c5', 'c=3%7Cx', ' /1 must be integer'],
  ['query', `style: pipeDelimited, ${EACH}, ${LIST}`, 'c=3&c=4', 'c=3&c=x', ' /1 must be integer'],
  ['query', `style: pipeDelimited, ${ONE}, ${OBJECT}`, 'c=R%7C1%7CS%7C2', 'c=R%7C1%7CS%7Cx', ' /S must be integer'],
  ['query', `style: pipeDelimited, ${EACH}, ${OBJECT}`, 'R=1&S=2', 'R=1&S=x', ' /S must be integer'],
  ['cookie', 'schema: {type: string, maxLength: 5}', 'c=3&c=4', 'c=3&c=45', ' must NOT have more than 5 characters'],
  [
    ...(['cookie', 'schema: {type: array, uniqueItems: true, items: {type: integer}}'] as const),
    ...(['c=3; c=4', 'c=3; c=3', ' must not have equal items'] as const),
  ],
  ['cookie', `style: form, ${ONE}, ${LIST}`, 'c=3,4', 'c=3,x', ' /1 must be integer'],
  ['cookie', `style: form, ${EACH}, ${LIST}`, 'c=3; c=4', 'c=3; c=x', ' /1 must be integer'],
  ['cookie', `style: form, ${EACH}, ${LIST}`, 'c=3&c=4', 'c=3&c=x', ' /1 must be integer'],
  ['cookie', `style: form, ${ONE}, ${OBJECT}`, 'c=R,1,S,2', 'c=R,1,S,x', ' /S must be integer'],
  ['cookie', `style: form, ${EACH}, ${OBJECT}`, 'R=1; S=2', 'R=1; S=x', ' /S must be integer'],
]

/** Parameters `c` of OpenAPI 2.0. */
const COLLECTIONS: readonly Row[] = [
  ...(['path', 'query', 'header'] as const).flatMap((place): Row[] => {
    const equals = place === 'query' ? 'c=' : ''
    const [blank, tab, pipe] = place === 'header' ? [' ', '\t', '|'] : ['%20', '%09', '%7C']
    // The router refuses a tab in a path.
    const tabs = place === 'path' ? {} : { tsv: tab }
    return Object.entries({ csv: ',', ssv: blank, pipes: pipe, ...tabs }).map(([format, separator]) => [
      ...([place, `type: array, items: {type: integer}, collectionFormat: ${format}`] as const),
      ...([`${equals}3${separator}4`, `${equals}3${separator}x`, ' /1 must be integer'] as const),
    ])
  }),
  [
    'query',
    'type: array, items: {type: integer}, collectionFormat: multi',
    'c=3&c=4',
    'c=3&c=x',
    ' /1 must be integer',
  ],
  ['query', 'type: integer, allowEmptyValue: true', 'c=', 'c=x', ' must be integer'],
  ['query', 'type: integer', 'c=1', 'c=', ' must be integer'],
]

/** Schemas without types, maps and lists of parameters: [members, valid, invalid, violation]. */
const SCHEMAS: readonly Row[] = [
  ['query', 'schema: {enum: [1, 2]}', 'c=1', 'c=3', ' must be one of 1, 2'],
  ['query', 'schema: {enum: ["1", true]}', 'c=1', 'c=false', ' must be one of "1", true'],
  ['query', 'schema: {minimum: 3}', 'c=3.00000000000000000001', 'c=2.99999999999999999999', ' must be >= 3'],
  ['query', 'schema: {type: integer}', 'c=12345678901234567890', 'c=1.00000000000000000001', ' must be integer'],
  ['query', 'schema: {minimum: 3}', 'c=3', 'c=2', ' must be >= 3'],
  ['query', 'schema: {type: string, allOf: [{minimum: 3}]}', 'c=2', 'c=2&c=2', ' must not be repeated'],
  ['query', 'schema: {items: {type: integer}}', 'c=1&c=2', 'c=1&c=x', ' /1 must be integer'],
  ['query', 'schema: {nullable: true, type: integer}', 'c=', 'c=x', ' must be integer'],
  ['query', 'schema: {type: object, required: [x]}', 'x=1', 'y=1', " must have required property 'x'"],
  [
    ...(['query', 'style: deepObject, schema: {properties: {t: {type: array, items: {type: integer}}}}'] as const),
    ...(['c[t]=1&c[t]=2', 'c[t]=1&c[t]=x', ' /t/1 must be integer'] as const),
  ],
  [
    ...(['query', 'content: {"application/json; charset=utf-8": {schema: {type: object, required: [x]}}}'] as const),
    ...(['c={"x":1}', 'c={"x":1,"x":2}', ' must not repeat a member'] as const),
  ],
]

function documentOf(head: string, rows: readonly Row[]): string {
  const lines = rows.map(([place, members], at) => {
    const parameter = `{name: c, in: ${place}, ${place === 'path' ? 'required: true, ' : ''}${members}}`
    const path = place === 'path' ? `/${at}/{c}` : `/${at}`
    return `  ${path}:\n    get: {parameters: [${parameter}], responses: {default: {description: any}}}\n`
  })
  return `${head}\ninfo: {title: t, version: "1"}\npaths:\n${lines.join('')}`
}

const TABLES: Readonly<Record<string, readonly Row[]>> = { styles: STYLES, collections: COLLECTIONS, schemas: SCHEMAS }
const start = validatedGateway({
  '/styles': documentOf('openapi: 3.0.3', STYLES),
  '/collections': documentOf('swagger: "2.0"', COLLECTIONS),
  '/schemas': documentOf('openapi: 3.0.3', SCHEMAS),
})

for (const [name, rows] of Object.entries(TABLES)) {
  test(`${name}: a valid text of a parameter passes, an invalid one is a violation`, async t => {
    const { ask } = await start(t, [404, ''])
    for (const [at, [place, members, valid, invalid, violation]] of rows.entries()) {
      const send = (text: string) => {
        const target = { path: `/${at}/${text}`, query: `/${at}?${text}`, header: `/${at}`, cookie: `/${at}` }[place]
        const line = { path: '', query: '', header: `c: ${text}\r\n`, cookie: `Cookie: ${text}\r\n` }[place]
        return ask(`GET /${name}/1${target}`, line, '')
      }
      const what = `${place} ${members}`
      const passed = await send(valid)
      assert.equal(passed.status, 404, `${what} ${valid} ${passed.body}`)
      const refused = await send(invalid)
      assert.equal(refused.status, 400, `${what} ${invalid} ${refused.body}`)
      assert.deepEqual(violationsIn(refused.body), [`${place} parameter c${violation}`], what)
    }
  })
}

/** The router refuses ";" in paths, so that no request brings these texts. */
const MATRIX: readonly (readonly [explodes: boolean, schema: object, text: string, value: unknown])[] = [
  [false, { type: 'integer' }, ';c=5', 5],
  [true, { type: 'integer' }, ';c=5', 5],
  [false, { type: 'string' }, ';c', ''],
  [false, { type: 'array', items: { type: 'integer' } }, ';c=3,4', [3, 4]],
  [true, { type: 'array', items: { type: 'string' } }, ';c=3,5;c=4', ['3,5', '4']],
  [false, { type: 'object' }, ';c=R,1,S,2', { R: '1', S: '2' }],
  [true, { type: 'object', additionalProperties: { type: 'integer' } }, ';R=1;S=2', { R: 1, S: 2 }],
]

test('matrix: scalars, lists and objects, exploded or not', () => {
  for (const [explodes, schema, text, value] of MATRIX) {
    const contract: ParameterContract = {
      ...{ name: 'c', place: 'path', isRequired: true, style: 'matrix', explodes, allowsEmpty: false, schema: 's' },
    }
    const [reader] = parameterReaders([contract], { s: schema })
    const read = (path: string) =>
      reader!.read({ path: new Map([['c', path]]), query: [], header: () => undefined, cookies: [] })
    assert.deepEqual(read(text), { kind: 'value', value }, text)
    assert.equal(read(text.slice(1)).kind, 'wrong', text)
  }
})
