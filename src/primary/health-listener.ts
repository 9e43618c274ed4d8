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
  /** Text format of Prometheus. */
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
  readonly body: string
}

/** Node's default. */
const BACKLOG = 511
const REQUEST_BYTES_MAX = 8192
/** For the whole head of a request, and for a client that takes no byte of its response. */
const REQUEST_MS = 5000

function text(status: string, body: string): HealthResponse {
  return { status, type: 'text/plain; charset=utf-8', body: `${body}\n` }
}

function hook(path: string, hooks: TestHooks): HealthResponse {
  const name = path.replace(/^\/test\//, '')
  if (!Object.hasOwn(hooks, name)) return text('404 Not Found', 'no such hook')
  hooks[name]!()
  return text('200 OK', 'done')
}

/** What a request asks for. */
interface HealthRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly accept: string
}

async function respond(
  { method, path, query, accept }: HealthRequest,
  sources: HealthSources,
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
    return { status: '200 OK', ...inPreferredFormat(await sources.metrics(), accept) }
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

function serve(socket: Socket, sources: HealthSources, requestMs: number): void {
  let received = ''
  socket.setEncoding('latin1')
  socket.setTimeout(requestMs, () => socket.destroy())
  // Bytes that come one by one would put off the time of an idle connection for hours.
  const late = setTimeout(() => socket.destroy(), requestMs)
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
    socket.removeListener('end', cutOff)
    socket.removeAllListeners('data')
    void answer(socket, received, sources)
  })
}

async function answer(socket: Socket, received: string, sources: HealthSources): Promise<void> {
  const line = /^([A-Z]+) (\/[^ ?]*)(?:\?([^ ]*))? HTTP\/1\.[01]\r\n/.exec(received)
  const [, method = '', path = '', query = ''] = line ?? []
  const accept = /^accept:[ \t]*([^\r\n]*)/im.exec(received)?.[1] ?? ''
  const response =
    line === null ? text('400 Bad Request', 'not HTTP/1') : await respond({ method, path, query, accept }, sources)
  const { status, type, body } = response
  if (socket.destroyed) return
  const head = `HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
  socket.end(`${head}Cache-Control: no-store\r\nConnection: close\r\n\r\n${method === 'HEAD' ? '' : body}`)
}

/** `connectionsMax`: further connections are closed at once. `fd`: an inherited socket. `requestMs`: for tests. */
export async function startHealthListener(
  host: string,
  port: number,
  connectionsMax: number,
  sources: HealthSources,
  fd = NEW_SOCKET,
  requestMs = REQUEST_MS,
): Promise<HealthListener> {
  const open = new Set<Socket>()
  // A client may close its half behind the request: it still gets the response.
  const server: Server = createServer({ allowHalfOpen: true }, socket => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    serve(socket, sources, requestMs)
  })
  server.maxConnections = connectionsMax
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
      for (const socket of open) socket.destroy()
      return closed.promise
    },
  }
}
