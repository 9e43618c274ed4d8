/** A Redis server of the test's own, which can be killed, paused and started again on the same port. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@redis/client'
import type { TlsIdentity } from '../../src/socket/tls.ts'
import type { RedisPlan } from '../../src/throttle/redis-counters.ts'
import { freePort } from './program.ts'

/** Why there is no server; '' where there is one. */
export const WITHOUT_REDIS = spawnSync('redis-server', ['--version']).error === undefined ? '' : 'no redis-server here'

export class RedisServer {
  readonly port: number
  readonly #folder = mkdtempSync(join(tmpdir(), 'sluice-redis-'))
  readonly #options: readonly string[]
  #process: ChildProcess | null = null

  private constructor(port: number, options: readonly string[], identity: TlsIdentity | null) {
    this.port = port
    const [cert, key] = [join(this.#folder, 'cert.pem'), join(this.#folder, 'key.pem')]
    if (identity === null) this.#options = ['--port', String(port), ...options]
    else {
      writeFileSync(cert, identity.cert)
      writeFileSync(key, identity.key)
      const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-auth-clients', 'no']
      this.#options = ['--port', '0', '--tls-port', String(port), ...files, ...options]
    }
  }

  /** Resolves when the server answers. `options`: more of the command line. `identity`: the server speaks TLS. */
  static async start(options: readonly string[] = [], identity: TlsIdentity | null = null): Promise<RedisServer> {
    const server = new RedisServer(await freePort(), options, identity)
    await server.restart()
    return server
  }

  /** The settings of a gateway that uses the server. */
  plan(differences: Partial<RedisPlan> = {}): RedisPlan {
    const limits = { timeoutMs: 1000, pendingMax: 100_000, gatewaysMin: 1 }
    const account = { username: '', password: '', database: 0, tls: null }
    const names = { keyPrefix: 'test:', gateway: 'gateway-1' }
    return { host: '127.0.0.1', port: this.port, ...account, ...limits, ...names, ...differences }
  }

  /** Starts the server without data. */
  async restart(): Promise<void> {
    const files = ['--dir', this.#folder, '--save', '', '--appendonly', 'no']
    this.#process = spawn('redis-server', [...files, ...this.#options], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let log = ''
    for await (const chunk of this.#process.stdout!) {
      log += String(chunk)
      if (log.includes('Ready to accept connections')) return
    }
    throw new Error(`redis-server has ended:\n${log}`)
  }

  /** The server reads and answers nothing until `resume`; its connections stay. */
  pause(): void {
    this.#process!.kill('SIGSTOP')
  }

  resume(): void {
    this.#process!.kill('SIGCONT')
  }

  async kill(): Promise<void> {
    const ended = once(this.#process!, 'exit')
    this.#process!.kill('SIGKILL')
    await ended
  }

  /** Runs one command on a connection of its own. */
  async command(...args: readonly string[]): Promise<unknown> {
    const client = createClient({ socket: { host: '127.0.0.1', port: this.port }, RESP: 2 })
    client.on('error', () => {})
    await client.connect()
    const reply: unknown = await client.sendCommand([...args])
    await client.close()
    return reply
  }

  async remove(): Promise<void> {
    if (this.#process!.exitCode === null && this.#process!.signalCode === null) await this.kill()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
