/** Projects of the type GRAPHQL: operations, schema, complexity, and what refuses them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { operationsOf } from '../../src/apis/api-definition.ts'
import { mediationSummaries } from '../../src/apis/project-mediation.ts'
import { readPolicy } from '../../src/throttle/policy-body.ts'
import { loadProjects, mediationsOf } from '../harness/contracts.ts'

const SCHEMA = 'type Query { a: String b(first: Int): [String] }\n'
const PROJECT =
  '  type: GRAPHQL\n  operations: [{target: a, verb: QUERY, scopes: [s]}, {target: /b, verb: query, authType: None}]\n'
const LIST = 'data: {list: [{type: Query, field: b, complexityValue: 7}]}\n'

test('a project has two resources of HTTP, its operations, and a flow that begins on a worker', async t => {
  const files = { 'Definitions/schema.graphql': SCHEMA, 'Definitions/graphql-complexity.yaml': LIST }
  const loaded = await loadProjects(t, { '/a': [PROJECT, files] })
  assert.deepEqual(loaded.said, [])
  const [api] = loaded.apis
  const shown = operationsOf(api!).map(({ verb, template, authType }) => `${verb} ${template} ${authType}`)
  const secured = 'Application & Application User'
  assert.deepEqual(shown, [`GET /* ${secured}`, `POST /* ${secured}`, `QUERY a ${secured}`, 'QUERY b None'])
  const { flows, admission, sequences } = mediationsOf(loaded).get('/a')!.mediation!
  assert.deepEqual([flows.request.needs, flows.response.needs, admission!.operations.length], ['worker', 'nothing', 2])
  const { settings } = sequences[0]!.steps[0]!
  assert.deepEqual(settings, { schema: SCHEMA, complexity: { 'Query.b': 7 }, allowsIntrospection: true })
  assert.match(mediationSummaries(loaded.apis)[0]!.expected, /runs the check of queries for 2 operations/)
})

/** [what, lines of api.yaml, schema; '' for none, complexity, diagnostics]. */
const WRONG: readonly (readonly [string, string, string, string, readonly RegExp[]])[] = [
  ['no schema', PROJECT, '', '', [/data\.type = .*there is no schema.*schema\.graphql/]],
  ['a malformed schema', PROJECT, 'type Query {\n  a: \n}', '', [/schema\.graphql:3: is no GraphQL schema/]],
  [
    'an unknown type',
    PROJECT,
    'type Query { a: Strong b: Int }',
    '',
    [/schema\.graphql:1: is no GraphQL schema.*Strong/],
  ],
  ['no operation', '  type: GRAPHQL\n', SCHEMA, '', [/operations: there is no operation/]],
  [
    'a verb of HTTP',
    '  type: GRAPHQL\n  operations: [{target: a, verb: GET}]\n',
    SCHEMA,
    '',
    [/verb = "GET": expected QUERY/, /no operation/],
  ],
  [
    'a path',
    '  type: GRAPHQL\n  operations: [{target: /a/b, verb: QUERY}]\n',
    SCHEMA,
    '',
    [/is no name of a field/, /no operation/],
  ],
  [
    'a field that the schema lacks',
    PROJECT.replace('target: a', 'target: c'),
    SCHEMA,
    '',
    [/QUERY c.*is no field of the schema/],
  ],
  [
    'a complexity that is no number',
    PROJECT,
    SCHEMA,
    LIST.replace('7', '-1'),
    [/complexityValue = "-1": expected 0 to/],
  ],
]

for (const [what, lines, schema, complexity, expected] of WRONG) {
  test(`a project with ${what} is reported with its place`, async t => {
    const files = Object.entries({
      'Definitions/schema.graphql': schema,
      'Definitions/graphql-complexity.yaml': complexity,
    })
    const { said } = await loadProjects(t, {
      '/a': [lines, Object.fromEntries(files.filter(([, text]) => text !== ''))],
    })
    assert.equal(said.length, expected.length, said.join('\n'))
    for (const pattern of expected)
      assert.ok(
        said.some(each => pattern.test(each)),
        `${pattern} in ${said.join('\n')}`,
      )
  })
}

test('graphQLMaxDepth and graphQLMaxComplexity of a subscription policy; 0 and -1 are no limit', () => {
  const body = {
    policyName: 'P',
    defaultLimit: { type: 'REQUESTCOUNTLIMIT', requestCount: { timeUnit: 'min', unitTime: 1, requestCount: 5 } },
  }
  const read = (depth: number, complexity: number) => {
    const { value, errors } = readPolicy('subscription', {
      ...body,
      graphQLMaxDepth: depth,
      graphQLMaxComplexity: complexity,
    })
    return [errors.length, 'graphQL' in value ? value.graphQL : undefined]
  }
  assert.deepEqual(read(5, -1), [0, { depth: 5, complexity: 0 }])
  assert.deepEqual(read(0, 9), [0, { depth: 0, complexity: 9 }])
  assert.deepEqual(read(0, -1), [0, undefined])
  assert.equal(read(-2, 0)[0], 1)
})
