/**
 * http-proxy with a keep-alive agent, over TLS if a certificate is given:
 * `node http-proxy-server.ts PORT DOWNLOAD_PORT UPLOAD_PORT ECHO_PORT [CHAIN_FILE KEY_FILE]`.
 */
import { readFileSync } from 'node:fs'
import { Agent, createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Duplex } from 'node:stream'
import httpProxy from 'http-proxy'

const [port, downloadPort, uploadPort, echoPort] = process.argv.slice(2, 6).map(Number)
const [chainFile, keyFile] = process.argv.slice(6)
const agent = new Agent({ keepAlive: true, maxSockets: 1024, maxFreeSockets: 1024 })
const proxy = httpProxy.createProxyServer({ agent, xfwd: true })

// http-proxy passes on the field Connection, which is hop-by-hop, in both directions.
proxy.on('proxyRes', (response, request) => {
  response.headers.connection = request.wantsClose === true ? 'close' : 'keep-alive'
})
proxy.on('error', (_error, _request, response) => response.destroy())

function serve(request: IncomingMessage, response: ServerResponse): void {
  const incoming: httpProxy.MarkedRequest = request
  incoming.wantsClose = request.headers.connection === 'close'
  delete request.headers.connection
  const target = `http://127.0.0.1:${request.url?.startsWith('/upload/') ? uploadPort : downloadPort}`
  proxy.web(incoming, response, { target })
}

const server =
  chainFile === undefined
    ? createServer(serve)
    : createSecureServer({ cert: readFileSync(chainFile), key: readFileSync(keyFile!) }, serve)
server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
  proxy.ws(request, socket, head, { target: `ws://127.0.0.1:${echoPort}` })
})
server.listen({ port, host: '127.0.0.1', backlog: 4096 })
