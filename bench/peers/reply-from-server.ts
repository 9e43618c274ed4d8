/** @fastify/reply-from over undici pools: `node reply-from-server.ts PORT DOWNLOAD_PORT UPLOAD_PORT`. */
import type { IncomingHttpHeaders } from 'node:http'
import replyFrom from '@fastify/reply-from'
import { type FastifyInstance, fastify } from 'fastify'

const [port, downloadPort, uploadPort] = process.argv.slice(2).map(Number)
const server = fastify({ logger: false })

/** reply-from passes on the backend's field Connection, which is hop-by-hop, to the client. */
function rewriteHeaders(fields: IncomingHttpHeaders): IncomingHttpHeaders {
  delete fields.connection
  delete fields['keep-alive']
  return fields
}

async function mount(prefix: string, backendPort: number | undefined): Promise<void> {
  await server.register(async (scope: FastifyInstance) => {
    // Streams the body; otherwise the framework would read and decode it first.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
    await scope.register(replyFrom, {
      base: `http://127.0.0.1:${backendPort}`,
      undici: { connections: 128, pipelining: 1 },
    })
    scope.all(`${prefix}*`, (request, reply) => {
      reply.from(request.url, { rewriteHeaders })
    })
  })
}

await mount('/bench/', downloadPort)
await mount('/upload/', uploadPort)
await server.listen({ port: port!, host: '127.0.0.1', backlog: 4096 })
