/** Documents that validate messages: which projects they refuse, and what `check` says. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mediationSummaries } from '../../src/apis/project-mediation.ts'
import { loadProjects, mediationsOf } from '../harness/contracts.ts'

const ASKS = '  enableSchemaValidation: true\n'
const DOCUMENT = (schema: string, more = '') => `openapi: ${more === '' ? '3.0.3' : more}
info: {title: t, version: "1"}
paths:
  /x:
    get:
      parameters:
        - {name: q, in: query, schema: ${schema}}
      responses: {"200": {description: ok}}
  /events:
    get:
      responses: {"200": {description: ok, content: {text/event-stream: {}}}}
`

function propertiesTo(count: number): string {
  return Array.from({ length: count }, (_, at) => `p${at}: {type: string}`).join()
}

/** [lines of api.yaml, document; '' for none, errors and warnings]. */
const SAID: readonly (readonly [string, string, readonly RegExp[]])[] = [
  [ASKS, DOCUMENT('{type: string}'), []],
  ['  enableSchemaValidation: "False"\n', DOCUMENT('{type: string, pattern: "(?=a)"}'), []],
  [ASKS, DOCUMENT('{type: string, pattern: "(?=a)"}'), [/swagger\.yaml:7: .*pattern.*linear time.*lookarounds/]],
  [ASKS, DOCUMENT('{type: string, minLength: -1}'), [/swagger\.yaml:7: .*minLength/]],
  [ASKS, DOCUMENT('{$dynamicRef: "#a"}', '3.1.0'), [/swagger\.yaml:7: .*dynamicRef: is not supported.*use \$ref/]],
  [ASKS, DOCUMENT('{type: strong}', '3.1.0'), [/swagger\.yaml:7: /]],
  [ASKS, DOCUMENT(`{properties: {${propertiesTo(9990)}}}`), []],
  [
    ASKS,
    DOCUMENT(`{properties: {${propertiesTo(10_001)}}}`),
    [/swagger\.yaml:7: .*cannot be compiled: it holds more than 10000 schemas \(name some of them, and refer/],
  ],
  [
    `${ASKS}  operations: [{target: /x, verb: GET}]\n`,
    '',
    [/api\.yaml:\d+: data\.enableSchemaValidation = .*no OpenAPI document.*add Definitions/],
  ],
  [
    `${ASKS}  operations: [{target: /x, verb: GET}, {target: /z, verb: GET}]\n`,
    DOCUMENT('{type: string}'),
    [
      /GET \/events: not among/,
      /GET \/z: not in the document \(they are deployed/,
      /GET \/z: .*every request is refused/,
    ],
  ],
  [
    `${ASKS}  operations: [{target: /x, verb: HEAD}, {target: "/files/{id}", verb: GET}, {target: /more, verb: GET}]\n`,
    `${DOCUMENT('{type: string}')}  /files/*:\n    get: {responses: {"200": {description: ok}}}\n`,
    [
      /: not among the operations of the project/,
      /GET \/more: not in the document \(they are deployed/,
      /paths: GET \/more: not in the document \(every request is refused/,
    ],
  ],
  [`${ASKS}  type: WS\n`, DOCUMENT('{type: string}'), [/enableSchemaValidation = .*has no effect.*WS/]],
]

for (const [lines, document, expected] of SAID) {
  const schema = /schema: .{0,100}/.exec(document)?.[0] ?? 'no document'
  test(`${lines.trim().replaceAll('\n', ',')} with ${schema}`, async t => {
    const files: Record<string, string> = document === '' ? {} : { 'Definitions/swagger.yaml': document }
    const { said } = await loadProjects(t, { '/a': [lines, files] })
    assert.equal(said.length, expected.length, said.join('\n'))
    for (const pattern of expected)
      assert.ok(
        said.some(each => pattern.test(each)),
        `${pattern} in ${said.join('\n')}`,
      )
  })
}

test('both flows begin with the contract; a response that may never end is not collected', async t => {
  const project = [ASKS, { 'Definitions/swagger.yaml': DOCUMENT('{type: string}') }] as const
  const loaded = await loadProjects(t, { '/a': project })
  const { flows, byOperation } = mediationsOf(loaded).get('/a')!.mediation!
  const endless = byOperation['GET /events']!
  const shown = [flows.request, flows.response, endless.request, endless.response].map(({ sequences, needs }) => {
    return `${sequences.join()} ${needs}`
  })
  const contract = '(OpenAPI contract) worker'
  assert.deepEqual(shown, [contract, contract, contract, ' nothing'])
  const [summary] = mediationSummaries(loaded.apis)
  assert.match(summary!.expected, /request \(OpenAPI contract\); response \(OpenAPI contract\)/)
})

test('an API without validation has no flow at all', async t => {
  const loaded = await loadProjects(t, { '/a': ['', { 'Definitions/swagger.yaml': DOCUMENT('{type: string}') }] })
  assert.equal(mediationsOf(loaded).get('/a')!.mediation, null)
})
