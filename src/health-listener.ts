/**
 * The loopback port for those who look after the process: `/healthz` (alive), `/readyz` (takes traffic), `/metrics`.
 * A few requests a minute, so Node's own HTTP server is the right tool.
 */
import { createServer, type Server } from 'node:http'
import { METRICS_CONTENT_TYPE, renderMetrics, snapshotMetrics } from './observe/metrics.ts'

export interface HealthSources {
  readonly isReady: () => boolean
  readonly metrics: SharedArrayBuffer
  /** What tests do to a reactor; null outside of tests. */
  readonly testHooks: { kill(): void; hang(): void } | null
}

export interface HealthListener {
  readonly port: number
  close(): Promise<void>
}

interface Answer {
  readonly status: number
  readonly type: string
  readonly body: string
}

function text(status: number, body: string): Answer {
  return { status, type: 'text/plain; charset=utf-8', body: `${body}\n` }
}

function answer(method: string, path: string, sources: HealthSources): Answer {
  if (method === 'POST' && sources.testHooks !== null) {
    if (path === '/test/kill') sources.testHooks.kill()
    else if (path === '/test/hang') sources.testHooks.hang()
    else return text(404, 'no such hook')
    return text(200, 'done')
  }
  if (method !== 'GET' && method !== 'HEAD') return text(405, 'only GET')
  if (path === '/healthz') return text(200, 'ok')
  if (path === '/readyz') return sources.isReady() ? text(200, 'ready') : text(503, 'not ready')
  if (path === '/metrics') {
    return { status: 200, type: METRICS_CONTENT_TYPE, body: renderMetrics(snapshotMetrics(sources.metrics)) }
  }
  return text(404, 'there is /healthz, /readyz and /metrics')
}

export async function startHealthListener(host: string, port: number, sources: HealthSources): Promise<HealthListener> {
  const server: Server = createServer((request, response) => {
    const { status, type, body } = answer(request.method ?? '', (request.url ?? '').split('?')[0]!, sources)
    response.writeHead(status, {
      'content-type': type,
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
    })
    response.end(request.method === 'HEAD' ? undefined : body)
  })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen(port, host, resolve)
  await promise
  return {
    port: (server.address() as { port: number }).port,
    close: () => {
      const closed = Promise.withResolvers<void>()
      server.close(() => closed.resolve())
      server.closeAllConnections()
      return closed.promise
    },
  }
}
