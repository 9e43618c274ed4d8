/** http-proxy with a keep-alive agent. Started as `node http-proxy-server.ts PORT DOWNLOAD_PORT UPLOAD_PORT`. */
import { Agent, createServer } from 'node:http'
import httpProxy from 'http-proxy'

const [port, downloadPort, uploadPort] = process.argv.slice(2).map(Number)
const agent = new Agent({ keepAlive: true, maxSockets: 1024, maxFreeSockets: 1024 })
const proxy = httpProxy.createProxyServer({ agent, xfwd: true })

// It copies the client's Connection field to the backend and the backend's to the client: both are hop-by-hop.
proxy.on('proxyRes', (response, request) => {
  response.headers.connection = request.wantsClose === true ? 'close' : 'keep-alive'
})
proxy.on('error', (_error, _request, response) => response.destroy())

createServer((request, response) => {
  const incoming: httpProxy.MarkedRequest = request
  incoming.wantsClose = request.headers.connection === 'close'
  delete request.headers.connection
  const target = `http://127.0.0.1:${request.url?.startsWith('/upload/') ? uploadPort : downloadPort}`
  proxy.web(incoming, response, { target })
}).listen({ port, host: '127.0.0.1', backlog: 4096 })
