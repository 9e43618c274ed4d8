/** Applies the migrations of tables, one node and one thread at a time. */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import type { DialectName } from './pooled-dialect.ts'
import { runTransaction } from './transaction.ts'

/** Differences in DDL between the databases. */
export interface DdlSyntax {
  readonly dialect: DialectName
  readonly text: string
  /** Statements that create a table and its indexes. */
  table(name: string, columns: readonly string[], indexes?: readonly string[]): readonly string[]
}

/**
 * Statements of one version. A released migration is never edited, and none drops data: a change is a new migration.
 * MariaDB and MySQL cannot roll back DDL, so each statement can run again.
 */
export type Migration = (ddl: DdlSyntax) => readonly string[]

/** Tables that have a version of their own. `part`: at most 16 characters. */
interface MigratedPart {
  readonly part: string
  readonly migrations: readonly Migration[]
}

/** Another node did not finish its migration. */
export class MigrationLocked extends Error {
  override readonly name = 'MigrationLocked'
}

/** The tables are those of a newer release. */
export class NewerTables extends Error {
  override readonly name = 'NewerTables'
  readonly part: string
  readonly version: number
  readonly supported: number

  constructor(part: string, version: number, supported: number) {
    super(`the tables of ${part} have version ${version}, this release supports ${supported}`)
    this.part = part
    this.version = version
    this.supported = supported
  }
}

interface Versions {
  readonly sluice_schema: { part: string; version: number }
}

/** Seconds to wait for another node's migration. */
const LOCK_S = 60
const LOCK_PAUSE_MS = 200
/** Key of the PostgreSQL advisory lock. */
const LOCK_KEY = 5_177_104_203

/**
 * In one transaction of SQLite and PostgreSQL, whose DDL is transactional; on one connection of MariaDB and MySQL.
 * Rejects with MigrationLocked, NewerTables, and errors of the driver.
 */
export async function migrateTables<Tables>(
  kysely: Kysely<Tables>,
  dialect: DialectName,
  parts: readonly MigratedPart[],
): Promise<void> {
  const versions = kysely as unknown as Kysely<Versions>
  if (dialect === 'mysql') return versions.connection().execute(connection => migrateMysql(connection, parts))
  await runTransaction(versions, async transaction => {
    if (dialect === 'postgresql') await lockPostgresql(transaction)
    await applyMigrations(transaction, dialect, '', parts)
  })
}

/** The lock ends with the transaction. */
async function lockPostgresql(db: Kysely<Versions>): Promise<void> {
  await acquireLock(async () => {
    const { rows } = await sql<{ got: boolean }>`select pg_try_advisory_xact_lock(${LOCK_KEY}) as got`.execute(db)
    return rows[0]?.got === true
  })
}

async function migrateMysql(db: Kysely<Versions>, parts: readonly MigratedPart[]): Promise<void> {
  // Lock names are global to the server and limited to 64 characters.
  const { rows } = await sql<{ name: string; version: string }>`
    select database() as name, version() as version`.execute(db)
  const { name, version } = rows[0]!
  const lock = `sluice-${createHash('sha256').update(name).digest('hex').slice(0, 32)}`
  await acquireLock(async () => {
    const { rows } = await sql<{ got: number | null }>`select get_lock(${lock}, 0) as got`.execute(db)
    return rows[0]?.got === 1
  })
  try {
    // Collations without padding distinguish "a" from "a ".
    const collation = /mariadb/i.test(version) ? 'utf8mb4_nopad_bin' : 'utf8mb4_0900_bin'
    await applyMigrations(db, 'mysql', collation, parts)
  } finally {
    await sql`select release_lock(${lock})`.execute(db)
  }
}

/** Polls: a statement that waits for the lock would run into the statement timeout. */
async function acquireLock(tryLock: () => Promise<boolean>): Promise<void> {
  for (let attempts = (LOCK_S * 1000) / LOCK_PAUSE_MS; attempts > 0; attempts--) {
    if (await tryLock()) return
    await sleep(LOCK_PAUSE_MS)
  }
  throw new MigrationLocked(`another node did not finish its migration within ${LOCK_S} s`)
}

async function applyMigrations(
  db: Kysely<Versions>,
  dialect: DialectName,
  collation: string,
  parts: readonly MigratedPart[],
): Promise<void> {
  const ddl = ddlSyntaxOf(dialect, collation)
  const versions = ['part varchar(16) not null primary key', 'version integer not null']
  for (const statement of ddl.table('sluice_schema', versions)) await sql.raw(statement).execute(db)
  for (const { part, migrations } of parts) {
    const row = await db.selectFrom('sluice_schema').selectAll().where('part', '=', part).executeTakeFirst()
    const version = row?.version ?? 0
    if (version > migrations.length) throw new NewerTables(part, version, migrations.length)
    for (const [index, migration] of migrations.entries()) {
      if (index < version) continue
      for (const statement of migration(ddl)) await sql.raw(statement).execute(db)
      await record(db, part, index + 1)
    }
  }
}

async function record(db: Kysely<Versions>, part: string, version: number): Promise<void> {
  if (version === 1) await db.insertInto('sluice_schema').values({ part, version }).execute()
  else await db.updateTable('sluice_schema').set({ version }).where('part', '=', part).execute()
}

/** `collation`: for MariaDB and MySQL, a binary one without padding. */
function ddlSyntaxOf(dialect: DialectName, collation: string): DdlSyntax {
  const nameOf = (table: string, columns: string): string => `${table}_by_${columns.replaceAll(/\W+/g, '_')}`
  if (dialect !== 'mysql') {
    return {
      dialect,
      text: 'text',
      table: (name, columns, indexes = []) => [
        `create table if not exists ${name} (${columns.join(', ')})`,
        ...indexes.map(column => `create index if not exists ${nameOf(name, column)} on ${name} (${column})`),
      ],
    }
  }
  return {
    dialect,
    text: 'mediumtext',
    table: (name, columns, indexes = []) => {
      const lines = [...columns, ...indexes.map(column => `index ${nameOf(name, column)} (${column})`)]
      const options = `engine = InnoDB default character set utf8mb4 collate ${collation}`
      return [`create table if not exists ${name} (${lines.join(', ')}) ${options}`]
    },
  }
}
