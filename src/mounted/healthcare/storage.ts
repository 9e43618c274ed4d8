/**
 * Healthcare services in a SQL database: current versions, their history, their index, and changes that are right
 * however many requests make them at once. A change resolves when it is durable.
 */
import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import type { MountedDatabase } from '../interface.ts'
import type { Waiter } from './interaction.ts'
import { isObject, type JsonObject, readJson } from './json-text.ts'
import { type SearchPage, searchPage } from './search-pages.ts'
import type { SearchQuery } from './search-query.ts'
import { SearchTurns } from './search-turns.ts'
import { historyPage, type HistoryPage, type HistoryRange } from './storage-history.ts'
import {
  findService,
  insertServices,
  lockService,
  replaceService,
  type StoredVersion,
  storedVersion,
} from './storage-rows.ts'
import {
  CONDITIONAL_LOCK,
  type HealthcareTables,
  openTables,
  type StorageConnection,
  type StoredMethod,
} from './storage-schema.ts'
import { WriteQueue } from './storage-writes.ts'

/** A precondition does not hold, and nothing has changed. */
export class StorageRefusal extends Error {
  override readonly name = 'StorageRefusal'
  /**
   * `conflict`: the version is not the expected one. `unknown`: there is no such service. `deleted`: it is deleted.
   * `exists`: a service has that id.
   */
  readonly reason: 'conflict' | 'unknown' | 'deleted' | 'exists'
  readonly id: string
  /** The current version; null for an unknown id. */
  readonly current: StoredVersion | null

  constructor(reason: StorageRefusal['reason'], id: string, current: StoredVersion | null) {
    super(`service ${id}: ${reason}`)
    this.reason = reason
    this.id = id
    this.current = current
  }
}

interface ChangeTerms {
  /** Version of `If-Match`; left out for any. */
  readonly ifVersion?: number
  /** Default: PUT. */
  readonly method?: StoredMethod
  /** The service may be new or deleted; left out, it must be current. */
  readonly mayCreate?: boolean
}

export interface ChangeResult {
  readonly stored: StoredVersion
  /** The id was unknown or deleted before. */
  readonly isCreated: boolean
}

/** Waits for every result. */
const ANYBODY: Waiter = { isGone: () => false, mayBeGone: () => false }
/** Matches that a conditional change needs to know of: none, one, several. */
const MATCHES_MAX = 2

export class ServiceStorage {
  readonly #database: MountedDatabase<HealthcareTables>
  readonly #queue: WriteQueue
  readonly #turns = new SearchTurns()
  readonly #cursorKey: Buffer
  readonly #nowMs: () => number

  private constructor(database: MountedDatabase<HealthcareTables>, cursorKey: Buffer, nowMs: () => number) {
    this.#database = database
    this.#queue = new WriteQueue(database)
    this.#cursorKey = cursorKey
    this.#nowMs = nowMs
  }

  /** Creates or migrates the tables. Rejects with errors of the driver, MigrationLocked or NewerTables. */
  static async open(
    database: MountedDatabase<HealthcareTables>,
    nowMs: () => number = Date.now,
  ): Promise<ServiceStorage> {
    return new ServiceStorage(database, await openTables(database), nowMs)
  }

  /** True if no service was ever stored. */
  async isEmpty(): Promise<boolean> {
    const select = this.#database.kysely.selectFrom('healthcare_services').select('pk').limit(1)
    return (await select.executeTakeFirst()) === undefined
  }

  /** The current version, which may be a deletion; undefined for an unknown id. */
  async read(id: string): Promise<StoredVersion | undefined> {
    const row = await this.#database.kysely
      .selectFrom('healthcare_services as s')
      .innerJoin('healthcare_versions as v', 'v.change_no', 's.change_no')
      .select(['v.id', 'v.version', 'v.updated_ms', 'v.method', 'v.content'])
      .where('s.id', '=', id)
      .executeTakeFirst()
    return row === undefined ? undefined : storedVersion(row)
  }

  async readVersion(id: string, version: number): Promise<StoredVersion | undefined> {
    const row = await this.#database.kysely
      .selectFrom('healthcare_versions')
      .select(['id', 'version', 'updated_ms', 'method', 'content'])
      .where('id', '=', id)
      .where('version', '=', version)
      .executeTakeFirst()
    return row === undefined ? undefined : storedVersion(row)
  }

  /** Versions of one service, or of all for the id '', newest first. */
  history(id: string, range: HistoryRange): Promise<HistoryPage> {
    return historyPage(this.#connection(), id, range)
  }

  /**
   * `base`: URL below which references are local, without a slash at its end. Rejects with InvalidCursor for a position
   * that belongs to another search, with RequestAborted, and with ConnectionUnavailable where too many searches wait.
   */
  search(query: SearchQuery, base: string, waiter: Waiter = ANYBODY): Promise<SearchPage> {
    const context = { base, key: this.#cursorKey, nowMs: this.#nowMs() }
    const search = (): Promise<SearchPage> => searchPage(this.#connection(), query, context)
    return this.#database.dialect === 'sqlite' ? this.#turns.run(search, waiter) : search()
  }

  /**
   * Runs `work` in one transaction: all of its changes or none. It may run several times, and awaits nothing but the
   * methods of its writer. Rejects with what `work` throws, such as StorageRefusal, or an error of the driver.
   */
  write<T>(work: (writer: ServiceWriter) => Promise<T>): Promise<T> {
    const { dialect } = this.#database
    return this.#queue.run(db => work(new ServiceWriter({ db, dialect }, this.#nowMs)))
  }

  /** New services in one transaction, for loads; each with its own id or a new one. Ids that exist are replaced. */
  load(resources: readonly JsonObject[]): Promise<number> {
    const { dialect } = this.#database
    return this.#queue.run(async db => {
      const ids = resources.map(({ id }) => (typeof id === 'string' ? id : randomUUID()))
      const found = await db.selectFrom('healthcare_services').select('id').where('id', 'in', ids).execute()
      const known = new Set(found.map(({ id }) => id))
      const writer = new ServiceWriter({ db, dialect }, this.#nowMs)
      const fresh = new Map<string, JsonObject>()
      for (const [index, resource] of resources.entries()) {
        const id = ids[index]!
        if (known.has(id)) await writer.update(id, () => resource, { mayCreate: true })
        else fresh.set(id, resource)
      }
      const services = [...fresh].map(([id, resource]) => ({ id, resource, method: 'PUT' as const }))
      if (services.length > 0) await insertServices({ db, dialect }, services, this.#nowMs())
      return resources.length
    })
  }

  /** After many changes: servers plan searches by statistics, and without them read whole tables. */
  async analyze(): Promise<void> {
    const { dialect, kysely } = this.#database
    if (dialect === 'sqlite') return
    const tables = ['versions', 'services', 'terms', 'texts', 'sorts'].map(name => sql.table(`healthcare_${name}`))
    const analyze = dialect === 'mysql' ? sql`analyze table` : sql`analyze`
    await sql`${analyze} ${sql.join(tables)}`.execute(kysely)
  }

  #connection(): StorageConnection {
    return { db: this.#database.kysely, dialect: this.#database.dialect }
  }
}

/** Changes within one transaction. */
export class ServiceWriter {
  readonly #connection: StorageConnection
  readonly #nowMs: () => number

  constructor(connection: StorageConnection, nowMs: () => number) {
    this.#connection = connection
    this.#nowMs = nowMs
  }

  /** The current version, which does not change until the transaction ends. */
  async read(id: string): Promise<StoredVersion | undefined> {
    return (await lockService(this.#connection, id))?.stored
  }

  /**
   * Current versions that match the criteria, at most two. Conditional changes wait for each other from here to the end
   * of their transaction, so that what one decides is true when it writes.
   */
  async matches(criteria: SearchQuery, base: string): Promise<readonly StoredVersion[]> {
    const { db, dialect } = this.#connection
    if (dialect !== 'sqlite') {
      const lock = db.selectFrom('healthcare_settings').select('name').where('name', '=', CONDITIONAL_LOCK)
      await lock.forUpdate().executeTakeFirst()
    }
    const query: SearchQuery = {
      ...criteria,
      count: MATCHES_MAX,
      cursor: '',
      total: 'none',
      summary: 'false',
      sort: [],
    }
    return (await searchPage(this.#connection, query, { base, key: NO_KEY, nowMs: this.#nowMs() })).matches
  }

  /** A new service with the method POST. Rejects with StorageRefusal `exists`. */
  async create(resource: JsonObject, id?: string): Promise<StoredVersion> {
    if (id === undefined) return this.#insert(randomUUID(), resource, 'POST')
    // Without a lock: in MariaDB those of two new ids may meet. A race ends at the unique key, and is run again.
    const current = await findService(this.#connection, id)
    if (current !== undefined) throw new StorageRefusal('exists', id, current.stored)
    return this.#insert(id, resource, 'POST')
  }

  /**
   * The next version is what `next` makes of the current one, which it leaves as it is, or of undefined where there is
   * none. Rejects with StorageRefusal and what `next` throws.
   */
  async update(
    id: string,
    next: (current: JsonObject | undefined) => JsonObject,
    { ifVersion, method = 'PUT', mayCreate = false }: ChangeTerms = {},
  ): Promise<ChangeResult> {
    const current = await lockService(this.#connection, id)
    const stored = current?.stored
    const isCreated = stored === undefined || stored.method === 'DELETE'
    if (ifVersion !== undefined && (isCreated || stored.version !== ifVersion)) {
      throw new StorageRefusal('conflict', id, stored ?? null)
    }
    if (isCreated && !mayCreate) {
      throw new StorageRefusal(stored === undefined ? 'unknown' : 'deleted', id, stored ?? null)
    }
    const before = isCreated ? undefined : resourceOf(stored)
    const resource = next(before)
    if (current === undefined) return { stored: await this.#insert(id, resource, method), isCreated }
    const change = { method, resource }
    return { stored: await replaceService(this.#connection, current, before, change, this.#nowMs()), isCreated }
  }

  /** Null where there was nothing to delete. Rejects with StorageRefusal `conflict`. */
  async delete(id: string, { ifVersion }: Pick<ChangeTerms, 'ifVersion'> = {}): Promise<StoredVersion | null> {
    const current = await lockService(this.#connection, id)
    const isGone = current === undefined || current.stored.method === 'DELETE'
    if (ifVersion !== undefined && (isGone || current.stored.version !== ifVersion)) {
      throw new StorageRefusal('conflict', id, current?.stored ?? null)
    }
    if (isGone) return null
    const deletion = { method: 'DELETE', resource: null } as const
    return replaceService(this.#connection, current, resourceOf(current.stored), deletion, this.#nowMs())
  }

  async #insert(id: string, resource: JsonObject, method: StoredMethod): Promise<StoredVersion> {
    const [stored] = await insertServices(this.#connection, [{ id, resource, method }], this.#nowMs())
    return stored!
  }
}

/** Searches of a writer have one page. */
const NO_KEY = Buffer.alloc(0)

function resourceOf({ content }: StoredVersion): JsonObject {
  const resource = readJson(content)
  return isObject(resource) ? resource : {}
}
