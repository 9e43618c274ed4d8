/** What it takes to connect to a database, and the connecting: only the driver in use is ever loaded. */
import type { Connection, PoolTerms } from './connection-pool.ts'
import type { Flavour } from './pooled-dialect.ts'

export interface DatabaseTerms {
  readonly flavour: Flavour
  /** For messages: kind and place, without credentials. */
  readonly place: string
  readonly pool: PoolTerms
  /** Of the embedded one. */
  readonly file: string
  /** Null of the embedded one. */
  readonly server: ServerTerms | null
}

export interface ServerTerms {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly username: string
  readonly password: string
  /** Of PostgreSQL: the schema that tables are in; '' for that of the account. */
  readonly schema: string
  /** Under which a PostgreSQL server lists its connections. */
  readonly applicationName: string
  /** Null: in the clear. */
  readonly tls: TlsTerms | null
}

export interface TlsTerms {
  /** Whether the certificate must be of an authority that is trusted. */
  readonly isVerified: boolean
  /** And made out to the host. */
  readonly isHostVerified: boolean
  /** PEM; '' for the well-known authorities, or no certificate of our own. */
  readonly authorities: string
  readonly certificate: string
  readonly key: string
}

/** Rejects with what the driver says. */
export async function connect({ flavour, file, server, pool: { connectMs } }: DatabaseTerms): Promise<Connection> {
  if (server === null) return (await import('./sqlite.ts')).openSqlite(file)
  if (flavour === 'postgresql') return (await import('./postgresql.ts')).openPostgresql(server, connectMs)
  return (await import('./mysql.ts')).openMysql(server, connectMs)
}
