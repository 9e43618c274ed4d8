/** The part of http-proxy that the bench uses; the package ships no types. */
declare module 'http-proxy' {
  import type { Agent, IncomingMessage, ServerResponse } from 'node:http'
  import type { Duplex } from 'node:stream'

  namespace httpProxy {
    interface MarkedRequest extends IncomingMessage {
      wantsClose?: boolean
    }
    interface Proxy {
      on(event: 'proxyRes', listener: (response: IncomingMessage, request: MarkedRequest) => void): void
      on(event: 'error', listener: (error: Error, request: MarkedRequest, response: ServerResponse) => void): void
      ws(request: IncomingMessage, socket: Duplex, head: Buffer, options: { target: string }): void
      web(request: MarkedRequest, response: ServerResponse, options: { target: string }): void
    }
    function createProxyServer(options: { agent: Agent; xfwd: boolean }): Proxy
  }
  export = httpProxy
}
