/** The grammar of searches: what each parameter means, and which fault refuses it (R4, search.html). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readSearch, searchPairs } from '../../../src/mounted/healthcare/search-query.ts'
import { foldText, urlPaths } from '../../../src/mounted/healthcare/search-terms.ts'
import { searchOf } from './storage-databases.ts'

const token = (system: string | null, code: string | null) => ({ kind: 'token', system, code })
const reference = (members: object) => ({ kind: 'reference', type: '', id: '', url: '', version: '', ...members })
const text = (match: string, value: string) => ({ kind: 'string', match, text: value })
const uri = (match: string, value: string) => ({ kind: 'uri', match, uri: value })
const period = (prefix: string, start: string, end: string) => {
  return { kind: 'date', prefix, startMs: Date.parse(start), endMs: Date.parse(end) }
}
const MIDDAY = '2024-02-28T12:00:00Z'

/** Query of one parameter, kind of its filter, values. */
const VALUES: readonly (readonly [string, string, readonly object[]])[] = [
  ['service-type=124', 'any', [token(null, '124')]],
  ['service-type=urn:x|124', 'any', [token('urn:x', '124')]],
  ['service-type=|124', 'any', [token('', '124')]],
  ['service-type=urn:x|', 'any', [token('urn:x', null)]],
  ['service-type=1,urn:x|2', 'any', [token(null, '1'), token('urn:x', '2')]],
  ['service-type=1%2C2', 'any', [token(null, '1'), token(null, '2')]],
  ['service-type=a\\,b', 'any', [token(null, 'a,b')]],
  ['service-type=a\\|b', 'any', [token(null, 'a|b')]],
  ['service-type=a\\$b\\\\c', 'any', [token(null, 'a$b\\c')]],
  ['service-type:not=1,2', 'none', [token(null, '1'), token(null, '2')]],
  ['service-type:text=Gen', 'text', [text('starts', 'Gen')]],
  ['identifier=urn:x|1', 'any', [token('urn:x', '1')]],
  ['identifier:of-type=urn:t|MR|12', 'any', [{ kind: 'of-type', system: 'urn:t', code: 'MR', value: '12' }]],
  ['active=true', 'any', [token(null, 'true')]],
  ['active:not=false', 'none', [token(null, 'false')]],
  ['_id=a,b', 'any', [token(null, 'a'), token(null, 'b')]],
  ['_tag=urn:x|a', 'any', [token('urn:x', 'a')]],
  ['_security:text=se', 'text', [text('starts', 'se')]],
  ['name=Sm ith', 'any', [text('starts', 'Sm ith')]],
  ['name=Sm+ith', 'any', [text('starts', 'Sm ith')]],
  ['name:contains=a,b', 'any', [text('contains', 'a'), text('contains', 'b')]],
  ['name:exact=A\\,b', 'any', [text('exact', 'A,b')]],
  ['organization=23', 'any', [reference({ id: '23' })]],
  ['organization=Organization/23', 'any', [reference({ type: 'Organization', id: '23' })]],
  ['organization:Organization=23', 'any', [reference({ type: 'Organization', id: '23' })]],
  ['organization=Organization/23/_history/2', 'any', [reference({ type: 'Organization', id: '23', version: '2' })]],
  ['organization=https://x.example/Organization/23', 'any', [reference({ url: 'https://x.example/Organization/23' })]],
  [
    'location=urn:uuid:5b2c8f0e-7a5f-4f43-9b2e-f3a0d9c1b111',
    'any',
    [reference({ url: 'urn:uuid:5b2c8f0e-7a5f-4f43-9b2e-f3a0d9c1b111' })],
  ],
  ['organization:identifier=urn:x|9', 'any', [{ kind: 'reference-identifier', system: 'urn:x', code: '9' }]],
  ['_source=https://x.example/a%20b'.replace('%20', ''), 'any', [uri('exact', 'https://x.example/ab')]],
  ['_profile=https://x.example/p|1.0', 'any', [uri('exact', 'https://x.example/p|1.0')]],
  ['_profile:below=https://x.example/p', 'any', [uri('below', 'https://x.example/p')]],
  ['_source:above=https://x.example/p', 'any', [uri('above', 'https://x.example/p')]],
  ['_lastUpdated=2024', 'any', [period('eq', '2024-01-01T00:00:00Z', '2025-01-01T00:00:00Z')]],
  ['_lastUpdated=gt2024-02', 'any', [period('gt', '2024-02-01T00:00:00Z', '2024-03-01T00:00:00Z')]],
  ['_lastUpdated=le2024-02-28', 'any', [period('le', '2024-02-28T00:00:00Z', '2024-02-29T00:00:00Z')]],
  ['_lastUpdated=ap2024-02-28T12:00', 'any', [period('ap', MIDDAY, '2024-02-28T12:01:00Z')]],
  ['_lastUpdated=sa2024-02-28T12:00:00Z', 'any', [period('sa', MIDDAY, '2024-02-28T12:00:01Z')]],
  ['_lastUpdated=eb2024-02-28T14:00:00%2B02:00', 'any', [period('eb', MIDDAY, '2024-02-28T12:00:01Z')]],
  ['_lastUpdated=ne2024-02-28T14:00:00+02:00', 'any', [period('ne', MIDDAY, '2024-02-28T12:00:01Z')]],
  [
    '_lastUpdated=lt2024-02-28T12:00:00.250Z',
    'any',
    [period('lt', '2024-02-28T12:00:00.250Z', '2024-02-28T12:00:00.251Z')],
  ],
  [
    '_lastUpdated=ge2024-02-28T12:00:00.2Z',
    'any',
    [period('ge', '2024-02-28T12:00:00.200Z', '2024-02-28T12:00:00.300Z')],
  ],
]

/** Query, code of its first issue, parameter that it names. */
const REFUSED: readonly (readonly [string, string, string])[] = [
  ['service-type:above=1', 'not-supported', 'service-type'],
  ['service-type:below=1', 'not-supported', 'service-type'],
  ['service-type:in=urn:x', 'not-supported', 'service-type'],
  ['service-type:not-in=urn:x', 'not-supported', 'service-type'],
  ['service-type:exact=1', 'not-supported', 'service-type'],
  ['service-type:of-type=a|b|c', 'not-supported', 'service-type'],
  ['service-type:wrong=1', 'not-supported', 'service-type'],
  ['name:text=a', 'not-supported', 'name'],
  ['name:not=a', 'not-supported', 'name'],
  ['organization:above=1', 'not-supported', 'organization'],
  ['organization:Location=1', 'not-supported', 'organization'],
  ['_lastUpdated:not=2024', 'not-supported', '_lastUpdated'],
  ['_id:exact=a', 'not-supported', '_id'],
  ['organization.name=x', 'not-supported', 'organization.name'],
  ['organization:Organization.name=x', 'not-supported', 'organization'],
  ['_has:PractitionerRole:service:practitioner=1', 'not-supported', '_has'],
  ['_text=a', 'not-supported', '_text'],
  ['_content=a', 'not-supported', '_content'],
  ['_list=a', 'not-supported', '_list'],
  ['_type=a', 'not-supported', '_type'],
  ['_query=a', 'not-supported', '_query'],
  ['_filter=name eq a', 'not-supported', '_filter'],
  ['_contained=true', 'not-supported', '_contained'],
  ['service-type=a|b|c', 'value', 'service-type'],
  ['service-type=|', 'value', 'service-type'],
  ['service-type=a\\b', 'value', 'service-type'],
  ['service-type=a\\', 'value', 'service-type'],
  ['service-type=,', 'value', 'service-type'],
  ['active=|true', 'value', 'active'],
  ['active=yes', 'value', 'active'],
  ['_id=urn:x|a', 'value', '_id'],
  ['name:missing=maybe', 'value', 'name'],
  ['identifier:of-type=a|b', 'value', 'identifier'],
  ['organization=a b', 'value', 'organization'],
  ['organization:Organization=Location/1', 'value', 'organization'],
  ['_profile:below=urn:x', 'value', '_profile'],
  ['_lastUpdated=2024-13', 'value', '_lastUpdated'],
  ['_lastUpdated=2023-02-29', 'value', '_lastUpdated'],
  ['_lastUpdated=2024-02-28T10', 'value', '_lastUpdated'],
  ['_lastUpdated=2024-02-28T24:00', 'value', '_lastUpdated'],
  ['_lastUpdated=2024-02-28T10:00:00+15:00', 'value', '_lastUpdated'],
  ['_lastUpdated=xx2024', 'value', '_lastUpdated'],
  ['_lastUpdated=0000', 'value', '_lastUpdated'],
  ['_count=-1', 'value', '_count'],
  ['_count=many', 'value', '_count'],
  ['_total=some', 'value', '_total'],
  ['_summary=yes', 'value', '_summary'],
  ['_elements=a b', 'value', '_elements'],
  ['_include=HealthcareService:name', 'value', '_include'],
  ['_include=Location:organization', 'value', '_include'],
  ['_include=HealthcareService:organization:Location', 'value', '_include'],
  ['_revinclude=Patient:name', 'value', '_revinclude'],
  ['_summary=text&_include=*', 'value', '_include'],
  ['_sort=colour', 'processing', '_sort'],
  ['colour=red', 'processing', 'colour'],
  ['Name=a', 'processing', 'Name'],
  [`name=${'a'.repeat(200)}`, 'value', 'name'],
  [`name:contains=${'a'.repeat(100)}`, 'value', 'name'],
  [`service-type=${'a,'.repeat(300)}`, 'too-costly', ''],
  [Array.from({ length: 17 }, (_, index) => `name=a${index}`).join('&'), 'too-costly', ''],
  ['name:contains=a,b,c,d,e&name:contains=f,g,h,i', 'too-costly', ''],
  [`name:exact=${'a'.repeat(9000)}`, 'too-long', 'name'],
]

describe('a search', () => {
  for (const [query, kind, values] of VALUES) {
    test(`${query} is read`, () => {
      const { filters } = searchOf(query)
      assert.deepEqual(filters, [{ parameter: filters[0]!.parameter, kind, values }])
      assert.ok(query.startsWith(filters[0]!.parameter.name))
    })
  }

  for (const [query, code, parameter] of REFUSED) {
    test(`${query.slice(0, 60)} is refused as ${code}`, () => {
      const { query: read, issues } = readSearch(searchPairs(query), { isStrict: true })
      assert.equal(read, null)
      const [issue] = issues.filter(({ severity }) => severity === 'error')
      assert.deepEqual([issue!.code, issue!.parameter ?? ''], [code, parameter])
    })
  }

  test('reports every fault, not the first', () => {
    const { issues } = readSearch(searchPairs('active=yes&colour=red&name:not=a&_count=x'), { isStrict: true })
    assert.deepEqual(
      issues.map(({ parameter }) => parameter),
      ['active', 'colour', 'name', '_count'],
    )
  })

  test('of a lenient client ignores unknown parameters with a warning, and leaves them out of the self link', () => {
    const { query, issues } = readSearch(searchPairs('colour=red&name=a&_sort=shade,name'), { isStrict: false })
    assert.deepEqual(
      issues.map(({ severity, parameter }) => [severity, parameter]),
      [
        ['warning', 'colour'],
        ['warning', '_sort'],
      ],
    )
    assert.deepEqual(query!.used, [
      ['name', 'a'],
      ['_sort', 'name'],
    ])
    assert.deepEqual(
      query!.sort.map(({ parameter }) => parameter.name),
      ['name'],
    )
  })

  test('of a lenient client is refused where a parameter that would narrow it is not supported', () => {
    for (const text of ['_has:Schedule:actor:date=1', 'name:fuzzy=a', 'organization.name=x', '_filter=a', 'active=1']) {
      assert.equal(readSearch(searchPairs(text), { isStrict: false }).query, null, text)
    }
  })

  test('ignores empty values', () => {
    assert.deepEqual(searchOf('name=&service-type=&_count=').filters, [])
  })

  test('joins repeated parameters, each a condition of its own', () => {
    assert.equal(searchOf('service-type=1&service-type=2&name=a').filters.length, 3)
  })

  test('reads :missing for every parameter', () => {
    for (const name of ['name', 'active', 'organization', 'identifier', '_profile', '_lastUpdated', '_id', '_tag']) {
      const { filters } = searchOf(`${name}:missing=true`)
      assert.deepEqual(filters, [{ parameter: filters[0]!.parameter, kind: 'missing', isMissing: true }])
    }
  })

  test('reads the parameters of the result', () => {
    const text =
      '_sort=-name,_lastUpdated&_count=7&_total=estimate&_summary=data&_elements=name,HealthcareService.type' +
      '&_elements=id&_include=HealthcareService:organization:Organization&_include:iterate=*' +
      '&_revinclude=Schedule:actor' +
      '&_contained=false&_containedType=container&_format=json&_pretty=true'
    const { sort, count, total, summary, elements, includes, used } = searchOf(text)
    assert.deepEqual(
      sort.map(({ parameter, isDescending }) => [parameter.name, isDescending]),
      [
        ['name', true],
        ['_lastUpdated', false],
      ],
    )
    assert.deepEqual([count, total, summary, elements], [7, 'estimate', 'data', ['name', 'type', 'id']])
    assert.deepEqual(includes, ['HealthcareService:organization:Organization', '*', 'Schedule:actor'])
    assert.equal(used.length, 13)
  })

  test('has pages of 500 matches at most, and tells so in the self link', () => {
    const { count, used } = searchOf('_count=10000')
    assert.deepEqual([count, used], [500, [['_count', '500']]])
    assert.equal(searchOf('_count=0').count, 0)
  })

  test('has a repeated condition once', () => {
    assert.equal(searchOf('name:contains=a&name:contains=a&name=a&name:contains=b').filters.length, 3)
  })

  test('that decides about a write names a condition, and nothing of the result', () => {
    for (const text of ['', '_count=3', 'name=a&_sort=name', 'colour=red', 'name=', 'name=a&identifier=']) {
      assert.equal(readSearch(searchPairs(text), { isStrict: false, isCriteria: true }).query, null, text)
    }
    assert.equal(searchOf('identifier=urn:x|1&_format=json', true).filters.length, 1)
  })
})

/** Text, folded. */
const FOLDED: readonly (readonly [string, string])[] = [
  ['Évora', 'evora'],
  ['E\u0301vora', 'evora'],
  ["Queen's  Hospital", 'queens hospital'],
  ['a\tb\n c', 'a b c'],
  ['STRASSE', 'strasse'],
  ['İstanbul', 'istanbul'],
  ['ﬁne', 'fine'],
  ['%', ''],
  ['* _ %', ''],
  ['drop-in', 'dropin'],
  ['日本', '日本'],
]

describe('texts of the index', () => {
  for (const [before, after] of FOLDED) {
    test(`${JSON.stringify(before)} becomes ${JSON.stringify(after)}`, () => assert.equal(foldText(before), after))
  }

  test('paths of a URL end at segments', () => {
    assert.deepEqual(urlPaths('https://x.example/a/b/'), [
      'https://x.example',
      'https://x.example/a',
      'https://x.example/a/b',
    ])
    assert.deepEqual(urlPaths('urn:oid:1.2'), ['urn:oid:1.2'])
    assert.equal(urlPaths(`https://x.example${'/a'.repeat(1000)}`).length, 32)
  })
})
