/**
 * The HTTPS server of the management listener, loaded with the first connection: HTTP/1.1 with the identity of the
 * traffic listener. It checks address and Host before an app sees a request, and limits bodies, heads, times and
 * connections. It grants no CORS: no page of another origin may use it.
 */
import { createServer, type Server, type ServerOptions } from 'node:https'
import type { Server as PlainServer, Socket } from 'node:net'
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { problemResponse, Problem } from './admin-api/problem.ts'
import type { AccessControl } from './access-control.ts'
import { BACKLOG, type ListenerOptions, type MountedApp, secureContext } from './management-options.ts'
import type { ManagementPlan } from '../plan/management-plan.ts'
import { networkOf, unmappedAddress } from '../runtime/ip-address.ts'

const BODY_BYTES_MAX = 1024 * 1024
const HEAD_BYTES_MAX = 16_384
const HEAD_FIELDS_MAX = 100
const HEAD_MS = 10_000
const REQUEST_MS = 30_000
const IDLE_MS = 60_000
const KEEP_ALIVE_MS = 5000
const HANDSHAKE_MS = 10_000
/** Share of an address of another machine. A gateway on this machine forwards the `/token` requests of many clients. */
const ADDRESS_SHARE = 4
const REQUESTS_PER_CONNECTION_MAX = 1000
/** For requests that are in flight when the listener closes. */
const GRACE_MS = 2000

/** Default fields of responses. No Strict-Transport-Security: it would bind every other port of `localhost` too. */
const SECURITY_FIELDS: readonly (readonly [name: string, value: string])[] = [
  ['Cache-Control', 'no-store'],
  ['Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'"],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  // A posted form must still send its origin.
  ['Referrer-Policy', 'same-origin'],
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
]

export class ManagementServer {
  /** Replaced by a reload. */
  access: AccessControl
  readonly #server: Server
  readonly #options: ListenerOptions
  readonly #mounts: readonly (readonly [path: string, app: MountedApp])[]
  readonly #perAddressMax: number
  /** Open connections by network of another machine. */
  readonly #connections = new Map<string, number>()

  constructor(plan: ManagementPlan, access: AccessControl, apps: readonly MountedApp[], options: ListenerOptions) {
    this.access = access
    this.#options = options
    this.#mounts = apps
      .flatMap(app => app.paths.map(path => [path, app] as const))
      .sort(([one], [other]) => other.length - one.length)
    const root = this.#root()
    const listener = getRequestListener((request, bindings) => root.fetch(request, bindings))
    this.#server = createServer(serverOptions(plan, options), (request, response) => void listener(request, response))
    this.#server.maxConnections = plan.connectionsMax
    this.#perAddressMax = Math.ceil(plan.connectionsMax / ADDRESS_SHARE)
    this.#server.on('connection', (socket: Socket) => this.#admit(socket))
    this.#server.maxHeadersCount = HEAD_FIELDS_MAX
    this.#server.maxRequestsPerSocket = REQUESTS_PER_CONNECTION_MAX
    this.#server.setTimeout(IDLE_MS)
    this.#server.on('error', error => options.events.report('error', 'management listener failed', causeOf(error)))
  }

  /** Takes over the listening socket of a server, which gets no further connection, and what it has accepted. */
  takeOver(listening: PlainServer, accepted: Iterable<Socket>): void {
    this.#server.listen(listening, BACKLOG)
    for (const socket of accepted) this.#server.emit('connection', socket)
  }

  /** Throws, without a change, where OpenSSL refuses the identity. */
  setIdentity(plan: ManagementPlan): void {
    this.#server.setSecureContext(secureContext(plan))
  }

  async close(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#server.close(() => resolve())
    this.#server.closeIdleConnections()
    const timer = setTimeout(() => this.#server.closeAllConnections(), GRACE_MS)
    await promise
    clearTimeout(timer)
  }

  /** No other machine can hold all connections. */
  #admit(socket: Socket): void {
    const { remoteAddress = '', localAddress } = socket
    if (remoteAddress === localAddress) return
    const network = networkOf(remoteAddress)
    const open = (this.#connections.get(network) ?? 0) + 1
    if (open > this.#perAddressMax) {
      socket.destroy()
      return
    }
    this.#connections.set(network, open)
    socket.once('close', () => {
      const left = this.#connections.get(network)! - 1
      if (left > 0) this.#connections.set(network, left)
      else this.#connections.delete(network)
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
      if (!namesOneHost(incoming) || !this.access.isOwnName(incoming.headers.host, socket)) {
        this.#report(context, 'Host does not name this machine')
        return refused(context, 421, 'this host is not served here; host_names of [management] lists the ones that are')
      }
      const [, app] = this.#mounts.find(([path]) => isBelow(context.req.path, path)) ?? []
      const cause = this.access.refusal(app?.area ?? 'console', context.req.path, socket)
      if (cause !== '') {
        this.#report(context, cause)
        return refused(context, 403, 'your address is not allowed')
      }
      if (app === undefined) return refused(context, 404, 'nothing is served at this path')
      const limited = bodyLimit({ maxSize: BODY_BYTES_MAX, onError: tooLong })
      const refusal = await limited(context, async () => {
        context.res = await app.fetch(context.req.raw, { ...context.env, clientAddress: clientAddressOf(incoming) })
      })
      return refusal ?? context.res
    })
    root.onError((error, context) => {
      this.#options.events.report('error', 'management request failed', causeOf(error))
      return refused(context, 500, 'internal error; the log has the cause')
    })
    return root
  }

  #report(context: Context<{ Bindings: HttpBindings }>, cause: string): void {
    const { socket, method = '' } = context.env.incoming
    const CLIENT_ADDRESS = unmappedAddress(socket.remoteAddress ?? '')
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
    // Node's default would let slow requests go on for half a minute more.
    connectionsCheckingInterval: Math.ceil(headMs / 10),
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requireHostHeader: true,
  }
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
}

/** RFC 9112 3.2: with two names, in two fields or in the target, one could be checked and the other one used. */
function namesOneHost({ rawHeaders, url = '' }: HttpBindings['incoming']): boolean {
  return url.startsWith('/') && rawHeaders.filter((name, at) => at % 2 === 0 && /^host$/i.test(name)).length === 1
}

function clientAddressOf({ socket, headers }: HttpBindings['incoming']): string {
  const peer = unmappedAddress(socket.remoteAddress ?? '')
  const isOwn = socket.remoteAddress === socket.localAddress
  const forwarded = isOwn ? String(headers['x-forwarded-for'] ?? '') : ''
  return forwarded.split(',').at(-1)!.trim() || peer
}

function refused(context: Context, status: 403 | 404 | 413 | 421 | 500, description: string): Response {
  return problemResponse(context, new Problem(status, description))
}

function causeOf(error: Error): { readonly CAUSE_OF_ERROR: string } {
  const { code } = error as NodeJS.ErrnoException
  return { CAUSE_OF_ERROR: code === undefined ? error.message : `${error.message} (${code})` }
}
