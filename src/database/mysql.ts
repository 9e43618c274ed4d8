/** Connection to a MariaDB or MySQL server. */
import type { QueryResult } from 'kysely'
import mysql, { type Connection as MysqlClient, type ResultSetHeader } from 'mysql2'
import type { Connection } from './connection-pool.ts'
import { type ServerSettings, tlsOptions } from './database-settings.ts'

/**
 * READ COMMITTED, as on the other databases; strict mode refuses texts that are too long; lock waits end before the
 * statement times out.
 */
const SESSION =
  "set session transaction_isolation = 'READ-COMMITTED', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'," +
  ' innodb_lock_wait_timeout = 5'
/** MariaDB before 11.1 has the older variable name only. */
const OLDER_SESSION = SESSION.replace('transaction_isolation', 'tx_isolation')

const UNKNOWN_VARIABLE = 'ER_UNKNOWN_SYSTEM_VARIABLE'

export async function openMysql(server: ServerSettings, connectMs: number): Promise<Connection> {
  const tls = tlsOptions(server)
  const client = mysql.createConnection({
    host: server.host,
    port: server.port,
    database: server.database,
    user: server.username,
    password: server.password,
    charset: 'utf8mb4_bin',
    connectTimeout: connectMs,
    // Statements are never concatenated.
    multipleStatements: false,
    ...(tls === undefined ? {} : { ssl: { ...tls, verifyIdentity: server.tls!.isHostVerified } as never }),
  })
  const connection = new MysqlConnection(client)
  try {
    await connection.query(SESSION, []).catch(error => {
      if (error.code !== UNKNOWN_VARIABLE) throw error
      return connection.query(OLDER_SESSION, [])
    })
  } catch (error) {
    connection.destroy()
    throw error
  }
  return connection
}

class MysqlConnection implements Connection {
  readonly #client: MysqlClient
  #isDead = false
  readonly #markDead = () => {
    this.#isDead = true
  }

  constructor(client: MysqlClient) {
    this.#client = client
    client.on('error', this.#markDead)
    client.on('end', this.#markDead)
  }

  query(sql: string, parameters: readonly unknown[]): Promise<QueryResult<unknown>> {
    return new Promise((resolve, reject) => {
      this.#client.query(sql, [...parameters], (error, result) => {
        if (error) {
          this.#isDead ||= error.fatal
          reject(error)
        } else if (Array.isArray(result)) resolve({ rows: result })
        else resolve({ rows: [], numAffectedRows: BigInt((result as ResultSetHeader).affectedRows) })
      })
    })
  }

  isDead(): boolean {
    return this.#isDead
  }

  destroy(): void {
    this.#isDead = true
    this.#client.destroy()
  }
}
