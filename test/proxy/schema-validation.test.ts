/** Requests and responses against the OpenAPI document of their API, with real sockets and worker threads. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { loadProjects, mediationsOf } from '../harness/contracts.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { startBackend } from '../harness/sequence-calls.ts'
import { sharedBySuite } from '../harness/suite.ts'

const ASKS = '  enableSchemaValidation: true\n'

const V3 = `openapi: 3.0.3
info: {title: three, version: "1"}
paths:
  /pets:
    get:
      parameters:
        - {name: limit, in: query, schema: {type: integer, minimum: 1, maximum: 100}}
        - {name: tags, in: query, schema: {type: array, items: {type: string, maxLength: 3}}}
        - {name: ids, in: query, explode: false, schema: {type: array, items: {type: integer}, uniqueItems: true}}
        - {name: pipes, in: query, style: pipeDelimited, schema: {type: array, maxItems: 2, items: {type: string}}}
        - {name: filter, in: query, style: deepObject, schema: {type: object, properties: {age: {type: integer}}}}
        - {name: where, in: query, content: {application/json: {schema: {type: object, required: [x]}}}}
        - {name: X-Kind, in: header, required: true, schema: {type: string, enum: [cat, dog]}}
      responses:
        "200":
          description: ok
          content: {application/json: {schema: {type: array, items: {$ref: "#/components/schemas/Pet"}}}}
    post:
      requestBody:
        required: true
        content:
          application/json: {schema: {$ref: "#/components/schemas/Pet"}}
          application/x-www-form-urlencoded: {schema: {type: object, required: [n], properties: {n: {type: integer}}}}
          application/octet-stream: {}
      responses:
        "201": {description: made, content: {application/json: {schema: {$ref: "#/components/schemas/Pet"}}}}
  /pets/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: integer, format: int32}}]
    get: {responses: {default: {description: any}}}
    put:
      requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/Choice"}}}}
      responses: {default: {description: any}}
  /pets/mine:
    get: {responses: {default: {description: any}}}
  /dates/{from}..{to}:
    get:
      parameters:
        - {name: from, in: path, required: true, schema: {type: string, format: date}}
        - {name: to, in: path, required: true, schema: {type: string, format: date}}
      responses: {default: {description: any}}
components:
  schemas:
    Pet:
      type: object
      required: [id, name]
      additionalProperties: false
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string, minLength: 1, pattern: "^[a-z]+$"}
        secret: {type: string, writeOnly: true}
        owner: {type: string, nullable: true}
        age: {type: number, minimum: 0, exclusiveMinimum: true}
        children: {type: array, items: {$ref: "#/components/schemas/Pet"}}
    Choice:
      oneOf: [{$ref: "#/components/schemas/Cat"}, {$ref: "#/components/schemas/Dog"}]
      discriminator: {propertyName: kind, mapping: {cat: "#/components/schemas/Cat"}}
    Cat: {type: object, required: [kind, lives], properties: {kind: {type: string}, lives: {type: integer}}}
    Dog: {type: object, required: [kind], properties: {kind: {type: string}, bark: {type: boolean}}}
`

const V2 = `swagger: "2.0"
info: {title: two, version: "1"}
consumes: [application/json]
produces: [application/json]
paths:
  /items/{id}:
    post:
      parameters:
        - {name: id, in: path, required: true, type: string, pattern: "^i"}
        - {name: sizes, in: query, type: array, items: {type: integer}, collectionFormat: ssv}
        - {name: body, in: body, required: true, schema: {$ref: "#/definitions/Animal"}}
      responses: {"200": {description: ok, schema: {type: object, required: [done]}}}
  /form:
    post:
      consumes: [application/x-www-form-urlencoded]
      parameters:
        - {name: count, in: formData, required: true, type: integer}
      responses: {"200": {description: ok}}
definitions:
  Animal: {type: object, discriminator: kind, required: [kind], properties: {kind: {type: string}}}
  Bird: {allOf: [{$ref: "#/definitions/Animal"}, {type: object, required: [wings], properties: {wings: {type: integer}}}]}
`

const V31 = `openapi: 3.1.0
info: {title: thirty-one, version: "1"}
paths:
  /a:
    post:
      requestBody:
        content:
          application/*+json: {schema: {$ref: "#/components/schemas/Node"}}
          application/json: {schema: {$ref: "#/components/schemas/Node"}}
      responses: {"2XX": {description: ok}}
  /trees:
    post:
      requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/Tree"}}}}
      responses: {"2XX": {description: ok}}
  /lists:
    post:
      requestBody: {content: {application/json: {schema: {allOf: [${Array(400).fill('{uniqueItems: true}').join()}]}}}}
      responses: {"2XX": {description: ok}}
components:
  schemas:
    Node:
      type: [object, "null"]
      properties:
        next: {$ref: "#/components/schemas/Node"}
        pair: {type: array, prefixItems: [{type: string}, {const: 2}], items: false}
      patternProperties: {"^x-": {type: integer, exclusiveMinimum: 3}}
      unevaluatedProperties: false
    Tree: {properties: {of: {anyOf: [{$ref: "#/components/schemas/Tree"}, {$ref: "#/components/schemas/Leaf"}]}, n: {type: integer}}}
    Leaf: {required: [of], properties: {of: {anyOf: [{$ref: "#/components/schemas/Tree"}, {$ref: "#/components/schemas/Leaf"}]}}}
`

const KIND = 'X-Kind: cat\r\n'
const JSON_LINE = 'Content-Type: application/json\r\n'
const FORM_LINE = 'Content-Type: application/x-www-form-urlencoded\r\n'

/** [request line without version, lines, body, violations in order; none: the backend gets the request]. */
const REQUESTS: readonly (readonly [string, string, string, readonly string[]])[] = [
  ['GET /three/1/pets?limit=5&tags=a&tags=b&ids=1,2&unknown=1', KIND, '', []],
  ['GET /three/1/pets', '', '', ['header parameter X-Kind is required']],
  [
    'GET /three/1/pets?limit=x&tags=long1&ids=1,1&pipes=a%7Cb%7Cc&filter[age]=old&where={}',
    'X-Kind: cow\r\n',
    '',
    [
      'query parameter limit must be integer',
      'query parameter tags /0 must NOT have more than 3 characters',
      'query parameter ids must not have equal items',
      'query parameter pipes must NOT have more than 2 items',
      'query parameter filter /age must be integer',
      "query parameter where must have required property 'x'",
      'header parameter X-Kind must be one of "cat", "dog"',
    ],
  ],
  ['GET /three/1/pets?limit=0x10', KIND, '', ['query parameter limit must be integer']],
  ['GET /three/1/pets?limit=1&limit=2', KIND, '', ['query parameter limit must not be repeated']],
  ['GET /three/1/pets?limit=%zz', KIND, '', ['query parameter limit must have well-formed percent-escapes']],
  ['GET /three/1/pets?where=%7B%22x%22%3A1%7D&filter[age]=3', KIND, '', []],
  ['GET /three/1/pets/7', '', '', []],
  ['GET /three/1/pets/mine', '', '', []],
  ['GET /three/1/pets/3000000000', '', '', ['path parameter id must match format "int32"']],
  ['GET /three/1/dates/2024-02-29..2023-02-29', '', '', ['path parameter to must match format "date"']],
  ['POST /three/1/pets', JSON_LINE, '', ['body is required']],
  ['POST /three/1/pets', JSON_LINE, '{"name":"ada","owner":null,"age":1,"children":[{"name":"bob"}]}', []],
  [
    'POST /three/1/pets',
    JSON_LINE,
    '{"id":1,"name":"Ada","age":0,"more":1,"children":[{"name":5}]}',
    [
      'body must NOT have additional properties: "more"',
      'body /id must not be there',
      'body /name must match pattern "^[a-z]+$"',
      'body /age must be > 0',
      'body /children/0/name must be string',
    ],
  ],
  ['POST /three/1/pets', 'Content-Type: text/css\r\n', 'x', ['content type must be one of application/json']],
  ['POST /three/1/pets', FORM_LINE, 'n=5', []],
  ['POST /three/1/pets', FORM_LINE, 'n=five', ['body /n must be integer']],
  ['POST /three/1/pets', 'Content-Type: application/octet-stream\r\n', 'anything', []],
  ['PUT /three/1/pets/1', JSON_LINE, '{"kind":"cat","lives":9}', []],
  ['PUT /three/1/pets/1', JSON_LINE, '{"kind":"Dog","bark":true}', []],
  ['PUT /three/1/pets/1', JSON_LINE, '{"kind":"cat"}', ["body must have required property 'lives'"]],
  ['PUT /three/1/pets/1', JSON_LINE, '{"kind":"cow"}', ['body /kind must be one of "cat", "Dog"']],
  ['PUT /three/1/pets/1', '', '', []],
  ['POST /two/1/items/i1?sizes=1%202', JSON_LINE, '{"kind":"Bird","wings":2}', []],
  [
    'POST /two/1/items/x?sizes=1%20b',
    JSON_LINE,
    '{"kind":"Bird"}',
    [
      'path parameter id must match pattern "^i"',
      'query parameter sizes /1 must be integer',
      "body must have required property 'wings'",
    ],
  ],
  ['POST /two/1/form', FORM_LINE, 'count=1', []],
  ['POST /two/1/form', FORM_LINE, 'count=x', ['body /count must be integer']],
  ['POST /two/1/form', FORM_LINE, 'other=x', ["body must have required property 'count'"]],
  ['POST /many/1/a', JSON_LINE, '{"next":{"next":null},"pair":["a",2],"x-a":4}', []],
  [
    'POST /many/1/a',
    JSON_LINE,
    '{"next":{"next":5},"pair":["a",3,4],"x-a":3,"y":1}',
    [
      'body /next/next must be object,null',
      'body /pair/1 must be 2',
      'body /pair must NOT have more than 2 items',
      'body /x-a must be > 3',
      'body must NOT have unevaluated properties: "y"',
    ],
  ],
]

/** What the backend answers. */
let answer: readonly [number, string, string?] = [200, '[]']

const shared = sharedBySuite(async owner => {
  const apis = await loadProjects(owner, {
    '/three': [ASKS, { 'Definitions/swagger.yaml': V3 }],
    '/two': [ASKS, { 'Definitions/swagger.yaml': V2 }],
    '/many': [ASKS, { 'Definitions/swagger.yaml': V31 }],
    '/open': [`${ASKS}  operations: [{target: "/*", verb: "*"}]\n`, { 'Definitions/swagger.yaml': V31 }],
  })
  assert.deepEqual(
    apis.said.filter(line => !line.includes('/open/')),
    [],
  )
  const paths = ['/pets', '/pets/1', '/pets/7', '/pets/mine', '/items/i1', '/form', '/a', '/trees', '/lists']
  const backend = await startBackend(owner, Object.fromEntries(paths.map(path => [path, () => answer])))
  const plans = [...mediationsOf(apis)].map(([context, overrides]) => {
    return { context: `${context}/1`, port: backend.port, overrides }
  })
  const gateway = await startGateway(plans)
  owner.after(() => gateway.stop())
  return { backend, gateway }
})

async function start(t: TestContext, given: typeof answer = [200, '[]']) {
  const { backend, gateway } = await shared
  answer = given
  backend.received.length = 0
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  const ask = async (request: string, lines: string, body: string) => {
    const length = body === '' ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`
    client.send(`${request} HTTP/1.1\r\nHost: h\r\n${lines}${length}\r\n${body}`)
    return takeResponse(client)
  }
  return { ask, backend, gateway }
}

/** The violations of a fault body. */
function told(body: string): readonly string[] {
  const { description } = (JSON.parse(body) as { fault: { description: string } }).fault
  return description.slice(description.indexOf(': ') + 2).split('; ')
}

test('every violation of a request is reported with place and rule; a valid request reaches the backend', async t => {
  const { ask, backend } = await start(t, [404, ''])
  for (const [request, lines, body, violations] of REQUESTS) {
    const before = backend.received.length
    const response = await ask(request, lines, body)
    const passed = backend.received.length - before
    if (violations.length === 0) assert.deepEqual([response.status, passed], [404, 1], `${request} ${response.body}`)
    else {
      assert.deepEqual([response.status, passed], [400, 0], request)
      assert.match(response.body, /"code":102560/)
      const found = told(response.body)
      assert.equal(found.length, violations.length, `${request} ${response.body}`)
      const missing = violations.filter(violation => !found.some(each => each.startsWith(violation)))
      assert.deepEqual(missing, [], `${request} ${response.body}`)
    }
  }
})

test('D926: a body for whose alternatives a check would take 2^depth steps is 400 with its violations', async t => {
  const { ask, backend } = await start(t)
  const { status, body } = await ask(
    'POST /many/1/trees',
    JSON_LINE,
    `${'{"of":'.repeat(40)}{"n":"x"}${'}'.repeat(40)}`,
  )
  assert.equal(status, 400, body)
  assert.match(body, /"code":102560.*\/of\/n must be integer/)
  assert.equal(backend.received.length, 0)
})

test('D880: a body whose check takes too long is 504 with 102542, and others are served meanwhile', async t => {
  const { ask, backend, gateway } = await start(t)
  const attacker = await connectPeer(gateway.port)
  t.after(() => attacker.destroy())
  const list = JSON.stringify(Array.from({ length: 100_000 }, (_, at) => [at]))
  attacker.send(`POST /many/1/lists HTTP/1.1\r\nHost: h\r\n${JSON_LINE}Content-Length: ${list.length}\r\n\r\n${list}`)
  const refused = takeResponse(attacker)
  for (let count = 0; count < 20; count++) {
    assert.equal((await ask('POST /many/1/trees', JSON_LINE, '{"of":{"of":{"n":1}}}')).status, 200)
  }
  const { status, body } = await refused
  assert.equal(status, 504, body)
  assert.match(body, /"code":102542/)
  assert.equal(backend.received.length, 20)
})

test('a path or method that the document lacks is refused, although an operation of the API has it', async t => {
  const { ask, backend } = await start(t)
  for (const request of ['POST /open/1/a/', 'POST /open/1/b', 'GET /open/1/a']) {
    const response = await ask(request, '', '')
    assert.equal(response.status, 400, request)
    assert.deepEqual(told(response.body), ['request must be an operation of the OpenAPI document'])
  }
  assert.equal((await ask('POST /open/1/a', JSON_LINE, '{}')).status, 200)
  assert.equal(backend.received.length, 1)
})

/** [request line, status and body of the backend, violations]. */
const RESPONSES: readonly (readonly [string, number, string, readonly string[]])[] = [
  ['GET /three/1/pets', 200, '[{"id":1,"name":"ada"}]', []],
  [
    'GET /three/1/pets',
    200,
    '[{"name":"ada","secret":"x"}]',
    ["body /0 must have required property 'id'", 'body /0/secret must not be there'],
  ],
  ['GET /three/1/pets', 202, '[]', ['status must be one of 200']],
  ['GET /three/1/pets', 503, 'down', []],
  ['GET /three/1/pets', 200, '', ['body is required']],
  ['GET /three/1/pets/7', 418, 'anything', []],
]

for (const [request, status, body, violations] of RESPONSES) {
  test(`a response ${status} ${body} to ${request} ${violations.length === 0 ? 'passes' : 'is 500'}`, async t => {
    const { ask } = await start(t, [status, body])
    const response = await ask(request, KIND, '')
    if (violations.length === 0) assert.deepEqual([response.status, response.body], [status, body])
    else {
      assert.equal(response.status, 500, response.body)
      assert.match(response.body, /"code":102561/)
      assert.deepEqual(told(response.body), violations)
    }
  })
}

test('tens of thousands of violations cost one bounded answer, which shows no long text of the client', async t => {
  const { ask } = await start(t)
  const children = Array.from({ length: 20_000 }, (_, at) => ({ name: at, [`x${at}`]: 1 }))
  const response = await ask(
    'POST /three/1/pets',
    JSON_LINE,
    JSON.stringify({ name: 'a', children, ['k'.repeat(900)]: 1 }),
  )
  assert.equal(response.status, 400)
  assert.ok(response.body.length < 20_000, String(response.body.length))
  assert.match(response.body, /and at least \d+ more/)
  assert.doesNotMatch(response.body, /k{100}/)
})
