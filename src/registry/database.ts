/** One database: its connections, its tables brought up to date, transactions, and what its failures mean. */
import { type InsertQueryBuilder, Kysely, type SelectQueryBuilder, sql, type Transaction } from 'kysely'
import { ConfigurationFaults, masked, printable } from '../config/fault.ts'
import { ConnectionPool, NoConnection } from './connection-pool.ts'
import { connect, type DatabaseTerms } from './database-terms.ts'
import { type Flavour, PooledDialect } from './pooled-dialect.ts'
import { RegistryRefusal, RegistryUnavailable } from './registry.ts'
import type { Tables } from './tables.ts'

export type Within = Transaction<Tables>

/** What is answered where the database refuses a row: for a name that is taken, for what refers to nothing. */
export interface Refusals {
  readonly unique?: () => RegistryRefusal
  readonly reference?: () => RegistryRefusal
}

/** Times that a transaction is tried which lost against another one: nothing of it was done then. */
const TRIES = 4
/** The same of what only reads. After the first loss the pool tests the connections that it still has. */
const READS = 2

export class Database {
  readonly flavour: Flavour
  /** For messages: kind and place, without credentials. */
  readonly place: string
  readonly kysely: Kysely<Tables>

  constructor(terms: DatabaseTerms) {
    this.flavour = terms.flavour
    this.place = terms.place
    const pool = new ConnectionPool(() => connect(terms), terms.pool)
    this.kysely = new Kysely<Tables>({ dialect: new PooledDialect(terms.flavour, pool) })
  }

  /** All of `work` or nothing. Throws RegistryRefusal as told, or RegistryUnavailable; `work` may run again. */
  async transaction<T>(work: (within: Within) => Promise<T>, refusals: Refusals = {}): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.kysely.transaction().execute(work)
      } catch (error) {
        if (hasLost(error) && attempt < TRIES) continue
        throw this.#meaning(error, refusals)
      }
    }
  }

  /** Statements that only read; once more where their connection was lost, perhaps before they came. */
  async read<T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work(this.kysely)
      } catch (error) {
        if (wasCut(error) && attempt < READS) continue
        throw this.#meaning(error, {})
      }
    }
  }

  /** An insert that leaves alone what is there: `column` is of the key. */
  unlessThere<T extends keyof Tables, O>(
    insert: InsertQueryBuilder<Tables, T, O>,
    column: string,
  ): InsertQueryBuilder<Tables, T, O> {
    // `insert ignore` would also ignore a text that is too long.
    if (this.flavour === 'mysql') return insert.onDuplicateKeyUpdate({ [column]: sql.ref(column) } as never)
    return insert.onConflict(conflict => conflict.doNothing())
  }

  /** What is read stays as it is until the transaction ends. */
  held<T extends keyof Tables, O>(select: SelectQueryBuilder<Tables, T, O>): SelectQueryBuilder<Tables, T, O> {
    if (this.flavour === 'postgresql') return select.forShare()
    // One transaction at a time is all there is in the embedded one.
    return this.flavour === 'mysql' ? select.modifyEnd(sql`lock in share mode`) : select
  }

  async close(): Promise<void> {
    await this.kysely.destroy()
  }

  #meaning(error: unknown, { unique, reference }: Refusals): unknown {
    if (error instanceof RegistryRefusal || error instanceof RegistryUnavailable) return error
    if (error instanceof ConfigurationFaults) return error
    if (unique !== undefined && breaks(error, UNIQUE)) return unique()
    if (reference !== undefined && breaks(error, REFERENCE)) return reference()
    return isOfDatabase(error) ? new RegistryUnavailable(`${this.place}: ${causeOf(error)}`) : error
  }
}

interface DriverError {
  readonly message: string
  /** SQLSTATE of PostgreSQL, a name of MariaDB and MySQL, ERR_SQLITE_ERROR, or a code of the system. */
  readonly code?: string
  readonly errno?: number
  /** Of SQLite. */
  readonly errcode?: number
}

/** SQLSTATE 23505, ER_DUP_ENTRY, SQLITE_CONSTRAINT_UNIQUE and _PRIMARYKEY. */
const UNIQUE: readonly (string | number)[] = ['23505', 'ER_DUP_ENTRY', 2067, 1555]
/** SQLSTATE 23503, ER_ROW_IS_REFERENCED_2, ER_NO_REFERENCED_ROW_2, SQLITE_CONSTRAINT_FOREIGNKEY. */
const REFERENCE: readonly (string | number)[] = ['23503', 'ER_ROW_IS_REFERENCED_2', 'ER_NO_REFERENCED_ROW_2', 787]
/** Serialisation failures and deadlocks, and SQLITE_BUSY_SNAPSHOT. */
const LOST: readonly (string | number)[] = ['40001', '40P01', 'ER_LOCK_DEADLOCK', 'ER_CHECKREAD', 517]

/** SQLSTATE 57P01, a connection that MariaDB or MySQL has ended, and what systems say of it. */
const CUT: readonly (string | number)[] = ['57P01', 'PROTOCOL_CONNECTION_LOST', 'ECONNRESET', 'EPIPE']

function breaks(error: unknown, codes: readonly (string | number)[]): boolean {
  const { code, errcode } = error as DriverError
  return (code !== undefined && codes.includes(code)) || (errcode !== undefined && codes.includes(errcode))
}

function hasLost(error: unknown): boolean {
  return error instanceof Error && breaks(error, LOST)
}

/** pg has no code for a connection that ended in the middle. */
function wasCut(error: unknown): boolean {
  return error instanceof Error && (breaks(error, CUT) || error.message.startsWith('Connection terminated'))
}

/** A fault of the program is none of the database. */
function isOfDatabase(error: unknown): boolean {
  if (error instanceof NoConnection) return true
  if (!(error instanceof Error) || error instanceof TypeError || error instanceof RangeError) return false
  // pg has no code for a connection that ended in the middle.
  return (
    'code' in error || 'errcode' in error || /^(Connection terminated|Client (was|has)|Query read)/.test(error.message)
  )
}

const CAUSE_CHARS_MAX = 300

/** In one line and without credentials. Drivers tell values of rows in other members than these. */
function causeOf(error: unknown): string {
  const { message, code } = error as DriverError
  // An address that was tried in several ways has its reasons inside.
  const said = error instanceof AggregateError ? error.errors.map(each => (each as Error).message).join(', ') : message
  const named = code === undefined || code === 'ERR_SQLITE_ERROR' || said.includes(code) ? said : `${code} ${said}`
  return printable(masked(named)).slice(0, CAUSE_CHARS_MAX)
}
