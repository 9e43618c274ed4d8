/** Applies pending migrations of the registry. */
import { ConfigurationErrors } from '../../config/diagnostics.ts'
import { MigrationLocked, migrateTables, NewerTables } from '../../database/migrations.ts'
import type { Database } from './database.ts'
import { MIGRATIONS, type SchemaPart } from './migrations.ts'
import { RegistryUnavailable } from './registry-errors.ts'

/**
 * Rejects with ConfigurationErrors where the tables are newer than this release, and with RegistryUnavailable where the
 * database does not respond or another node does not finish.
 */
export async function migrate(database: Database, parts: readonly SchemaPart[]): Promise<void> {
  const { dialect, description } = database
  const pending = parts.map(part => ({ part, migrations: MIGRATIONS[part] }))
  try {
    await database.read(db => migrateTables(db, dialect, pending))
  } catch (error) {
    if (error instanceof NewerTables) throw new ConfigurationErrors([newerSchema(error, description)])
    if (error instanceof MigrationLocked) throw new RegistryUnavailable(`${description}: ${error.message}`)
    throw error
  }
}

function newerSchema({ part, version, supported }: NewerTables, description: string) {
  return {
    where: `database.${part}_db`,
    key: '',
    given: description,
    expected: `its tables have version ${version}, this release supports ${supported}`,
    hint: 'start the release that created them or a newer one, or restore an older backup',
  }
}
