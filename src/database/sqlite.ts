/** Connection to the embedded database (SQLite): a file in the data folder, used by this process alone. */
import { closeSync, openSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import type { QueryResult } from 'kysely'
import { LRUCache } from 'lru-cache'
import type { Connection } from './connection-pool.ts'
import { WriteTurns } from './write-turns.ts'

/** Milliseconds that a statement waits for another thread or process, such as a backup, and between its attempts. */
const BUSY_MS = 5000
const PAUSES_MS = [1, 2, 4, 8, 16]
const SQLITE_BUSY = 5
/** The first statement of a transaction (pooled-dialect.ts). */
const BEGIN = 'begin immediate'
/** Statements that a connection keeps compiled. */
const STATEMENTS_MAX = 256
/** Pages of the write-ahead log that are copied to the file at once: 32 MB, in which pages of indexes repeat. */
const LOG_PAGES = 8192
/** KiB of pages in memory. */
const CACHE_KIB = 16_384

/** The file is readable by its owner only, because it contains hashes of secrets. Rejects with file system errors. */
export async function openSqlite(file: string): Promise<Connection> {
  // SQLite would create the file with the umask's mode; its -wal and -shm files inherit the mode.
  closeSync(openSync(file, 'a', 0o600))
  const database = new DatabaseSync(file, { timeout: 0, enableForeignKeyConstraints: true })
  const connection = new SqliteConnection(database, new WriteTurns(file))
  await connection.query('pragma journal_mode = wal', [])
  // A confirmed revocation must survive a power loss.
  await connection.query('pragma synchronous = full', [])
  await connection.query(`pragma wal_autocheckpoint = ${LOG_PAGES}`, [])
  await connection.query(`pragma cache_size = -${CACHE_KIB}`, [])
  return connection
}

interface PreparedStatement {
  readonly statement: StatementSync
  readonly hasRows: boolean
}

class SqliteConnection implements Connection {
  readonly #database: DatabaseSync
  readonly #turns: WriteTurns
  readonly #statements = new LRUCache<string, PreparedStatement>({ max: STATEMENTS_MAX })
  /** Ticket of the turn that this connection has: until its transaction ends. */
  #turn: number | null = null

  constructor(database: DatabaseSync, turns: WriteTurns) {
    this.#database = database
    this.#turns = turns
  }

  /** SQLite's own busy handler would block the thread. */
  async query(sql: string, parameters: readonly unknown[]): Promise<QueryResult<unknown>> {
    try {
      if (sql === BEGIN) await this.#takeTurn()
      return await this.#runPatiently(sql, parameters)
    } finally {
      if (!this.#database.isOpen || !this.#database.isTransaction) this.#endTurn()
    }
  }

  async #runPatiently(sql: string, parameters: readonly unknown[]): Promise<QueryResult<unknown>> {
    for (let waitedMs = 0, attempt = 0; ; attempt++) {
      try {
        return this.#run(sql, parameters)
      } catch (error) {
        if ((error as { errcode?: number }).errcode !== SQLITE_BUSY || waitedMs >= BUSY_MS) throw error
        // A single statement asks for a turn where others write.
        if (this.#turn === null) {
          const askedAt = performance.now()
          await this.#takeTurn()
          waitedMs += performance.now() - askedAt
          continue
        }
        const pauseMs = PAUSES_MS[Math.min(attempt, PAUSES_MS.length - 1)]!
        await sleep(pauseMs)
        waitedMs += pauseMs
      }
    }
  }

  async #takeTurn(): Promise<void> {
    this.#turn = await this.#turns.take()
  }

  #endTurn(): void {
    if (this.#turn === null) return
    this.#turns.end(this.#turn)
    this.#turn = null
  }

  #run(sql: string, parameters: readonly unknown[]): QueryResult<unknown> {
    const { statement, hasRows } = this.#prepared(sql)
    const values = parameters as readonly SQLInputValue[]
    if (hasRows) return { rows: statement.all(...values) }
    return { rows: [], numAffectedRows: BigInt(statement.run(...values).changes) }
  }

  #prepared(sql: string): PreparedStatement {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    const statement = this.#database.prepare(sql)
    const prepared = { statement, hasRows: statement.columns().length > 0 }
    this.#statements.set(sql, prepared)
    return prepared
  }

  isDead(): boolean {
    return !this.#database.isOpen
  }

  destroy(): void {
    if (this.#database.isOpen) this.#database.close()
    this.#endTurn()
  }
}
