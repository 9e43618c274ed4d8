/** Kysely dialect over our connection pool: Kysely compiles the SQL, the pool provides the connections. */
import {
  type DatabaseConnection,
  type Dialect,
  type DialectAdapter,
  type Driver,
  type Kysely,
  MysqlAdapter,
  MysqlIntrospector,
  MysqlQueryCompiler,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryCompiler,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import type { CompiledQuery, DatabaseIntrospector, QueryResult } from 'kysely'
import type { ConnectionPool, PooledConnection } from './connection-pool.ts'

export type DialectName = 'sqlite' | 'postgresql' | 'mysql'

interface DialectParts {
  readonly adapter: () => DialectAdapter
  readonly compiler: () => QueryCompiler
  readonly introspector: (db: Kysely<unknown>) => DatabaseIntrospector
  readonly begin: string
}

const DIALECTS: Readonly<Record<DialectName, DialectParts>> = {
  sqlite: {
    adapter: () => new SqliteAdapter(),
    compiler: () => new SqliteQueryCompiler(),
    introspector: db => new SqliteIntrospector(db),
    // A deferred transaction could not write after another process has written.
    begin: 'begin immediate',
  },
  postgresql: {
    adapter: () => new PostgresAdapter(),
    compiler: () => new PostgresQueryCompiler(),
    introspector: db => new PostgresIntrospector(db),
    begin: 'begin',
  },
  mysql: {
    adapter: () => new MysqlAdapter(),
    compiler: () => new MysqlQueryCompiler(),
    introspector: db => new MysqlIntrospector(db),
    begin: 'begin',
  },
}

export class PooledDialect implements Dialect {
  readonly #parts: DialectParts
  readonly #pool: ConnectionPool

  constructor(flavour: DialectName, pool: ConnectionPool) {
    this.#parts = DIALECTS[flavour]
    this.#pool = pool
  }

  createAdapter(): DialectAdapter {
    return this.#parts.adapter()
  }

  createDriver(): Driver {
    return new PooledDriver(this.#pool, this.#parts.begin)
  }

  createIntrospector(db: Kysely<unknown>): DatabaseIntrospector {
    return this.#parts.introspector(db)
  }

  createQueryCompiler(): QueryCompiler {
    return this.#parts.compiler()
  }
}

class PooledDatabaseConnection implements DatabaseConnection {
  readonly pooled: PooledConnection

  constructor(pooled: PooledConnection) {
    this.pooled = pooled
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    return (await this.pooled.query(sql, parameters)) as QueryResult<R>
  }

  streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('streaming is not supported')
  }
}

class PooledDriver implements Driver {
  readonly #pool: ConnectionPool
  readonly #begin: string

  constructor(pool: ConnectionPool, begin: string) {
    this.#pool = pool
    this.#begin = begin
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<PooledDatabaseConnection> {
    return new PooledDatabaseConnection(await this.#pool.acquire())
  }

  async beginTransaction({ pooled }: PooledDatabaseConnection): Promise<void> {
    await pooled.query(this.#begin, [])
  }

  async commitTransaction({ pooled }: PooledDatabaseConnection): Promise<void> {
    await pooled.query('commit', [])
  }

  /** A failed rollback never hides the error that caused it. */
  async rollbackTransaction({ pooled }: PooledDatabaseConnection): Promise<void> {
    if (!pooled.isUsable) return
    try {
      await pooled.query('rollback', [])
    } catch {
      pooled.destroy()
    }
  }

  async releaseConnection({ pooled }: PooledDatabaseConnection): Promise<void> {
    this.#pool.release(pooled)
  }

  async destroy(): Promise<void> {
    this.#pool.close()
  }
}
