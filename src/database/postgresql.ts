/** Connection to a PostgreSQL server. */
import type { QueryResult } from 'kysely'
import pg from 'pg'
import type { Connection } from './connection-pool.ts'
import { type ServerSettings, tlsOptions } from './database-settings.ts'

const CHANGE_COMMANDS = ['INSERT', 'UPDATE', 'DELETE']

export async function openPostgresql(server: ServerSettings, connectMs: number): Promise<Connection> {
  const client = new pg.Client({
    host: server.host,
    port: server.port,
    database: server.database,
    user: server.username,
    password: server.password,
    application_name: server.applicationName,
    keepAlive: true,
    connectionTimeoutMillis: connectMs,
    ssl: tlsOptions(server) ?? false,
    ...(server.schema === '' ? {} : { options: `-c search_path=${server.schema}` }),
  })
  const connection = new PostgresqlConnection(client)
  try {
    await client.connect()
  } catch (error) {
    connection.destroy()
    throw error
  }
  return connection
}

class PostgresqlConnection implements Connection {
  readonly #client: pg.Client
  #isDead = false
  readonly #markDead = () => {
    this.#isDead = true
  }

  /** A FATAL error ends the session, even before the socket closes. */
  readonly #rethrow = (error: Error & { readonly severity?: string }): never => {
    if (error.severity === 'FATAL') this.#isDead = true
    throw error
  }

  constructor(client: pg.Client) {
    this.#client = client
    client.on('error', this.#markDead)
    client.on('end', this.#markDead)
  }

  async query(sql: string, parameters: readonly unknown[]): Promise<QueryResult<unknown>> {
    const result = await this.#client.query(sql, parameters.map(withoutNul)).catch(this.#rethrow)
    const { command, rowCount, rows } = result
    return CHANGE_COMMANDS.includes(command) ? { rows, numAffectedRows: BigInt(rowCount ?? 0) } : { rows }
  }

  isDead(): boolean {
    return this.#isDead
  }

  destroy(): void {
    this.#isDead = true
    // `end` would wait for the current statement.
    const { stream } = (this.#client as unknown as { readonly connection: { readonly stream: { destroy(): void } } })
      .connection
    this.#client.end().catch(() => {})
    stream.destroy()
  }
}

/** PostgreSQL refuses NUL in text. It is never stored, so a search for it may look for a character that no name has. */
function withoutNul(parameter: unknown): unknown {
  return typeof parameter === 'string' ? parameter.replaceAll('\0', '\u{10ffff}') : parameter
}
