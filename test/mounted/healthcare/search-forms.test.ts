/** Every search parameter by each of its plain forms and modifiers, on an embedded database (R4, search.html). */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { readSearch, searchPairs } from '../../../src/mounted/healthcare/search-query.ts'
import type { JsonObject } from '../../../src/mounted/healthcare/json-text.ts'
import { BASE, openStorage, searchOf, service } from './storage-databases.ts'

const fixture = await openStorage('h2')
if (typeof fixture === 'string') throw new Error(fixture)
const { storage, remove } = fixture
after(remove)

const concept = (code: string) => [
  { coding: [{ system: 'urn:c', code, display: `${code} shown` }], text: `${code} text` },
]
const CODED = { characteristic: 'parking', program: 'ptsd', category: 'cat', type: 'kind', specialty: 'special' }
/** `whole` has a value for every parameter, `empty` none, `other` different ones. */
const whole: JsonObject = {
  active: true,
  name: 'Whole service',
  identifier: [{ system: 'urn:i', value: 'W-1' }],
  providedBy: { reference: 'Organization/o1', identifier: { system: 'urn:oi', value: 'O1' } },
  location: [{ reference: 'Location/l1' }],
  coverageArea: [{ reference: 'Location/c1/_history/2' }],
  endpoint: [{ reference: `${BASE}/Endpoint/e1` }],
  ...Object.fromEntries(Object.entries(CODED).map(([element, code]) => [element, concept(code)])),
  meta: {
    profile: ['https://p.example/whole|2'],
    source: 'https://s.example/whole',
    tag: [{ system: 'urn:t', code: 'tagged', display: 'Tag shown' }],
    security: [{ system: 'urn:t', code: 'secret', display: 'Secret shown' }],
  },
}
const other: JsonObject = { active: false, name: 'Other service', type: concept('else') }
for (const [id, members] of Object.entries({ whole, empty: {}, other })) {
  await storage.write(writer => writer.create(service(members), id))
}

const NAMES: Readonly<Record<string, string>> = { category: 'service-category', type: 'service-type' }
const TOKENS: readonly (readonly [name: string, system: string, code: string])[] = [
  ...Object.entries(CODED).map(([element, code]) => [NAMES[element] ?? element, 'urn:c', code] as const),
  ['identifier', 'urn:i', 'W-1'],
  ['_tag', 'urn:t', 'tagged'],
  ['_security', 'urn:t', 'secret'],
]
const REFERENCES = [
  ['organization', 'Organization', 'o1'],
  ['location', 'Location', 'l1'],
  ['coverage-area', 'Location', 'c1'],
  ['endpoint', 'Endpoint', 'e1'],
] as const

/** Query, and ids of the matches in the order of creation. */
const ROWS: readonly (readonly [query: string, ids: string])[] = [
  ...TOKENS.flatMap(([name, system, code]): readonly (readonly [string, string])[] => [
    [`${name}=${code}`, 'whole'],
    [`${name}=${code.toUpperCase()}`, 'whole'],
    [`${name}=${system}|${code}`, 'whole'],
    [`${name}=${system}|`, name === 'service-type' ? 'whole other' : 'whole'],
    [`${name}=|${code}`, ''],
    [`${name}=urn:none|${code}`, ''],
    [`${name}=none,${code}`, 'whole'],
    [`${name}=${code}&${name}=none`, ''],
    [`${name}:not=${code}`, 'empty other'],
    [`${name}:missing=true`, name === 'service-type' ? 'empty' : 'empty other'],
    [`${name}:missing=false`, name === 'service-type' ? 'whole other' : 'whole'],
  ]),
  ...Object.entries(CODED).flatMap(([element, code]): readonly (readonly [string, string])[] => [
    [`${NAMES[element] ?? element}:text=${code} sho`, 'whole'],
    [`${NAMES[element] ?? element}:text=${code.toUpperCase()} TEXT`, 'whole'],
    [`${NAMES[element] ?? element}:text=text`, ''],
  ]),
  ['_tag:text=tag sh', 'whole'],
  ['_security:text=secret', 'whole'],
  ...REFERENCES.flatMap(([name, type, id]): readonly (readonly [string, string])[] => [
    [`${name}=${id}`, 'whole'],
    [`${name}=${type}/${id}`, 'whole'],
    [`${name}:${type}=${id}`, 'whole'],
    [`${name}=${BASE}/${type}/${id}`, 'whole'],
    [`${name}=https://foreign.example/${type}/${id}`, ''],
    [`${name}=${type}/${id.toUpperCase()}`, ''],
    [`${name}:missing=true`, 'empty other'],
  ]),
  ['coverage-area=Location/c1/_history/2', 'whole'],
  ['coverage-area=Location/c1/_history/3', ''],
  ['organization:identifier=urn:oi|O1', 'whole'],
  ['organization:identifier=urn:oi|', 'whole'],
  ['organization:identifier=|O1', ''],
  ['active=true', 'whole'],
  ['active=false', 'other'],
  ['active:missing=true', 'empty'],
  ['name=WHOLE', 'whole'],
  ['name:exact=Whole service', 'whole'],
  ['name:contains=SERVICE', 'whole other'],
  ['name:missing=true', 'empty'],
  ['_profile=https://p.example/whole', 'whole'],
  ['_profile=https://p.example/whole|2', 'whole'],
  ['_profile=https://p.example/whole|3', ''],
  ['_profile=https://p.example/WHOLE', ''],
  ['_source=https://s.example/whole', 'whole'],
  ['_source:below=https://s.example', 'whole'],
  ['_source:above=https://s.example/whole/part', 'whole'],
  ['_source:missing=true', 'empty other'],
  ['_id=whole,empty', 'whole empty'],
  ['_lastUpdated=gt2000', 'whole empty other'],
  ['_lastUpdated:missing=true', ''],
]
for (const [query, ids] of ROWS) {
  test(`${query} finds ${ids || 'nothing'}`, async () => {
    const { matches } = await storage.search(searchOf(query), BASE)
    assert.equal(matches.map(({ id }) => id).join(' '), ids)
  })
}

/** Modifiers that a type has not, on each parameter of the type. */
const REFUSED: readonly (readonly [names: readonly string[], modifiers: readonly string[]])[] = [
  [TOKENS.map(([name]) => name), ['exact', 'contains', 'in', 'not-in', 'above', 'below', 'identifier', 'Organization']],
  [
    REFERENCES.map(([name]) => name),
    ['exact', 'contains', 'not', 'text', 'above', 'below', 'in', 'Patient', 'of-type'],
  ],
  [
    ['active', '_id'],
    ['text', 'exact', 'in', 'not-in', 'above', 'below', 'of-type'],
  ],
  [['name'], ['not', 'text', 'in', 'above', 'below', 'identifier']],
  [['_lastUpdated'], ['not', 'exact', 'contains', 'above', 'below']],
  [
    ['_profile', '_source'],
    ['not', 'exact', 'contains', 'text', 'in', 'identifier'],
  ],
]
for (const [names, modifiers] of REFUSED) {
  for (const name of names) {
    test(`${name} refuses ${modifiers.join(', ')}, for lenient clients too`, () => {
      for (const modifier of modifiers) {
        const { query, issues } = readSearch(searchPairs(`${name}:${modifier}=1`), { isStrict: false })
        assert.deepEqual([query, issues[0]?.code, issues[0]?.parameter], [null, 'not-supported', name], modifier)
      }
    })
  }
}
