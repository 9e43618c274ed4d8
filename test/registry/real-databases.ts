/**
 * The three kinds of database, really there: a file, a PostgreSQL and a MariaDB server, each with a place of its own
 * per run, which is removed afterwards. A server that is not there is said plainly; where CI is set it is a failure.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { openRegistry } from '../../src/registry/open.ts'
import type { Registry } from '../../src/registry/registry.ts'
import { loadConfiguration } from '../harness/configuration.ts'

type Kind = 'h2' | 'postgre' | 'mysql'
export const KINDS: readonly Kind[] = ['h2', 'postgre', 'mysql']

/** Milliseconds between looks at what other nodes have done: short, so that no test waits. */
const POLL_MS = 20

export const ISSUER = 'https://localhost:9443/oauth2/token'

const POSTGRESQL = { host: '127.0.0.1', port: 5432, database: 'test', user: 'postgres', password: 'unasked' }
const MARIADB = { host: '127.0.0.1', port: 3306, user: 'root', password: '' }

export interface RealDatabase {
  readonly kind: Kind
  readonly dataDir: string
  /** Keys of `deployment.toml` that lead there. */
  readonly toml: string
  /** `more`: further text of `deployment.toml`. Closed by whoever opens it. */
  open(more?: string, nowMs?: () => number, dataDir?: string): Promise<Registry>
  /** Ends the connections of the registry, as an operator of the server would. */
  cut(): Promise<void>
  /** A statement past the registry, and one that looks on from outside of its transaction. */
  watch(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>
  run(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>
  remove(): Promise<void>
}

/** The reason why there is none. */
export async function realDatabase(kind: Kind): Promise<RealDatabase | string> {
  try {
    const place = await PLACES[kind]()
    const dataDir = mkdtempSync(join(tmpdir(), 'sluice-registry-'))
    const open: RealDatabase['open'] = (more = '', nowMs = Date.now, folder = dataDir) => {
      writeFileSync(join(folder, 'deployment.toml'), `${place.toml}\n${more}`)
      const { configuration } = loadConfiguration(folder, [], folder)
      return openRegistry({ configuration, dataDir: folder, issuer: ISSUER, nowMs, pollMs: POLL_MS })
    }
    const remove = async () => {
      await place.remove()
      rmSync(dataDir, { recursive: true })
    }
    return {
      kind,
      dataDir,
      toml: place.toml,
      open,
      run: place.run(dataDir),
      cut: place.cut,
      watch: place.watch,
      remove,
    }
  } catch (error) {
    if (process.env.CI === 'true') throw error
    return `no ${kind} server could be reached here: ${(error as Error).message || String(error)}`
  }
}

interface Location {
  readonly toml: string
  run(dataDir: string): RealDatabase['run']
  watch: RealDatabase['watch']
  cut(): Promise<void>
  remove(): Promise<void>
}

function ownName(): string {
  return `sluice_test_${randomBytes(6).toString('hex')}`
}

const PLACES: Readonly<Record<Kind, () => Promise<Location>>> = {
  h2: async () => ({
    toml: '',
    run: dataDir => async sql => {
      const { DatabaseSync } = await import('node:sqlite')
      const database = new DatabaseSync(join(dataDir, 'registry.db'))
      try {
        return database.prepare(sql).all()
      } finally {
        database.close()
      }
    },
    watch: async () => [],
    cut: async () => {},
    remove: async () => {},
  }),
  postgre: async () => {
    const name = ownName()
    const client = new pg.Client(POSTGRESQL)
    await client.connect()
    // What the server says of its connections stays the same within a transaction.
    const watcher = new pg.Client(POSTGRESQL)
    await watcher.connect()
    await client.query(`create schema ${name}`)
    await client.query(`set search_path to ${name}`)
    const { host, port, database, user } = POSTGRESQL
    const url = `jdbc:postgresql://${host}:${port}/${database}?currentSchema=${name}&ApplicationName=${name}`
    return {
      toml: bothSections('postgre', url, user, POSTGRESQL.password),
      run: () => async sql => (await client.query(sql)).rows,
      watch: async sql => (await watcher.query(sql)).rows,
      cut: async () => {
        const own = 'select pid, pg_terminate_backend(pid) from pg_stat_activity where application_name = $1'
        const pids = (await watcher.query(own, [name])).rows.map(({ pid }) => pid)
        const left = 'select pid from pg_stat_activity where pid = any($1)'
        while ((await watcher.query(left, [pids])).rows.length > 0);
      },
      remove: async () => {
        await client.query(`drop schema ${name} cascade`)
        await Promise.all([client.end(), watcher.end()])
      },
    }
  },
  mysql: async () => {
    const name = ownName()
    const client = await mysql.createConnection(MARIADB)
    await client.query(`create database ${name}`)
    await client.query(`use ${name}`)
    const { host, port, user, password } = MARIADB
    return {
      toml: bothSections('mysql', `jdbc:mysql://${host}:${port}/${name}`, user, password),
      run: () => async sql => (await client.query(sql))[0] as readonly Readonly<Record<string, unknown>>[],
      watch: async sql => (await client.query(sql))[0] as readonly Readonly<Record<string, unknown>>[],
      cut: async () => {
        const own = 'select id from information_schema.processlist where db = ? and id != connection_id()'
        const [rows] = await client.query<mysql.RowDataPacket[]>(own, [name])
        for (const { id } of rows) await client.query(`kill ${id}`)
      },
      remove: async () => {
        await client.query(`drop database ${name}`)
        await client.end()
      },
    }
  },
}

function bothSections(type: Kind, url: string, username: string, password: string): string {
  const keys = `type = "${type}"\nurl = "${url}"\nusername = "${username}"\npassword = "${password}"`
  return `[database.apim_db]\n${keys}\n[database.shared_db]\n${keys}\n`
}
