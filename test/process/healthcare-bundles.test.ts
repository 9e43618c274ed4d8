/** Rows of Bundle_Entry_Request and Bundle_Entry_Response of the specification, by batch and transaction. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { JsonObject } from '../../src/mounted/healthcare/json-text.ts'
import { issuesOf, startHealthcare } from '../harness/healthcare.ts'
import { leave } from '../harness/operator.ts'

after(leave)

const { base, ask } = await startHealthcare()
const TYPE = 'HealthcareService'
const SERVICE = { resourceType: TYPE, name: 'Bundled' }
const FUTURE = '2100-01-01T00:00:00Z'
const PAST = '2020-01-01T00:00:00+02:00'

interface ResponseEntry extends JsonObject {
  readonly fullUrl?: string
  readonly resource?: JsonObject
  readonly response: { readonly status: string; readonly location?: string; readonly etag?: string } & JsonObject
}

async function run(type: 'batch' | 'transaction', ...entry: readonly object[]) {
  const asked = await ask('POST', '', { body: { resourceType: 'Bundle', type, entry } })
  return { ...asked, entries: (asked.json.entry ?? []) as readonly ResponseEntry[] }
}

const stored = (id: string, more: object = {}) => ({ ...SERVICE, id, ...more })
for (const id of ['a', 'b', 'c', 'twin-1', 'twin-2']) {
  const more = id.startsWith('twin') ? { identifier: [{ value: 'twin' }] } : {}
  assert.equal((await ask('PUT', `/${TYPE}/${id}`, { body: stored(id, more) })).status, 201)
}

const binary = (patch: object) => ({
  ...{ resourceType: 'Binary', contentType: 'application/json-patch+json' },
  data: Buffer.from(JSON.stringify(patch)).toString('base64'),
})
const NAMED = [{ op: 'replace', path: '/name', value: 'Patched' }]

/** What an entry asks for, and the status of its response. */
const ENTRIES: readonly (readonly [what: string, entry: object, status: string])[] = [
  ['GET', { request: { method: 'GET', url: `${TYPE}/a` } }, '200 OK'],
  ['HEAD', { request: { method: 'HEAD', url: `${TYPE}/a` } }, '200 OK'],
  ['GET of a search', { request: { method: 'GET', url: `${TYPE}?name=bundled&_count=1` } }, '200 OK'],
  ['GET of a version', { request: { method: 'GET', url: `${TYPE}/a/_history/1` } }, '200 OK'],
  ['GET by an absolute URL', { request: { method: 'GET', url: `${base}/${TYPE}/a` } }, '200 OK'],
  ['GET of an unknown id', { request: { method: 'GET', url: `${TYPE}/none` } }, '404 Not Found'],
  ['GET of another type', { request: { method: 'GET', url: 'Patient/1' } }, '404 Not Found'],
  [
    'ifNoneMatch that matches',
    { request: { method: 'GET', url: `${TYPE}/a`, ifNoneMatch: 'W/"1"' } },
    '304 Not Modified',
  ],
  ['ifNoneMatch that does not', { request: { method: 'GET', url: `${TYPE}/a`, ifNoneMatch: 'W/"7"' } }, '200 OK'],
  [
    'ifModifiedSince later',
    { request: { method: 'GET', url: `${TYPE}/a`, ifModifiedSince: FUTURE } },
    '304 Not Modified',
  ],
  ['ifModifiedSince before', { request: { method: 'GET', url: `${TYPE}/a`, ifModifiedSince: PAST } }, '200 OK'],
  ['POST', { resource: SERVICE, request: { method: 'POST', url: TYPE } }, '201 Created'],
  [
    'ifNoneExist, one match',
    { resource: SERVICE, request: { method: 'POST', url: TYPE, ifNoneExist: '_id=a' } },
    '200 OK',
  ],
  [
    'ifNoneExist, none',
    { resource: SERVICE, request: { method: 'POST', url: TYPE, ifNoneExist: '_id=no' } },
    '201 Created',
  ],
  ['PUT', { resource: stored('b'), request: { method: 'PUT', url: `${TYPE}/b` } }, '200 OK'],
  ['PUT that creates', { resource: stored('new'), request: { method: 'PUT', url: `${TYPE}/new` } }, '201 Created'],
  ['PUT by criteria', { resource: SERVICE, request: { method: 'PUT', url: `${TYPE}?_id=b` } }, '200 OK'],
  ['ifMatch', { resource: stored('b'), request: { method: 'PUT', url: `${TYPE}/b`, ifMatch: 'W/"3"' } }, '200 OK'],
  ['PATCH', { resource: binary(NAMED), request: { method: 'PATCH', url: `${TYPE}/b` } }, '200 OK'],
  ['DELETE', { request: { method: 'DELETE', url: `${TYPE}/c` } }, '204 No Content'],
  ['DELETE of nothing', { request: { method: 'DELETE', url: `${TYPE}/none` } }, '204 No Content'],
]
for (const [what, entry, status] of ENTRIES) {
  test(`an entry with ${what} is ${status}`, async () => {
    const { entries, json, text } = await run('batch', entry)
    assert.deepEqual([json.type, entries.length, entries[0]?.response.status], ['batch-response', 1, status], text)
  })
}

/** Entries that fail: in a batch for themselves, in a transaction for all. */
const FAILING: readonly (readonly [what: string, entry: object, status: number, issue: string])[] = [
  [
    'a stale ifMatch',
    { resource: stored('a'), request: { method: 'PUT', url: `${TYPE}/a`, ifMatch: 'W/"9"' } },
    412,
    'error conflict version-conflict',
  ],
  [
    'several matches of ifNoneExist',
    { resource: SERVICE, request: { method: 'POST', url: TYPE, ifNoneExist: 'identifier=twin' } },
    412,
    'error multiple-matches multiple-matches',
  ],
  [
    'another id than its url',
    { resource: stored('z'), request: { method: 'PUT', url: `${TYPE}/a` } },
    400,
    'error value id-mismatch',
  ],
  [
    'a method that its url does not offer',
    { resource: SERVICE, request: { method: 'POST', url: `${TYPE}/a` } },
    405,
    'error not-supported method-not-allowed',
  ],
]
for (const [what, entry, status, issue] of FAILING) {
  test(`an entry with ${what} is ${status}: in a batch alone, in a transaction for all`, async () => {
    const name = `Beside ${what}`
    const beside = { resource: { ...SERVICE, name }, request: { method: 'POST', url: TYPE } }
    const found = async () => (await ask('GET', `/${TYPE}?name:exact=${encodeURIComponent(name)}`)).json.total
    const undone = await run('transaction', beside, entry)
    assert.equal(undone.status, status, undone.text)
    assert.deepEqual(issuesOf(undone), [issue])
    const [{ expression }] = undone.json.issue as readonly [{ readonly expression: readonly string[] }]
    assert.match(expression[0]!, /^Bundle\.entry\[1\]/)
    assert.equal(await found(), 0)
    const { entries } = await run('batch', beside, entry)
    assert.equal(entries[0]!.response.status, '201 Created')
    assert.ok(entries[1]!.response.status.startsWith(`${status} `))
    const outcome = entries[1]!.response.outcome as JsonObject
    assert.deepEqual(issuesOf({ ...undone, json: outcome }), [issue])
    assert.equal(await found(), 1)
  })
}

test('a response has status, location, etag and lastModified; its fullUrl is that of the service', async () => {
  const { entries, json } = await run('transaction', { resource: SERVICE, request: { method: 'POST', url: TYPE } })
  const [{ fullUrl, resource, response }] = entries as [ResponseEntry]
  const url = `${base}/${TYPE}/${String(resource?.id)}`
  const { lastUpdated } = resource!.meta as { readonly lastUpdated: string }
  assert.equal(json.type, 'transaction-response')
  assert.equal(fullUrl, url)
  assert.deepEqual(response, {
    ...{ status: '201 Created', location: `${url}/_history/1`, etag: 'W/"1"', lastModified: lastUpdated },
  })
})

test('reads of a transaction see its changes, in the order of the entries (http.html#trules)', async () => {
  const read = { request: { method: 'GET', url: `${TYPE}/seen` } }
  const create = { resource: stored('seen', { name: 'Seen' }), request: { method: 'PUT', url: `${TYPE}/seen` } }
  const { entries } = await run('transaction', read, create)
  assert.deepEqual(
    entries.map(({ response, resource }) => [response.status, resource?.name]),
    [
      ['200 OK', 'Seen'],
      ['201 Created', 'Seen'],
    ],
  )
})

test('two entries of a transaction must not change one service', async () => {
  const change = { resource: stored('a'), request: { method: 'PUT', url: `${TYPE}/a` } }
  const refused = await run('transaction', change, { request: { method: 'DELETE', url: `${TYPE}/a` } })
  assert.deepEqual([refused.status, issuesOf(refused)[0]?.split(' ')[1]], [400, 'invalid'])
  assert.equal((await ask('GET', `/${TYPE}/a`)).status, 200)
})
