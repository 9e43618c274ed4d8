/** Storage of healthcare services on each database: versions, history, preconditions, and changes at the same time. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { JsonObject } from '../../../src/mounted/healthcare/json-text.ts'
import { type ServiceStorage, StorageRefusal } from '../../../src/mounted/healthcare/storage.ts'
import { loadServices } from '../../../src/mounted/healthcare/storage-load.ts'
import { sampleServices } from '../../../src/mounted/healthcare/storage-sample.ts'
import { KINDS } from '../../control/registry/real-databases.ts'
import { BASE, foundBy, openStorage, searchOf, service, type StorageFixture } from './storage-databases.ts'

type Clause = (storage: ServiceStorage, fixture: StorageFixture) => Promise<void>

const CLAUSES: readonly (readonly [string, Clause])[] = [
  ['a new service has version 1, and its content has id, version and time', createsFirstVersion],
  ['numbers of a resource keep their text', keepsNumbers],
  ['an update makes the next version, and the one before stays readable', keepsVersions],
  ['an update of an unknown service is refused unless it may create one', createsOnUpdate],
  ['a deleted service is a deletion, absent from searches, and its versions go on when it is revived', revives],
  ['a second delete and one of an unknown id change nothing', deletesOnce],
  ['times of versions increase although the clock stands still', increasingTimes],
  ['a stale version is refused with the current one, and nothing is written', refusesStale],
  ['fifty updates of one version at a time: one wins each round', oneWinner],
  ['twenty conditional creates at a time make one service', oneConditionalCreate],
  ['conditional creates with criteria that differ make one service that matches both', overlappingCriteria],
  ['twenty updates of a new id at a time make one creation', oneCreationOnUpdate],
  ['changes of one transaction are all made or none', allOrNothing],
  ['a change that fails takes none of those with it that arrive at the same time', separateFailures],
  ['the history of a service has its versions, newest first, in pages', historyOfOne],
  ['the history of all services has every change, from a time on and at a time', historyOfAll],
  ['a page of history repeats and loses nothing while services change', historyWhileWriting],
  ['an update removes what the service is no longer found by', updatesIndex],
  ['a load keeps ids, counts, and makes next versions of known ones', loads],
]

for (const kind of KINDS) {
  describe(`healthcare services in ${kind}`, () => {
    let fixture: StorageFixture | string
    before(async () => {
      fixture = await openStorage(kind)
    })
    after(async () => {
      if (typeof fixture !== 'string') await fixture.remove()
    })
    for (const [clause, body] of CLAUSES) {
      test(clause, async t => {
        if (typeof fixture === 'string') t.skip(fixture)
        else await body(fixture.storage, fixture)
      })
    }
  })
}

const contentOf = ({ content }: { readonly content: string }): JsonObject => JSON.parse(content)
const REFUSED = (reason: string) => ({ name: 'StorageRefusal', reason })

async function createsFirstVersion(storage: ServiceStorage): Promise<void> {
  const made = await storage.write(writer =>
    writer.create(service({ name: 'First', meta: { versionId: '9', tag: [{ code: 'a' }] } })),
  )
  assert.equal(made.version, 1)
  const { id, meta, name } = contentOf(made)
  assert.deepEqual(
    { id, meta, name },
    {
      id: made.id,
      meta: { versionId: '1', lastUpdated: new Date(made.updatedMs).toISOString(), tag: [{ code: 'a' }] },
      name: 'First',
    },
  )
  assert.deepEqual(await storage.read(made.id), made)
  assert.equal(await storage.read('unknown'), undefined)
}

async function keepsNumbers(storage: ServiceStorage): Promise<void> {
  const value = JSON.rawJSON('1.00')
  const extension = [{ url: 'https://example.org/x', valueDecimal: value }]
  const { id } = await storage.write(writer => writer.create(service({ extension })))
  const { stored } = await storage.write(writer => writer.update(id, current => current!))
  assert.match(stored.content, /"valueDecimal":1\.00\}/)
}

async function keepsVersions(storage: ServiceStorage): Promise<void> {
  const made = await storage.write(writer => writer.create(service({ name: 'Before' })))
  const { stored, isCreated } = await storage.write(writer =>
    writer.update(made.id, current => ({ ...current, name: 'After' }), { ifVersion: 1, method: 'PATCH' }),
  )
  assert.equal(isCreated, false)
  assert.deepEqual(await storage.read(made.id), stored)
  assert.deepEqual(await storage.readVersion(made.id, 1), made)
  assert.deepEqual(await storage.readVersion(made.id, 2), stored)
  assert.equal(await storage.readVersion(made.id, 3), undefined)
  assert.deepEqual([stored.version, stored.method, contentOf(stored).name], [2, 'PATCH', 'After'])
}

async function createsOnUpdate(storage: ServiceStorage): Promise<void> {
  const next = () => service({ name: 'New' })
  await assert.rejects(
    storage.write(writer => writer.update('put-1', next)),
    REFUSED('unknown'),
  )
  const { stored, isCreated } = await storage.write(writer => writer.update('put-1', next, { mayCreate: true }))
  assert.deepEqual([stored.version, stored.method, isCreated], [1, 'PUT', true])
  await assert.rejects(
    storage.write(writer => writer.create(service(), 'put-1')),
    REFUSED('exists'),
  )
}

async function revives(storage: ServiceStorage): Promise<void> {
  await storage.write(writer => writer.create(service({ name: 'Lazarus' }), 'lazarus'))
  const deleted = await storage.write(writer => writer.delete('lazarus', { ifVersion: 1 }))
  assert.deepEqual([deleted?.version, deleted?.method, deleted?.content], [2, 'DELETE', ''])
  assert.deepEqual(await storage.read('lazarus'), deleted)
  assert.deepEqual(await foundBy(storage, 'name=lazarus'), [])
  assert.deepEqual(await foundBy(storage, '_id=lazarus'), [])
  const next = () => service({ name: 'Lazarus' })
  await assert.rejects(
    storage.write(writer => writer.update('lazarus', next)),
    REFUSED('deleted'),
  )
  const { stored, isCreated } = await storage.write(writer => writer.update('lazarus', next, { mayCreate: true }))
  assert.deepEqual([stored.version, isCreated], [3, true])
  assert.deepEqual(await foundBy(storage, 'name=lazarus'), ['lazarus'])
}

async function deletesOnce(storage: ServiceStorage): Promise<void> {
  const { id } = await storage.write(writer => writer.create(service()))
  assert.equal((await storage.write(writer => writer.delete(id)))?.version, 2)
  assert.equal(await storage.write(writer => writer.delete(id)), null)
  assert.equal(await storage.write(writer => writer.delete('never')), null)
  await assert.rejects(
    storage.write(writer => writer.delete(id, { ifVersion: 2 })),
    REFUSED('conflict'),
  )
}

async function increasingTimes(_: ServiceStorage, fixture: StorageFixture): Promise<void> {
  const storage = await fixture.another(() => 1_700_000_000_000)
  const made = await storage.write(writer => writer.create(service()))
  const { stored } = await storage.write(writer => writer.update(made.id, current => current!))
  assert.deepEqual([made.updatedMs, stored.updatedMs], [1_700_000_000_000, 1_700_000_000_001])
}

async function refusesStale(storage: ServiceStorage): Promise<void> {
  const { id } = await storage.write(writer => writer.create(service({ name: 'Kept' })))
  await storage.write(writer => writer.update(id, current => current!, { ifVersion: 1 }))
  const stale = storage.write(writer => writer.update(id, () => service({ name: 'Lost' }), { ifVersion: 1 }))
  await assert.rejects(stale, error => error instanceof StorageRefusal && error.current?.version === 2)
  assert.equal(contentOf((await storage.read(id))!).name, 'Kept')
  assert.equal(await storage.readVersion(id, 3), undefined)
}

/** Of several threads or nodes. */
async function several(fixture: StorageFixture): Promise<readonly ServiceStorage[]> {
  return [fixture.storage, await fixture.another()]
}

async function oneWinner(storage: ServiceStorage, fixture: StorageFixture): Promise<void> {
  const storages = await several(fixture)
  const { id } = await storage.write(writer => writer.create(service({ name: 'none' })))
  for (let version = 1; version <= 3; version++) {
    const attempts = Array.from({ length: 50 }, (_, index) =>
      storages[index % storages.length]!.write(writer =>
        writer.update(id, () => service({ name: `winner ${index}` }), { ifVersion: version }),
      ),
    )
    const outcomes = await Promise.allSettled(attempts)
    const won = outcomes.flatMap((outcome, index) => (outcome.status === 'fulfilled' ? [index] : []))
    assert.equal(won.length, 1)
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') assert.equal(outcome.reason.reason, 'conflict', outcome.reason.message)
    }
    const current = await storage.read(id)
    assert.deepEqual([current!.version, contentOf(current!).name], [version + 1, `winner ${won[0]}`])
  }
}

async function createUnless(storage: ServiceStorage, criteria: string, resource: JsonObject): Promise<boolean> {
  const query = searchOf(criteria, true)
  return storage.write(async writer => {
    const found = await writer.matches(query, BASE)
    if (found.length === 0) await writer.create(resource)
    return found.length === 0
  })
}

async function oneConditionalCreate(_: ServiceStorage, fixture: StorageFixture): Promise<void> {
  const storages = await several(fixture)
  const resource = service({ identifier: [{ system: 'urn:x', value: 'once' }] })
  const made = await Promise.all(
    Array.from({ length: 20 }, (_, index) => {
      return createUnless(storages[index % storages.length]!, 'identifier=urn:x|once', resource)
    }),
  )
  assert.equal(made.filter(isMade => isMade).length, 1)
  assert.equal((await foundBy(fixture.storage, 'identifier=urn:x|once')).length, 1)
}

async function overlappingCriteria(_: ServiceStorage, fixture: StorageFixture): Promise<void> {
  const storages = await several(fixture)
  const resource = service({ active: true, identifier: [{ system: 'urn:x', value: 'both' }] })
  const criteria = ['identifier=urn:x|both', 'identifier=both&active=true', 'active=true&identifier=urn:x|both']
  const made = await Promise.all(
    Array.from({ length: 18 }, (_, index) =>
      createUnless(storages[index % storages.length]!, criteria[index % criteria.length]!, resource),
    ),
  )
  assert.equal(made.filter(isMade => isMade).length, 1)
}

async function oneCreationOnUpdate(_: ServiceStorage, fixture: StorageFixture): Promise<void> {
  const storages = await several(fixture)
  const results = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      storages[index % storages.length]!.write(writer => {
        return writer.update('raced', () => service({ name: `${index}` }), { mayCreate: true })
      }),
    ),
  )
  assert.equal(results.filter(({ isCreated }) => isCreated).length, 1)
  const versions = results.map(({ stored }) => stored.version).sort((one, other) => one - other)
  assert.deepEqual(
    versions,
    Array.from({ length: 20 }, (_, index) => index + 1),
  )
}

async function allOrNothing(storage: ServiceStorage): Promise<void> {
  const failed = storage.write(async writer => {
    await writer.create(service({ name: 'Half made' }), 'half-made')
    await writer.update('absent', () => service())
  })
  await assert.rejects(failed, REFUSED('unknown'))
  assert.equal(await storage.read('half-made'), undefined)
  await storage.write(async writer => {
    await writer.create(service({ name: 'Whole' }), 'whole-1')
    assert.equal((await writer.matches(searchOf('name=whole', true), BASE)).length, 1)
    await writer.create(service({ name: 'Whole' }), 'whole-2')
    await writer.delete('whole-1')
  })
  assert.deepEqual(await foundBy(storage, 'name=whole'), ['whole-2'])
}

async function separateFailures(storage: ServiceStorage): Promise<void> {
  const outcomes = await Promise.allSettled(
    Array.from({ length: 40 }, (_, index) =>
      storage.write(async writer => {
        const { id } = await writer.create(service(), `together-${index}`)
        if (index % 3 === 0) throw new Error('unwanted')
        return id
      }),
    ),
  )
  for (const [index, outcome] of outcomes.entries()) {
    const isUnwanted = index % 3 === 0
    assert.equal(outcome.status, isUnwanted ? 'rejected' : 'fulfilled', 'reason' in outcome ? outcome.reason : '')
    assert.equal((await storage.read(`together-${index}`)) === undefined, isUnwanted)
  }
}

async function historyOfOne(storage: ServiceStorage): Promise<void> {
  const { id } = await storage.write(writer => writer.create(service({ name: '1' })))
  for (const name of ['2', '3']) await storage.write(writer => writer.update(id, () => service({ name })))
  await storage.write(writer => writer.delete(id))
  const first = await storage.history(id, { count: 3 })
  assert.deepEqual(
    first.versions.map(({ version, method }) => [version, method]),
    [
      [4, 'DELETE'],
      [3, 'PUT'],
      [2, 'PUT'],
    ],
  )
  assert.equal(first.total, 4)
  const second = await storage.history(id, { count: 3, before: first.next! })
  assert.deepEqual([second.versions.map(({ version }) => version), second.next], [[1], null])
}

async function historyOfAll(_: ServiceStorage, fixture: StorageFixture): Promise<void> {
  let nowMs = Date.UTC(2101, 0, 1)
  const storage = await fixture.another(() => nowMs)
  const start = nowMs
  await storage.write(writer => writer.create(service(), 'h-1'))
  nowMs += 1000
  await storage.write(writer => writer.create(service(), 'h-2'))
  nowMs += 1000
  await storage.write(writer => writer.update('h-1', current => current!))
  const namesOf = async (range: Parameters<ServiceStorage['history']>[1]) => {
    const { versions } = await storage.history('', range)
    return versions.map(({ id, version }) => `${id}/${version}`)
  }
  assert.deepEqual(await namesOf({ count: 10, sinceMs: start }), ['h-1/2', 'h-2/1', 'h-1/1'])
  assert.deepEqual(await namesOf({ count: 10, sinceMs: start + 1000 }), ['h-1/2', 'h-2/1'])
  const at = { startMs: start + 1500, endMs: start + 1600 }
  assert.deepEqual(await namesOf({ count: 10, sinceMs: start, at }), ['h-2/1', 'h-1/1'])
}

async function historyWhileWriting(storage: ServiceStorage): Promise<void> {
  const { id } = await storage.write(writer => writer.create(service()))
  for (let turn = 0; turn < 9; turn++) await storage.write(writer => writer.update(id, current => current!))
  const seen: number[] = []
  for (let next: number | null = Number.MAX_SAFE_INTEGER; next !== null; ) {
    const page = await storage.history(id, { count: 3, before: next })
    seen.push(...page.versions.map(({ version }) => version))
    next = page.next
    await storage.write(writer => writer.update(id, current => current!))
  }
  assert.deepEqual(seen, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
}

async function updatesIndex(storage: ServiceStorage): Promise<void> {
  const before = service({ name: 'Old name', type: [{ coding: [{ code: 'old' }], text: 'Old text' }], active: true })
  const { id } = await storage.write(writer => writer.create(before))
  await storage.write(writer => writer.update(id, () => service({ name: 'New name', type: [{ text: 'Fresh' }] })))
  const only = `_id=${id}&`
  for (const gone of ['name=old', 'service-type=old', 'service-type:text=old', 'active=true', 'active:missing=false']) {
    assert.deepEqual(await foundBy(storage, only + gone), [], gone)
  }
  for (const kept of ['name=new', 'service-type:text=fresh', 'active:missing=true']) {
    assert.deepEqual(await foundBy(storage, only + kept), [id], kept)
  }
}

async function loads(storage: ServiceStorage): Promise<void> {
  const told: number[] = []
  const loaded = await loadServices(storage, sampleServices(450), loaded => told.push(loaded))
  assert.deepEqual([loaded, told], [450, [200, 400, 450]])
  assert.equal(await loadServices(storage, sampleServices(3)), 3)
  assert.deepEqual(
    await Promise.all(['1', '3', '4'].map(async number => (await storage.read(`sample-00000${number}`))?.version)),
    [2, 2, 1],
  )
  const { total } = await storage.search(searchOf('_tag=sample&_summary=count'), BASE)
  assert.equal(total, 450)
}
