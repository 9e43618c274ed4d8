/**
 * The health port on loopback: `/healthz` (alive), `/readyz` (takes traffic), `/metrics`. Plain sockets, one request
 * per connection, of which only the request line is read: Node's HTTP server would take 16 MB in a process at rest
 * (D9).
 */
import { createServer, type Server, type Socket } from 'node:net'
import { descriptorOf, listenTarget, NEW_SOCKET } from '../socket/byte-socket.ts'
import { METRICS_CONTENT_TYPE, renderMetrics, snapshotMetrics } from '../observe/metrics.ts'

/** Actions of tests on threads, by name: `POST /test/<name>`. */
type TestHooks = Readonly<Record<string, () => void>>

interface HealthSources {
  /** Why the node does not take traffic; '' where it does. */
  readonly unready: () => string
  readonly metrics: SharedArrayBuffer
  /** Lines behind those of the counters. */
  readonly moreMetrics: () => string
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

function respond(method: string, path: string, sources: HealthSources): HealthResponse {
  if (method === 'POST' && sources.testHooks !== null) return hook(path, sources.testHooks)
  if (method !== 'GET' && method !== 'HEAD') return text('405 Method Not Allowed', 'only GET and HEAD')
  if (path === '/healthz') return text('200 OK', 'ok')
  if (path === '/readyz') {
    const reason = sources.unready()
    return reason === '' ? text('200 OK', 'ready') : text('503 Service Unavailable', reason)
  }
  if (path === '/metrics') {
    const body = renderMetrics(snapshotMetrics(sources.metrics)) + sources.moreMetrics()
    return { status: '200 OK', type: METRICS_CONTENT_TYPE, body }
  }
  return text('404 Not Found', 'there is /healthz, /readyz and /metrics')
}

function serve(socket: Socket, sources: HealthSources): void {
  let received = ''
  socket.setEncoding('latin1')
  socket.setTimeout(REQUEST_MS, () => socket.destroy())
  socket.on('error', () => socket.destroy())
  socket.on('data', (piece: string) => {
    received += piece
    if (!received.includes('\r\n\r\n')) {
      if (received.length > REQUEST_BYTES_MAX) socket.destroy()
      return
    }
    socket.removeAllListeners('data')
    const line = /^([A-Z]+) (\/[^ ?]*)(?:\?[^ ]*)? HTTP\/1\.[01]\r\n/.exec(received)
    const { status, type, body } =
      line === null ? text('400 Bad Request', 'not HTTP/1') : respond(line[1]!, line[2]!, sources)
    const head = `HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
    socket.end(`${head}Cache-Control: no-store\r\nConnection: close\r\n\r\n${line?.[1] === 'HEAD' ? '' : body}`)
  })
}

/** `connectionsMax`: further connections are closed at once. `fd`: an inherited socket. */
export async function startHealthListener(
  host: string,
  port: number,
  connectionsMax: number,
  sources: HealthSources,
  fd = NEW_SOCKET,
): Promise<HealthListener> {
  const open = new Set<Socket>()
  const server: Server = createServer(socket => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    serve(socket, sources)
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
