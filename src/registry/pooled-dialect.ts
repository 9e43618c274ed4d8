/** What Kysely needs to work over our own pool: its compilers know each database's language, we the connections. */
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

export type Flavour = 'sqlite' | 'postgresql' | 'mysql'

interface Language {
  readonly adapter: () => DialectAdapter
  readonly compiler: () => QueryCompiler
  readonly introspector: (db: Kysely<unknown>) => DatabaseIntrospector
  readonly begin: string
}

const LANGUAGES: Readonly<Record<Flavour, Language>> = {
  sqlite: {
    adapter: () => new SqliteAdapter(),
    compiler: () => new SqliteQueryCompiler(),
    introspector: db => new SqliteIntrospector(db),
    // A transaction that begins by reading could not go on to write where another process has written meanwhile.
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
  readonly #language: Language
  readonly #pool: ConnectionPool

  constructor(flavour: Flavour, pool: ConnectionPool) {
    this.#language = LANGUAGES[flavour]
    this.#pool = pool
  }

  createAdapter(): DialectAdapter {
    return this.#language.adapter()
  }

  createDriver(): Driver {
    return new PooledDriver(this.#pool, this.#language.begin)
  }

  createIntrospector(db: Kysely<unknown>): DatabaseIntrospector {
    return this.#language.introspector(db)
  }

  createQueryCompiler(): QueryCompiler {
    return this.#language.compiler()
  }
}

class Lent implements DatabaseConnection {
  readonly pooled: PooledConnection

  constructor(pooled: PooledConnection) {
    this.pooled = pooled
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    return (await this.pooled.query(sql, parameters)) as QueryResult<R>
  }

  streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('results are read in pages, not as a stream')
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

  async acquireConnection(): Promise<Lent> {
    return new Lent(await this.#pool.borrow())
  }

  async beginTransaction({ pooled }: Lent): Promise<void> {
    await pooled.query(this.#begin, [])
  }

  async commitTransaction({ pooled }: Lent): Promise<void> {
    await pooled.query('commit', [])
  }

  /** Never the reason of a failure: the reason was there before. */
  async rollbackTransaction({ pooled }: Lent): Promise<void> {
    if (!pooled.isGood) return
    try {
      await pooled.query('rollback', [])
    } catch {
      pooled.destroy()
    }
  }

  async releaseConnection({ pooled }: Lent): Promise<void> {
    this.#pool.giveBack(pooled)
  }

  async destroy(): Promise<void> {
    this.#pool.close()
  }
}
