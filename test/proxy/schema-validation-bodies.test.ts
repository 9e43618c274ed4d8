/** Bodies, header fields and statuses against OpenAPI documents, with real sockets. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { validatedGateway, violationsIn } from '../harness/validated-gateway.ts'

const V3 = `openapi: 3.0.3
info: {title: three, version: "1"}
paths:
  /json:
    post:
      parameters: [{name: n, in: query, schema: {type: integer}}]
      requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/Item"}}}}
      responses: {default: {description: any}}
  /extended:
    post:
      requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/Extended"}}}}
      responses: {"200": {description: ok, content: {application/json: {schema: {$ref: "#/components/schemas/Extended"}}}}}
  /kinds:
    post:
      requestBody:
        content:
          application/*+json: {schema: {type: object, required: [a]}}
          application/*: {schema: {type: object, required: [b]}}
          application/json; version=1: {schema: {type: object, required: [one]}}
          application/json; version=2: {schema: {type: object, required: [two]}}
          text/plain: {schema: {type: integer, minimum: 3}}
          text/csv: {schema: {type: array}}
      responses: {default: {description: any}}
  /any:
    post:
      requestBody: {content: {"*/*": {schema: {type: object, required: [a]}}}}
      responses: {default: {description: any}}
  /bytes:
    post:
      requestBody: {content: {"*/*": {schema: {type: string, format: binary}}}}
      responses: {default: {description: any}}
  /form:
    post:
      requestBody:
        content:
          application/x-www-form-urlencoded:
            schema:
              type: object
              properties:
                list: {type: array, items: {type: integer}}
                pipes: {type: array, items: {type: integer}}
                deep: {type: object, properties: {a: {type: integer}}}
                json: {type: object, properties: {a: {type: integer}}}
              additionalProperties: {type: integer}
            encoding:
              pipes: {style: pipeDelimited}
              deep: {style: deepObject}
      responses: {default: {description: any}}
  /parts:
    post:
      requestBody:
        content:
          multipart/form-data:
            schema:
              type: object
              required: [n]
              properties:
                n: {type: integer}
                list: {type: array, items: {type: integer}}
                json: {type: object, required: [a]}
                file: {type: string, format: binary, maxLength: 4}
            encoding:
              file: {contentType: "image/png, image/*"}
      responses: {default: {description: any}}
  /answers:
    get:
      responses:
        "200":
          description: ok
          headers:
            X-Count: {required: true, schema: {type: integer, maximum: 9}}
            X-List: {schema: {type: array, items: {type: integer}}}
            Content-Type: {required: true, schema: {type: integer}}
          content: {application/json: {schema: {type: object}}}
        "204": {description: none, headers: {X-Count: {required: true, schema: {type: integer}}}}
        4XX: {description: bad, content: {application/json: {schema: {type: object, required: [e]}}}}
        default: {description: any, content: {application/json: {schema: {type: object, required: [d]}}}}
  /nullable:
    post:
      requestBody:
        content:
          application/json:
            schema:
              type: object
              properties:
                i: {nullable: true, allOf: [{$ref: "#/components/schemas/Item"}]}
                j: {nullable: true, $ref: "#/components/schemas/Item"}
      responses: {default: {description: any}}
  /events/{id}:
    get:
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      responses: {"200": {description: ok, content: {text/event-stream: {schema: {type: integer}}}}}
components:
  schemas:
    Item: {type: object, properties: {a: {type: integer}, b: {type: object}}}
    Base: {type: object, required: [id], properties: {id: {type: integer, readOnly: true}, pin: {type: string, writeOnly: true}}}
    Extended: {allOf: [{$ref: "#/components/schemas/Base"}, {required: [id, pin, n], properties: {n: {type: integer}}}], required: [id, pin]}
`

const V2 = `swagger: "2.0"
info: {title: two, version: "1"}
consumes: [application/json]
produces: [application/json]
paths:
  /form:
    post:
      consumes: [application/x-www-form-urlencoded, multipart/form-data]
      parameters:
        - {name: csv, in: formData, type: array, items: {type: integer}}
        - {name: multi, in: formData, type: array, items: {type: integer}, collectionFormat: multi}
        - {name: e, in: formData, type: integer, allowEmptyValue: true}
      responses: {default: {description: any}}
  /null:
    post:
      parameters: [{name: b, in: body, schema: {type: object, properties: {n: {type: integer, x-nullable: true}}}}]
      responses: {"200": {description: ok, headers: {X-N: {type: array, items: {type: integer}, collectionFormat: pipes}}}}
`

const V31 = `openapi: 3.1.0
info: {title: many, version: "1"}
paths:
  /if:
    post:
      requestBody:
        content:
          application/json:
            schema:
              if: {properties: {kind: {const: cat}}, required: [kind]}
              then: {required: [lives]}
              else: {required: [bark]}
              properties: {mail: {type: string, format: email}, at: {type: string, format: date-time}}
      responses: {default: {description: any}}
  /beside:
    post:
      requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/Base", required: [id, n]}}}}
      responses: {default: {description: any}}
  /*:
    put: {responses: {default: {description: any}}}
  /files/*:
    post:
      requestBody: {required: true, content: {text/plain: {}}}
      responses: {default: {description: any}}
  /files/{id}:
    get:
      parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
      responses: {default: {description: any}}
components:
  schemas:
    Base: {type: object, properties: {id: {type: integer, readOnly: true}}}
`

/** Operations whose variables have other names than those of the document. */
const NAMED = `  operations: [{target: "/a/{x}", verb: GET}, {target: "/events/{x}", verb: GET}]\n`
const WITH_EVENTS = `openapi: 3.0.3
info: {title: named, version: "1"}
paths:
  /a/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get: {responses: {"200": {description: ok, content: {application/json: {schema: {type: object}}}}}}
  /events/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get: {responses: {"200": {description: ok, content: {text/event-stream: {}}}}}
`

const start = validatedGateway({ '/three': V3, '/two': V2, '/many': V31, '/named': [NAMED, WITH_EVENTS] })

const type = (name: string): string => `Content-Type: ${name}\r\n`
const JSON_LINE = type('application/json')
const FORM_LINE = type('application/x-www-form-urlencoded')
const PARTS_LINE = type('multipart/form-data; boundary=B')
const part = (head: string, text: string): string => `--B\r\nContent-Disposition: form-data; ${head}\r\n\r\n${text}\r\n`
const partOf = (name: string, contentType: string, text: string): string =>
  part(`name=${name}\r\nContent-Type: ${contentType}`, text)
const parts = (...all: readonly string[]): string => `${all.join('')}--B--\r\n`

type Row = readonly [request: string, lines: string, body: string, violations: readonly string[]]

/** Per subject: [request, lines, body, violations; none: the backend gets the request]. */
const REQUESTS: Readonly<Record<string, readonly Row[]>> = {
  'a repeated member of JSON': [
    ['POST /three/1/json', JSON_LINE, '{"a":1,"b":{"a":1,"b":[{"a":1}]}}', []],
    [
      'POST /three/1/json',
      JSON_LINE,
      '{"a":"x","\\u0061":1,"b":{"c":[{},{"d~/":1,"d~/":2}]}}',
      ['body /a must not be repeated', 'body /b/c/1/d~0~1 must not be repeated'],
    ],
  ],
  'a malformed body beside other violations': [
    [
      'POST /three/1/json?n=x',
      JSON_LINE,
      '{"a":',
      ['query parameter n must be integer', 'body cannot be read: the body is not JSON: it ends too early'],
    ],
  ],
  'readOnly across allOf and $ref': [
    ['POST /three/1/extended', JSON_LINE, '{"pin":"x","n":1}', []],
    [
      'POST /three/1/extended',
      JSON_LINE,
      '{"id":1}',
      ['body /id must not be there', "body must have required property 'pin'", "body must have required property 'n'"],
    ],
    ['POST /many/1/beside', JSON_LINE, '{"n":1}', []],
    [
      'POST /many/1/beside',
      JSON_LINE,
      '{"id":1}',
      ['body /id must not be there', "body must have required property 'n'"],
    ],
  ],
  'ranges of media types': [
    ['POST /three/1/kinds', type('application/x+json'), '{"a":1}', []],
    ['POST /three/1/kinds', type('application/x+json'), '{"b":1}', ["body must have required property 'a'"]],
    ['POST /three/1/kinds', JSON_LINE, '{"one":1}', []],
    ['POST /three/1/kinds', type('application/json;version=2'), '{"two":1}', []],
    ['POST /three/1/kinds', type('text/plain'), '3', []],
    ['POST /three/1/kinds', type('text/plain'), '2', ['body must be >= 3']],
    ['POST /three/1/any', JSON_LINE, '{"a":1}', []],
    ['POST /three/1/any', type('text/x'), '{"a":1}', ['content type must be one that the schema can be checked with']],
    ['POST /three/1/kinds', type('text/csv'), 'a,b', []],
    ['POST /three/1/any', type('x/x'), '{"a":1}', ['content type must be one that the schema can be checked with']],
    ['POST /three/1/any', '', '{"a":1}', ['content type must be one that the schema can be checked with']],
    ['POST /three/1/any', type('application/json, text/x'), '{}', ['content type must be one type']],
    ['POST /three/1/any', type('text/x') + JSON_LINE, '{}', ['content type must be one type']],
    ['POST /three/1/bytes', type('x/x'), 'bytes', []],
  ],
  'fields of URL-encoded forms': [
    ['POST /three/1/form', FORM_LINE, 'list=1&list=2&pipes=1%7C2&deep[a]=1&json=%7B%22a%22%3A1%7D&more=5', []],
    [
      'POST /three/1/form',
      FORM_LINE,
      'list=x&pipes=1%7Cx&deep[a]=x&json=%7B%22a%22%3A%22x%22%7D&more=x',
      ['list/0', 'pipes/1', 'deep/a', 'json/a', 'more'].map(place => `body /${place} must be integer`),
    ],
    ['POST /three/1/form', FORM_LINE, 'deep[a]=1&deep[a]=2', ['body /deep must not repeat the property "a"']],
    ['POST /two/1/form', FORM_LINE, 'csv=1,2&multi=1&multi=2&e=', []],
    [
      'POST /two/1/form',
      FORM_LINE,
      'csv=1,x&multi=1&multi=x&e=x',
      ['csv/1', 'multi/1', 'e'].map(place => `body /${place} must be integer`),
    ],
  ],
  'fields of multipart forms': [
    [
      'POST /three/1/parts',
      PARTS_LINE,
      parts(
        ...[part('name="n"', '5'), part('name="list"', '1'), part('name="list"', '2')],
        ...[
          partOf('json', 'application/json', '{"a":"\xc3\xbc"}'),
          partOf('file; filename=f', 'image/png', '\xff\x00\x01\x02'),
        ],
      ),
      [],
    ],
    [
      'POST /three/1/parts',
      PARTS_LINE,
      parts(
        ...[part('name="n"', 'x'), part('name="list"', '1'), part('name="list"', 'x')],
        ...[partOf('json', 'application/json', '{}'), partOf('file; filename=f', 'text/css', 'longer')],
      ),
      [
        'body /file must have the content type image/png or image/*',
        'body /n must be integer',
        'body /list/1 must be integer',
        "body /json must have required property 'a'",
        'body /file must NOT have more than 4 characters',
      ],
    ],
    ['POST /three/1/parts', PARTS_LINE, parts(part('name="x"', '1')), ["body must have required property 'n'"]],
    [
      'POST /three/1/parts',
      PARTS_LINE,
      parts(part('name="n"', '1'), partOf('json', 'application/json', '{"a":"\xff"}')),
      ['body /json cannot be read: the body is not UTF-8 at or after byte 0'],
    ],
    [
      'POST /three/1/parts',
      PARTS_LINE,
      parts(part('name="n"', '1'), partOf('json', 'application/json', '{')),
      ['body /json must be JSON'],
    ],
    ['POST /two/1/form', PARTS_LINE, parts(part('name="csv"', '1,2'), part('name="multi"', '1')), []],
    ['POST /two/1/form', PARTS_LINE, parts(part('name="csv"', '1,x')), ['body /csv/1 must be integer']],
  ],
  'paths with any rest': [
    ['PUT /many/1/', '', '', []],
    ['PUT /many/1/a/b/c', '', '', []],
    ['GET /many/1/files/5', '', '', []],
    ['GET /many/1/files/x', '', '', ['path parameter id must be integer']],
    ['POST /many/1/files', type('text/plain'), 'x', []],
    ['POST /many/1/files/a/b', type('text/plain'), 'x', []],
    ['POST /many/1/files/a/b', '', '', ['body is required']],
  ],
  'null, conditions and formats': [
    ['POST /three/1/nullable', JSON_LINE, '{"i":null,"j":null}', []],
    ['POST /three/1/nullable', JSON_LINE, '{"j":{"a":"x"}}', ['body /j/a must be integer']],
    ['POST /three/1/nullable', JSON_LINE, '{"i":{"a":"x"}}', ['body /i/a must be integer']],
    ['POST /two/1/null', JSON_LINE, '{"n":null}', []],
    ['POST /two/1/null', JSON_LINE, '{"n":"x"}', ['body /n must be integer']],
    ['POST /many/1/if', JSON_LINE, '{"kind":"cat","lives":9,"mail":"a@b.example","at":"2024-02-29T10:00:00Z"}', []],
    ['POST /many/1/if', JSON_LINE, '{"kind":"cat"}', ["body must have required property 'lives'"]],
    ['POST /many/1/if', JSON_LINE, '{"kind":"dog"}', ["body must have required property 'bark'"]],
    [
      'POST /many/1/if',
      JSON_LINE,
      '{"bark":1,"mail":"a","at":"2023-02-29T10:00:00Z"}',
      ['body /mail must match format "email"', 'body /at must match format "date-time"'],
    ],
  ],
}

for (const [subject, rows] of Object.entries(REQUESTS)) {
  test(`${subject}: a request is refused with every violation, or passes`, async t => {
    // Failures of a backend pass.
    const { ask, backend } = await start(t, [404, ''])
    for (const [request, lines, body, violations] of rows) {
      const before = backend.received.length
      const response = await ask(request, lines, Buffer.from(body, body.includes('\xff') ? 'latin1' : 'utf8'))
      const what = `${request} ${lines} ${body} ${response.body}`
      assert.deepEqual(
        [response.status, backend.received.length - before],
        violations.length === 0 ? [404, 1] : [400, 0],
        what,
      )
      if (violations.length > 0) assert.deepEqual([...violationsIn(response.body)].sort(), [...violations].sort(), what)
    }
  })
}

test('a malformed body alone has the code of malformed bodies', async t => {
  const { ask } = await start(t)
  assert.match((await ask('POST /three/1/json', JSON_LINE, '{"a":')).body, /"code":102520/)
})

const CHUNKED = 'Transfer-Encoding: chunked\r\n'
const chunked = (text: string): string => `${[...text].map(each => `1\r\n${each}\r\n`).join('')}0\r\n\r\n`

test('bodies in chunks and in gzip are checked as others are, and reach the backend as they came', async t => {
  const { ask, backend } = await start(t)
  const gzip = gzipSync('{"a":"x"}')
  for (const [lines, body] of [
    [CHUNKED, chunked('{"a":"x"}')],
    ['Content-Encoding: gzip\r\n', gzip],
  ] as const) {
    const response = await ask('POST /three/1/json', JSON_LINE + lines, body)
    assert.deepEqual(violationsIn(response.body), ['body /a must be integer'], lines)
  }
  assert.equal(
    (await ask('POST /three/1/json', `${JSON_LINE}Content-Encoding: gzip\r\n`, gzipSync('{"a":1}'))).status,
    200,
  )
  assert.deepEqual(
    backend.received.map(({ body }) => Buffer.from(body, 'latin1')),
    [gzipSync('{"a":1}')],
  )
})

const COUNT = 'X-Count: 5\r\n'

/** [request, status, body, lines of the backend, violations]. */
const RESPONSES: readonly (readonly [string, number, string, string, readonly string[]])[] = [
  ['GET /three/1/answers', 200, '{}', `${COUNT}X-List: 1, 2\r\n`, []],
  ['GET /three/1/answers', 200, '{}', '', ['header X-Count is required']],
  [
    'GET /three/1/answers',
    200,
    '[]',
    'X-Count: 10\r\nX-List: 1\r\nX-List: x\r\n',
    ['header X-Count must be <= 9', 'header X-List /1 must be integer', 'body must be object'],
  ],
  [
    'GET /three/1/answers',
    200,
    'text',
    `${COUNT}Content-Type: text/plain\r\n`,
    ['content type must be one of application/json'],
  ],
  ['GET /three/1/answers', 404, '{"e":1}', '', []],
  ['GET /three/1/answers', 404, '{}', '', ["body must have required property 'e'"]],
  ['GET /three/1/answers', 503, '{"d":1}', '', []],
  ['GET /three/1/answers', 503, '{}', '', ["body must have required property 'd'"]],
  ['GET /three/1/answers', 204, '', COUNT, []],
  ['GET /three/1/answers', 204, '', '', ['header X-Count is required']],
  ['GET /three/1/answers', 304, '', '', []],
  ['HEAD /three/1/answers', 200, '', '', []],
  ['POST /three/1/extended', 200, '{"id":1,"n":1}', '', []],
  [
    'POST /three/1/extended',
    200,
    '{"pin":"x","n":1}',
    '',
    ['body /pin must not be there', "body must have required property 'id'"],
  ],
  ['POST /two/1/null', 200, '', 'X-N: 1|x\r\n', ['header X-N /1 must be integer']],
  ['GET /named/1/events/5', 200, '[]', '', []],
  ['GET /named/1/a/5', 200, '[]', '', ['body must be object']],
  ['GET /three/1/events/5', 200, 'text', 'Content-Type: text/plain\r\n', []],
]

for (const [request, status, body, lines, violations] of RESPONSES) {
  const what = `${status} ${body || 'without a body'} ${lines.replaceAll('\r\n', ' ')}to ${request}`
  test(`a response ${what} ${violations.length === 0 ? 'passes' : 'is 500'}`, async t => {
    const { ask } = await start(t, [status, body, lines])
    const sent = request.startsWith('POST /three') ? '{"pin":"x","n":1}' : ''
    const response = await ask(request, sent === '' ? '' : JSON_LINE, sent)
    if (violations.length === 0) return assert.deepEqual([response.status, response.body], [status, body])
    assert.equal(response.status, 500, response.body)
    assert.deepEqual([...violationsIn(response.body)].sort(), [...violations].sort())
  })
}

test('responses in gzip and in chunks are checked as others are', async t => {
  const gzip = await start(t, [200, gzipSync('[]').toString('latin1'), `${COUNT}Content-Encoding: gzip\r\n`])
  assert.deepEqual(violationsIn((await gzip.ask('GET /three/1/answers', '', '')).body), ['body must be object'])
  const inChunks = await start(t, (_, peer) => {
    peer.send(`HTTP/1.1 200 OK\r\n${JSON_LINE}${COUNT}${CHUNKED}\r\n${chunked('[1]')}`)
    return null
  })
  assert.deepEqual(violationsIn((await inChunks.ask('GET /three/1/answers', '', '')).body), ['body must be object'])
})

test('more violations than an answer holds are counted', async t => {
  const { ask } = await start(t)
  const query = (count: number): string =>
    `{"a":"x",${Array.from({ length: count }, (_, at) => `"${at}":1,"${at}":1`).join()}}`
  const all = violationsIn((await ask('POST /three/1/json', JSON_LINE, query(300))).body)
  assert.equal(all.length, 301)
  const some = violationsIn((await ask('POST /three/1/json', JSON_LINE, query(900))).body)
  assert.equal(some.at(-1), `and ${901 - (some.length - 1)} more`)
})
