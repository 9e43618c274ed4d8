/** Opens connections of a database with the driver in use, which is loaded when it is first used. */
import type { Connection } from './connection-pool.ts'
import type { ConnectionSettings } from './database-settings.ts'

/** pg has no codes for what it finds out by itself while it connects, such as a server without TLS. */
export class NotConnected extends Error {
  override readonly name = 'NotConnected'
}

/** Loads the driver in use and connects. Rejects with NotConnected, and with errors of the driver that have a code. */
export async function connect({ dialect, file, server, pool: { connectMs } }: ConnectionSettings): Promise<Connection> {
  if (server === null) return (await import('./sqlite.ts')).openSqlite(file)
  if (dialect === 'mysql') return (await import('./mysql.ts')).openMysql(server, connectMs)
  const { openPostgresql } = await import('./postgresql.ts')
  try {
    return await openPostgresql(server, connectMs)
  } catch (error) {
    if (!(error instanceof Error) || error instanceof TypeError || 'code' in error) throw error
    throw new NotConnected(error.message)
  }
}
