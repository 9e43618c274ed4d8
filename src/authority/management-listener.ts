/**
 * The listener for those who manage the gateway and for the key manager's clients: HTTPS with the gateway's own
 * identity, HTTP/1.1. It looks at who asks, and under which name, before an app sees anything of the request; bodies,
 * heads, times and connections have limits. It grants no CORS: no page of another origin has business here.
 */
import { createServer, type Server, type ServerOptions } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { answerProblem, Problem } from '../management/problem.ts'
import { AccessGate, type GateName } from './access-gate.ts'
import type { ManagementPlan } from '../management-plan.ts'
import type { EventLog } from '../observe/events.ts'
import { plainAddress } from '../socket/address-book.ts'

/** What an app learns of a request beside the request: its `Bindings` in hono's words. */
export interface ClientBindings extends HttpBindings {
  /**
   * Who asks. Of requests that a gateway on this machine has passed on (`/token`), its client, as the last entry of
   * X-Forwarded-For says: whoever is on this machine can say so too.
   */
  readonly clientAddress: string
}

/** An app and the paths that it answers for. */
export interface MountedApp {
  /** Of paths that begin so, up to a `/` or the end: whole and with what is below. The longest wins. */
  readonly paths: readonly string[]
  readonly gate: GateName
  /**
   * As hono has it; it sees the whole path. What it throws is logged here and answered with 500: an app of hono hands
   * it on by `app.onError(error => { throw error })`, or it would be printed.
   */
  readonly fetch: (request: Request, bindings: ClientBindings) => Response | Promise<Response>
}

interface ListenerOptions {
  readonly apps: readonly MountedApp[]
  readonly events: Pick<EventLog, 'report'>
  /** Milliseconds that a client may take for the head of a request. */
  readonly headMs?: number
}

const BODY_BYTES_MAX = 1024 * 1024
const HEAD_BYTES_MAX = 16_384
const HEAD_FIELDS_MAX = 100
const HEAD_MS = 10_000
const REQUEST_MS = 30_000
const IDLE_MS = 60_000
const KEEP_ALIVE_MS = 5000
const HANDSHAKE_MS = 10_000
const CONNECTIONS_MAX = 256
/** Of one address, but for this machine's own: gateways on it pass on what many clients send to `/token`. */
const CONNECTIONS_PER_ADDRESS_MAX = 64
const REQUESTS_PER_CONNECTION_MAX = 1000
/** What is under way when it closes may take so long. */
const GRACE_MS = 2000

/** Where an app says nothing else. No Strict-Transport-Security: it would bind every other port of `localhost` too. */
const SECURITY_FIELDS: readonly (readonly [name: string, value: string])[] = [
  ['Cache-Control', 'no-store'],
  ['Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'"],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  // A form that is posted must still say where it comes from.
  ['Referrer-Policy', 'same-origin'],
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
]

export class ManagementListener {
  readonly #server: Server
  readonly #options: ListenerOptions
  readonly #mounts: readonly (readonly [path: string, app: MountedApp])[]
  /** Open connections, by the addresses of other machines. */
  readonly #connections = new Map<string, number>()
  #gate: AccessGate

  private constructor(plan: ManagementPlan, options: ListenerOptions) {
    this.#options = options
    this.#gate = new AccessGate(plan)
    this.#mounts = options.apps
      .flatMap(app => app.paths.map(path => [path, app] as const))
      .sort(([one], [other]) => other.length - one.length)
    const root = this.#root()
    const listener = getRequestListener((request, bindings) => root.fetch(request, bindings))
    this.#server = createServer(serverOptions(plan, options), (request, response) => void listener(request, response))
    this.#server.maxConnections = CONNECTIONS_MAX
    this.#server.on('connection', (socket: Socket) => this.#admit(socket))
    this.#server.maxHeadersCount = HEAD_FIELDS_MAX
    this.#server.maxRequestsPerSocket = REQUESTS_PER_CONNECTION_MAX
    this.#server.setTimeout(IDLE_MS)
  }

  /** Throws an errno error where the port cannot be listened on, or OpenSSL's where it refuses the plan. */
  static async open(plan: ManagementPlan, options: ListenerOptions): Promise<ManagementListener> {
    const listener = new ManagementListener(plan, options)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    listener.#server.once('error', reject)
    listener.#server.listen({ port: plan.port, ...(plan.host === '' ? {} : { host: plan.host }) }, resolve)
    await promise
    listener.#server.removeListener('error', reject)
    listener.#server.on('error', error => options.events.report('error', 'management listener', causeOf(error)))
    return listener
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Other keys, other guests: address and port stay. Throws where OpenSSL refuses the keys: nothing changes. */
  replace(plan: ManagementPlan): void {
    const gate = new AccessGate(plan)
    this.#server.setSecureContext(secureContext(plan))
    this.#gate = gate
  }

  async close(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#server.close(() => resolve())
    this.#server.closeIdleConnections()
    const timer = setTimeout(() => this.#server.closeAllConnections(), GRACE_MS)
    await promise
    clearTimeout(timer)
  }

  /** Nobody can hold all connections alone. */
  #admit(socket: Socket): void {
    const { remoteAddress: address = '', localAddress } = socket
    if (address === localAddress) return
    const open = (this.#connections.get(address) ?? 0) + 1
    if (open > CONNECTIONS_PER_ADDRESS_MAX) {
      socket.destroy()
      return
    }
    this.#connections.set(address, open)
    socket.once('close', () => {
      const left = this.#connections.get(address)! - 1
      if (left > 0) this.#connections.set(address, left)
      else this.#connections.delete(address)
    })
  }

  #root(): Hono<{ Bindings: HttpBindings }> {
    const root = new Hono<{ Bindings: HttpBindings }>()
    root.use(async (context, next) => {
      await next()
      for (const [name, value] of SECURITY_FIELDS) {
        if (!context.res.headers.has(name)) context.header(name, value)
      }
    })
    const tooLong = (context: Context) => refused(context, 413, `a body has at most ${BODY_BYTES_MAX} bytes`)
    root.all('*', async context => {
      const { incoming } = context.env
      const { socket } = incoming
      if (!namesOneHost(incoming) || !this.#gate.isOwnName(incoming.headers.host, socket)) {
        this.#report(context, 'Host names no name of this machine')
        return refused(context, 421, 'that host is not served here; host_names of [management] has those that are')
      }
      const [, app] = this.#mounts.find(([path]) => isBelow(context.req.path, path)) ?? []
      const cause = this.#gate.refusal(app?.gate ?? 'console', context.req.path, socket)
      if (cause !== '') {
        this.#report(context, cause)
        return refused(context, 403, 'your address is not let in')
      }
      if (app === undefined) return refused(context, 404, 'there is nothing at this path')
      const limited = bodyLimit({ maxSize: BODY_BYTES_MAX, onError: tooLong })
      const refusal = await limited(context, async () => {
        context.res = await app.fetch(context.req.raw, { ...context.env, clientAddress: clientAddressOf(incoming) })
      })
      return refusal ?? context.res
    })
    root.onError((error, context) => {
      this.#options.events.report('error', 'management request failed', causeOf(error))
      return refused(context, 500, 'something went wrong here; the log says what')
    })
    return root
  }

  #report(context: Context<{ Bindings: HttpBindings }>, cause: string): void {
    const { socket, method = '' } = context.env.incoming
    const CLIENT_ADDRESS = plainAddress(socket.remoteAddress ?? '')
    const fields = { CLIENT_ADDRESS, HTTP_METHOD: method, HTTP_URL: context.req.path, CAUSE_OF_ERROR: cause }
    this.#options.events.report('warn', 'management request refused', fields)
  }
}

function serverOptions(plan: ManagementPlan, { headMs = HEAD_MS }: ListenerOptions): ServerOptions {
  return {
    ...secureContext(plan),
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: HANDSHAKE_MS,
    maxHeaderSize: HEAD_BYTES_MAX,
    headersTimeout: headMs,
    // Node's own would let all that is slow go on for half a minute more.
    connectionsCheckingInterval: Math.ceil(headMs / 10),
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requireHostHeader: true,
  }
}

function secureContext({ tls: { identity, minVersion, maxVersion, ciphers } }: ManagementPlan) {
  return { ...identity, minVersion, maxVersion, honorCipherOrder: true, ...(ciphers === '' ? {} : { ciphers }) }
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
}

/** RFC 9112 3.2: of two names, in two fields or in the target, another one could be looked at than the one acted on. */
function namesOneHost({ rawHeaders, url = '' }: HttpBindings['incoming']): boolean {
  return url.startsWith('/') && rawHeaders.filter((name, at) => at % 2 === 0 && /^host$/i.test(name)).length === 1
}

function clientAddressOf({ socket, headers }: HttpBindings['incoming']): string {
  const peer = plainAddress(socket.remoteAddress ?? '')
  const isOwn = socket.remoteAddress === socket.localAddress
  const forwarded = isOwn ? String(headers['x-forwarded-for'] ?? '') : ''
  return forwarded.split(',').at(-1)!.trim() || peer
}

function refused(context: Context, status: 403 | 404 | 413 | 421 | 500, description: string): Response {
  return answerProblem(context, new Problem(status, description))
}

function causeOf(error: Error): { readonly CAUSE_OF_ERROR: string } {
  const { code } = error as NodeJS.ErrnoException
  return { CAUSE_OF_ERROR: code === undefined ? error.message : `${error.message} (${code})` }
}
