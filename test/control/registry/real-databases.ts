/**
 * Real databases for tests: a file, PostgreSQL and MariaDB, each with its own schema or database per run, removed
 * afterwards. A missing server skips tests with its reason, or fails them where CI is set.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { Registry } from '../../../src/control/registry/registry.ts'
import { loadConfiguration } from '../../harness/configuration.ts'
import { pollPause } from '../../harness/peers.ts'

type Kind = 'h2' | 'postgre' | 'mysql'
export const KINDS: readonly Kind[] = ['h2', 'postgre', 'mysql']

/** Milliseconds between polls for changes of other nodes: short, so that no test waits. */
const POLL_MS = 20

export const ISSUER = 'https://localhost:9443/oauth2/token'

const POSTGRESQL = { host: '127.0.0.1', port: 5432, database: 'test', user: 'postgres', password: 'unasked' }
const MARIADB = { host: '127.0.0.1', port: 3306, user: 'root', password: '' }

export interface RealDatabase {
  readonly kind: Kind
  readonly dataDir: string
  /** Keys of `deployment.toml` for the database. */
  readonly toml: string
  /** `more`: further text of `deployment.toml`; `toml`: in place of its own text. The caller closes the registry. */
  open(more?: string, nowMs?: () => number, dataDir?: string, toml?: string): Promise<Registry>
  /** Terminates the registry's connections, as an administrator of the server would. */
  cut(): Promise<void>
  /** `run` executes a statement beside the registry; `watch` does so outside its transaction. */
  watch(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>
  run(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>
  remove(): Promise<void>
}

/** Resolves with the reason where the server is unavailable. */
export async function realDatabase(kind: Kind): Promise<RealDatabase | string> {
  try {
    const location = await LOCATIONS[kind]()
    const dataDir = mkdtempSync(join(tmpdir(), 'sluice-registry-'))
    const open: RealDatabase['open'] = (more = '', nowMs = Date.now, folder = dataDir, toml = location.toml) => {
      writeFileSync(join(folder, 'deployment.toml'), `${toml}\n${more}`)
      const { configuration } = loadConfiguration(folder, [], folder)
      return Registry.open({ configuration, dataDir: folder, issuer: ISSUER, nowMs, pollMs: POLL_MS })
    }
    const remove = async () => {
      await location.remove()
      rmSync(dataDir, { recursive: true })
    }
    return {
      kind,
      dataDir,
      toml: location.toml,
      open,
      run: location.run(dataDir),
      cut: location.cut,
      watch: location.watch,
      remove,
    }
  } catch (error) {
    if (process.env.CI === 'true') throw error
    return `no ${kind} server is reachable: ${(error as Error).message || String(error)}`
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

const LOCATIONS: Readonly<Record<Kind, () => Promise<Location>>> = {
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
    // PostgreSQL's statistics are constant within a transaction.
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
        while ((await watcher.query(left, [pids])).rows.length > 0) await pollPause()
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

/** The key that all nodes of a test name. */
export const ENCRYPTION_KEY = 'a key of the tests that is long enough'

function bothSections(type: Kind, url: string, username: string, password: string): string {
  const keys = `type = "${type}"\nurl = "${url}"\nusername = "${username}"\npassword = "${password}"`
  return `[encryption]\nkey = "${ENCRYPTION_KEY}"\n[database.apim_db]\n${keys}\n[database.shared_db]\n${keys}\n`
}
