/**
 * The replica backend is one of two equal backends of an API. It delays each response, so that requests are always in
 * progress, and names itself in X-Served-By.
 *
 *     node bench/backends/replica-backend.ts PORT NAME
 */
import { createServer } from 'node:http'
import { BODY_BYTES } from '../scenarios.ts'

const DELAY_MS = 10
const [port, name] = process.argv.slice(2)
const fields = { 'Content-Type': 'text/plain', 'Content-Length': BODY_BYTES['1k'], 'X-Served-By': name }
const body = Buffer.alloc(BODY_BYTES['1k'], 'x')

const server = createServer((_request, response) => {
  setTimeout(() => response.writeHead(200, fields).end(body), DELAY_MS)
})
server.keepAliveTimeout = 3_600_000
server.listen({ port: Number(port), host: '127.0.0.1', backlog: 4096 })
