/** The embedded database: a file in the data folder, read and written by this process alone. */
import { closeSync, openSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import type { QueryResult } from 'kysely'
import type { Connection } from './connection-pool.ts'

/** Milliseconds that a statement waits for another process, such as one that makes a backup. */
const BUSY_MS = 2000

/** Nobody but the owner reads it: it holds hashes of secrets. Throws what the system says. */
export function openSqlite(file: string): Connection {
  // SQLite would create it with the rights that the umask leaves; its -wal and -shm take after it.
  closeSync(openSync(file, 'a', 0o600))
  const database = new DatabaseSync(file, { timeout: BUSY_MS, enableForeignKeyConstraints: true })
  database.exec('pragma journal_mode = wal')
  // A revocation that was answered must not be forgotten in a loss of power.
  database.exec('pragma synchronous = full')
  return new SqliteConnection(database)
}

class SqliteConnection implements Connection {
  readonly #database: DatabaseSync

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  async query(sql: string, parameters: readonly unknown[]): Promise<QueryResult<unknown>> {
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
