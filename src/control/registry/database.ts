/** One database: transactions, reads, and the translation of driver errors. */
import { type InsertQueryBuilder, Kysely, type SelectQueryBuilder, sql, type Transaction } from 'kysely'
import { ConfigurationErrors } from '../../config/diagnostics.ts'
import { connect } from '../../database/connect.ts'
import { ConnectionPool } from '../../database/connection-pool.ts'
import type { ConnectionSettings } from '../../database/database-settings.ts'
import {
  hasCode,
  isConnectionLost,
  isDatabaseError,
  isUnreachable,
  messageOf,
  REFERENCE_CODES,
  UNIQUE_CODES,
} from '../../database/driver-errors.ts'
import { tlsRemedy } from '../../database/jdbc-url.ts'
import { type DialectName, PooledDialect } from '../../database/pooled-dialect.ts'
import { runTransaction } from '../../database/transaction.ts'
import type { DatabaseOutage } from './database-outage.ts'
import type { DatabaseUsage } from './database-usage.ts'
import { RegistryRefusal, RegistryUnavailable } from './registry-errors.ts'
import type { Tables } from './tables.ts'

export type DatabaseTransaction = Transaction<Tables>

/** Refusals for violated constraints: a duplicate key, and a missing or used reference. */
export interface ConstraintRefusals {
  readonly unique?: () => RegistryRefusal
  readonly reference?: () => RegistryRefusal
}

/** Attempts of a read whose connection ended. After the first failure the pool tests its idle connections. */
const READ_ATTEMPTS = 2

export class Database {
  readonly dialect: DialectName
  /** Kind and location for messages, without credentials. */
  readonly description: string
  readonly kysely: Kysely<Tables>
  readonly #settings: ConnectionSettings['pool']
  readonly #pool: ConnectionPool
  /** Null while the registry opens: then a failure rejects the call that opens the registry. */
  outage: DatabaseOutage | null = null
  /** Null while the registry opens. */
  usage: DatabaseUsage | null = null

  constructor(settings: ConnectionSettings) {
    this.dialect = settings.dialect
    this.description = settings.description
    this.#settings = settings.pool
    this.#pool = new ConnectionPool(() => connect(settings), settings.pool, {
      failed: error => this.outage?.failed(this.#messageOf(error)),
      worked: () => this.outage?.worked(),
      used: connections => this.usage?.used(connections),
      waits: () => this.usage?.waits(),
    })
    this.kysely = new Kysely<Tables>({ dialect: new PooledDialect(settings.dialect, this.#pool) })
  }

  /** Largest number of open connections. */
  get connections(): number {
    return this.#settings.maxActive
  }

  get usedConnections(): number {
    return this.#pool.inUse
  }

  /** Rejects with RegistryUnavailable. */
  async ping(): Promise<void> {
    await this.read(db => sql`select 1`.execute(db))
  }

  /**
   * Runs `work` in a transaction, possibly several times. Rejects with a refusal of `refusals`, or RegistryUnavailable.
   */
  async transaction<T>(
    work: (transaction: DatabaseTransaction) => Promise<T>,
    refusals: ConstraintRefusals = {},
  ): Promise<T> {
    try {
      return await runTransaction(this.kysely, work)
    } catch (error) {
      throw this.#translate(error, refusals)
    }
  }

  /** Runs read-only statements; a second time where the connection ended. */
  async read<T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work(this.kysely)
      } catch (error) {
        if (isConnectionLost(error) && attempt < READ_ATTEMPTS) continue
        throw this.#translate(error, {})
      }
    }
  }

  /**
   * Runs the statement that tests connections once: where the server refuses it, each use would open a new connection.
   * Rejects with ConfigurationErrors, or RegistryUnavailable.
   */
  async tryValidationQuery(): Promise<void> {
    const { testOnBorrow, validationQuery } = this.#settings
    if (!testOnBorrow) return
    const tried = this.kysely.connection().execute(async connection => {
      await sql
        .raw(validationQuery)
        .execute(connection)
        .catch((error: unknown) => {
          if (isConnectionLost(error) || isUnreachable(error)) throw error
          throw new ConfigurationErrors([
            {
              where: '',
              key: 'database.apim_db.validationQuery',
              given: JSON.stringify(validationQuery),
              expected: `must run on ${this.description}, which says: ${messageOf(error)}`,
              hint: 'leave it out for SELECT 1, or set pool_options.testOnBorrow to false',
            },
          ])
        })
    })
    await tried.catch(error => {
      throw this.#translate(error, {})
    })
  }

  /** An insert that keeps existing rows. `column`: a column of the key. */
  insertOrIgnore<T extends keyof Tables, O>(
    insert: InsertQueryBuilder<Tables, T, O>,
    column: string,
  ): InsertQueryBuilder<Tables, T, O> {
    // `insert ignore` would also truncate long texts.
    if (this.dialect === 'mysql') return insert.onDuplicateKeyUpdate({ [column]: sql.ref(column) } as never)
    return insert.onConflict(conflict => conflict.doNothing())
  }

  /** Locks the selected rows against changes until the transaction ends. */
  lockForShare<T extends keyof Tables, O>(select: SelectQueryBuilder<Tables, T, O>): SelectQueryBuilder<Tables, T, O> {
    if (this.dialect === 'postgresql') return select.forShare()
    // SQLite runs one transaction at a time.
    return this.dialect === 'mysql' ? select.modifyEnd(sql`lock in share mode`) : select
  }

  async close(): Promise<void> {
    this.outage?.end()
    this.outage = null
    await this.kysely.destroy()
  }

  #translate(error: unknown, { unique, reference }: ConstraintRefusals): unknown {
    if (error instanceof RegistryRefusal || error instanceof RegistryUnavailable) return error
    if (error instanceof ConfigurationErrors) return error
    if (unique !== undefined && hasCode(error, UNIQUE_CODES)) return unique()
    if (reference !== undefined && hasCode(error, REFERENCE_CODES)) return reference()
    if (!isDatabaseError(error)) return error
    return new RegistryUnavailable(`${this.description}: ${this.#messageOf(error)}`, isUnreachable(error))
  }

  #messageOf(error: unknown): string {
    const message = messageOf(error)
    const remedy = this.dialect === 'sqlite' ? '' : tlsRemedy(this.dialect, message)
    return remedy === '' ? message : `${message}; ${remedy}`
  }
}
