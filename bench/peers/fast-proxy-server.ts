/** fast-proxy over undici pools, its faster mode: `node fast-proxy-server.ts PORT DOWNLOAD_PORT UPLOAD_PORT`. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import fastProxy from 'fast-proxy'

const [port, downloadPort, uploadPort] = process.argv.slice(2).map(Number)

function proxyTo(backendPort: number | undefined): ReturnType<typeof fastProxy>['proxy'] {
  return fastProxy({ base: `http://127.0.0.1:${backendPort}`, undici: { connections: 128 } }).proxy
}

const download = proxyTo(downloadPort)
const upload = proxyTo(uploadPort)

/** fast-proxy passes on the field Connection, which is hop-by-hop, in both directions. */
function withoutConnection<Fields extends IncomingHttpHeaders | OutgoingHttpHeaders>(fields: Fields): Fields {
  delete fields.connection
  delete fields['keep-alive']
  return fields
}

const hooks = {
  rewriteRequestHeaders: (_request: IncomingMessage, fields: IncomingHttpHeaders) => withoutConnection(fields),
  rewriteHeaders: (fields: OutgoingHttpHeaders) => withoutConnection(fields),
}

createServer((request, response) => {
  const path = request.url ?? '/'
  const proxy = path.startsWith('/upload/') ? upload : download
  proxy(request, response, path, hooks)
}).listen({ port, host: '127.0.0.1', backlog: 4096 })
