/** Searches on each database: every rule of R4 by example, pages while others write, and random searches. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { JsonObject } from '../../../src/mounted/healthcare/json-text.ts'
import { InvalidCursor } from '../../../src/mounted/healthcare/search-pages.ts'
import type { ServiceStorage } from '../../../src/mounted/healthcare/storage.ts'
import { sampleServices } from '../../../src/mounted/healthcare/storage-sample.ts'
import { KINDS } from '../../control/registry/real-databases.ts'
import { IS_LONG, Random, SEED } from '../../harness/random.ts'
import { modelSearch } from './search-model.ts'
import { BASE, openStorage, searchOf, service, type StorageFixture } from './storage-databases.ts'

const SYSTEM = 'http://terminology.hl7.org/CodeSystem/service-type'
const TIME = '2024-02-28T12:00:00.500Z'

/** By id; stored at `TIME` and each following minute. */
const SERVICES: Readonly<Record<string, JsonObject>> = {
  full: {
    active: true,
    name: 'Saint-Mary Évora  Clinic',
    identifier: [
      { system: 'urn:x', value: 'HS-1', type: { coding: [{ system: 'urn:t', code: 'MR' }], text: 'Medical record' } },
    ],
    type: [{ coding: [{ system: SYSTEM, code: '124', display: 'General Practice' }], text: 'GP' }],
    category: [{ coding: [{ code: 'Local' }] }, { coding: [{ system: 'urn:c', code: 'a,b|c$d' }] }],
    specialty: [{ text: 'Words only' }],
    providedBy: { reference: 'Organization/23' },
    location: [{ reference: 'Location/1' }, { reference: 'Location/2/_history/7' }],
    endpoint: [{ reference: `${BASE}/Endpoint/9` }],
    meta: { profile: ['https://p.example/a/b|1.0'], source: 'https://s.example/x/y', tag: [{ code: 'Demo' }] },
  },
  foreign: {
    active: false,
    name: 'evora dental 100%',
    type: [{ coding: [{ system: SYSTEM, code: '88', display: 'General Dental' }] }],
    category: [{ coding: [{ system: 'urn:c', code: 'local' }] }],
    providedBy: { reference: 'https://other.example/Organization/23', identifier: { system: 'urn:o', value: 'O-5' } },
    coverageArea: [{ display: 'Everywhere' }],
    meta: { security: [{ system: 'urn:s', code: 'R', display: 'Restricted' }], profile: ['https://p.example/a'] },
  },
  bare: {},
  contained: {
    name: 'a_b',
    contained: [{ resourceType: 'Organization', id: 'o', name: 'Inside' }],
    providedBy: { reference: '#o' },
    meta: { source: 'urn:uuid:0c3151bd-1cbf-4d64-b04d-cd9187a4c6e0' },
  },
}

const ALL = 'full foreign bare contained'

/** Query, ids of the matches in the order of creation. */
const ROWS: readonly (readonly [string, string])[] = [
  ['', ALL],
  ['name=saint', 'full'],
  ['name=SAINTMARY', 'full'],
  ['name=saint-mary évo', 'full'],
  ['name=mary', ''],
  ['name=Evora', 'foreign'],
  ['name:contains=evora', 'full foreign'],
  ['name:contains=ÉVORA clinic', 'full'],
  ['name:exact=evora dental 100%', 'foreign'],
  ['name:exact=Evora dental 100%', ''],
  ['name=%', ''],
  ['name=*', ''],
  ['name:contains=_', ''],
  ['name:contains=%', ''],
  ['name:contains=a_b', 'contained'],
  ['name=x,evora', 'foreign'],
  ['name:missing=true', 'bare'],
  ['name:missing=false', 'full foreign contained'],
  ['service-type=124', 'full'],
  [`service-type=${SYSTEM}|124`, 'full'],
  ['service-type=urn:other|124', ''],
  ['service-type=|124', ''],
  [`service-type=${SYSTEM}|`, 'full foreign'],
  ['service-type=124,88', 'full foreign'],
  ['service-type=124&service-type=88', ''],
  ['service-type:not=124', 'foreign bare contained'],
  ['service-type:not=124,88', 'bare contained'],
  ['service-type:text=general', 'full foreign'],
  ['service-type:text=gp', 'full'],
  ['service-type:text=practice', ''],
  ['service-type:missing=true', 'bare contained'],
  ['service-category=local', 'full foreign'],
  ['service-category=|local', 'full'],
  ['service-category=urn:c|LOCAL', 'foreign'],
  ['service-category=URN:C|local', ''],
  ['service-category=a\\,b\\|c\\$d', 'full'],
  ['specialty:text=words', 'full'],
  ['specialty:missing=false', 'full'],
  ['specialty=Words only', ''],
  ['active=true', 'full'],
  ['active=false', 'foreign'],
  ['active=true,false', 'full foreign'],
  ['active:not=true', 'foreign bare contained'],
  ['identifier=HS-1', 'full'],
  ['identifier=urn:x|hs-1', 'full'],
  ['identifier=urn:x|', 'full'],
  ['identifier:of-type=urn:t|MR|HS-1', 'full'],
  ['identifier:of-type=urn:t|SS|HS-1', ''],
  ['identifier:text=medical', 'full'],
  ['organization=23', 'full'],
  ['organization=Organization/23', 'full'],
  ['organization:Organization=23', 'full'],
  [`organization=${BASE}/Organization/23`, 'full'],
  ['organization=https://other.example/Organization/23', 'foreign'],
  ['organization=Location/23', ''],
  ['organization:identifier=urn:o|O-5', 'foreign'],
  ['organization:identifier=o-5', 'foreign'],
  ['organization:missing=false', 'full foreign contained'],
  ['organization=o', ''],
  ['location=1', 'full'],
  ['location=Location/2', 'full'],
  ['location=Location/2/_history/7', 'full'],
  ['location=Location/2/_history/8', ''],
  ['location=1&location=2', 'full'],
  ['endpoint=Endpoint/9', 'full'],
  ['endpoint=9', 'full'],
  [`endpoint=${BASE}/Endpoint/9`, 'full'],
  ['coverage-area:missing=false', 'foreign'],
  ['program:missing=false', ''],
  ['_id=full', 'full'],
  ['_id=FULL', ''],
  ['_id=bare,full,none', 'full bare'],
  ['_id:not=full,bare', 'foreign contained'],
  ['_id:missing=false', ALL],
  ['_id:missing=true', ''],
  ['_tag=demo', 'full'],
  ['_tag=|Demo', 'full'],
  ['_security=urn:s|R', 'foreign'],
  ['_security:text=restr', 'foreign'],
  ['_profile=https://p.example/a/b', 'full'],
  ['_profile=https://p.example/a/b|1.0', 'full'],
  ['_profile=https://p.example/a/b|2.0', ''],
  ['_profile=https://p.example/A', ''],
  ['_profile:below=https://p.example/a', 'full foreign'],
  ['_profile:below=https://p.example/a/', 'full foreign'],
  ['_profile:above=https://p.example/a/b/c', 'full foreign'],
  ['_profile:above=https://p.example/a/c', 'foreign'],
  ['_source=https://s.example/x/y', 'full'],
  ['_source=https://s.example/x', ''],
  ['_source:below=https://s.example/x', 'full'],
  ['_source=urn:uuid:0c3151bd-1cbf-4d64-b04d-cd9187a4c6e0', 'contained'],
  ['_source:missing=true', 'foreign bare'],
  ['_lastUpdated=2024', ALL],
  ['_lastUpdated=2024-02-28T12:00', 'full'],
  ['_lastUpdated=2024-02-28T12:00:00Z', 'full'],
  ['_lastUpdated=2024-02-28T12:00:00.500Z', 'full'],
  ['_lastUpdated=2024-02-28T13:01:00.5%2B01:00', 'foreign'],
  ['_lastUpdated=ne2024-02-28T12:00', 'foreign bare contained'],
  ['_lastUpdated=gt2024-02-28T12:00', 'foreign bare contained'],
  ['_lastUpdated=sa2024-02-28T12:01', 'bare contained'],
  ['_lastUpdated=ge2024-02-28T12:01', 'foreign bare contained'],
  ['_lastUpdated=lt2024-02-28T12:01', 'full'],
  ['_lastUpdated=eb2024-02-28T12:02', 'full foreign'],
  ['_lastUpdated=le2024-02-28T12:01', 'full foreign'],
  ['_lastUpdated=gt2024', ''],
  ['_lastUpdated=ge2024', ALL],
  ['_lastUpdated=ge2024-02-28T12:01&_lastUpdated=lt2024-02-28T12:02', 'foreign'],
  ['_lastUpdated=ap2024-02-28', ALL],
  ['_lastUpdated=ap1990', ''],
  ['name:contains=evora&active=false&service-type=88', 'foreign'],
  ['_sort=name', 'bare contained foreign full'],
  ['_sort=-name', 'full foreign contained bare'],
  ['_sort=_lastUpdated', ALL],
  ['_sort=-_lastUpdated', 'contained bare foreign full'],
  ['_sort=_id', 'bare contained foreign full'],
  ['_sort=active,-_id', 'contained bare foreign full'],
  ['_sort=service-category&service-category:missing=false', 'full foreign'],
  ['_sort=-service-category&service-category:missing=false', 'foreign full'],
]

const LETTERS = 'abÉ '
const CODES = ['1', '2', 'A', 'b', 'c,d']
const RANDOM_SERVICES = 120
const RANDOM_SEARCHES = IS_LONG ? 20_000 : 100

type PageClause = (storage: ServiceStorage, tag: string) => Promise<void>

const PAGES: readonly (readonly [string, PageClause])[] = [
  ['links lead through all matches forward and back, in every order', everyOrder],
  ['pages neither repeat nor lose a match while others write', whileWriting],
  ['a position of another search, a changed one and a foreign one are refused', foreignPositions],
  ['a search at its limits is answered', greatestSearches],
  ['broad searches are sorted and counted', broadSearches],
  ['totals are accurate, estimated or unknown, as they are asked for', totals],
  ['a page of large services has fewer matches than it may, forwards and backwards', largeServices],
  [`random searches find what a naive search finds (seed ${SEED})`, randomSearches],
]

for (const kind of KINDS) {
  describe(`searches in ${kind}`, () => {
    let fixture: StorageFixture | string
    let storage: ServiceStorage
    before(async () => {
      fixture = await openStorage(kind)
      if (typeof fixture === 'string') return
      let nowMs = Date.parse(TIME)
      storage = await fixture.another(() => nowMs)
      for (const [id, members] of Object.entries(SERVICES)) {
        await storage.write(writer => writer.create(service(members), id))
        nowMs += 60_000
      }
    })
    after(async () => {
      if (typeof fixture !== 'string') await fixture.remove()
    })

    for (const [query, ids] of ROWS) {
      test(`${query || 'no parameter'} finds ${ids || 'nothing'}`, async t => {
        if (typeof fixture === 'string') return t.skip(fixture)
        const { matches, total } = await storage.search(searchOf(query), BASE)
        assert.deepEqual(
          matches.map(({ id }) => id),
          ids.split(' ').filter(id => id !== ''),
        )
        assert.equal(total, matches.length)
        const counted = await storage.search(searchOf(`${query}&_summary=count`), BASE)
        assert.deepEqual([counted.total, counted.matches.length], [matches.length, 0])
      })
    }

    // In the same database, whose creation takes a server half a second; each has services of its own, by their tag.
    for (const [title, body] of PAGES) {
      test(title, async t => {
        if (typeof fixture === 'string') return t.skip(fixture)
        await body(fixture.storage, `t${Math.abs(Buffer.from(title).reduce((sum, byte) => (sum * 31 + byte) | 0, 7))}`)
      })
    }
  })
}

async function makeMany(storage: ServiceStorage, tag: string, count: number): Promise<void> {
  const names = ['beta', 'alpha', 'Gamma', 'alpha']
  await storage.load(
    Array.from({ length: count }, (_, index) =>
      service({
        ...{ id: `${tag}-${index}`, name: names[index % names.length], meta: { tag: [{ code: tag }] } },
        type: [{ coding: [{ code: `${index % 3}` }, { code: `${index % 5}` }] }],
      }),
    ),
  )
}

/** Ids of all pages, by the links. */
async function follow(storage: ServiceStorage, query: string, link: 'next' | 'previous'): Promise<string[][]> {
  const pages: string[][] = []
  for (let at: string | null = query; at !== null; ) {
    const { matches, links } = await storage.search(searchOf(at), BASE)
    pages.push(matches.map(({ id }) => id))
    at = links[link]
  }
  return pages
}

async function largeServices(storage: ServiceStorage, tag: string): Promise<void> {
  const ids = Array.from({ length: 5 }, (_, index) => `${tag}-${index}`)
  const comment = 'c'.repeat(9_000_000)
  for (const id of ids) {
    await storage.write(writer => writer.create(service({ comment, meta: { tag: [{ code: tag }] } }), id))
  }
  const search = `_tag=${tag}&_count=30`
  assert.deepEqual(await follow(storage, search, 'next'), [ids.slice(0, 3), ids.slice(3)])
  const { links } = await storage.search(searchOf(search), BASE)
  const second = await storage.search(searchOf(links.next!), BASE)
  assert.deepEqual(await follow(storage, second.links.previous!, 'previous'), [ids.slice(0, 3)])
  const newest = await storage.history('', { count: 30 })
  assert.deepEqual(
    newest.versions.map(({ id }) => id),
    ids.toReversed().slice(0, 3),
  )
  const older = await storage.history('', { count: 2, before: newest.next! })
  assert.deepEqual(
    older.versions.map(({ id }) => id),
    ids.toReversed().slice(3),
  )
}

async function everyOrder(storage: ServiceStorage, tag: string): Promise<void> {
  await makeMany(storage, tag, 23)
  for (const sort of [
    '',
    'name',
    '-name',
    '_id',
    '-_lastUpdated',
    'service-type,-name',
    '-service-type',
    'name,-_id',
  ]) {
    const query = `_tag=${tag}&_count=5${sort === '' ? '' : `&_sort=${sort}`}`
    const whole = (await storage.search(searchOf(query.replace('_count=5', '_count=100')), BASE)).matches
    const forward = await follow(storage, query, 'next')
    assert.deepEqual(
      forward.flat(),
      whole.map(({ id }) => id),
      sort,
    )
    assert.equal(new Set(forward.flat()).size, 23)
    let last = await storage.search(searchOf(query), BASE)
    assert.equal(last.links.previous, null)
    while (last.links.next !== null) last = await storage.search(searchOf(last.links.next), BASE)
    const back = await follow(storage, last.links.self, 'previous')
    assert.deepEqual(back.reverse().flat(), forward.flat(), sort)
  }
}

async function whileWriting(storage: ServiceStorage, tag: string): Promise<void> {
  await makeMany(storage, tag, 20)
  const before = (await storage.search(searchOf(`_tag=${tag}&_count=100`), BASE)).matches.map(({ id }) => id)
  for (const sort of ['_id', 'name', '-name']) {
    const seen: string[] = []
    for (let at: string | null = `_tag=${tag}&_count=3&_sort=${sort}`; at !== null; ) {
      const { matches, links } = await storage.search(searchOf(at), BASE)
      seen.push(...matches.map(({ id }) => id))
      at = links.next
      const name = ['aaa', 'alpha', 'zzz'][seen.length % 3]
      const late = service({ name, meta: { tag: [{ code: tag }] } })
      await storage.write(async writer => {
        const { id } = await writer.create(late)
        await writer.create(late)
        await writer.delete(id)
      })
    }
    assert.equal(new Set(seen).size, seen.length)
    assert.deepEqual(
      before.filter(id => !seen.includes(id)),
      [],
    )
  }
}

async function foreignPositions(storage: ServiceStorage, tag: string): Promise<void> {
  await makeMany(storage, tag, 9)
  const query = `_tag=${tag}&_count=4&_sort=name`
  const { links } = await storage.search(searchOf(query), BASE)
  const cursor = new URLSearchParams(links.next!).get('_cursor')!
  const [position, mac] = cursor.split('.') as [string, string]
  const forged = Buffer.from(Buffer.from(position, 'base64url').toString().replace('alpha', 'alphb')).toString(
    'base64url',
  )
  for (const wrong of [
    `${query}&service-type=1&_cursor=${cursor}`,
    `_tag=${tag}&_count=4&_cursor=${cursor}`,
    `_tag=${tag}&_count=4&_sort=-name&_cursor=${cursor}`,
    `${query}&_cursor=${forged}.${mac}`,
    `${query}&_cursor=${position}`,
    `${query}&_cursor=x`,
  ]) {
    await assert.rejects(storage.search(searchOf(wrong), BASE), InvalidCursor, wrong)
  }
  const { matches } = await storage.search(
    searchOf(`_tag=${tag}&_count=2&_sort=name&_cursor=${cursor}&_pretty=true`),
    BASE,
  )
  assert.equal(matches.length, 2)
}

async function greatestSearches(storage: ServiceStorage, tag: string): Promise<void> {
  await makeMany(storage, tag, 600)
  const many = (count: number, make: (index: number) => string, separator: string): string =>
    Array.from({ length: count }, (_, index) => make(index)).join(separator)
  const searches: readonly (readonly [string, number])[] = [
    [`service-type=${many(255, index => `${index}`, ',')}`, 600],
    [`_id=${many(200, index => `${tag}-${index * 2}`, ',')}`, 200],
    [`name=${many(64, index => (index === 3 ? 'gam' : `x${index}`), ',')}`, 150],
    [`name:contains=${many(8, index => (index === 3 ? 'lph' : `x${index}`), ',')}`, 300],
    [many(15, index => `service-type=0,1,x${index}`, '&'), 480],
    [many(15, index => `service-type:not=0,x${index}`, '&'), 320],
    [many(8, index => `name:contains=${'!'.repeat(index)}%25_a`, '&'), 600],
    ['_sort=-service-type,organization,-name,_lastUpdated,_id', 600],
  ]
  for (const [text, expected] of searches) {
    const query = `_tag=${tag}&_count=10000&_total=accurate&${text}`
    const { matches, total } = await storage.search(searchOf(query), BASE)
    assert.deepEqual([matches.length, total], [Math.min(expected, 500), expected], text.slice(0, 60))
  }
}

async function broadSearches(storage: ServiceStorage, tag: string): Promise<void> {
  await storage.load(
    Array.from({ length: 600 }, (_, index) =>
      service({
        ...{ id: `${tag}-${String(index).padStart(3, '0')}`, name: `${tag} ${index}`, active: index % 2 === 0 },
        providedBy: { reference: `Organization/${tag}-${(index * 7) % 600}` },
        type: [{ coding: [{ code: `${tag}${index % 3 === 0}` }] }],
      }),
    ),
  )
  const found = async (query: string): Promise<readonly [string | undefined, number | null]> => {
    const { matches, total } = await storage.search(searchOf(`${query}&_count=1&_total=accurate`), BASE)
    return [matches[0]?.id.slice(tag.length + 1), total]
  }
  // Neither a list of candidates nor a term leads: all matches are sorted by a value of another table.
  assert.deepEqual(await found(`name=${tag}&_sort=-organization`), ['357', 600])
  assert.deepEqual(await found(`name=${tag}&active=true&_sort=organization`), ['000', 300])
  assert.deepEqual(await found(`name=${tag}&active=true&service-type=${tag}false&_sort=organization`), ['430', 200])
  assert.deepEqual(await found(`name:contains=${tag}&active:not=true&_sort=-_id`), ['599', 300])
}

async function totals(storage: ServiceStorage, tag: string): Promise<void> {
  await makeMany(storage, tag, 1500)
  const totalOf = async (query: string) => (await storage.search(searchOf(`_tag=${tag}&${query}`), BASE)).total
  assert.equal(await totalOf(''), null)
  assert.equal(await totalOf('_total=none'), null)
  assert.equal(await totalOf('_total=accurate'), 1500)
  assert.equal(await totalOf('_total=accurate&service-type=1'), 700)
  assert.equal(await totalOf('_total=estimate&service-type=0&_id:missing=false'), 700)
  const estimate = (await totalOf('_total=estimate'))!
  assert.ok(Math.abs(estimate - 1500) < 300, `${estimate}`)
}

async function randomSearches(storage: ServiceStorage, tag: string): Promise<void> {
  const random = new Random(SEED)
  const samples = [...sampleServices(RANDOM_SERVICES / 2, SEED)]
  const others = Array.from({ length: RANDOM_SERVICES / 2 }, () => randomService(random))
  const tagged = [...samples, ...others].map((resource, index) => ({
    ...resource,
    ...{ id: `${tag}-${index}`, meta: { ...(resource.meta as JsonObject), tag: [{ code: tag }] } },
  }))
  // One transaction: each costs a server tens of milliseconds.
  const stored = await storage.write(async writer => {
    const made: JsonObject[] = []
    for (const resource of tagged) made.push(JSON.parse((await writer.create(resource)).content))
    return made
  })
  for (let turn = 0; turn < RANDOM_SEARCHES; turn++) {
    const query = `_tag=${tag}&_count=500${randomQuery(random)}`
    const expected = modelSearch(stored, searchOf(query), Date.now())
    const { matches } = await storage.search(searchOf(query), BASE)
    assert.deepEqual(
      matches.map(({ id }) => id),
      expected,
      `seed ${SEED}, turn ${turn}: ${query}`,
    )
  }
}

function randomService(random: Random): JsonObject {
  const some = <T>(make: () => T, most = 3): T[] => Array.from({ length: random.below(most + 1) }, make)
  const list = (name: string, make: () => JsonObject): JsonObject => {
    const members = some(make)
    return members.length === 0 ? {} : { [name]: members }
  }
  const coding = (): JsonObject => ({
    ...(random.once(3) ? {} : { system: random.pick(['urn:x', 'urn:y']) }),
    ...{ code: random.pick(CODES), ...(random.once(2) ? { display: random.text(4, LETTERS).trim() || 'a' } : {}) },
  })
  const concept = (): JsonObject =>
    random.once(4) ? { text: `${random.text(3, 'abÉ')}` } : { coding: [coding(), coding()] }
  const reference = (type: string) => (): JsonObject => {
    const id = random.pick(['1', '2'])
    const forms = [
      `${type}/${id}`,
      `${BASE}/${type}/${id}`,
      `https://o.example/${type}/${id}`,
      `${type}/${id}/_history/3`,
    ]
    return { reference: random.pick(forms) }
  }
  return service({
    ...(random.once(3) ? {} : { active: random.once(2) }),
    ...(random.once(4) ? {} : { name: `n${random.text(random.between(1, 8), LETTERS)}` }),
    ...list('type', concept),
    ...list('category', concept),
    ...list('location', reference('Location')),
    ...(random.once(3) ? {} : { providedBy: reference('Organization')() }),
    ...list('identifier', () => ({ system: 'urn:x', value: random.pick(CODES) })),
    meta: random.once(3) ? { source: `https://s.example/${random.pick(['a', 'a/b', 'b'])}` } : {},
  })
}

function randomQuery(random: Random): string {
  const code = (): string => random.pick(CODES).replace(',', '\\,')
  const tokenOf = (): string => `${random.pick(['', '', '|', 'urn:x|', 'urn:y|'])}${code()}`
  const values = (make: () => string): string => Array.from({ length: random.between(1, 3) }, make).join(',')
  const referenceOf = (type: string) => (): string =>
    random.pick(['1', '2', `${type}/1`, `${BASE}/${type}/2`, `https://o.example/${type}/1`, `${type}/1/_history/3`])
  const text = (): string => random.text(random.between(1, 3), LETTERS).trim() || 'n'
  const makers: readonly (() => string)[] = [
    () => `service-type${random.pick(['', '', ':not'])}=${values(tokenOf)}`,
    () => `service-category${random.pick(['', ':not'])}=${values(tokenOf)}`,
    () => `service-type:text=${values(text)}`,
    () => `name=${values(() => `n${text()}`)}`,
    () => `name:contains=${values(text)}`,
    () => `active${random.pick(['', ':not'])}=${random.pick(['true', 'false'])}`,
    () => `location=${values(referenceOf('Location'))}`,
    () => `organization=${values(referenceOf('Organization'))}`,
    () => `identifier=${values(tokenOf)}`,
    () => `_source${random.pick(['', ':below', ':above'])}=https://s.example/${random.pick(['a', 'a/b', 'a/b/c'])}`,
    () => `${random.pick(['name', 'active', 'service-type', 'location', '_source'])}:missing=${random.once(2)}`,
    () => `_lastUpdated=${random.pick(['gt', 'ge', 'lt', 'ne', ''])}${random.pick(['2020', '2100', '2026-11'])}`,
  ]
  const filters = Array.from({ length: random.below(4) }, () => `&${random.pick(makers)()}`)
  const keys = ['name', '-name', '_id', 'service-type', '-service-type', 'organization', '-location', 'active']
  const sort = random.once(2) ? `&_sort=${random.pick(keys)},${random.pick(keys)}` : ''
  return `${filters.join('')}${sort}`
}
