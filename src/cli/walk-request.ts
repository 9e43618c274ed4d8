/** The request of a walk, sent as any client would, to a listener of the gateway on this machine. */
import { Agent, type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as TlsAgent, type RequestOptions, request as requestHttps } from 'node:https'
import type { OpenListener } from '../primary/control-commands.ts'
import { UsageError } from './arguments.ts'

interface WalkRequest {
  /** For the Host field; '' takes that of the listener. */
  readonly host: string
  readonly path: string
  readonly method: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string | null
}

/** What the client got. */
export interface Answer {
  /** 0: none. */
  readonly status: number
  readonly reason: string
  readonly bytes: number
  /** Milliseconds from the call to the last byte, or to the failure; connecting included. */
  readonly ms: number
  /** '' when the answer is complete. */
  readonly failure: string
}

/** Host and port under which a listener is reached from its own machine. */
export function reachable({ host, port }: OpenListener): string {
  const address = addressOf(host)
  return `${address.includes(':') ? `[${address}]` : address}:${port}`
}

function addressOf(host: string): string {
  return host === '' || host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
}

/** Throws UsageError for a request that cannot be sent. `leave` ends it. */
export function sendRequest(listener: OpenListener, wanted: WalkRequest, leave: AbortSignal): Promise<Answer> {
  const startMs = performance.now()
  const { promise, resolve } = Promise.withResolvers<Answer>()
  const sent = open(listener, wanted, leave)
  const ended = (failure: string, response: IncomingMessage | null, bytes: number): void => {
    sent.destroy()
    const { statusCode = 0, statusMessage = '' } = response ?? {}
    resolve({ status: statusCode, reason: statusMessage, bytes, ms: performance.now() - startMs, failure })
  }
  sent.on('error', error => ended(error.message, null, 0))
  sent.on('response', response => {
    let bytes = 0
    response.on('data', (piece: Buffer) => {
      bytes += piece.length
    })
    response.on('end', () => ended('', response, bytes))
    response.on('error', error => ended(error.message, response, bytes))
  })
  sent.end(wanted.body ?? undefined)
  return promise
}

function open(listener: OpenListener, { host, path, method, headers, body }: WalkRequest, signal: AbortSignal) {
  const authority = host === '' ? reachable(listener) : host
  const given = new Set(headers.map(([name]) => name.toLowerCase()))
  const own: (readonly [string, string])[] = [
    ['Host', authority],
    ['User-Agent', 'sluice walk'],
    ['Accept', '*/*'],
  ]
  if (body !== null) own.push(['Content-Length', String(Buffer.byteLength(body))])
  const fields = [...own.filter(([name]) => !given.has(name.toLowerCase())), ...headers].flat()
  const common = { host: addressOf(listener.host), port: listener.port, path, method, headers: fields, signal }
  try {
    if (listener.scheme === 'http') return requestHttp({ ...common, agent: new Agent({ keepAlive: true }) })
    return openSecured(common, authority)
  } catch (error) {
    // What a request cannot have: control characters, say.
    if (!(error instanceof TypeError)) throw error
    throw new UsageError(error.message)
  }
}

function openSecured(common: RequestOptions, authority: string): ClientRequest {
  const name = authority.replace(/:\d+$/, '')
  const servername = /^[\d.]+$|^\[/.test(name) ? '' : name
  // The gateway of this machine is asked about itself; its certificate is for those who reach it by its name.
  const agent = new TlsAgent({ keepAlive: true, rejectUnauthorized: false })
  return requestHttps({ ...common, servername, agent })
}
