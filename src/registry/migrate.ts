/** Brings the tables of a database up to date, one node at a time. */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { ConfigurationFaults } from '../config/fault.ts'
import type { Database } from './database.ts'
import { type Part, STEPS, spellingOf } from './migrations.ts'
import type { Flavour } from './pooled-dialect.ts'
import { RegistryUnavailable } from './registry.ts'
import type { Tables } from './tables.ts'

/** Seconds that a node waits for another one that is at it. */
const LOCK_S = 60
const LOCK_PAUSE_MS = 200
/** Any number that nobody else takes for an advisory lock. */
const LOCK_KEY = 5_177_104_203

/**
 * Throws ConfigurationFaults where the tables are newer than this release knows, RegistryUnavailable where the database
 * does not answer or another node does not finish.
 */
export async function migrate(database: Database, parts: readonly Part[]): Promise<void> {
  if (database.flavour === 'mysql') return migrateMysql(database, parts)
  // Statements about tables are part of the transaction here.
  await database.transaction(async within => {
    if (database.flavour === 'postgresql') {
      await taken(database.place, async () => {
        const { rows } = await sql<{ got: boolean }>`select pg_try_advisory_xact_lock(${LOCK_KEY}) as got`.execute(
          within,
        )
        return rows[0]?.got === true
      })
    }
    await bringUpToDate(within, database.flavour, '', parts, database.place)
  })
}

async function migrateMysql(database: Database, parts: readonly Part[]): Promise<void> {
  await database.read(db =>
    db.connection().execute(async one => {
      // Locks are the server's, and their names have 64 characters.
      const { rows } = await sql<{ name: string; version: string }>`
        select database() as name, version() as version`.execute(one)
      const { name, version } = rows[0]!
      const lock = `sluice-${createHash('sha256').update(name).digest('hex').slice(0, 32)}`
      await taken(database.place, async () => {
        const { rows } = await sql<{ got: number | null }>`select get_lock(${lock}, 0) as got`.execute(one)
        return rows[0]?.got === 1
      })
      try {
        // Those two do not take "a" and "a " for the same.
        const collation = /mariadb/i.test(version) ? 'utf8mb4_nopad_bin' : 'utf8mb4_0900_bin'
        await bringUpToDate(one, database.flavour, collation, parts, database.place)
      } finally {
        await sql`select release_lock(${lock})`.execute(one)
      }
    }),
  )
}

/** Asked again and again: a statement that waits itself would be taken for one that hangs. */
async function taken(place: string, take: () => Promise<boolean>): Promise<void> {
  for (let tries = (LOCK_S * 1000) / LOCK_PAUSE_MS; tries > 0; tries--) {
    if (await take()) return
    await sleep(LOCK_PAUSE_MS)
  }
  throw new RegistryUnavailable(`${place}: another node has not brought the tables up to date within ${LOCK_S} s`)
}

async function bringUpToDate(
  db: Kysely<Tables>,
  flavour: Flavour,
  collation: string,
  parts: readonly Part[],
  place: string,
): Promise<void> {
  const spelling = spellingOf(flavour, collation)
  const versions = ['part varchar(16) not null primary key', 'version integer not null']
  for (const statement of spelling.table('sluice_schema', versions)) await sql.raw(statement).execute(db)
  for (const part of parts) {
    const row = await db.selectFrom('sluice_schema').selectAll().where('part', '=', part).executeTakeFirst()
    const version = row?.version ?? 0
    if (version > STEPS[part].length) throw new ConfigurationFaults([tooNew(part, place, version)])
    for (const [index, step] of STEPS[part].entries()) {
      if (index < version) continue
      for (const statement of step(spelling)) await sql.raw(statement).execute(db)
      await record(db, part, index + 1)
    }
  }
}

async function record(db: Kysely<Tables>, part: Part, version: number): Promise<void> {
  if (version === 1) await db.insertInto('sluice_schema').values({ part, version }).execute()
  else await db.updateTable('sluice_schema').set({ version }).where('part', '=', part).execute()
}

function tooNew(part: Part, place: string, version: number) {
  return {
    where: `database.${part}_db`,
    key: '',
    given: place,
    expected: `its tables are of version ${version}, and this release knows ${STEPS[part].length}`,
    remedy: 'start the release that made them, or a newer one, or restore a backup from before',
  }
}
