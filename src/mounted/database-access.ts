/** Databases of mounted APIs on one thread. */
import { CompiledQuery, Kysely, sql, type Transaction } from 'kysely'
import { connect } from '../database/connect.ts'
import { ConnectionPool, type PoolObserver } from '../database/connection-pool.ts'
import type { ConnectionSettings } from '../database/database-settings.ts'
import { hasCode, UNIQUE_CODES } from '../database/driver-errors.ts'
import { LogSync } from '../database/log-sync.ts'
import { type DialectName, PooledDialect } from '../database/pooled-dialect.ts'
import { openCiphers, SecretBox } from '../database/secret-cipher.ts'
import { runTransaction } from '../database/transaction.ts'
import { databaseFile } from './database-file.ts'
import type { MountedDatabase } from './interface.ts'

const NO_DATABASE = 'the configuration names no supported database'

export class Database<Tables> implements MountedDatabase<Tables> {
  readonly dialect: DialectName
  readonly kysely: Kysely<Tables>
  /** Null for a server. */
  readonly #log: LogSync | null

  constructor(settings: ConnectionSettings, observer: PoolObserver | null = null) {
    this.dialect = settings.dialect
    const pool = new ConnectionPool(() => connect(settings), settings.pool, observer)
    this.kysely = new Kysely<Tables>({ dialect: new PooledDialect(settings.dialect, pool) })
    this.#log = settings.server === null ? new LogSync(settings.file) : null
  }

  async query(sql: string, parameters: readonly unknown[] = []): Promise<readonly unknown[]> {
    return (await this.kysely.executeQuery(CompiledQuery.raw(sql, [...parameters]))).rows
  }

  transaction<T>(work: (transaction: Transaction<Tables>) => Promise<T>): Promise<T> {
    return runTransaction(this.kysely, work)
  }

  unsyncedTransaction<T>(work: (transaction: Transaction<Tables>) => Promise<T>): Promise<T> {
    if (this.#log === null) return this.transaction(work)
    return this.kysely.connection().execute(async connection => {
      await sql`pragma synchronous = normal`.execute(connection)
      return runTransaction(connection, work)
    })
  }

  /** Rejects as `LogSync.sync`. */
  async synced(): Promise<void> {
    await this.#log?.sync()
  }

  isDuplicate(error: unknown): boolean {
    return error instanceof Error && hasCode(error, UNIQUE_CODES)
  }
}

/** The databases of mounted APIs; holds secrets. */
export interface DatabasePlan {
  /** Settings of `[database.apim_db]`; on a worker thread with its share of the connections. */
  readonly settings: ConnectionSettings
  /** Folder of the files of embedded databases, and of the key file. */
  readonly folder: string
  /** `encryption.key`; left out or '': a key file takes its place. */
  readonly encryptionKey?: string
}

/** `limit`: largest number of connections of a pool. */
type PoolObserverOf = (limit: number) => PoolObserver | null

export class MountedDatabases {
  readonly #plan: DatabasePlan | null
  /** By file; '' for the server, which all APIs share. */
  readonly #opened = new Map<string, Database<unknown>>()
  #secrets: SecretBox | null = null

  readonly #observerOf: PoolObserverOf

  /** Null: the configuration names no database that is supported. `observerOf`: makes one for each pool. */
  constructor(plan: DatabasePlan | null, observerOf: PoolObserverOf = () => null) {
    this.#plan = plan
    this.#observerOf = observerOf
  }

  /** Encrypts what nobody should read in the databases. Throws as `of`, and where the key file is unusable. */
  secrets(): SecretBox {
    if (this.#plan === null) throw new Error(NO_DATABASE)
    const { settings, folder, encryptionKey = '' } = this.#plan
    this.#secrets ??= new SecretBox(openCiphers(encryptionKey, folder, settings.server === null))
    return this.#secrets
  }

  /** The database of the API `name`, whatever its version. Throws where the configuration names none. */
  of<Tables>(name: string): Database<Tables> {
    if (this.#plan === null) throw new Error(NO_DATABASE)
    const { settings, folder } = this.#plan
    const file = settings.server === null ? databaseFile(folder, name) : ''
    const known = this.#opened.get(file)
    if (known !== undefined) return known as Database<Tables>
    const opened = new Database<Tables>({ ...settings, file }, this.#observerOf(settings.pool.maxActive))
    this.#opened.set(file, opened as Database<unknown>)
    return opened
  }
}
