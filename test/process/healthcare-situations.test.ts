/** What clients of the healthcare API are told in each situation: status and issue code, in the asked media type. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { JsonObject } from '../../src/mounted/healthcare/json-text.ts'
import { type AskOptions, ALL, codesOf, issuesOf, startHealthcare } from '../harness/healthcare.ts'
import { leave } from '../harness/operator.ts'

after(leave)

const limits = (project: string): string =>
  project.replace('body_bytes_max: 2097152', 'body_bytes_max: 20000').replace('entries_max: 500', 'entries_max: 3')
const { base, ask, token } = await startHealthcare(limits)
const TYPE = '/HealthcareService'
const SERVICE = { resourceType: 'HealthcareService', name: 'A' }
const scoped = new Map<string, string>()
for (const letters of ['r', 's', 'u', 'cud', 'rs', 'd']) {
  scoped.set(letters, await token(`user/HealthcareService.${letters}`))
}
const put = async (id: string, more: object = {}) => ask('PUT', `${TYPE}/${id}`, { body: { ...SERVICE, id, ...more } })
for (const id of ['a', 'b', 'two-1', 'two-2', 'gone']) {
  assert.equal((await put(id, id.startsWith('two') ? { identifier: [{ value: 'two' }] } : {})).status, 201)
}
assert.equal((await ask('DELETE', `${TYPE}/gone`)).status, 204)

type Row = readonly [what: string, method: string, path: string, options: AskOptions, status: number, code: string]
const as = (letters: string, more: AskOptions = {}): AskOptions => ({ ...more, token: scoped.get(letters)! })
const fields = (given: Readonly<Record<string, string>>, body?: unknown): AskOptions => ({ fields: given, body })
const MERGE = { 'content-type': 'application/merge-patch+json' }
const JSON_PATCH = { 'content-type': 'application/json-patch+json' }
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const XML = { 'content-type': 'application/fhir+xml' }
const bundleOf = (type: string, count: number) => ({
  resourceType: 'Bundle',
  type,
  entry: new Array(count).fill({ request: { method: 'GET', url: 'HealthcareService/a' } }),
})

const ROWS: readonly Row[] = [
  ['no token', 'GET', TYPE, { token: null }, 401, 'login'],
  ['an unknown token', 'GET', TYPE, { token: 'x' }, 401, 'unknown'],
  ['a search without s', 'GET', TYPE, as('r'), 403, 'forbidden'],
  ['a read without r', 'GET', `${TYPE}/a`, as('s'), 403, 'forbidden'],
  ['an update without u', 'PUT', `${TYPE}/a`, as('rs', { body: { ...SERVICE, id: 'a' } }), 403, 'forbidden'],
  ['a patch without u', 'PATCH', `${TYPE}/a`, as('rs', fields(JSON_PATCH, [])), 403, 'forbidden'],
  ['a delete without d', 'DELETE', `${TYPE}/a`, as('u'), 403, 'forbidden'],
  ['a create without c', 'POST', TYPE, as('u', { body: SERVICE }), 403, 'forbidden'],
  [
    'an update that would create, without c',
    'PUT',
    `${TYPE}/x`,
    as('u', { body: { ...SERVICE, id: 'x' } }),
    403,
    'forbidden',
  ],
  ['a conditional delete without s', 'DELETE', `${TYPE}?name=q`, as('d'), 403, 'forbidden'],
  ['an unknown id', 'GET', `${TYPE}/unknown`, {}, 404, 'not-found'],
  ['an unknown version', 'GET', `${TYPE}/a/_history/9`, {}, 404, 'not-found'],
  ['the history of an unknown id', 'GET', `${TYPE}/unknown/_history`, {}, 404, 'not-found'],
  ['a patch of an unknown id', 'PATCH', `${TYPE}/unknown`, fields(JSON_PATCH, []), 404, 'not-found'],
  ['another type', 'GET', '/Patient/1', {}, 404, 'not-found'],
  ['a deleted service', 'GET', `${TYPE}/gone`, {}, 410, 'deleted'],
  ['the version that is a deletion', 'GET', `${TYPE}/gone/_history/2`, {}, 410, 'deleted'],
  ['a patch of a deleted service', 'PATCH', `${TYPE}/gone`, fields(JSON_PATCH, []), 410, 'deleted'],
  ['POST on a service', 'POST', `${TYPE}/a`, { body: SERVICE }, 405, 'not-supported'],
  ['DELETE of the metadata', 'DELETE', '/metadata', {}, 405, 'not-supported'],
  ['GET of the base', 'GET', '', {}, 405, 'not-supported'],
  [
    'Accept: application/fhir+xml',
    'GET',
    `${TYPE}/a`,
    fields({ accept: 'application/fhir+xml' }),
    406,
    'not-supported',
  ],
  ['_format=xml', 'GET', `${TYPE}/a?_format=xml`, {}, 406, 'not-supported'],
  ['a body of XML', 'POST', TYPE, fields(XML, '<a/>'), 415, 'not-supported'],
  ['a merge patch', 'PATCH', `${TYPE}/a`, fields(MERGE, {}), 415, 'not-supported'],
  ['a search by POST with JSON', 'POST', `${TYPE}/_search`, { body: {} }, 415, 'not-supported'],
  ['no JSON', 'POST', TYPE, { body: '{"a":' }, 400, 'invalid'],
  ['an unknown element', 'POST', TYPE, { body: { ...SERVICE, nam: 'x' } }, 400, 'structure'],
  [
    'a missing element',
    'POST',
    TYPE,
    { body: { ...SERVICE, notAvailable: [{ during: { start: '2020' } }] } },
    400,
    'required',
  ],
  ['a bad value', 'POST', TYPE, { body: { ...SERVICE, telecom: [{ system: 'phone', rank: 0 }] } }, 400, 'value'],
  [
    'a code of no required binding',
    'POST',
    TYPE,
    { body: { ...SERVICE, telecom: [{ system: 'pigeon' }] } },
    400,
    'code-invalid',
  ],
  ['a broken rule', 'POST', TYPE, { body: { ...SERVICE, telecom: [{ value: '1' }] } }, 422, 'invariant'],
  ['another resource type', 'POST', TYPE, { body: { resourceType: 'Patient' } }, 400, 'value'],
  ['an update without id', 'PUT', `${TYPE}/a`, { body: SERVICE }, 400, 'value'],
  ['an update with another id', 'PUT', `${TYPE}/a`, { body: { ...SERVICE, id: 'b' } }, 400, 'value'],
  ['a patch that is none', 'PATCH', `${TYPE}/a`, fields(JSON_PATCH, { op: 'add' }), 400, 'structure'],
  [
    'a patch that does not apply',
    'PATCH',
    `${TYPE}/a`,
    fields(JSON_PATCH, [{ op: 'test', path: '/name', value: 'B' }]),
    422,
    'processing',
  ],
  [
    'a patch of the id',
    'PATCH',
    `${TYPE}/a`,
    fields(JSON_PATCH, [{ op: 'replace', path: '/id', value: 'z' }]),
    422,
    'processing',
  ],
  [
    'a stale If-Match of an update',
    'PUT',
    `${TYPE}/a`,
    fields({ 'if-match': 'W/"9"' }, { ...SERVICE, id: 'a' }),
    412,
    'conflict',
  ],
  [
    'a stale If-Match of a patch',
    'PATCH',
    `${TYPE}/a`,
    fields({ ...JSON_PATCH, 'if-match': 'W/"9"' }, []),
    412,
    'conflict',
  ],
  ['a stale If-Match of a delete', 'DELETE', `${TYPE}/a`, fields({ 'if-match': 'W/"9"' }), 412, 'conflict'],
  [
    'several matches of a create',
    'POST',
    TYPE,
    fields({ 'if-none-exist': 'identifier=two' }, SERVICE),
    412,
    'multiple-matches',
  ],
  ['several matches of an update', 'PUT', `${TYPE}?identifier=two`, { body: SERVICE }, 412, 'multiple-matches'],
  ['several matches of a patch', 'PATCH', `${TYPE}?identifier=two`, fields(JSON_PATCH, []), 412, 'multiple-matches'],
  ['several matches of a delete', 'DELETE', `${TYPE}?identifier=two`, {}, 412, 'multiple-matches'],
  ['a conditional delete without criteria', 'DELETE', TYPE, {}, 400, 'processing'],
  ['an unsupported modifier', 'GET', `${TYPE}?name:above=x`, {}, 400, 'not-supported'],
  ['a chained parameter', 'GET', `${TYPE}?organization.name=x`, {}, 400, 'not-supported'],
  ['_filter', 'GET', `${TYPE}?_filter=x`, {}, 400, 'not-supported'],
  ['a bad search value', 'GET', `${TYPE}?_lastUpdated=nine`, {}, 400, 'value'],
  ['an unknown parameter under strict', 'GET', `${TYPE}?x=1`, fields({ prefer: 'handling=strict' }), 400, 'processing'],
  ['a position of another search', 'GET', `${TYPE}?_cursor=x.y`, {}, 400, 'value'],
  ['a thousand alternatives', 'GET', `${TYPE}?name=${'a,'.repeat(1000)}a`, {}, 400, 'too-costly'],
  ['a search that is too long', 'POST', `${TYPE}/_search`, fields(FORM, `name=${'a'.repeat(9000)}`), 413, 'too-long'],
  ['a body that is too long', 'POST', TYPE, { body: { ...SERVICE, comment: 'x'.repeat(20_000) } }, 413, 'too-long'],
  ['a Bundle with too many entries', 'POST', '', { body: bundleOf('batch', 4) }, 400, 'too-costly'],
  [
    'a Bundle of another type',
    'POST',
    '',
    { body: { resourceType: 'Bundle', type: 'collection' } },
    400,
    'not-supported',
  ],
]
for (const [what, method, path, options, status, code] of ROWS) {
  for (const accept of ['application/health+json', 'application/fhir+json']) {
    test(`${what} is ${status} ${code} in ${accept}`, async () => {
      const asked = await ask(method, path, { ...options, fields: { accept, ...options.fields } })
      assert.equal(asked.status, status, asked.text)
      assert.ok(codesOf(asked).includes(code), asked.text)
      const type =
        options.fields?.accept === undefined && !path.includes('_format') ? accept : 'application/health+json'
      assert.equal(asked.fields.get('content-type'), `${type}; charset=utf-8`)
    })
  }
}

test('refusals of the gateway itself have its code, its fields, and the media type of Accept or _format', async () => {
  const plain = await ask('GET', TYPE, { token: null, fields: { accept: 'application/json' } })
  assert.deepEqual(issuesOf(plain), ['error login 900902'])
  assert.match(plain.fields.get('content-type')!, /^application\/json;/)
  assert.match(plain.fields.get('www-authenticate')!, /^Bearer/)
  const formatted = await ask('GET', `${TYPE}?_format=application/fhir%2Bjson`, { token: null })
  assert.match(formatted.fields.get('content-type')!, /^application\/fhir\+json;/)
  const method = await ask('POST', `${TYPE}/a`, { body: SERVICE })
  assert.deepEqual([issuesOf(method), method.fields.get('allow')?.includes('PUT')], [['error not-supported 405'], true])
})

test('every fault of a resource is reported at once, each with its place', async () => {
  const body = { ...SERVICE, nam: 1, active: 'yes', telecom: [{ system: 'pigeon' }] }
  const { json } = await ask('POST', TYPE, { body })
  const issues = json.issue as readonly { severity: string; expression?: string[] }[]
  const places = issues
    .filter(({ severity }) => severity === 'error')
    .flatMap(({ expression = [] }) => expression)
    .sort()
  assert.deepEqual(places, ['HealthcareService.active', 'HealthcareService.nam', 'HealthcareService.telecom[0].system'])
})

const SCOPES: readonly (readonly [scope: string, search: number, read: number])[] = [
  ['patient/HealthcareService.s', 200, 403],
  ['user/HealthcareService.r', 403, 200],
  ['system/HealthcareService.rs', 200, 200],
  [ALL, 200, 200],
  ['user/HealthcareService.cud', 403, 403],
  ['openid', 403, 403],
]
for (const [scope, search, read] of SCOPES) {
  test(`a token with ${scope}: search ${search}, read ${read}`, async () => {
    const given = { token: await token(scope) }
    assert.equal((await ask('GET', TYPE, given)).status, search)
    assert.equal((await ask('GET', `${TYPE}/a`, given)).status, read)
  })
}

test('versions: ETag, Last-Modified, Location, 304, HEAD, creation and revival by update', async () => {
  const created = await put('v')
  assert.deepEqual([created.status, created.fields.get('etag')], [201, 'W/"1"'])
  assert.equal(created.fields.get('location'), `${base}${TYPE}/v/_history/1`)
  const modified = created.fields.get('last-modified')!
  const conditions = [{ 'if-none-match': 'W/"1"' }, { 'if-none-match': '"7", "1"' }, { 'if-modified-since': modified }]
  for (const given of conditions) {
    const { status, fields: sent } = await ask('GET', `${TYPE}/v`, { fields: given })
    assert.deepEqual([status, sent.get('etag'), sent.get('vary')], [304, 'W/"1"', 'Accept, Authorization'])
  }
  const both = { 'if-none-match': 'W/"7"', 'if-modified-since': modified }
  assert.equal((await ask('GET', `${TYPE}/v`, { fields: both })).status, 200)
  const head = await ask('HEAD', `${TYPE}/v`)
  assert.deepEqual([head.status, head.fields.get('etag'), head.text], [200, 'W/"1"', ''])
  assert.deepEqual((await put('v')).fields.get('etag'), 'W/"2"')
  const deleted = [
    await ask('DELETE', `${TYPE}/v`),
    await ask('DELETE', `${TYPE}/v`),
    await ask('DELETE', `${TYPE}/never`),
  ]
  assert.deepEqual(
    deleted.map(({ status }) => status),
    [204, 204, 204],
  )
  const revived = await put('v')
  assert.deepEqual([revived.status, revived.fields.get('etag')], [201, 'W/"4"'])
  assert.equal(
    (await ask('PUT', `${TYPE}/v`, { fields: { 'if-match': '*' }, body: { ...SERVICE, id: 'v' } })).status,
    200,
  )
})

test('a response has the id of the request, that of the client or one of the gateway', async () => {
  const given = await ask('GET', `${TYPE}/a`, { fields: { 'x-request-id': 'client-1' } })
  assert.equal(given.fields.get('x-request-id'), 'client-1')
  const made = await ask('GET', `${TYPE}/unknown`)
  assert.match(made.fields.get('x-request-id')!, /^\S+$/)
})

test('a browser may send and read the fields of the standard (R4, http.html#security)', async () => {
  const origin = { origin: 'https://app.example' }
  const wanted = 'if-match,if-none-exist,prefer,authorization,content-type'
  const headers = {
    ...origin,
    'access-control-request-method': 'PUT',
    'access-control-request-headers': wanted,
  }
  const preflight = await fetch(`${base}${TYPE}/a`, { method: 'OPTIONS', headers })
  const allowed = preflight.headers.get('access-control-allow-headers')!.split(', ')
  assert.deepEqual(
    wanted.split(',').filter(name => !allowed.includes(name)),
    [],
  )
  const read = await ask('GET', `${TYPE}/a`, { fields: origin })
  const exposed = read.fields.get('access-control-expose-headers') ?? ''
  for (const name of ['etag', 'location', 'content-location', 'last-modified', 'x-request-id', 'www-authenticate']) {
    assert.ok(exposed.toLowerCase().includes(name), `${name} in ${exposed}`)
  }
})

test('Prefer: return decides about the body of a change', async () => {
  const types: string[] = []
  for (const wanted of ['minimal', 'representation', 'OperationOutcome']) {
    const { status, json } = await ask('POST', TYPE, { fields: { prefer: `return=${wanted}` }, body: SERVICE })
    types.push(`${status} ${String(json.resourceType ?? '')}`.trim())
  }
  assert.deepEqual(types, ['201', '201 HealthcareService', '201 OperationOutcome'])
})

test('a FHIRPath Patch and a conditional patch change one service', async () => {
  const part = [
    { name: 'type', valueCode: 'replace' },
    { name: 'path', valueString: 'HealthcareService.name' },
    { name: 'value', valueString: 'Patched' },
  ]
  const body = { resourceType: 'Parameters', parameter: [{ name: 'operation', part }] }
  const patched = await ask('PATCH', `${TYPE}/b`, { body })
  assert.deepEqual([patched.status, patched.json.name], [200, 'Patched'])
  const conditional = await ask(
    'PATCH',
    `${TYPE}?_id=b`,
    fields(JSON_PATCH, [{ op: 'add', path: '/comment', value: 'c' }]),
  )
  assert.deepEqual([conditional.status, conditional.json.comment, conditional.json.name], [200, 'c', 'Patched'])
  assert.equal((await ask('PATCH', `${TYPE}?_id=none`, fields(JSON_PATCH, []))).status, 404)
})

test('decimals keep their digits, and _pretty, _summary and _elements shape a read', async () => {
  const text =
    '{"resourceType":"HealthcareService","id":"dec","name":"D","comment":"c","extension":[{"url":"urn:d","valueDecimal":1.00}]}'
  assert.equal((await ask('PUT', `${TYPE}/dec`, { body: text })).status, 201)
  assert.match((await ask('GET', `${TYPE}/dec`)).text, /"valueDecimal":1\.00/)
  assert.match((await ask('GET', `${TYPE}/dec?_pretty=true`)).text, /\n {2}"name": "D"/)
  assert.deepEqual(Object.keys((await ask('GET', `${TYPE}/dec?_elements=name`)).json).sort(), [
    'id',
    'meta',
    'name',
    'resourceType',
  ])
  assert.equal((await ask('GET', `${TYPE}/dec?_summary=true`)).json.extension, undefined)
})

test('metadata and the SMART configuration need no token', async () => {
  const open = { token: null }
  const statement = await ask('GET', '/metadata', open)
  assert.deepEqual([statement.status, statement.json.resourceType], [200, 'CapabilityStatement'])
  const fields = { 'if-none-match': statement.fields.get('etag')! }
  assert.equal((await ask('GET', '/metadata', { ...open, fields })).status, 304)
  const { token_endpoint: endpoint } = (await ask('GET', '/.well-known/smart-configuration', open)).json
  assert.equal(endpoint, `${new URL(base).origin}/token`)
})

interface Statement extends JsonObject {
  readonly format: readonly string[]
  readonly rest: readonly {
    readonly interaction: readonly { readonly code: string }[]
    readonly resource: readonly {
      readonly interaction: readonly { readonly code: string }[]
      readonly searchParam: readonly { readonly name: string; readonly type: string }[]
      readonly searchInclude: readonly string[]
      readonly searchRevInclude: readonly string[]
    }[]
  }[]
}
const TRIED: Readonly<Record<string, () => Promise<number>>> = {
  read: async () => (await ask('GET', `${TYPE}/a`)).status,
  vread: async () => (await ask('GET', `${TYPE}/a/_history/1`)).status,
  update: async () => (await put('a')).status,
  patch: async () => (await ask('PATCH', `${TYPE}/a`, fields(JSON_PATCH, []))).status,
  delete: async () => (await ask('DELETE', `${TYPE}/none`)).status,
  'history-instance': async () => (await ask('GET', `${TYPE}/a/_history?_count=1`)).status,
  'history-type': async () => (await ask('GET', `${TYPE}/_history?_since=2020-01-01T00:00:00Z`)).status,
  create: async () => (await ask('POST', TYPE, { body: SERVICE })).status,
  'search-type': async () => (await ask('GET', `${TYPE}/`)).status,
  batch: async () => (await ask('POST', '', { body: bundleOf('batch', 1) })).status,
  transaction: async () => (await ask('POST', '/', { body: bundleOf('transaction', 1) })).status,
}
const VALUES: Readonly<Record<string, string>> = {
  token: 'true',
  reference: 'Location/1',
  string: 'a',
  date: '2020',
  uri: 'urn:a',
}

test('the capability statement says nothing that a request does not confirm', async () => {
  const { rest, format } = (await ask('GET', '/metadata')).json as Statement
  const { resource, interaction } = rest[0]!
  const { searchParam, searchInclude, searchRevInclude, interaction: ofType } = resource[0]!
  for (const { code } of [...interaction, ...ofType]) {
    assert.ok([200, 201, 204].includes(await TRIED[code]!()), code)
  }
  assert.deepEqual([...interaction, ...ofType].map(({ code }) => code).sort(), Object.keys(TRIED).sort())
  for (const accept of format.filter(type => type.includes('/'))) {
    const { fields: given } = await ask('GET', `${TYPE}/a`, { fields: { accept } })
    assert.equal(given.get('content-type'), `${accept}; charset=utf-8`)
  }
  const strict = { fields: { prefer: 'handling=strict' } }
  assert.equal(searchParam.length, 18)
  for (const { name, type } of searchParam) {
    const value = name === 'organization' ? 'Organization/1' : name === 'endpoint' ? 'Endpoint/1' : VALUES[type]!
    for (const query of [`${name}=${value}`, `${name}:missing=true`, `_sort=-${name}`]) {
      assert.equal((await ask('GET', `${TYPE}?${query}`, strict)).status, 200, query)
    }
  }
  for (const include of searchInclude)
    assert.equal((await ask('GET', `${TYPE}?_include=${include}`, strict)).status, 200)
  for (const include of searchRevInclude)
    assert.equal((await ask('GET', `${TYPE}?_revinclude=${include}`, strict)).status, 200)
})
