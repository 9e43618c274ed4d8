/**
 * The health port on loopback: `/healthz` (alive), `/readyz` (takes traffic), `/metrics`, `/services/Version`. Plain
 * sockets, one request per connection, of which only request line and Accept are read: Node's HTTP server would take
 * 16 MB in a process at rest (D9).
 */
import { createServer, type Server, type Socket } from 'node:net'
import { descriptorOf, listenTarget, NEW_SOCKET } from '../socket/byte-socket.ts'
import { inPreferredFormat } from '../observe/metrics-text.ts'
import { type Readiness, readinessText } from './readiness.ts'

/** Actions of tests on threads, by name: `POST /test/<name>`. */
type TestHooks = Readonly<Record<string, () => void>>

interface HealthSources {
  readonly readiness: () => Readiness
  /** Text format of Prometheus; called once at a time. */
  readonly metrics: () => Promise<string>
  readonly version: string
  /** Null in production. */
  readonly testHooks: TestHooks | null
}

export interface HealthListener {
  readonly port: number
  readonly fd: number
  close(): Promise<void>
}

interface HealthResponse {
  readonly status: string
  readonly type: string
  readonly body: string | Buffer
}

/** Node's default. */
const BACKLOG = 511
const REQUEST_BYTES_MAX = 8192
/** Longest times of one connection, in milliseconds. */
interface HealthTimes {
  /** Until the whole head of its request is there. */
  readonly requestMs: number
  /** From then on, until its client has the whole response. */
  readonly responseMs: number
}

/** A scraper of Prometheus gives up after 10 s. */
const TIMES: HealthTimes = { requestMs: 5000, responseMs: 10_000 }
/** Metrics that scrapers have not taken yet; the newest one may exceed it. A thousand APIs make 20 MB. */
const UNSENT_BYTES_MAX = 64 * 1024 * 1024

function text(status: string, body: string): HealthResponse {
  return { status, type: 'text/plain; charset=utf-8', body: `${body}\n` }
}

function hook(path: string, hooks: TestHooks): HealthResponse {
  const name = path.replace(/^\/test\//, '')
  if (!Object.hasOwn(hooks, name)) return text('404 Not Found', 'no such hook')
  hooks[name]!()
  return text('200 OK', 'done')
}

/** The part of a request that decides on its response. */
interface HealthRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly accept: string
}

async function respond(
  { method, path, query, accept }: HealthRequest,
  sources: HealthSources,
  page: MetricsPage,
): Promise<HealthResponse> {
  if (method === 'POST' && sources.testHooks !== null) return hook(path, sources.testHooks)
  if (method !== 'GET' && method !== 'HEAD') return text('405 Method Not Allowed', 'only GET and HEAD')
  if (path === '/healthz') return text('200 OK', 'ok')
  if (path === '/readyz') {
    const readiness = sources.readiness()
    const status = readiness.status === 'ready' ? '200 OK' : '503 Service Unavailable'
    if (/\bapplication\/json\b/i.test(accept)) {
      return { status, type: 'application/json', body: `${JSON.stringify(readiness)}\n` }
    }
    if (/(?:^|&)verbose(?:=|&|$)/.test(query)) return text(status, readinessText(readiness))
    return text(status, readiness.reason === '' ? readiness.status : readiness.reason)
  }
  if (path === '/metrics') {
    return { status: '200 OK', ...(await page.current())(accept) }
  }
  if (path === '/services/Version') return versionResponse(sources.version)
  return text('404 Not Found', 'there is /healthz, /readyz, /metrics and /services/Version')
}

/** As users of the platform ask for the version of a server: the SOAP operation getVersion over GET. */
function versionResponse(version: string): HealthResponse {
  const name = 'ns:getVersionResponse'
  const namespace = 'http://version.services.core.carbon.wso2.org'
  const body = `<${name} xmlns:ns="${namespace}"><return>Sluice-${version}</return></${name}>\n`
  return { status: '200 OK', type: 'application/xml; charset=utf-8', body }
}

/** The metrics as a page: rendered once at a time, for all who have asked until then. */
class MetricsPage {
  readonly #render: () => Promise<string>
  #last: Promise<unknown> = Promise.resolve()
  #next: Promise<PageFormats> | null = null

  constructor(render: () => Promise<string>) {
    this.#render = render
  }

  /** Rendered behind this call. */
  current(): Promise<PageFormats> {
    this.#next ??= this.#after(this.#last)
    this.#last = this.#next.catch(() => undefined)
    return this.#next
  }

  async #after(last: Promise<unknown>): Promise<PageFormats> {
    await last
    this.#next = null
    const text = await this.#render()
    const bodies = new Map<string, Buffer>()
    return accept => {
      const { type, body } = inPreferredFormat(text, accept)
      const bytes = bodies.get(type) ?? Buffer.from(body)
      bodies.set(type, bytes)
      return { type, body: bytes }
    }
  }
}

/** The page in the format that `accept` prefers; scrapers share its bytes. */
type PageFormats = (accept: string) => { readonly type: string; readonly body: Buffer }

/**
 * The open connections, which nobody can use up: one more than `max` closes the oldest of the address that has most.
 * Scrapers that leave too many bytes untaken are closed, too, the oldest page first.
 */
class HealthConnections {
  readonly #max: number
  /** In the order of their beginning, with what their clients have not taken. */
  readonly #open = new Map<Socket, Buffer | null>()

  constructor(max: number) {
    this.#max = max
  }

  add(socket: Socket): void {
    if (this.#open.size >= this.#max) this.#close(this.#oldestOfMost())
    this.#open.set(socket, null)
    socket.on('close', () => this.#open.delete(socket))
  }

  /** Counts bytes that the client has not taken. */
  sends(socket: Socket, body: Buffer): void {
    // Behind those that have sent before.
    this.#open.delete(socket)
    this.#open.set(socket, body)
    for (const [other, unsent] of this.#open) {
      if (this.#unsentBytes() <= UNSENT_BYTES_MAX || unsent === body) return
      if (unsent !== null) this.#close(other)
    }
  }

  closeAll(): void {
    for (const socket of [...this.#open.keys()]) this.#close(socket)
  }

  #unsentBytes(): number {
    return [...new Set(this.#open.values())].reduce((sum, body) => sum + (body?.length ?? 0), 0)
  }

  #oldestOfMost(): Socket {
    const byAddress = Map.groupBy(this.#open.keys(), ({ remoteAddress = '' }) => remoteAddress)
    return [...byAddress.values()].reduce((most, sockets) => (sockets.length > most.length ? sockets : most))[0]!
  }

  #close(socket: Socket): void {
    this.#open.delete(socket)
    socket.destroy()
  }
}

interface Service {
  readonly sources: HealthSources
  readonly times: HealthTimes
  readonly connections: HealthConnections
  readonly page: MetricsPage
}

function serve(socket: Socket, service: Service): void {
  const { requestMs, responseMs } = service.times
  let received = ''
  socket.setEncoding('latin1')
  // Bytes that come or are taken one by one would put off the time of an idle connection for hours.
  let late = setTimeout(() => socket.destroy(), requestMs)
  const cutOff = () => socket.destroy()
  socket.on('error', () => socket.destroy())
  socket.on('close', () => clearTimeout(late))
  socket.on('end', cutOff)
  socket.on('data', (piece: string) => {
    received += piece
    if (!received.includes('\r\n\r\n')) {
      if (received.length > REQUEST_BYTES_MAX) socket.destroy()
      return
    }
    clearTimeout(late)
    late = setTimeout(() => socket.destroy(), responseMs)
    socket.removeListener('end', cutOff)
    socket.removeAllListeners('data')
    void answer(socket, received, service)
  })
}

async function answer(socket: Socket, received: string, { sources, page, connections }: Service): Promise<void> {
  const line = /^([A-Z]+) (\/[^ ?]*)(?:\?([^ ]*))? HTTP\/1\.[01]\r\n/.exec(received)
  const [, method = '', path = '', query = ''] = line ?? []
  const accept = /^accept:[ \t]*([^\r\n]*)/im.exec(received)?.[1] ?? ''
  const response =
    line === null
      ? text('400 Bad Request', 'not HTTP/1')
      : await respond({ method, path, query, accept }, sources, page).catch(failed)
  const { status, type, body } = response
  if (socket.destroyed) return
  const head = `HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
  socket.write(`${head}Cache-Control: no-store\r\nConnection: close\r\n\r\n`)
  if (method === 'HEAD') socket.end()
  else socket.end(body)
  if (method !== 'HEAD' && typeof body !== 'string') connections.sends(socket, body)
}

/** A rejection that nobody handles would end the gateway. */
function failed(error: Error): HealthResponse {
  return text('500 Internal Server Error', `no response: ${error.message}`)
}

/** `connectionsMax`: one more closes an open one. `fd`: an inherited socket. `times`: for tests. */
export async function startHealthListener(
  host: string,
  port: number,
  connectionsMax: number,
  sources: HealthSources,
  fd = NEW_SOCKET,
  times: Partial<HealthTimes> = {},
): Promise<HealthListener> {
  const connections = new HealthConnections(connectionsMax)
  const page = new MetricsPage(sources.metrics)
  const service: Service = { sources, times: { ...TIMES, ...times }, connections, page }
  // A client may close its half behind the request: it still gets the response.
  const server: Server = createServer({ allowHalfOpen: true }, socket => {
    connections.add(socket)
    serve(socket, service)
  })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  // Later errors are failed accepts, which end nothing else.
  server.on('error', reject)
  server.listen(listenTarget({ host, port, reusePort: false, fd }, BACKLOG), resolve)
  await promise
  return {
    port: (server.address() as { port: number }).port,
    fd: descriptorOf(server),
    close: () => {
      const closed = Promise.withResolvers<void>()
      server.close(() => closed.resolve())
      connections.closeAll()
      return closed.promise
    },
  }
}
