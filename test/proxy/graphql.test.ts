/** GraphQL APIs: queries, the rights and limits of their operations, and hostile queries, with real sockets. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { loadProjects, mediationsOf } from '../harness/contracts.ts'
import { GRAPHQL_FILES, GRAPHQL_OPERATIONS } from '../harness/graphql.ts'
import { connectPeer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { startBackend } from '../harness/sequence-calls.ts'
import { advanced, quota, securedApi, subscription, ThrottledGateway } from '../harness/throttled-gateway.ts'
import type { ThrottlingPolicy } from '../../src/throttle/policy.ts'

type Claims = Readonly<Record<string, unknown>>

interface Answer {
  readonly status: number
  readonly code: number
  readonly description: string
  readonly message: string
  /** Bodies and targets that the backend has got of this request. */
  readonly received: readonly string[]
}

async function start(t: TestContext, policies: readonly ThrottlingPolicy[] = [], more = '') {
  const apis = await loadProjects(t, { '/g': [GRAPHQL_OPERATIONS + more, GRAPHQL_FILES] })
  assert.deepEqual(apis.said, [])
  const backend = await startBackend(t, { '': () => [200, '{"data":{}}'], '/': () => [200, '{"data":{}}'] })
  const overrides = mediationsOf(apis).get('/g')!
  const running = await ThrottledGateway.start(() => [securedApi(backend.port, 'g', overrides)])
  t.after(() => running.gateway.stop())
  running.apply(policies)
  running.token('app', {}, 'g')
  const ask = async (
    request: string,
    body: string | Buffer,
    claims: Claims | null,
    lines = JSON_LINE,
  ): Promise<Answer> => {
    const before = backend.received.length
    const client = await connectPeer(running.gateway.port)
    const bearer = claims === null ? '' : `Authorization: Bearer ${running.control.token('app', claims)}\r\n`
    const length = /chunked/.test(lines) ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`
    client.send(`${request} HTTP/1.1\r\nHost: h\r\n${bearer}${body === '' ? '' : lines + length}\r\n`)
    client.send(Buffer.from(body))
    const { status, body: text } = await takeResponse(client)
    client.destroy()
    const fault = text.startsWith('{"fault"')
      ? (JSON.parse(text) as { fault: Pick<Answer, 'code' | 'description' | 'message'> }).fault
      : null
    const received = backend.received.slice(before).map(({ target, body }) => (body === '' ? target : body))
    const { code = 0, description = '', message = '' } = fault ?? {}
    return { status, code, description, message, received }
  }
  return { ask, running, backend }
}

const JSON_LINE = 'Content-Type: application/json\r\n'
const GRAPHQL_LINE = 'Content-Type: application/graphql\r\n'
const POST = 'POST /g'
const READ = { scope: ['read'] }
const chunked = (text: string) => `${[...text].map(each => `1\r\n${each}\r\n`).join('')}0\r\n\r\n`
const ask = (query: string, more: Claims = {}) => JSON.stringify({ query, ...more })

const HASH = createHash('sha256').update('{open}').digest('hex')
const persisted = (sha256Hash: string) => ({ extensions: { persistedQuery: { version: 1, sha256Hash } } })
const OWN_HASH = encodeURIComponent(JSON.stringify(persisted(HASH).extensions))

/** [what, request line, body, claims of the token; null for none, lines, code or 0, part of the description]. */
const REQUESTS: readonly (readonly [string, string, string, Claims | null, string, number, RegExp])[] = [
  ['a query with its scope', POST, ask('{hero{name}}'), READ, JSON_LINE, 0, /^$/],
  ['a query as application/graphql', POST, '{hero{name}}', READ, GRAPHQL_LINE, 0, /^$/],
  ['a query of GET', 'GET /g?query=%7Bhero%7Bname%7D%7D', '', READ, '', 0, /^$/],
  ['a query without the scope', POST, ask('{hero{name}}'), {}, JSON_LINE, 900910, /Scope validation/],
  ['one field of two lacks its scope', POST, ask('{heroes{name} hero{name}}'), {}, JSON_LINE, 900910, /Scope/],
  ['an alias does not hide the field', POST, ask('{heroes: hero{name}}'), {}, JSON_LINE, 900910, /Scope/],
  [
    'a fragment does not hide the field',
    POST,
    ask('{...F} fragment F on Query{hero{name}}'),
    {},
    JSON_LINE,
    900910,
    /Scope/,
  ],
  [
    'a directive does not hide the field',
    POST,
    ask('{heroes{name} ... @skip(if:true){hero{name}}}'),
    {},
    JSON_LINE,
    900910,
    /Scope/,
  ],
  ['a query without a token', POST, ask('{hero{name}}'), null, JSON_LINE, 900902, /Make sure/],
  ['an open operation without a token', POST, ask('{open}'), null, JSON_LINE, 0, /^$/],
  ['an open operation beside a closed one', POST, ask('{open heroes{name}}'), null, JSON_LINE, 900902, /Make sure/],
  ['the field of another verb', POST, ask('mutation{rename(name:"a"){name}}'), READ, JSON_LINE, 900910, /Scope/],
  ['a field that is no operation', POST, ask('{other}'), READ, JSON_LINE, 900906, /No matching resource/],
  [
    'the named one of two operations',
    POST,
    ask('query A{open} query B{hero{name}}', { operationName: 'A' }),
    null,
    JSON_LINE,
    0,
    /^$/,
  ],
  ['two operations without a name', POST, ask('query A{open} query B{open}'), READ, JSON_LINE, 900422, /operationName/],
  [
    'every error of a query',
    POST,
    ask('{hero{nome} heroes{name(x:1)} zero}'),
    READ,
    JSON_LINE,
    900422,
    /1:7 .*nome.*; 1:\d+ .*x.*; 1:\d+ .*zero/,
  ],
  ['a syntax error', POST, ask('{hero{'), READ, JSON_LINE, 900422, /1:7 Syntax Error/],
  ['a batch', POST, `[${ask('{open}')}]`, READ, JSON_LINE, 900422, /several queries/],
  ['a body without a query', POST, '{"id":"persisted"}', READ, JSON_LINE, 900422, /query is required/],
  [
    'a mutation of GET',
    'GET /g?query=mutation%7Brename(name:%22a%22)%7Bname%7D%7D',
    '',
    { scope: ['write'] },
    '',
    900422,
    /GET/,
  ],
  [
    'a query in target and body',
    'POST /g?query=%7Bopen%7D',
    ask('{hero{name}}'),
    READ,
    JSON_LINE,
    900422,
    /body alone/,
  ],
  ['a repeated query', 'GET /g?query=%7Bopen%7D&query=%7Bhero%7Bname%7D%7D', '', READ, '', 900422, /repeated/],
  ['a form', POST, 'query=a', READ, 'Content-Type: application/x-www-form-urlencoded\r\n', 102522, /application\/json/],
  ['introspection', POST, ask('{__schema{types{name}}}'), READ, JSON_LINE, 0, /^$/],
  ['introspection without a token', POST, ask('{__schema{types{name}}}'), null, JSON_LINE, 900902, /Make sure/],
  ['a type without a token', POST, ask('{open t:__type(name:"Query"){name}}'), null, JSON_LINE, 900902, /Make sure/],
  ['the name of the root without a token', POST, ask('{__typename open}'), null, JSON_LINE, 0, /^$/],
  ['a text and its own hash', POST, ask('{open}', persisted(HASH)), READ, JSON_LINE, 0, /^$/],
  ['a text and null for an id', POST, ask('{open}', { documentId: null, extensions: null }), READ, JSON_LINE, 0, /^$/],
  ['a text and its hash, in GET', `GET /g?query=%7Bopen%7D&extensions=${OWN_HASH}`, '', READ, '', 0, /^$/],
]

/** [what, request line, members of the body beside a query of `open` as JSON; '' for no body]: 900422. */
const AMBIGUOUS: readonly (readonly [string, string, string])[] = [
  ...[
    ['query', '"{hero{name}}"'],
    ['operationName', '"A"'],
    ['variables', '{"id":1}'],
    ['extensions', '{"a":1}'],
  ].flatMap(([name, value]) =>
    [name!.toUpperCase(), `${name![0]!.toUpperCase()}${name!.slice(1)}`].map(
      other => [`${other} beside ${name!}`, POST, `"${other}":${value}`] as const,
    ),
  ),
  ['a name that is equal by Unicode alone', POST, '"variable\u017f":{"id":1}'],
  ['another case of a parameter', 'GET /g?query=%7Bopen%7D&QUERY=%7Bhero%7Bname%7D%7D', ''],
  ['another case of a parameter of POST', 'POST /g?Query=%7Bhero%7Bname%7D%7D', '"operationName":null'],
  ...['id', 'documentId', 'doc_id', 'DocumentID'].map(
    name => [`${name} beside a text`, POST, `"${name}":"sha256:abc"`] as const,
  ),
  ['an id beside a text, in GET', 'GET /g?query=%7Bopen%7D&documentId=abc', ''],
  ['an id in the target of POST', 'POST /g?documentId=abc', '"operationName":null'],
  ['the hash of another text', POST, `"extensions":${JSON.stringify(persisted('0'.repeat(64)).extensions)}`],
  ['the hash of another text, in GET', `GET /g?query=%7Bother%7D&extensions=${OWN_HASH}`, ''],
  ['a persisted query without a hash', POST, '"extensions":{"persistedQuery":{"version":1}}'],
  ['another key of a persisted query', POST, '"extensions":{"persistedQuery":{"sha256Hash":"HASH","id":"7"}}'],
  ['another case of a persisted query', POST, '"extensions":{"PersistedQuery":{"sha256Hash":"00"}}'],
  ['extensions that are a list', POST, '"extensions":[]'],
]

test('a request that another reader takes for another query is refused, and the backend gets nothing', async t => {
  const { ask: send } = await start(t)
  for (const [what, request, members] of AMBIGUOUS) {
    const body = members === '' ? '' : `{"query":"{open}",${members.replace('HASH', HASH)}}`
    const { code, received } = await send(request, body, READ)
    assert.deepEqual([code, received], [900422, []], what)
  }
})

test('each root field of a query is authorised, and the backend gets nothing of a query that is refused', async t => {
  const { ask: send } = await start(t)
  for (const [what, request, body, claims, lines, code, description] of REQUESTS) {
    const answer = await send(request, body, claims, lines)
    assert.equal(answer.code, code, `${what}: ${answer.status} ${answer.description}`)
    assert.equal(answer.received.length, code === 0 ? 1 : 0, what)
    assert.match(answer.description, description, what)
  }
})

test('D825: the fault flow of the API words no query that is refused', async t => {
  const { ask: send } = await start(t, [], '  apiPolicies: {fault: [{policyName: jsonFault, policyVersion: v1}]}\n')
  for (const [what, body, code] of [
    ['an invalid query', ask('{hero'), 900422],
    ['no JSON', '{', 102520],
    ['a scope that is missing', ask('mutation{rename(name:"a"){name}}'), 900910],
  ] as const) {
    const answer = await send(POST, body, READ)
    assert.deepEqual([answer.code, answer.message === 'Runtime Error'], [code, false], what)
  }
})

const GET_NAMED = (operationName: string) =>
  `GET /g?query=${encodeURIComponent('query A($i:ID){hero(id:$i){name}} query B{open}')}&operationName=${operationName}`

/** [what, request line, body, lines, claims, code or 0]. */
const WIRE: readonly (readonly [string, string, string | Buffer, string, Claims, number])[] = [
  ['the named operation of GET', `${GET_NAMED('A')}&variables=%7B%22i%22%3A%221%22%7D`, '', '', READ, 0],
  ['the named operation of GET, without its scope', GET_NAMED('A'), '', '', {}, 900910],
  ['the other operation of GET', GET_NAMED('B'), '', '', {}, 0],
  ['no operation of GET has the name', GET_NAMED('C'), '', '', READ, 900422],
  ['variables of GET that are no JSON', `${GET_NAMED('B')}&variables=%7B`, '', '', READ, 900422],
  ['variables of GET that repeat', `${GET_NAMED('B')}&variables=%7B%22i%22%3A1%2C%22i%22%3A2%7D`, '', '', READ, 900422],
  ['a query in gzip', POST, gzipSync(ask('{hero{name}}')), `${JSON_LINE}Content-Encoding: gzip\r\n`, READ, 0],
  [
    'a query in gzip, without its scope',
    POST,
    gzipSync(ask('{hero{name}}')),
    `${JSON_LINE}Content-Encoding: gzip\r\n`,
    {},
    900910,
  ],
  ['a query in chunks', POST, chunked(ask('{hero{name}}')), `${JSON_LINE}Transfer-Encoding: chunked\r\n`, READ, 0],
  [
    'a query in chunks, without its scope',
    POST,
    chunked(ask('{hero{name}}')),
    `${JSON_LINE}Transfer-Encoding: chunked\r\n`,
    {},
    900910,
  ],
  ['an operation of users, asked for by one', POST, ask('{mine}'), JSON_LINE, {}, 0],
  [
    'an operation of users, asked for by an application',
    POST,
    ask('{mine}'),
    JSON_LINE,
    { aut: 'APPLICATION' },
    900905,
  ],
]

test('a query is found in chunks, in gzip and in a target, and its operation may be of users alone', async t => {
  const { ask: send, backend } = await start(t)
  for (const [what, request, body, lines, claims, code] of WIRE) {
    const answer = await send(request, body, claims, lines)
    assert.deepEqual(
      [answer.code, answer.received.length],
      [code, code === 0 ? 1 : 0],
      `${what}: ${answer.description}`,
    )
    if (code !== 0 || !lines.includes('gzip')) continue
    assert.equal(gunzipSync(Buffer.from(backend.received.at(-1)!.body, 'latin1')).toString(), ask('{hero{name}}'))
  }
})

test('of a repeated member of JSON the backend gets the one that was checked', async t => {
  const { ask: send } = await start(t)
  const { received } = await send(
    POST,
    '{"query":"{hero{name}}","query":"{open}","variables":{"n":12345678901234567890}}',
    {},
  )
  assert.deepEqual(received, ['{"query":"{open}","variables":{"n":12345678901234567890}}'])
})

test('introspection can be switched off, and then no message shows names of the schema', async t => {
  const { ask: send } = await start(t, [], '  graphqlIntrospection: false\n')
  const refused = await send(POST, ask('{__schema{types{name}}}'), READ)
  assert.deepEqual([refused.code, refused.description.includes('introspection is switched off')], [900422, true])
  const { description } = await send(POST, ask('{hero{nam}}'), READ)
  assert.doesNotMatch(description, /Did you mean/)
})

test('the limit of each operation is charged once per request, and refuses its own operation alone', async t => {
  const { ask: send } = await start(t, [advanced('HeroTier', quota(2))])
  const codes: number[] = []
  for (const query of ['{hero{name}}', '{a:hero{name} b:hero{name} heroes{name}}', '{hero{name}}', '{heroes{name}}']) {
    codes.push((await send(POST, ask(query), READ)).code)
  }
  assert.deepEqual(codes, [0, 0, 900802, 0])
})

test('depth and complexity of the subscription policy bound a query, with fragments and list sizes', async t => {
  const graphQL = { depth: 3, complexity: 20 }
  const { ask: send } = await start(t, [subscription('Unlimited', null, { graphQL })])
  const table: readonly (readonly [string, Claims, number])[] = [
    ['{hero{friends{name}}}', {}, 0],
    ['{hero{friends{friends{name}}}}', {}, 900820],
    ['{hero{...A}} fragment A on Character{friends{...B}} fragment B on Character{friends{name}}', {}, 900820],
    ['{heroes(first:2){friends{name}}}', {}, 0],
    ['{heroes(first:3){friends{name}}}', {}, 900821],
    ['query($n:Int){heroes(first:$n){friends{name}}}', { variables: { n: 3 } }, 900821],
    ['query($n:Int=100000){heroes(first:$n){friends{name}}}', {}, 900821],
    ['query($n:Int=100000){...A} fragment A on Query{heroes(first:$n){friends{name}}}', {}, 900821],
    ['query($n:Int=100000){heroes(first:$n){friends{name}}}', { variables: { n: 2 } }, 0],
    ['query($n:Int){heroes(first:$n){friends{name}}}', {}, 0],
    ['{many{name}}', {}, 900821],
    ['query($n:Int){many(first:$n){name}}', {}, 900821],
    ['{many(first:2){name}}', {}, 0],
  ]
  for (const [query, more, code] of table) {
    const answer = await send(POST, ask(query, more), READ)
    assert.deepEqual([answer.code, answer.status], [code, code === 0 ? 200 : 400], `${query} ${answer.description}`)
  }
})

/** Each fragment spreads the next one twice. */
const DOUBLING = Array.from({ length: 150 }, (_, at) => {
  const next = `{...F${at + 1}}`
  return `fragment F${at} on Character{a:friends${next} b:friends${next}}`
}).join(' ')

/** [what, query]: each is refused, or passes, and costs little. */
const HOSTILE: readonly (readonly [string, string, number])[] = [
  ['deep', `${'{hero{friends'}${'{friends'.repeat(3000)}{name}${'}'.repeat(3002)}`, 900422],
  ['deep lists', `{heroes(first:${'['.repeat(4000)}${']'.repeat(4000)}){name}}`, 900422],
  ['one field very often', `{hero{${'name '.repeat(9000)}}}`, 0],
  ['many aliases', `{${Array.from({ length: 3000 }, (_, at) => `a${at}:open`).join(' ')}}`, 0],
  ['too many tokens', `{hero{${'name '.repeat(200_000)}}}`, 900422],
  ['a long comment', `{open}#${'x'.repeat(1_040_000)}`, 0],
  ['longer than allowed', `{open}#${'x'.repeat(1_100_000)}`, 900422],
  [
    'a cycle of fragments',
    '{hero{...A}} fragment A on Character{friends{...B}} fragment B on Character{friends{...A}}',
    900422,
  ],
  ['fragments that double', `{hero{...F0}} ${DOUBLING} fragment F150 on Character{name}`, 0],
  ['many operations', `${Array.from({ length: 2000 }, (_, at) => `query Q${at}{open}`).join(' ')}`, 900422],
  ['many errors', `{${Array.from({ length: 3000 }, (_, at) => `x${at}`).join(' ')}}`, 900422],
]

test('hostile queries get one bounded answer each', async t => {
  const { ask: send } = await start(t)
  for (const [what, query, code] of HOSTILE) {
    const started = performance.now()
    const answer = await send(POST, ask(query), READ)
    t.diagnostic(`${what}: ${Math.round(performance.now() - started)} ms`)
    assert.equal(answer.code, code, `${what}: ${answer.description.slice(0, 300)}`)
    assert.ok(answer.description.length < 5000, what)
  }
})
