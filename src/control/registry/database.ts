/** One database: transactions, reads, and the translation of driver errors. */
import { type InsertQueryBuilder, Kysely, type SelectQueryBuilder, sql, type Transaction } from 'kysely'
import { ConfigurationErrors, maskCredentials, printable } from '../../config/diagnostics.ts'
import { type Connection, ConnectionPool, ConnectionUnavailable } from './connection-pool.ts'
import type { DatabaseOutage } from './database-outage.ts'
import type { ConnectionSettings } from './database-settings.ts'
import { tlsRemedy } from './jdbc-url.ts'
import { type DialectName, PooledDialect } from './pooled-dialect.ts'
import { RegistryRefusal, RegistryUnavailable } from './registry-errors.ts'
import type { Tables } from './tables.ts'

export type DatabaseTransaction = Transaction<Tables>

/** Refusals for violated constraints: a duplicate key, and a missing or used reference. */
export interface ConstraintRefusals {
  readonly unique?: () => RegistryRefusal
  readonly reference?: () => RegistryRefusal
}

/** Attempts of a transaction that fails by a serialisation failure or deadlock, which leaves no effect. */
const ATTEMPTS = 4
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

  constructor(settings: ConnectionSettings) {
    this.dialect = settings.dialect
    this.description = settings.description
    this.#settings = settings.pool
    this.#pool = new ConnectionPool(() => connect(settings), settings.pool, {
      failed: error => this.outage?.failed(this.#messageOf(error)),
      worked: () => this.outage?.worked(),
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
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.kysely.transaction().execute(work)
      } catch (error) {
        if (isSerializationFailure(error) && attempt < ATTEMPTS) continue
        throw this.#translate(error, refusals)
      }
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

/** pg has no codes for what it finds out by itself while it connects, such as a server without TLS. */
class NotConnected extends Error {
  override readonly name = 'NotConnected'
}

/** Loads the driver in use and connects. Rejects with NotConnected, and with errors of the driver that have a code. */
async function connect({ dialect, file, server, pool: { connectMs } }: ConnectionSettings): Promise<Connection> {
  if (server === null) return (await import('./sqlite.ts')).openSqlite(file)
  if (dialect === 'mysql') return (await import('./mysql.ts')).openMysql(server, connectMs)
  const { openPostgresql } = await import('./postgresql.ts')
  try {
    return await openPostgresql(server, connectMs)
  } catch (error) {
    if (!(error instanceof Error) || error instanceof TypeError || 'code' in error) throw error
    throw new NotConnected(error.message)
  }
}

interface DriverError {
  readonly message: string
  /** SQLSTATE of PostgreSQL, an error name of MariaDB and MySQL, ERR_SQLITE_ERROR, or a system error code. */
  readonly code?: string
  readonly errno?: number
  /** SQLite's extended error code. */
  readonly errcode?: number
}

/** SQLSTATE 23505, ER_DUP_ENTRY, SQLITE_CONSTRAINT_UNIQUE and _PRIMARYKEY. */
const UNIQUE_CODES: readonly (string | number)[] = ['23505', 'ER_DUP_ENTRY', 2067, 1555]
/** SQLSTATE 23503, ER_ROW_IS_REFERENCED_2, ER_NO_REFERENCED_ROW_2, SQLITE_CONSTRAINT_FOREIGNKEY. */
const REFERENCE_CODES: readonly (string | number)[] = ['23503', 'ER_ROW_IS_REFERENCED_2', 'ER_NO_REFERENCED_ROW_2', 787]
/** Serialisation failures, deadlocks, SQLITE_BUSY_SNAPSHOT. */
const SERIALIZATION_CODES: readonly (string | number)[] = ['40001', '40P01', 'ER_LOCK_DEADLOCK', 'ER_CHECKREAD', 517]

/** SQLSTATE 57P01 (terminated by an administrator), a lost connection of MariaDB or MySQL, and system errors. */
const CONNECTION_CODES: readonly (string | number)[] = ['57P01', 'PROTOCOL_CONNECTION_LOST', 'ECONNRESET', 'EPIPE']

/**
 * No connection, yet: errors of the system, SQLSTATE 57P01 to 57P03 (the server stops or starts) and 53300 (too many
 * connections), and those of MariaDB and MySQL.
 */
const UNREACHABLE_CODES: readonly (string | number)[] = [
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH'],
  ...['ENOTFOUND', 'EAI_AGAIN', '57P01', '57P02', '57P03', '53300'],
  ...['PROTOCOL_CONNECTION_LOST', 'ER_CON_COUNT_ERROR', 'ER_SERVER_SHUTDOWN'],
]

function isUnreachable(error: unknown): boolean {
  if (error instanceof ConnectionUnavailable || hasCode(error, UNREACHABLE_CODES)) return true
  return /^(?:Connection terminated|timeout expired)/.test((error as Error).message)
}

function hasCode(error: unknown, codes: readonly (string | number)[]): boolean {
  const { code, errcode } = error as DriverError
  return (code !== undefined && codes.includes(code)) || (errcode !== undefined && codes.includes(errcode))
}

function isSerializationFailure(error: unknown): boolean {
  return error instanceof Error && hasCode(error, SERIALIZATION_CODES)
}

/** pg has no code for a connection that ended in the middle. */
function isConnectionLost(error: unknown): boolean {
  return (
    error instanceof Error && (hasCode(error, CONNECTION_CODES) || error.message.startsWith('Connection terminated'))
  )
}

/** True for an error of the database, false for a bug. */
function isDatabaseError(error: unknown): boolean {
  if (error instanceof ConnectionUnavailable || error instanceof NotConnected) return true
  if (!(error instanceof Error) || error instanceof TypeError || error instanceof RangeError) return false
  // pg has no code for a connection that ended in the middle.
  return (
    'code' in error ||
    'errcode' in error ||
    /^(Connection terminated|Client (was|has)|Query read|timeout expired)/.test(error.message)
  )
}

const CAUSE_CHARS_MAX = 300

/** One line without credentials. Drivers put values of rows into other members only. */
function messageOf(error: unknown): string {
  const { message: own, code } = error as DriverError
  // Node reports one error per address that it tried.
  const message = error instanceof AggregateError ? error.errors.map(each => (each as Error).message).join(', ') : own
  const named =
    code === undefined || code === 'ERR_SQLITE_ERROR' || message.includes(code) ? message : `${code} ${message}`
  return printable(maskCredentials(named)).slice(0, CAUSE_CHARS_MAX)
}
