/** @fastify/reply-from over undici pools. Started as `node reply-from-server.ts PORT DOWNLOAD_PORT UPLOAD_PORT`. */
import type { IncomingHttpHeaders } from 'node:http'
import replyFrom from '@fastify/reply-from'
import { type FastifyInstance, fastify } from 'fastify'

const [port, downloadPort, uploadPort] = process.argv.slice(2).map(Number)
const server = fastify({ logger: false })

/** It passes the backend's Connection field on to the client; the field is hop-by-hop. */
function rewriteHeaders(fields: IncomingHttpHeaders): IncomingHttpHeaders {
  delete fields.connection
  delete fields['keep-alive']
  return fields
}

async function mount(prefix: string, backendPort: number | undefined): Promise<void> {
  await server.register(async (scope: FastifyInstance) => {
    // The body goes through as a stream: without this the framework would read and decode it first.
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
