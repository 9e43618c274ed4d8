/** A connection to a PostgreSQL server. */
import type { QueryResult } from 'kysely'
import pg from 'pg'
import type { Connection } from './connection-pool.ts'
import type { ServerTerms } from './database-terms.ts'
import { tlsOptions } from './server-tls.ts'

const CHANGES = ['INSERT', 'UPDATE', 'DELETE']

export async function openPostgresql(server: ServerTerms, connectMs: number): Promise<Connection> {
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
  readonly #died = () => {
    this.#isDead = true
  }

  /** What is FATAL ends the session, though its connection may be seen to end later. */
  readonly #failed = (error: Error & { readonly severity?: string }): never => {
    if (error.severity === 'FATAL') this.#isDead = true
    throw error
  }

  constructor(client: pg.Client) {
    this.#client = client
    client.on('error', this.#died)
    client.on('end', this.#died)
  }

  async query(sql: string, parameters: readonly unknown[]): Promise<QueryResult<unknown>> {
    const answer = await this.#client.query(sql, parameters.map(comparable)).catch(this.#failed)
    const { command, rowCount, rows } = answer
    return CHANGES.includes(command) ? { rows, numAffectedRows: BigInt(rowCount ?? 0) } : { rows }
  }

  isDead(): boolean {
    return this.#isDead
  }

  destroy(): void {
    this.#isDead = true
    // `end` would wait for the statement that is under way.
    const { stream } = (this.#client as unknown as { readonly connection: { readonly stream: { destroy(): void } } })
      .connection
    this.#client.end().catch(() => {})
    stream.destroy()
  }
}

/** The server refuses a NUL in a text. None is written, and what is looked for is compared as what nobody is called. */
function comparable(parameter: unknown): unknown {
  return typeof parameter === 'string' ? parameter.replaceAll('\0', '\u{10ffff}') : parameter
}
