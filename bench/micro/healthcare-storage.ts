/**
 * Cost of healthcare services in the embedded database, without the gateway: load, read, create, update, and each kind
 * of search. `npx node bench/micro/healthcare-storage.ts [services] [folder]`; the folder's disk decides about creates.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MeasuredTable, measuredNote } from '../measured-table.ts'
import { MountedDatabases } from '../../src/mounted/database-access.ts'
import { searchPairs, readSearch } from '../../src/mounted/healthcare/search-query.ts'
import { ServiceStorage } from '../../src/mounted/healthcare/storage.ts'
import { loadServices } from '../../src/mounted/healthcare/storage-load.ts'
import { sampleServices } from '../../src/mounted/healthcare/storage-sample.ts'
import type { HealthcareTables } from '../../src/mounted/healthcare/storage-schema.ts'

const POOL = {
  ...{ maxActive: 1, maxWaitMs: 60_000, testOnBorrow: false, validationIntervalMs: 0, validationQuery: 'select 1' },
  ...{ connectMs: 10_000, statementMs: 60_000 },
}
const ROUND_MS = 1500
const CONCURRENCY = 32
const SEARCHES: readonly string[] = [
  'name=saint mary',
  'name=queens surgery  general',
  'name:contains=cardio',
  'name:contains=dentalevora',
  'name:exact=University Dermatology Falun 77',
  'identifier=https://services.example.org/identifiers|HS-4711',
  'identifier=HS-4711',
  'service-type=124',
  'service-type=http://terminology.hl7.org/CodeSystem/service-type|124',
  'service-type=124,165,180',
  'service-type:not=124',
  'service-type:text=general',
  'specialty=394579002&service-type=165&active=true',
  'organization=Organization/org-17',
  'organization=org-17&service-category=17',
  'location=Location/loc-5,Location/loc-6',
  'program:missing=true',
  'active=true&_sort=name',
  'service-type=124&_sort=-name',
  'service-type=124&_sort=organization',
  'organization=org-17&_sort=-_lastUpdated',
  '_lastUpdated=gt2020-01-01',
  '_id=sample-000077,sample-000078',
  '_sort=-_lastUpdated',
  'service-type=124&_total=accurate',
  'service-type=124&_total=estimate',
  'active=true&characteristic=parking&_total=accurate',
]

const [count = '100000', parent = tmpdir()] = process.argv.slice(2)
const folder = mkdtempSync(join(parent, 'sluice-healthcare-'))
process.once('exit', () => rmSync(folder, { recursive: true }))
const settings = { dialect: 'sqlite', description: '', pool: POOL, file: '', server: null } as const
const databases = new MountedDatabases({ settings, folder })
const storage = await ServiceStorage.open(databases.of<HealthcareTables>('HealthcareService'))

let begun = performance.now()
await loadServices(storage, sampleServices(Number(count)))
const seconds = (performance.now() - begun) / 1000
measuredNote(`Loading ${count} services: ${seconds.toFixed(1)} s, ${(Number(count) / seconds).toFixed(0)} a second.`)
const columns = { 'per second': 0, 'CPU µs': 0, 'p50 ms': 2, 'p99 ms': 2 }
const table = new MeasuredTable('Storage and search, warm', columns)

/** Runs `work` by so many callers, and records rate, cost and quantiles. */
async function measure(name: string, callers: number, work: (turn: number) => Promise<unknown>): Promise<void> {
  const times: number[] = []
  let turn = 0
  const cpu = process.cpuUsage()
  begun = performance.now()
  const call = async (): Promise<void> => {
    while (performance.now() - begun < ROUND_MS) {
      const before = performance.now()
      await work(turn++)
      times.push(performance.now() - before)
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
  const ms = performance.now() - begun
  const { user, system } = process.cpuUsage(cpu)
  times.sort((one, other) => one - other)
  const at = (share: number): number => times[Math.floor((times.length - 1) * share)]!
  table.row(name, (times.length * 1000) / ms, (user + system) / times.length, at(0.5), at(0.99))
}

const fresh = sampleServices(10_000_000, 7)[Symbol.iterator]()
const next = () => {
  const { id: _, ...resource } = fresh.next().value!
  return resource
}
const idOf = (turn: number) => `sample-${String(1 + ((turn * 7919) % Number(count))).padStart(6, '0')}`

await measure('read', 1, turn => storage.read(idOf(turn)))
for (const text of SEARCHES) {
  const { query } = readSearch(searchPairs(text), { isStrict: true })
  await measure(text, 1, () => storage.search(query!, 'https://gw.example/healthcare'))
}
await measure('create, one at a time', 1, () => storage.write(writer => writer.create(next())))
await measure(`create, ${CONCURRENCY} at once`, CONCURRENCY, () => storage.write(writer => writer.create(next())))
await measure(`update, ${CONCURRENCY} at once`, CONCURRENCY, turn =>
  storage.write(writer => writer.update(idOf(turn), current => ({ ...current!, comment: `turn ${turn}` }))),
)
const size = statSync(join(folder, 'api-HealthcareService.db')).size / 1e6
measuredNote(`Database ${size.toFixed(0)} MB, process ${(process.memoryUsage.rss() / 1e6).toFixed(0)} MB.`)
process.exit(0)
