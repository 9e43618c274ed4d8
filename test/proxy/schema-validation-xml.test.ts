/** XML bodies against OpenAPI documents (OpenAPI 3.1.1 4.8.26), with real sockets. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { validatedGateway, violationsIn } from '../harness/validated-gateway.ts'

const SCHEMAS = (at: string): string => `
    Pet:
      type: object
      required: [id, name]
      additionalProperties: false
      xml: {name: pet}
      properties:
        id: {type: integer, xml: {attribute: true}}
        name: {type: string, minLength: 2, xml: {name: call}}
        alive: {type: boolean}
        weight: {type: number, maximum: 9}
        secret: {type: string, readOnly: true, xml: {name: hidden}}
        tags: {type: array, maxItems: 2, xml: {wrapped: true}, items: {$ref: "#/${at}/Tag"}}
        photos: {type: array, items: {type: string, minLength: 2, xml: {name: photo}}}
        marks: {type: array, xml: {name: aliens, wrapped: true}, items: {type: integer}}
        codes: {type: array, items: {type: integer}}
        kin: {type: array, items: {$ref: "#/${at}/Pet"}, xml: {wrapped: true}}
    Tag: {type: object, xml: {name: tag}, properties: {n: {type: integer}}, additionalProperties: {type: integer}}
    Spaced:
      type: object
      xml: {namespace: "urn:a", prefix: a}
      properties:
        one: {type: integer, xml: {namespace: "urn:a"}}
        other: {type: string, xml: {name: one, namespace: "urn:b", prefix: b}}
        mark: {type: integer, xml: {attribute: true, namespace: "urn:b"}}
    Open: {type: object, properties: {a: {type: integer}}}
    Cat: {type: object, required: [lives], properties: {kind: {type: string}, lives: {type: integer}}, xml: {name: cat}}
    Dog: {type: object, properties: {kind: {type: string}, lives: {type: string}}, xml: {name: dog}}
`

const body = (schema: string): string => `
    post:
      requestBody: {required: true, content: {application/xml: {schema: ${schema}}}}
      responses: {default: {description: any}}`
const OPEN = '{$ref: "#/components/schemas/Open"}'
const CAT_OR_DOG = '[{$ref: "#/components/schemas/Cat"}, {$ref: "#/components/schemas/Dog"}]'
const KINDS = `{oneOf: ${CAT_OR_DOG}, discriminator: {propertyName: kind}}`
const ref = (name: string): string => body(`{$ref: "#/components/schemas/${name}"}`)

const PATHS = `paths:
  /pet:${ref('Pet')}
  /spaced:${ref('Spaced')}
  /open:${ref('Open')}
  /pets:${body('{type: array, minItems: 1, xml: {name: pets}, items: {$ref: "#/components/schemas/Pet"}}')}
  /kinds:${body(KINDS)}
  /keeper:${body(`{type: object, properties: {of: ${KINDS}}}`)}
  /number:${body('{type: integer, maximum: 5}')}
  /text:${body('{type: string, maxLength: 20}')}
  /none:
    post:
      requestBody: {content: {application/xml: {}}}
      responses: {default: {description: any}}
  /types:
    post:
      parameters: [{name: n, in: query, schema: {type: integer}}]
      requestBody:
        content:
          text/xml: {schema: {$ref: "#/components/schemas/Open"}}
          application/*+xml: {schema: {$ref: "#/components/schemas/Open"}}
          "*/*": {schema: {$ref: "#/components/schemas/Open"}}
      responses: {"200": {description: ok, content: {application/xml: {schema: {$ref: "#/components/schemas/Open"}}}}}
`
const V30 = `openapi: 3.0.3
info: {title: three, version: "1"}
${PATHS}
  /nullable:${body(`{properties: {a: {type: integer, nullable: true}, b: {nullable: true, allOf: [${OPEN}]}}}`)}
components:
  schemas:${SCHEMAS('components/schemas')}`
const V31 = `openapi: 3.1.0
info: {title: one, version: "1"}
${PATHS}
  /nullable:${body(`{properties: {a: {type: [integer, "null"]}, b: {anyOf: [{type: "null"}, ${OPEN}]}}}`)}
components:
  schemas:${SCHEMAS('components/schemas')}`
const V20 = `swagger: "2.0"
info: {title: two, version: "1"}
consumes: [application/xml]
produces: [application/xml]
paths:
  /pet:
    post:
      parameters: [{name: b, in: body, required: true, schema: {$ref: "#/definitions/Pet"}}]
      responses: {"200": {description: ok, schema: {$ref: "#/definitions/Open"}}}
definitions:${SCHEMAS('definitions').replaceAll('\n    ', '\n  ')}`

const start = validatedGateway({ '/three': V30, '/one': V31, '/two': V20 })

type Row = readonly [path: string, body: string, violations: readonly string[]]

/** Rows of every version of OpenAPI: the path `/pet` alone. */
const PETS: readonly Row[] = [
  ['/pet', '<pet id="1"><call>Rex</call></pet>', []],
  ['/pet', '<?xml version="1.0"?>\n<!-- c --><p:pet xmlns:p="urn:x" id=" 1 "><p:call>Rex</p:call></p:pet>', []],
  [
    '/pet',
    `<pet id="1" xml:lang="en" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="a b">
      <call><![CDATA[Re]]>x</call><alive> true </alive><weight>8.5</weight><tags><tag><n>1</n><m>2</m></tag><tag/></tags>
      <photo>aa</photo><codes>1</codes><photo>bb</photo><codes>2</codes><aliens><aliens>1</aliens></aliens>
      <kin><pet id="2"><call>Max</call></pet></kin></pet>`,
    [],
  ],
  ['/pet', '<cat id="1"><call>Rex</call></cat>', ['body /cat must be named pet']],
  [
    '/pet',
    '<pet id="x"><call>R</call><weight>10</weight></pet>',
    [
      'body /pet/@id must be integer',
      'body /pet/call must NOT have fewer than 2 characters',
      'body /pet/weight must be <= 9',
    ],
  ],
  [
    '/pet',
    '<pet><id>1</id><name>Rex</name></pet>',
    [
      "body /pet must have required property 'id'",
      "body /pet must have required property 'name'",
      'body /pet must NOT have additional properties: "<id>"',
      'body /pet must NOT have additional properties: "<name>"',
    ],
  ],
  [
    '/pet',
    '<pet id="1" more="1"><call>Rex</call><other/></pet>',
    [
      'body /pet must NOT have additional properties: "@more"',
      'body /pet must NOT have additional properties: "other"',
    ],
  ],
  ['/pet', '<pet id="1"><call>Rex</call><hidden>x</hidden></pet>', ['body /pet/hidden must not be there']],
  [
    '/pet',
    '<pet id="1"><call>Rex</call><call>Max</call>text</pet>',
    ['body /pet must not have text of its own', 'body /pet/call must not be repeated'],
  ],
  [
    '/pet',
    '<pet id="1"><call>Rex</call><photo>aa</photo><photo>b</photo><codes>1</codes><codes>x</codes></pet>',
    ['body /pet/photo[2] must NOT have fewer than 2 characters', 'body /pet/codes[2] must be integer'],
  ],
  [
    '/pet',
    '<pet id="1"><call>Rex</call><tags><tag><n>x</n><m>y</m></tag><tag/><tag/><n/></tags></pet>',
    [
      'body /pet/tags/n must be named tag',
      'body /pet/tags must NOT have more than 2 items',
      'body /pet/tags/tag[1]/n must be integer',
      'body /pet/tags/tag[1]/m must be integer',
    ],
  ],
  [
    '/pet',
    '<pet id="1"><call>Rex</call><kin><pet id="2"><call>Max</call><kin><pet id="y"><call>Moe</call></pet></kin></pet></kin></pet>',
    ['body /pet/kin/pet[1]/kin/pet[1]/@id must be integer'],
  ],
  ['/pet', '<pet id="1"><call><b/></call></pet>', ['body /pet/call must be string']],
  [
    '/pet',
    '<pet id="1"><call>Rex</call><aliens><alien>1</alien></aliens></pet>',
    ['body /pet/aliens/alien must be named aliens'],
  ],
]

/** Rows of OpenAPI 3.0 and 3.1. */
const OTHERS: readonly Row[] = [
  ['/pets', '<pets><pet id="1"><call>Rex</call></pet></pets>', []],
  ['/pets', '<pets/>', ['body /pets must NOT have fewer than 1 items']],
  [
    '/pets',
    '<pets><pet id="1"/><cat/></pets>',
    ['body /pets/cat must be named pet', "body /pets/pet[1] must have required property 'name'"],
  ],
  ['/spaced', '<x xmlns="urn:a" xmlns:b="urn:b" b:mark="1"><one>1</one><b:one>x</b:one></x>', []],
  ['/spaced', '<q:x xmlns:q="urn:a"><q:one>x</q:one></q:x>', ['body /x/one must be integer']],
  [
    '/spaced',
    '<x mark="1"><one xmlns="urn:c">1</one></x>',
    [
      'body /x must be in the namespace urn:a',
      'body /x/@mark must be in the namespace urn:b',
      'body /x/one must be in the namespace urn:a',
    ],
  ],
  ['/open', '<any><a>1</a><b/><b/><c><d>x</d></c></any>', []],
  ['/open', '<any><a>1</a><__proto__>1</__proto__><constructor/></any>', []],
  ['/open', '<any><a>x</a></any>', ['body /any/a must be integer']],
  ['/kinds', '<cat><kind>Cat</kind><lives>9</lives></cat>', []],
  ['/kinds', '<dog><kind>Dog</kind><lives>x</lives></dog>', []],
  ['/kinds', '<cat><kind>Cat</kind><lives>x</lives></cat>', ['body /cat/lives must be integer']],
  ['/kinds', '<cow><kind>Dog</kind></cow>', ['body /cow must be named cat or dog']],
  ['/keeper', '<r><cat><kind>Cat</kind></cat></r>', ["body /r/cat must have required property 'lives'"]],
  ['/number', '<n> 5 </n>', []],
  ['/number', '<n>6</n>', ['body /n must be <= 5']],
  ['/text', '<a><b>text</b></a>', []],
  ['/text', '<a><b>a longer text</b></a>', ['body must NOT have more than 20 characters']],
  ['/none', '<a', []],
  ['/nullable', '<r xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><a i:nil="true"/><b i:nil="1"/></r>', []],
  ['/nullable', '<r><a/><b><a>1</a></b></r>', []],
]

const CASES: readonly (readonly [version: string, rows: readonly Row[]])[] = [
  ['/two/1', PETS],
  ['/three/1', [...PETS, ...OTHERS]],
  ['/one/1', [...PETS, ...OTHERS]],
]

for (const [version, rows] of CASES) {
  for (const [path, text, violations] of rows) {
    test(`POST ${version}${path} with ${text} ${violations.length === 0 ? 'passes' : 'is 400'}`, async t => {
      // Failures of a backend pass where the document says nothing about them.
      const { ask, backend } = await start(t, [404, ''])
      const { status, body: answer } = await ask(`POST ${version}${path}`, 'Content-Type: application/xml\r\n', text)
      assert.deepEqual([status, backend.received.length], violations.length === 0 ? [404, 1] : [400, 0], answer)
      if (violations.length > 0) assert.deepEqual([...violationsIn(answer)].sort(), [...violations].sort())
    })
  }
}

for (const type of ['text/xml', 'application/soap+xml', 'application/vnd.own+xml', 'application/xml']) {
  test(`a body of type ${type} is checked by the range that holds it`, async t => {
    const { ask } = await start(t, [404, ''])
    const send = (text: string) => ask('POST /three/1/types', `Content-Type: ${type}\r\n`, text)
    assert.equal((await send('<r><a>1</a></r>')).status, 404)
    // Faults of SOAP 1.2 are XML.
    assert.match((await send('<r><a>x</a></r>')).body, /: body \/r\/a must be integer["<]/)
  })
}

/** [body, description of the fault]. */
const UNREADABLE: readonly (readonly [body: string, description: RegExp])[] = [
  ['<pet>\n<call>', /"code":102520.*the body is not XML: .* at line 2, column \d+/],
  ['<!DOCTYPE a [<!ENTITY b "c">]><pet>&b;</pet>', /"code":102520.*a document type is not allowed at line 1/],
  [`${'<a>'.repeat(300)}${'</a>'.repeat(300)}`, /"code":102521.*more than 200 levels/],
]

for (const [text, description] of UNREADABLE) {
  test(`a body that cannot be read is told with its line: ${text.slice(0, 50)}`, async t => {
    const { ask, backend } = await start(t)
    const line = 'Content-Type: application/xml\r\n'
    assert.match((await ask('POST /three/1/pet', line, text)).body, description)
    const [, beside] = violationsIn((await ask('POST /three/1/types?n=x', line, text)).body)
    assert.match(beside!, /^body cannot be read: .* at line \d/)
    assert.equal(backend.received.length, 0)
  })
}

test('a response in XML that breaks its schema is 500 with the places', async t => {
  const { ask } = await start(t, [200, '<r><a>x</a></r>', 'Content-Type: application/xml\r\n'])
  for (const [path, sent] of [
    ['/two/1/pet', '<pet id="1"><call>Rex</call></pet>'],
    ['/three/1/types', '<r/>'],
  ] as const) {
    const { status, body: answer } = await ask(`POST ${path}`, 'Content-Type: application/xml\r\n', sent)
    assert.equal(status, 500)
    assert.deepEqual(violationsIn(answer), ['body /r/a must be integer'])
  }
})

test('the check of a body with many elements, names and namespaces ends, with its violations counted', async t => {
  const { ask } = await start(t)
  const send = (text: string) => ask('POST /three/1/pet', 'Content-Type: application/xml\r\n', text)
  const many = Array.from({ length: 50_000 }, (_, at) => `<x${at} xmlns:p${at}="urn:${at}"/>`).join('')
  const said = violationsIn((await send(`<pet id="1"><call>Rex</call>${many}</pet>`)).body)
  assert.match(said.at(-1)!, /^and at least \d+ more$/)
  const repeated = `<pet id="1"><call>Rex</call>${'<codes>x</codes>'.repeat(100_000)}</pet>`
  assert.match(violationsIn((await send(repeated)).body).at(-1)!, /^and at least \d+ more$/)
})
