/** Tables of the standard row by row, through the gateway: interactions (R4, http.html), searches (search.html). */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { JsonObject } from '../../src/mounted/healthcare/json-text.ts'
import { type AskOptions, codesOf, startHealthcare } from '../harness/healthcare.ts'
import { leave } from '../harness/operator.ts'

after(leave)

const { base, ask } = await startHealthcare()
const TYPE = '/HealthcareService'
const SERVICE = { resourceType: 'HealthcareService', name: 'Standard' }
const JSON_PATCH = { 'content-type': 'application/json-patch+json' }
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

interface BundleLink {
  readonly relation: string
  readonly url: string
}
interface BundleEntry extends JsonObject {
  readonly fullUrl?: string
  readonly resource?: JsonObject
  readonly search?: { readonly mode: string }
}
const entriesOf = ({ json }: { readonly json: JsonObject }): readonly BundleEntry[] =>
  (json.entry ?? []) as readonly BundleEntry[]
const idsOf = (asked: { readonly json: JsonObject }): readonly unknown[] =>
  entriesOf(asked).map(({ resource }) => resource?.id)
const linksOf = ({ json }: { readonly json: JsonObject }): ReadonlyMap<string, string> =>
  new Map((json.link as readonly BundleLink[]).map(({ relation, url }) => [relation, url]))

const put = async (id: string, more: object = {}, options: AskOptions = {}) =>
  ask('PUT', `${TYPE}/${id}`, { ...options, body: { ...SERVICE, id, ...more } })
const identified = (value: string): object => ({ identifier: [{ system: 'urn:standard', value }] })
const coded = (...codes: readonly string[]): object => ({ type: codes.map(code => ({ coding: [{ code }] })) })

for (const [id, more] of [
  ['a', { ...coded('s1'), name: 'Alpha' }],
  ['b', { ...coded('s1', 's2'), name: 'Beta', providedBy: { reference: 'Organization/missing' } }],
  ['c', { ...coded('s2'), name: 'Gamma' }],
  ['twin-1', identified('twin')],
  ['twin-2', identified('twin')],
] as const) {
  assert.equal((await put(id, more)).status, 201)
}

// ---- interactions (http.html#summary) -----------------------------------------------------------------------------

test('create ignores the id, version and time of the client; Location, ETag, Last-Modified (#create)', async () => {
  const meta = { versionId: '9', lastUpdated: '2001-01-01T00:00:00Z', tag: [{ code: 'kept' }] }
  const { status, json, fields } = await ask('POST', TYPE, { body: { ...SERVICE, id: 'chosen', meta } })
  const stored = json.meta as { versionId: string; lastUpdated: string; tag: readonly object[] }
  assert.notEqual(json.id, 'chosen')
  assert.deepEqual([status, stored.versionId, stored.tag], [201, '1', [{ code: 'kept' }]])
  assert.ok(!stored.lastUpdated.startsWith('2001'))
  assert.equal(fields.get('location'), `${base}${TYPE}/${String(json.id)}/_history/1`)
  const modified = new Date(Math.floor(Date.parse(stored.lastUpdated) / 1000) * 1000).toUTCString()
  assert.deepEqual([fields.get('etag'), fields.get('last-modified')], ['W/"1"', modified])
  assert.equal((await ask('GET', `${TYPE}/chosen`)).status, 404)
})

test('conditional create: none is 201, one is 200 and stores nothing (#ccreate)', async () => {
  const options = {
    fields: { 'if-none-exist': 'identifier=urn:standard|only' },
    body: { ...SERVICE, ...identified('only') },
  }
  const [first, second] = [await ask('POST', TYPE, options), await ask('POST', TYPE, options)]
  assert.deepEqual([first.status, second.status, second.json.id], [201, 200, first.json.id])
  assert.equal((await ask('GET', `${TYPE}/${String(first.json.id)}/_history`)).json.total, 1)
})

test('vread: id and version are those asked for (#vread)', async () => {
  await put('versions', { name: 'One' })
  await put('versions', { name: 'Two' })
  for (const [version, name] of [
    ['1', 'One'],
    ['2', 'Two'],
  ]) {
    const { status, json, fields } = await ask('GET', `${TYPE}/versions/_history/${version}`)
    const { versionId } = json.meta as { versionId: string }
    assert.deepEqual([status, json.id, versionId, json.name], [200, 'versions', version, name])
    assert.equal(fields.get('etag'), `W/"${version}"`)
  }
})

/** Criteria, id of the body, status, id of the service that has changed; '' where there is none. */
const CONDITIONAL_UPDATES: readonly (readonly [what: string, criteria: string, id: string, status: number])[] = [
  ['no match and no id', 'identifier=urn:standard|fresh', '', 201],
  ['no match and an id', 'identifier=urn:standard|named', 'named', 201],
  ['one match and no id', '_id=a', '', 200],
  ['one match with the same id', '_id=a', 'a', 200],
  ['one match with another id', '_id=a', 'b', 400],
  ['several matches', 'identifier=urn:standard|twin', '', 412],
]
for (const [what, criteria, id, status] of CONDITIONAL_UPDATES) {
  test(`conditional update: ${what} is ${status} (#cond-update)`, async () => {
    const more = { ...coded('s1'), name: 'Alpha', ...(id === '' ? {} : { id }) }
    const asked = await ask('PUT', `${TYPE}?${criteria}`, { body: { ...SERVICE, ...more } })
    assert.equal(asked.status, status, asked.text)
    if (status < 300 && id !== '') assert.equal(asked.json.id, id)
    if (status === 201) assert.match(asked.fields.get('location')!, /\/_history\/1$/)
  })
}

test('If-Match is compared weakly, may be a list, and a stale one writes nothing (#concurrency)', async () => {
  await put('tagged')
  for (const [tag, status] of [
    ['"1"', 200],
    ['W/"2"', 200],
    ['"9", W/"3"', 200],
    ['*', 200],
    ['W/"1"', 412],
    ['"other"', 412],
  ] as const) {
    assert.equal((await put('tagged', {}, { fields: { 'if-match': tag } })).status, status, tag)
  }
  assert.equal((await ask('GET', `${TYPE}/tagged`)).fields.get('etag'), 'W/"5"')
})

test('conditional delete: one match is deleted, none is 204 (#delete)', async () => {
  await put('leaving', identified('leaving'))
  const path = `${TYPE}?identifier=urn:standard|leaving`
  assert.deepEqual([(await ask('DELETE', path)).status, (await ask('DELETE', path)).status], [204, 204])
  const gone = await ask('GET', `${TYPE}/leaving`)
  assert.deepEqual([gone.status, gone.fields.get('etag'), codesOf(gone)], [410, 'W/"2"', ['deleted']])
  assert.deepEqual(idsOf(await ask('GET', path)), [])
  const { status, fields } = await put('leaving')
  assert.deepEqual([status, fields.get('etag')], [201, 'W/"3"'])
})

test('history: newest first, deletions too, with request and response; _count, _since, _at (#history)', async () => {
  await put('old', { name: 'One' })
  await put('old', { name: 'Two' })
  await ask('DELETE', `${TYPE}/old`)
  const path = `${TYPE}/old/_history`
  const whole = await ask('GET', path)
  const facts = entriesOf(whole).map(({ request, response, resource }) => {
    const { method } = request as { method: string }
    const { status, etag } = response as { status: string; etag: string }
    return [method, status, etag, resource?.name]
  })
  assert.deepEqual(
    [whole.json.type, whole.json.total, facts],
    [
      'history',
      3,
      [
        ['DELETE', '204 No Content', 'W/"3"', undefined],
        ['PUT', '200 OK', 'W/"2"', 'Two'],
        ['PUT', '201 Created', 'W/"1"', 'One'],
      ],
    ],
  )
  const first = await ask('GET', `${path}?_count=2`)
  const second = await ask('GET', linksOf(first).get('next')!)
  assert.deepEqual([entriesOf(first).length, entriesOf(second).length], [2, 1])
  assert.equal(entriesOf(await ask('GET', `${path}?_since=2100-01-01T00:00:00Z`)).length, 0)
  assert.equal(entriesOf(await ask('GET', `${path}?_since=2020-01-01T00:00:00%2B02:00`)).length, 3)
  assert.equal(entriesOf(await ask('GET', `${path}?_at=2100`)).length, 1)
  assert.equal((await ask('GET', `${path}?_since=soon`)).status, 400)
})

for (const [mode, status] of [
  ['full', 200],
  ['normative', 200],
  ['terminology', 400],
] as const) {
  test(`metadata with the mode ${mode} is ${status} (#capabilities)`, async () => {
    assert.equal((await ask('GET', `/metadata?mode=${mode}`, { token: null })).status, status)
  })
}

for (const path of [
  `${TYPE}/a`,
  `${TYPE}/a?_summary=true`,
  `${TYPE}/a/_history/1`,
  `${TYPE}/a/_history`,
  `${TYPE}?name=alpha`,
  `${TYPE}/_history?_count=1`,
  `${TYPE}/unknown`,
  '/metadata',
  '/.well-known/smart-configuration',
]) {
  test(`HEAD of ${path} has the fields of GET and no body (#head)`, async () => {
    const [get, head] = [await ask('GET', path), await ask('HEAD', path)]
    const fieldsOf = ({ status, fields }: typeof get): readonly unknown[] => [
      status,
      ...['content-type', 'content-length', 'etag', 'last-modified', 'vary'].map(name => fields.get(name)),
    ]
    assert.deepEqual(fieldsOf(head), fieldsOf(get))
    assert.equal(head.text, '')
  })
}

const RETURNS = {
  minimal: undefined,
  representation: 'HealthcareService',
  OperationOutcome: 'OperationOutcome',
} as const
for (const [wanted, type] of Object.entries(RETURNS)) {
  test(`Prefer: return=${wanted} of POST, PUT and PATCH, and of successes alone (#ops)`, async () => {
    const fields = { prefer: `return=${wanted}` }
    const body = { ...SERVICE, id: 'preferred' }
    const changes = [
      await ask('POST', TYPE, { fields, body }),
      await ask('PUT', `${TYPE}/preferred`, { fields, body }),
      await ask('PATCH', `${TYPE}/preferred`, { fields: { ...fields, ...JSON_PATCH }, body: [] }),
    ]
    for (const { json, fields: sent } of changes) {
      assert.equal(json.resourceType, type)
      assert.match(sent.get('etag')!, /^W\/"\d+"$/)
    }
    const failed = await ask('POST', TYPE, { fields, body: { ...SERVICE, colour: 'red' } })
    assert.deepEqual([failed.status, codesOf(failed)[0]], [400, 'structure'])
  })
}

/** Media type of a patch, its body, status and issue code. */
const PATCHES: readonly (readonly [what: string, type: string, body: unknown, status: number, code: string])[] = [
  ['JSON that does not parse', 'application/json-patch+json', '[{"op":', 400, 'invalid'],
  ['an XML patch', 'application/xml-patch+xml', '<diff/>', 415, 'not-supported'],
  ['a merge patch', 'application/merge-patch+json', {}, 415, 'not-supported'],
  ['a patch of plain JSON', 'application/json', [], 415, 'not-supported'],
  ['a FHIRPath Patch that is no Parameters', 'application/fhir+json', SERVICE, 400, 'value'],
  [
    'a changed type',
    'application/json-patch+json',
    [{ op: 'replace', path: '/resourceType', value: 'Patient' }],
    422,
    'processing',
  ],
  [
    'a token of a prototype',
    'application/json-patch+json',
    [{ op: 'add', path: '/__proto__/x', value: 1 }],
    400,
    'structure',
  ],
  [
    'a path that resolves to nothing',
    'application/json-patch+json',
    [{ op: 'remove', path: '/comment' }],
    422,
    'processing',
  ],
  [
    'a result that is invalid',
    'application/json-patch+json',
    [{ op: 'add', path: '/active', value: 'yes' }],
    422,
    'structure',
  ],
]
for (const [what, type, body, status, code] of PATCHES) {
  test(`${what} is ${status} ${code}, and changes nothing`, async () => {
    await put('patched')
    const before = (await ask('GET', `${TYPE}/patched`)).text
    const asked = await ask('PATCH', `${TYPE}/patched`, { fields: { 'content-type': type }, body })
    assert.equal(asked.status, status, asked.text)
    assert.ok(codesOf(asked).includes(code), asked.text)
    assert.equal((await ask('GET', `${TYPE}/patched`)).text, before)
  })
}

// ---- searches (search.html) ---------------------------------------------------------------------------------------

test('entries of a searchset: absolute fullUrl without version, mode, no request or response', async () => {
  const asked = await ask('GET', `${TYPE}?_id=a,b&_sort=_id&_total=accurate`)
  assert.deepEqual([asked.json.type, asked.json.total], ['searchset', 2])
  for (const [index, entry] of entriesOf(asked).entries()) {
    assert.deepEqual(Object.keys(entry).sort(), ['fullUrl', 'resource', 'search'])
    assert.deepEqual([entry.fullUrl, entry.search?.mode], [`${base}${TYPE}/${'ab'[index]}`, 'match'])
  }
})

test('a search without a match has no entry, and the total 0', async () => {
  const { status, json } = await ask('GET', `${TYPE}?name=nobody`)
  assert.deepEqual([status, 'entry' in json, json.total], [200, false, 0])
})

test('_count=0 is the same as _summary=count: a total, and no entry (#count)', async () => {
  const counts = [
    await ask('GET', `${TYPE}?service-type=s1&_count=0`),
    await ask('GET', `${TYPE}?service-type=s1&_summary=count`),
  ]
  for (const { json } of counts) assert.deepEqual(['entry' in json, Number(json.total) >= 2], [false, true])
  assert.equal(counts[0]!.json.total, counts[1]!.json.total)
})

test('parameters of the URL and of the form of _search add up, as if they were repeated', async () => {
  const alone = await ask('POST', `${TYPE}/_search`, { fields: FORM, body: 'service-type=s2&_sort=_id' })
  assert.deepEqual(idsOf(alone), ['b', 'c'])
  const both = await ask('POST', `${TYPE}/_search?service-type=s1`, { fields: FORM, body: 'service-type=s2' })
  assert.deepEqual(idsOf(both), ['b'])
  const repeated = new URL(linksOf(both).get('self')!).searchParams.getAll('service-type')
  assert.deepEqual(repeated.sort(), ['s1', 's2'])
})

test('a plus and %20 of a query are a space, %2C separates values, names have a case', async () => {
  await put('spaced', { name: 'Two words' })
  for (const value of ['two+words', 'two%20words', 'nobody%2Ctwo+words', 'nobody,two words']) {
    assert.deepEqual(idsOf(await ask('GET', `${TYPE}?name=${value}`)), ['spaced'], value)
  }
  assert.equal((await ask('GET', `${TYPE}?Name=two`, { fields: { prefer: 'handling=strict' } })).status, 400)
})

test('an unknown parameter is ignored with a note, missing in the self link; strict is 400 (#errors)', async () => {
  for (const fields of [{}, { prefer: 'handling=lenient' }]) {
    const asked = await ask('GET', `${TYPE}?_id=a&colour=red`, { fields })
    const [match, note] = entriesOf(asked)
    assert.deepEqual([asked.status, match?.resource?.id, note?.search?.mode], [200, 'a', 'outcome'])
    const issues = note?.resource?.issue as readonly { severity: string; location: readonly string[] }[]
    assert.deepEqual(
      issues.map(({ severity, location }) => [severity, ...location]),
      [['warning', 'http.colour']],
    )
    assert.deepEqual([...new URL(linksOf(asked).get('self')!).searchParams.keys()], ['_id'])
    assert.equal(asked.json.total, 1)
  }
  const strict = await ask('GET', `${TYPE}?_id=a&colour=red`, { fields: { prefer: 'handling=strict' } })
  assert.deepEqual([strict.status, codesOf(strict)], [400, ['processing']])
})

for (const include of [
  '_include=HealthcareService:organization',
  '_include=HealthcareService:organization:Organization',
  '_include=HealthcareService:location',
  '_include=HealthcareService:coverage-area',
  '_include=HealthcareService:endpoint',
  '_include=*',
  '_include:iterate=HealthcareService:organization',
  '_revinclude=PractitionerRole:service',
  '_revinclude=Schedule:actor',
  '_revinclude=Appointment:actor',
]) {
  test(`${include} names nothing that is stored: no fault, and no further entry (#include)`, async () => {
    const asked = await ask('GET', `${TYPE}?_id=b&${include}`, { fields: { prefer: 'handling=strict' } })
    assert.deepEqual([asked.status, idsOf(asked), asked.json.total], [200, ['b'], 1])
    assert.ok(linksOf(asked).get('self')!.includes('include'))
  })
}

const SHAPES: readonly (readonly [query: string, elements: string])[] = [
  ['_summary=true', 'id meta name resourceType type'],
  ['_summary=text', 'id meta resourceType'],
  ['_summary=data', 'id meta name resourceType telecom type'],
  ['_elements=name', 'id meta name resourceType'],
]
for (const [query, elements] of SHAPES) {
  test(`a search with ${query} has ${elements}, and the tag SUBSETTED`, async () => {
    await put('shaped', { ...coded('shaped'), telecom: [{ system: 'phone', value: '1' }] })
    const [entry] = entriesOf(await ask('GET', `${TYPE}?_id=shaped&${query}`))
    assert.deepEqual(Object.keys(entry!.resource!).sort(), elements.split(' '))
    const { tag } = entry!.resource!.meta as { tag: readonly { system: string; code: string }[] }
    assert.deepEqual(
      tag.map(({ system, code }) => `${system}|${code}`),
      ['http://terminology.hl7.org/CodeSystem/v3-ObservationValue|SUBSETTED'],
    )
  })
}

test('_summary=false has every element and no tag', async () => {
  const [entry] = entriesOf(await ask('GET', `${TYPE}?_id=c&_summary=false`))
  assert.deepEqual(Object.keys(entry!.resource!.meta as object).sort(), ['lastUpdated', 'versionId'])
})

test('links are absolute, and lead through all pages without any other input', async () => {
  const seen: unknown[] = []
  for (let url: string | undefined = `${base}${TYPE}?name=alpha,beta,gamma&_sort=-name&_count=1`; url !== undefined; ) {
    const page = await ask('GET', url)
    seen.push(...idsOf(page).slice(0, 1))
    const links = linksOf(page)
    for (const link of links.values()) assert.ok(link.startsWith(`${base}${TYPE}?`), link)
    assert.ok(links.has('self') && links.has('first'))
    url = links.get('next')
  }
  assert.deepEqual(seen.slice(0, 2), ['c', 'b'])
  assert.equal(new Set(seen).size, seen.length)
})
