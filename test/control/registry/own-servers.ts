/** Database servers of a test's own, with TLS: a folder, a port, and certificates that a test changes. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import mysql from 'mysql2/promise'
import pg from 'pg'
import type { TlsIdentity } from '../../../src/socket/tls.ts'
import { CA } from '../../harness/certificates.ts'
import { freePort } from '../../harness/program.ts'

export const ACCOUNT = 'chef'

/** `ACCOUNT` may connect over TLS only; it needs a certificate of `CA` where its name ends in `_with_certificate`. */
export interface OwnServer {
  readonly folder: string
  readonly port: number
  /** Null: the server offers no TLS. */
  present(identity: TlsIdentity | null): Promise<void>
  end(): Promise<void>
}

/** Resolves with the reason where the server's program is not installed. */
export async function ownServer(kind: 'postgre' | 'mysql'): Promise<OwnServer | string> {
  const programs = kind === 'postgre' ? postgresqlPrograms() : mariadbPrograms()
  if (typeof programs === 'string') return programs
  const folder = mkdtempSync(join(tmpdir(), 'sluice-server-'))
  // Neither server runs as root.
  const user: Account = process.getuid?.() === 0 ? accountOf(kind === 'postgre' ? 'postgres' : 'mysql') : {}
  const own = (path: string): void => {
    if (user.uid !== undefined) chownSync(path, user.uid, user.gid)
  }
  own(folder)
  const put = (name: string, text: string): void => {
    writeFileSync(join(folder, name), text, { mode: 0o600 })
    own(join(folder, name))
  }
  put('ca.pem', CA.cert)
  const place = { folder, port: await freePort(), user, put, ...programs }
  return kind === 'postgre' ? postgresql(place) : mariadb(place)
}

/** Empty: that of the test. */
type Account = { readonly uid: number; readonly gid: number } | { readonly uid?: undefined }

interface Place {
  readonly folder: string
  readonly port: number
  readonly user: Account
  readonly put: (name: string, text: string) => void
  readonly install: string
  readonly serve: string
}

function postgresqlPrograms(): Pick<Place, 'install' | 'serve'> | string {
  const found = globSync('/usr/lib/postgresql/*/bin/initdb').sort().at(-1)
  return found === undefined
    ? 'no PostgreSQL is installed below /usr/lib/postgresql'
    : { install: found, serve: join(found, '../postgres') }
}

function mariadbPrograms(): Pick<Place, 'install' | 'serve'> | string {
  const [install, serve] = ['/usr/bin/mariadb-install-db', '/usr/sbin/mariadbd'] as const
  return existsSync(install) && existsSync(serve) ? { install, serve } : `no MariaDB is installed as ${serve}`
}

function accountOf(name: string): Account {
  const line = readFileSync('/etc/passwd', 'utf8').match(new RegExp(`^${name}:[^:]*:(\\d+):(\\d+):`, 'm'))
  if (line === null) throw new Error(`there is no account ${name} to run the server`)
  return { uid: Number(line[1]), gid: Number(line[2]) }
}

function install({ install: program, user }: Place, args: readonly string[]): void {
  const { status, stderr } = spawnSync(program, args, { ...user, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program}: ${stderr}`)
}

function serve({ serve: program, folder, user }: Place, args: readonly string[]): ChildProcess {
  return spawn(program, args, { ...user, cwd: folder, stdio: 'ignore' })
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

/** Resolves with the first connection that opens. */
async function connected<T>(child: ChildProcess, connect: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await connect()
    } catch (error) {
      if (child.exitCode !== null || child.signalCode !== null) throw error
      await sleep(20)
    }
  }
}

const ACCESS = `local all all trust
hostssl all ${ACCOUNT}_with_certificate all trust clientcert=verify-ca
hostssl all ${ACCOUNT} all trust
`

async function postgresql(place: Place): Promise<OwnServer> {
  const { folder, port, put } = place
  const data = join(folder, 'data')
  install(place, ['-D', data, '-U', 'postgres', '-A', 'trust', '--no-sync', '-E', 'UTF8', '--locale=C'])
  put('hba.conf', ACCESS)
  const settings = {
    ...{ port, listen_addresses: '127.0.0.1', unix_socket_directories: folder, fsync: 'off' },
    ...{ hba_file: join(folder, 'hba.conf'), ssl_ca_file: join(folder, 'ca.pem') },
    ...{ ssl_cert_file: join(folder, 'server.pem'), ssl_key_file: join(folder, 'server-key.pem') },
  }
  const child = serve(place, ['-D', data, ...Object.entries(settings).flatMap(([name, it]) => ['-c', `${name}=${it}`])])
  const admin = await connected(child, async () => {
    const client = new pg.Client({ host: folder, port, user: 'postgres', database: 'postgres' })
    await client.connect()
    return client
  })
  for (const account of [ACCOUNT, `${ACCOUNT}_with_certificate`]) await admin.query(`create role ${account} login`)
  await admin.query('create database kitchen')
  await admin.query(`alter database kitchen owner to ${ACCOUNT}`)
  await admin.query(`grant ${ACCOUNT} to ${ACCOUNT}_with_certificate`)
  return {
    folder,
    port,
    present: async identity => {
      if (identity !== null) {
        put('server.pem', identity.cert)
        put('server-key.pem', identity.key)
      }
      await admin.query(`alter system set ssl = ${identity === null ? 'off' : 'on'}`)
      const loaded = 'select pg_conf_load_time() as at'
      const [{ at: before }] = (await admin.query(loaded)).rows
      await admin.query('select pg_reload_conf()')
      while (+(await admin.query(loaded)).rows[0].at === +before) await sleep(5)
    },
    end: async () => {
      await admin.end()
      await ended(child)
      rmSync(folder, { recursive: true })
    },
  }
}

async function mariadb(place: Place): Promise<OwnServer> {
  const { folder, port, put } = place
  const [data, socketPath] = [join(folder, 'data'), join(folder, 'socket')]
  const common = ['--no-defaults', `--datadir=${data}`]
  install(place, [...common, '--auth-root-authentication-method=normal', '--skip-test-db'])
  const files = ['ca=ca.pem', 'cert=server.pem', 'key=server-key.pem'].map(name => {
    const [option, file] = name.split('=') as [string, string]
    return `--ssl-${option}=${join(folder, file)}`
  })
  const run = async (tls: readonly string[]) => {
    const paths = [`--socket=${socketPath}`, `--pid-file=${join(folder, 'pid')}`]
    const child = serve(place, [...common, ...paths, `--port=${port}`, '--bind-address=127.0.0.1', ...tls])
    const admin = await connected(child, () => mysql.createConnection({ socketPath, user: 'root' }))
    return { child, admin }
  }
  let running = await run([])
  await running.admin.query('create database kitchen')
  for (const [account, needs] of [
    [ACCOUNT, 'ssl'],
    [`${ACCOUNT}_with_certificate`, 'x509'],
  ]) {
    await running.admin.query(`create user ${account} require ${needs}`)
    await running.admin.query(`grant all on kitchen.* to ${account}`)
  }
  let isSecured = false
  const stop = async (): Promise<void> => {
    await running.admin.end()
    running.child.kill('SIGTERM')
    await once(running.child, 'exit')
  }
  return {
    folder,
    port,
    present: async identity => {
      if (identity !== null) {
        put('server.pem', identity.cert)
        put('server-key.pem', identity.key)
      }
      if (isSecured && identity !== null) await running.admin.query('flush ssl')
      else {
        await stop()
        running = await run(identity === null ? ['--skip-ssl'] : files)
        isSecured = identity !== null
      }
    },
    end: async () => {
      await stop()
      rmSync(folder, { recursive: true })
    },
  }
}
