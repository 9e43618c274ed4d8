/** A gateway in a process of its own, with a home of its own, on a free port. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { TuneFailed } from './system.ts'

export interface GatewayPlan {
  /** First word of the command line of the program: the entry. */
  readonly entry: string
  readonly home: string
  readonly dataDir: string
  readonly sets: readonly string[]
}

const START_MS = 60_000
/** Requests to a silent backend would hold it longer. */
const END_MS = 5000
const OUTPUT_CHARS_MAX = 100_000
const LINES_SHOWN = 8
const HTTP = 'transport.passthru_http'
/**
 * Only the plain listener is measured; the ports of the others may be in use. All clients have the address of this
 * machine, so the limit for one address is that of none.
 */
const PLAIN_ONLY = [
  'server.offset=0',
  'transport.passthru_https.listener.enable=false',
  'transport.ws.listener.enable=false',
  'transport.wss.listener.enable=false',
  'management.enable=false',
  'management.health_port=0',
  `${HTTP}.listener.enable=true`,
  `${HTTP}.listener.parameters.bind_address=127.0.0.1`,
  `${HTTP}.listener.proxy_protocol.enable=false`,
  `${HTTP}.max_connections_per_client=-1`,
]

export class GatewayProcess {
  readonly port: number
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  readonly #life = new AbortController()
  #printed = ''
  #isReady = false

  private constructor({ entry, home, dataDir, sets }: GatewayPlan, port: number) {
    this.port = port
    const all = [...sets, ...PLAIN_ONLY, `${HTTP}.listener.parameters.port=${port}`]
    const words = ['start', '--home', home, '--data', dataDir, ...all.flatMap(set => ['--set', set])]
    this.#child = spawn(process.execPath, [entry, ...words], { stdio: ['ignore', 'ignore', 'pipe'] })
    this.#child.stderr!.setEncoding('utf8').on('data', (piece: string) => {
      this.#printed = (this.#printed + piece).slice(-OUTPUT_CHARS_MAX)
      this.#isReady ||= this.#printed.includes('"msg":"ready"')
    })
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#ended = promise
    for (const event of ['exit', 'error'] as const) {
      this.#child.once(event, (reason: unknown, signal: unknown) => {
        resolve()
        const how = reason instanceof Error ? reason.message : `ended with ${String(reason ?? signal)}`
        const where = this.#isReady ? 'during a measurement' : 'before it was ready'
        this.#life.abort(this.#failure(`the gateway ${how} ${where}`))
      })
    }
  }

  /** `signal`: the start is given up. Rejects with TuneFailed. */
  static async start(plan: GatewayPlan, signal: AbortSignal): Promise<GatewayProcess> {
    const port = await freePort()
    signal.throwIfAborted()
    const gateway = new GatewayProcess(plan, port)
    try {
      await gateway.#untilReady(signal)
      return gateway
    } catch (error) {
      // In order: killed, it would leave a child that it has started.
      await gateway.stop()
      throw error
    }
  }

  /** Aborted with a TuneFailed when the gateway ends by itself. */
  get life(): AbortSignal {
    return this.#life.signal
  }

  async #untilReady(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const fail = (): void => reject(this.life.reason ?? this.#failure('the gateway is not ready in time'))
    const guard = setTimeout(fail, START_MS)
    this.#child.stderr!.on('data', () => this.#isReady && resolve())
    const ends = AbortSignal.any([this.life, signal])
    ends.addEventListener('abort', fail, { once: true })
    try {
      await promise
    } finally {
      clearTimeout(guard)
    }
  }

  #failure(what: string): TuneFailed {
    const lines = this.#printed.trimEnd().split('\n').slice(-LINES_SHOWN)
    return new TuneFailed([`${what}:`, ...lines].join('\n').trimEnd())
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGTERM')
    const guard = setTimeout(() => this.#child.kill('SIGKILL'), END_MS)
    await this.#ended
    clearTimeout(guard)
  }
}

/** Several reactors need a port that is known beforehand. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
