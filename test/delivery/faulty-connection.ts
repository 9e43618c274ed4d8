/** Connections that break where a test wants them to. */
import { Kysely } from 'kysely'
import { connect } from '../../src/database/connect.ts'
import { type Connection, ConnectionPool } from '../../src/database/connection-pool.ts'
import type { ConnectionSettings } from '../../src/database/database-settings.ts'
import { PooledDialect } from '../../src/database/pooled-dialect.ts'

/** Decides about each statement: undefined lets it run; an error stands for one that is lost before or after it ran. */
export type StatementFault = (sql: string) => { readonly when: 'before' | 'after' } | undefined

export function kyselyOf(settings: ConnectionSettings, fault: StatementFault = () => undefined): Kysely<object> {
  const open = async (): Promise<Connection> => withFaults(await connect(settings), fault)
  return new Kysely<object>({ dialect: new PooledDialect(settings.dialect, new ConnectionPool(open, settings.pool)) })
}

function withFaults(connection: Connection, fault: StatementFault): Connection {
  return {
    isDead: () => connection.isDead(),
    destroy: () => connection.destroy(),
    async query(sql, parameters) {
      const when = fault(sql)?.when
      const result = when === 'before' ? undefined : await connection.query(sql, parameters)
      if (when === undefined) return result!
      connection.destroy()
      throw Object.assign(new Error('the test has cut the connection'), { code: 'ECONNRESET' })
    },
  }
}
