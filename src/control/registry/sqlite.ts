/** Connection to the embedded database (SQLite): a file in the data folder, used by this process alone. */
import { closeSync, openSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import type { QueryResult } from 'kysely'
import type { Connection } from './connection-pool.ts'

/** Milliseconds that a statement waits for another process, such as a backup, and between its attempts. */
const BUSY_MS = 5000
const PAUSE_MS = 20
const SQLITE_BUSY = 5

/** The file is readable by its owner only, because it contains hashes of secrets. Rejects with file system errors. */
export async function openSqlite(file: string): Promise<Connection> {
  // SQLite would create the file with the umask's mode; its -wal and -shm files inherit the mode.
  closeSync(openSync(file, 'a', 0o600))
  const database = new DatabaseSync(file, { timeout: 0, enableForeignKeyConstraints: true })
  const connection = new SqliteConnection(database)
  await connection.query('pragma journal_mode = wal', [])
  // A confirmed revocation must survive a power loss.
  await connection.query('pragma synchronous = full', [])
  return connection
}

class SqliteConnection implements Connection {
  readonly #database: DatabaseSync

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  /** SQLite's own busy handler would block the thread. */
  async query(sql: string, parameters: readonly unknown[]): Promise<QueryResult<unknown>> {
    for (let waitedMs = 0; ; waitedMs += PAUSE_MS) {
      try {
        return this.#run(sql, parameters)
      } catch (error) {
        if ((error as { errcode?: number }).errcode !== SQLITE_BUSY || waitedMs >= BUSY_MS) throw error
        await sleep(PAUSE_MS)
      }
    }
  }

  #run(sql: string, parameters: readonly unknown[]): QueryResult<unknown> {
    const statement = this.#database.prepare(sql)
    const values = parameters as readonly SQLInputValue[]
    if (statement.columns().length > 0) return { rows: statement.all(...values) }
    return { rows: [], numAffectedRows: BigInt(statement.run(...values).changes) }
  }

  isDead(): boolean {
    return !this.#database.isOpen
  }

  destroy(): void {
    if (this.#database.isOpen) this.#database.close()
  }
}
