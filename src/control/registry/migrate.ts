/** Applies pending migrations, one node at a time. */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { ConfigurationErrors } from '../../config/diagnostics.ts'
import type { Database } from './database.ts'
import { type SchemaPart, MIGRATIONS, ddlSyntaxOf } from './migrations.ts'
import type { DialectName } from './pooled-dialect.ts'
import { RegistryUnavailable } from './registry-errors.ts'
import type { Tables } from './tables.ts'

/** Seconds to wait for another node's migration. */
const LOCK_S = 60
const LOCK_PAUSE_MS = 200
/** Key of the PostgreSQL advisory lock. */
const LOCK_KEY = 5_177_104_203

/**
 * Rejects with ConfigurationErrors where the tables are newer than this release, and with RegistryUnavailable where the
 * database does not respond or another node does not finish.
 */
export async function migrate(database: Database, parts: readonly SchemaPart[]): Promise<void> {
  if (database.dialect === 'mysql') return migrateMysql(database, parts)
  // DDL is transactional in SQLite and PostgreSQL.
  await database.transaction(async transaction => {
    if (database.dialect === 'postgresql') {
      await acquireLock(database.description, async () => {
        const { rows } = await sql<{ got: boolean }>`select pg_try_advisory_xact_lock(${LOCK_KEY}) as got`.execute(
          transaction,
        )
        return rows[0]?.got === true
      })
    }
    await applyMigrations(transaction, database.dialect, '', parts, database.description)
  })
}

async function migrateMysql(database: Database, parts: readonly SchemaPart[]): Promise<void> {
  await database.read(db =>
    db.connection().execute(async connection => {
      // Lock names are global to the server and limited to 64 characters.
      const { rows } = await sql<{ name: string; version: string }>`
        select database() as name, version() as version`.execute(connection)
      const { name, version } = rows[0]!
      const lock = `sluice-${createHash('sha256').update(name).digest('hex').slice(0, 32)}`
      await acquireLock(database.description, async () => {
        const { rows } = await sql<{ got: number | null }>`select get_lock(${lock}, 0) as got`.execute(connection)
        return rows[0]?.got === 1
      })
      try {
        // Collations without padding distinguish "a" from "a ".
        const collation = /mariadb/i.test(version) ? 'utf8mb4_nopad_bin' : 'utf8mb4_0900_bin'
        await applyMigrations(connection, database.dialect, collation, parts, database.description)
      } finally {
        await sql`select release_lock(${lock})`.execute(connection)
      }
    }),
  )
}

/** Polls: a statement that waits for the lock would run into the statement timeout. */
async function acquireLock(description: string, tryLock: () => Promise<boolean>): Promise<void> {
  for (let attempts = (LOCK_S * 1000) / LOCK_PAUSE_MS; attempts > 0; attempts--) {
    if (await tryLock()) return
    await sleep(LOCK_PAUSE_MS)
  }
  throw new RegistryUnavailable(`${description}: another node did not finish its migration within ${LOCK_S} s`)
}

async function applyMigrations(
  db: Kysely<Tables>,
  dialect: DialectName,
  collation: string,
  parts: readonly SchemaPart[],
  description: string,
): Promise<void> {
  const ddl = ddlSyntaxOf(dialect, collation)
  const versions = ['part varchar(16) not null primary key', 'version integer not null']
  for (const statement of ddl.table('sluice_schema', versions)) await sql.raw(statement).execute(db)
  for (const part of parts) {
    const row = await db.selectFrom('sluice_schema').selectAll().where('part', '=', part).executeTakeFirst()
    const version = row?.version ?? 0
    if (version > MIGRATIONS[part].length) throw new ConfigurationErrors([newerSchema(part, description, version)])
    for (const [index, migration] of MIGRATIONS[part].entries()) {
      if (index < version) continue
      for (const statement of migration(ddl)) await sql.raw(statement).execute(db)
      await record(db, part, index + 1)
    }
  }
}

async function record(db: Kysely<Tables>, part: SchemaPart, version: number): Promise<void> {
  if (version === 1) await db.insertInto('sluice_schema').values({ part, version }).execute()
  else await db.updateTable('sluice_schema').set({ version }).where('part', '=', part).execute()
}

function newerSchema(part: SchemaPart, description: string, version: number) {
  return {
    where: `database.${part}_db`,
    key: '',
    given: description,
    expected: `its tables have version ${version}, this release supports ${MIGRATIONS[part].length}`,
    hint: 'start the release that created them or a newer one, or restore an older backup',
  }
}
