/** Bodies with parts against OpenAPI documents (OpenAPI 3.1.1 4.8.15.1), with real sockets. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { validatedGateway, violationsIn } from '../harness/validated-gateway.ts'

const ENCODING = `
              history: {contentType: "application/xml; charset=utf-8"}
              image:
                contentType: "image/png, image/jpeg"
                headers:
                  X-Limit: {required: true, schema: {type: integer, maximum: 9}}
                  X-List: {schema: {type: array, items: {type: integer}}}
                  Content-Type: {required: true, schema: {type: integer}}
              names: {headers: {X-Tag: {$ref: "#/components/headers/Tag"}}}`
const RECORD = `
      type: object
      required: [id]
      additionalProperties: false
      properties:
        id: {type: integer}
        address: {type: object, required: [city], properties: {city: {type: string}}}
        history: {type: object, xml: {name: log}, properties: {n: {type: integer, xml: {attribute: true}}}}
        image: {type: string, format: binary, maxLength: 4}
        names: {type: array, items: {type: string, minLength: 2}}
        logs: {type: array, items: {type: object, properties: {n: {type: integer}}}}`

const V3 = (version: string): string => `openapi: ${version}
info: {title: parts, version: "1"}
paths:
  /any:
    post:
      requestBody:
        content:
          multipart/mixed:
            schema: {$ref: "#/components/schemas/Record"}
            encoding: ${ENCODING}
          multipart/form-data:
            schema: {$ref: "#/components/schemas/Record"}
            encoding: ${ENCODING}
      responses: {default: {description: any}}
  /list:
    post:
      requestBody:
        content:
          multipart/related: {schema: {type: array, maxItems: 2, items: {type: object, required: [a], properties: {a: {type: integer}}}}}
      responses: {"200": {description: ok, content: {multipart/mixed: {schema: {$ref: "#/components/schemas/Record"}}}}}
  /none:
    post:
      requestBody: {content: {multipart/mixed: {}}}
      responses: {default: {description: any}}
components:
  schemas:
    Record:${RECORD}
  headers:
    Tag: {schema: {type: string, pattern: "^[a-z]+$"}}
`

const start = validatedGateway({ '/three': V3('3.0.3'), '/one': V3('3.1.0') })

const MIXED = 'Content-Type: multipart/mixed; boundary=B\r\n'
const FORM = 'Content-Type: multipart/form-data; boundary=B\r\n'
const RELATED = 'Content-Type: multipart/related; boundary="B"\r\n'
const named = (name: string, text: string, lines = ''): string =>
  `--B\r\nContent-Disposition: form-data; name="${name}"\r\n${lines}\r\n${text}\r\n`
const unnamed = (text: string, lines = ''): string => `--B\r\n${lines}\r\n${text}\r\n`
const parts = (...all: readonly string[]): string => `${all.join('')}--B--\r\n`
const type = (name: string): string => `Content-Type: ${name}\r\n`

const ID = named('id', '1')
const PNG = type('image/png')

/** [parts, violations], of `multipart/mixed` and `multipart/form-data` alike. */
const RECORDS: readonly (readonly [body: string, violations: readonly string[]])[] = [
  [parts(ID), []],
  [
    parts(
      ...[ID, named('address', '{"city":"x"}', type('application/json'))],
      ...[named('history', '<log n="1"/>', type('application/xml')), named('image', 'png', `${PNG}X-Limit: 5\r\n`)],
      ...[named('names', 'aa', 'X-TAG: a\r\n'), named('names', 'bb')],
    ),
    [],
  ],
  [parts(named('id', 'x')), ['body /id must be integer']],
  [parts(ID, named('more', '1')), ['body must NOT have additional properties: "more"']],
  [parts(ID, named('address', '{}')), ["body /address must have required property 'city'"]],
  [parts(ID, named('address', '{"city":1,"city":"x"}')), ['body /address must not repeat a member']],
  [parts(ID, named('history', '<log n="x"/>', type('application/xml'))), ['body /history /log/@n must be integer']],
  [
    parts(ID, named('history', '<LOG/>', type('text/xml'))),
    ['body /history must have the content type application/xml', 'body /history /LOG must be named log'],
  ],
  [
    parts(ID, named('history', '<log>\n<', type('application/xml'))),
    ['body /history cannot be read: the body is not XML: unclosed tag at line 2, column 1'],
  ],
  [
    parts(
      ID,
      named('logs', '<log><n>1</n></log>', type('a/b+xml')),
      named('logs', '<log><n>x</n></log>', type('a/b+xml')),
    ),
    ['body /logs/1 /log/n must be integer'],
  ],
  [
    parts(ID, named('image', 'png', `${PNG}X-Limit: x\r\nX-List: 1\r\nx-list: y\r\n`)),
    ['body /image header X-Limit must be integer', 'body /image header X-List /1 must be integer'],
  ],
  [
    parts(ID, named('image', 'longer', type('text/css'))),
    [
      'body /image header X-Limit is required',
      'body /image must have the content type image/png or image/jpeg',
      'body /image must NOT have more than 4 characters',
    ],
  ],
  [
    parts(ID, named('names', 'aa', 'X-Tag: A\r\n'), named('names', 'b')),
    ['body /names header X-Tag must match pattern "^[a-z]+$"', 'body /names/1 must NOT have fewer than 2 characters'],
  ],
  [
    parts(ID, named('names', 'aa', type('text/plain') + type('text/css'))),
    ['body /names must have one field content-type'],
  ],
]

for (const context of ['/three/1', '/one/1']) {
  for (const line of [MIXED, FORM]) {
    for (const [body, violations] of RECORDS) {
      const what = `${line.slice(14, -14)} with ${JSON.stringify(body.slice(37, -7))} to ${context}`
      test(`${what} ${violations.length === 0 ? 'passes' : 'is 400 with every violation'}`, async t => {
        const { ask, backend } = await start(t, [404, ''])
        const { status, body: answer } = await ask(`POST ${context}/any`, line, body)
        assert.deepEqual([status, backend.received.length], violations.length === 0 ? [404, 1] : [400, 0], answer)
        if (violations.length > 0) assert.deepEqual([...violationsIn(answer)].sort(), [...violations].sort())
        else assert.equal(backend.received[0]!.body, body)
      })
    }
  }
}

/** [path, lines, body, part of the fault; '': it passes]. */
const OTHERS: readonly (readonly [path: string, lines: string, body: string, said: string])[] = [
  ['/list', RELATED, parts(unnamed('{"a":1}', type('application/json')), unnamed('{"a":2}')), ''],
  [
    '/list',
    RELATED,
    parts(unnamed('{"a":1}'), unnamed('<x><a>y</a></x>', type('text/xml'))),
    'body /1 /x/a must be integer',
  ],
  [
    '/list',
    RELATED,
    parts(unnamed('{"a":1}'), unnamed('{}'), unnamed('{"a":1}')),
    "body /1 must have required property 'a'",
  ],
  ['/list', RELATED, parts(unnamed('{')), 'body part 1 must be JSON'],
  ['/any', MIXED, parts(ID, unnamed('x')), 'body part 2 must have a name in Content-Disposition'],
  ['/any', MIXED, 'no parts', '"code":102520,.*the body does not begin with its boundary'],
  ['/any', MIXED, `--B\r\n\r\nx`, '"code":102520,.*the body ends within a part'],
  ['/any', 'Content-Type: multipart/mixed\r\n', parts(ID), '"code":102520,.*the body has no valid boundary'],
  ['/any', MIXED, parts(`--B\r\nX: ${'x'.repeat(9000)}\r\n\r\n\r\n`), '"code":102520,.*a part without a head'],
  ['/any', MIXED, parts(named('names', 'aa').repeat(500_001)), '"code":102521,.*more than 500000 parts'],
  ['/any', MIXED, `${parts(ID)}${parts(named('id', 'x'))}`, '"code":102520,.*a boundary behind its last one'],
  ['/any', MIXED, `a preamble\r\n${parts(ID)}an epilogue`, ''],
  ['/none', MIXED, 'no parts', ''],
]

for (const [path, lines, body, said] of OTHERS) {
  const what = `${lines.trim()} ${JSON.stringify(body.slice(0, 60))} to ${path}`
  test(`${what} ${said === '' ? 'passes' : `is refused: ${said}`}`, async t => {
    const { ask } = await start(t, [404, ''])
    const { status, body: answer } = await ask(`POST /one/1${path}`, lines, body)
    assert.equal(status, said === '' ? 404 : said.includes('102521') ? 413 : 400, answer)
    assert.match(answer, new RegExp(said))
  })
}

test('a response with parts that break their schema is 500', async t => {
  const broken = await start(t, [200, parts(named('id', 'x')), MIXED])
  const { status, body } = await broken.ask('POST /three/1/list', RELATED, parts(unnamed('{"a":1}')))
  assert.equal(status, 500)
  assert.deepEqual(violationsIn(body), ['body /id must be integer'])
  const right = await start(t, [200, parts(ID), MIXED])
  assert.equal((await right.ask('POST /three/1/list', RELATED, parts(unnamed('{"a":1}')))).body, parts(ID))
})
