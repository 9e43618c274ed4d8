/** Storage of healthcare services on each database, in a schema of its own per test. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ConnectionSettings, databaseSettings } from '../../../src/database/database-settings.ts'
import { MountedDatabases } from '../../../src/mounted/database-access.ts'
import type { JsonObject } from '../../../src/mounted/healthcare/json-text.ts'
import { readSearch, type SearchQuery, searchPairs } from '../../../src/mounted/healthcare/search-query.ts'
import { ServiceStorage } from '../../../src/mounted/healthcare/storage.ts'
import type { HealthcareTables } from '../../../src/mounted/healthcare/storage-schema.ts'
import { type RealDatabase, realDatabase } from '../../control/registry/real-databases.ts'
import { loadConfiguration } from '../../harness/configuration.ts'

export const BASE = 'https://gw.example/healthcare'

/** Connections of one storage: a server has few, and each takes it milliseconds. */
const CONNECTIONS = 6

export interface StorageFixture {
  readonly database: RealDatabase
  readonly storage: ServiceStorage
  /** Another thread or node on the same database. */
  another(nowMs?: () => number): Promise<ServiceStorage>
  remove(): Promise<void>
}

/** Resolves with the reason where the server is unavailable. */
export async function openStorage(kind: RealDatabase['kind']): Promise<StorageFixture | string> {
  const database = await realDatabase(kind)
  if (typeof database === 'string') return database
  writeFileSync(join(database.dataDir, 'deployment.toml'), database.toml)
  const { configuration } = loadConfiguration(database.dataDir, [], database.dataDir)
  const { apim } = databaseSettings(configuration, database.dataDir)
  const settings = { ...apim, pool: { ...apim.pool, maxActive: CONNECTIONS } }
  const opened: { destroy(): Promise<void> }[] = []
  const another = async (nowMs: () => number = Date.now): Promise<ServiceStorage> => {
    const databases = new MountedDatabases({ settings, folder: database.dataDir })
    const own = databases.of<HealthcareTables>('HealthcareService')
    opened.push(own.kysely)
    return ServiceStorage.open(own, nowMs)
  }
  const storage = await another()
  const remove = async (): Promise<void> => {
    for (const kysely of opened) await kysely.destroy()
    await database.remove()
  }
  return { database, storage, another, remove }
}

export function service(members: JsonObject = {}): JsonObject {
  return { resourceType: 'HealthcareService', ...members }
}

/** The query of a search without faults. */
export function searchOf(text: string, isCriteria = false): SearchQuery {
  const { query, issues } = readSearch(searchPairs(text), { isStrict: true, isCriteria })
  if (query === null) throw new Error(`${text}: ${JSON.stringify(issues)}`)
  return query
}

/** Ids of one page. */
export async function foundBy(storage: ServiceStorage, text: string): Promise<readonly string[]> {
  const { matches } = await storage.search(searchOf(text), BASE)
  return matches.map(({ id }) => id)
}

/** Settings of the embedded database; its file is that of the API. */
export function embeddedSettings(): ConnectionSettings {
  const pool = {
    ...{ maxActive: 1, maxWaitMs: 60_000, testOnBorrow: false, validationIntervalMs: 0, validationQuery: 'select 1' },
    ...{ connectMs: 10_000, statementMs: 15_000 },
  }
  return { dialect: 'sqlite', description: '', pool, file: '', server: null }
}
