/**
 * HTTP client of the control thread: bounded in requests, time and bytes. It speaks HTTPS, or plain HTTP to this
 * machine, and follows no redirect: only a configured address may receive credentials or supply keys.
 */
import type { Readable } from 'node:stream'
import type { Agent } from 'undici'
import { isLoopbackHost } from '../../http1/host-name.ts'
import { ControlCallFailed } from '../../auth/control-protocol.ts'
import { type JsonObject, parseStrictJson } from '../../auth/strict-json.ts'
import type { TlsClientPlan } from '../../socket/tls.ts'
import { ConcurrencyLimit } from './concurrency-limit.ts'

interface HttpClientSettings {
  /** Concurrent requests to all hosts together (`apim.http_client.max_total`). */
  readonly requestsMax: number
  /** Connections to one host and port (`default_max_per_route`). */
  readonly perHostMax: number
  /** Idle connections kept open per host (`apim.key_manager.pool.max_idle`). */
  readonly idleMax: number
  /** Requests that wait for one host. */
  readonly waitingMax: number
  /** TLS settings by `host:port`; `default` for all others. Node's defaults apply without either. */
  readonly trust: Readonly<Record<string, TlsClientPlan>>
  /** Certificates (PEM) trusted in addition for servers on this machine. */
  readonly ownCertificates: readonly string[]
}

interface HttpClientLimits {
  readonly connectMs: number
  /** One whole request, including its wait in the queue. */
  readonly requestMs: number
  /** Life of an idle connection. */
  readonly idleMs: number
}
/** Port of https. Plain HTTP has no trust settings. */
const DEFAULT_PORT = '443'
/** Shorter than the time a reactor waits for its control call, so that the reactor receives the cause of a failure. */
const LIMITS: HttpClientLimits = { connectMs: 3000, requestMs: 4000, idleMs: 30_000 }

interface RemoteRequest {
  readonly url: string
  /** Sent by POST, as is `json`; GET without either. */
  readonly form?: URLSearchParams
  readonly json?: object
  /** Text of another media type, sent by POST. */
  readonly content?: { readonly type: string; readonly body: string | Uint8Array }
  /** Further fields, in lower case. */
  readonly headers?: Readonly<Record<string, string>>
  /** Media type of the response; `application/json` by default. */
  readonly accept?: string
  /** Plain HTTP to another machine is allowed: the operator has named it for what is no secret. */
  readonly allowsPlain?: true
  readonly authorization?: string
  /** Limit of the response body. */
  readonly bytesMax: number
  /** The status alone decides: a body that is longer, late or broken ends where it does, in place of an error. */
  readonly cutsBody?: true
}

export interface RemoteResponse {
  readonly status: number
  /** Lower case, without parameters. */
  readonly mediaType: string
  readonly body: Buffer
}

export class HttpClient {
  readonly #settings: HttpClientSettings
  readonly #limits: HttpClientLimits
  /** By trust settings; most hosts share one agent. */
  readonly #agents = new Map<string, Promise<Agent>>()
  readonly #concurrency: ConcurrencyLimit

  /** `limits`: for tests. */
  constructor(settings: HttpClientSettings, limits: Partial<HttpClientLimits> = {}) {
    this.#settings = settings
    this.#limits = { ...LIMITS, ...limits }
    this.#concurrency = new ConcurrencyLimit(settings)
  }

  /**
   * Resolves with any status except 3xx. Rejects with ControlCallFailed, whose message names the address without query
   * and credentials.
   */
  async send(request: RemoteRequest): Promise<RemoteResponse> {
    const url = URL.parse(request.url)
    const refusal = url === null ? 'its address is not a URL' : addressFault(url, request.allowsPlain)
    if (url === null || refusal !== '') throw new ControlCallFailed(refusal)
    const target = `${url.protocol}//${url.host}${url.pathname}`
    const signal = AbortSignal.timeout(this.#limits.requestMs)
    try {
      const others = await this.#concurrency.acquire(url.host, signal)
      try {
        return await this.#exchange(url, request, signal, others)
      } finally {
        this.#concurrency.release(url.host)
      }
    } catch (error) {
      throw new ControlCallFailed(`${target}: ${this.#causeOf(error as NodeJS.ErrnoException, signal)}`)
    }
  }

  /** Closes all connections; requests in flight fail. */
  async close(): Promise<void> {
    const agents = await Promise.all(this.#agents.values())
    await Promise.all(agents.map(agent => agent.destroy()))
  }

  /** `others`: other requests in flight to the same host. */
  async #exchange(url: URL, request: RemoteRequest, signal: AbortSignal, others: number): Promise<RemoteResponse> {
    const { authorization, bytesMax, accept = 'application/json', headers: further = {} } = request
    const [content, type] = contentOf(request)
    const agent = await this.#agentFor(url)
    const { statusCode, headers, body } = await agent.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: content === null ? 'GET' : 'POST',
      headers: {
        ...further,
        accept,
        'user-agent': 'sluice',
        ...(authorization === undefined ? {} : { authorization }),
        ...(content === null ? {} : { 'content-type': type }),
      },
      body: content,
      // The connection would exceed the idle limit.
      reset: others >= this.#settings.idleMax,
      signal,
    })
    if (statusCode >= 300 && statusCode < 400) {
      abandon(body)
      throw new Error(`responds with a redirect (${statusCode}), which is not followed`)
    }
    const encoding = headers['content-encoding'] ?? 'identity'
    const isEncoded = encoding !== 'identity'
    if (isEncoded) abandon(body)
    if (isEncoded && request.cutsBody !== true)
      throw new Error(`responds with a content encoding (${String(encoding).slice(0, 32)})`)
    const [mediaType = ''] = String(headers['content-type'] ?? '').split(';')
    const bytes = isEncoded ? Buffer.alloc(0) : await readAtMost(body, bytesMax, request.cutsBody === true)
    return { status: statusCode, mediaType: mediaType.trim().toLowerCase(), body: bytes }
  }

  #agentFor({ hostname, port }: URL): Promise<Agent> {
    const { trust } = this.#settings
    const address = `${hostname}:${port || DEFAULT_PORT}`
    const name = Object.hasOwn(trust, address) ? address : 'default'
    const isLocal = isLoopbackHost(hostname)
    const key = `${name} ${isLocal}`
    const known = this.#agents.get(key) ?? this.#open(trust[name], isLocal)
    this.#agents.set(key, known)
    return known
  }

  /** Loads undici with the first request. */
  async #open(trust: TlsClientPlan | undefined, isLocal: boolean): Promise<Agent> {
    const { Agent: Opened } = await import('undici')
    const { perHostMax, ownCertificates } = this.#settings
    const { connectMs, requestMs, idleMs } = this.#limits
    const more = isLocal ? ownCertificates : []
    const ca = more.length === 0 ? {} : { ca: [...(trust?.ca ?? []), ...more] }
    return new Opened({
      connections: perHostMax,
      pipelining: 1,
      keepAliveTimeout: idleMs,
      keepAliveMaxTimeout: idleMs,
      headersTimeout: requestMs,
      bodyTimeout: requestMs,
      maxHeaderSize: 16_384,
      connect: { timeout: connectMs, ...tlsOptions(trust), ...ca },
    })
  }

  #causeOf(error: NodeJS.ErrnoException, signal: AbortSignal): string {
    if (signal.aborted) return `no response within ${this.#limits.requestMs} ms`
    // Node reports one error per address that it tried.
    const { code } = error instanceof AggregateError ? (error.errors[0] as NodeJS.ErrnoException) : error
    return error.message === '' ? String(code) : error.message
  }
}

/** Body and media type; a body of null is none. */
function contentOf({ form, json, content }: RemoteRequest): readonly [body: string | Uint8Array | null, type: string] {
  if (content !== undefined) return [content.body, content.type]
  if (json !== undefined) return [JSON.stringify(json), 'application/json']
  return [form?.toString() ?? null, 'application/x-www-form-urlencoded']
}

/** Why requests to the address are refused; '' if they are allowed. */
function addressFault({ protocol, hostname, username, password }: URL, allowsPlain = false): string {
  if (username !== '' || password !== '') return 'its address contains credentials; set them by their own keys'
  if (protocol === 'https:' || (protocol === 'http:' && (allowsPlain || isLoopbackHost(hostname)))) return ''
  return `${protocol}//${hostname} is neither https nor on this machine`
}

function tlsOptions(trust: TlsClientPlan | undefined): object {
  if (trust === undefined) return {}
  const { ca, identity, minVersion, maxVersion, ciphers, hostname } = trust
  return {
    minVersion,
    maxVersion,
    ...(ca === null ? {} : { ca: [...ca] }),
    ...(ciphers === '' ? {} : { ciphers }),
    ...(identity === null ? {} : { cert: identity.cert, key: identity.key }),
    ...(hostname === 'none' ? { checkServerIdentity: () => undefined } : {}),
  }
}

/** Ends a body that nobody reads, with its connection: `dump` would read 128 KiB of it, however slowly they come. */
function abandon(body: Readable): void {
  body.on('error', () => {}).destroy()
}

async function readAtMost(body: AsyncIterable<Buffer>, bytesMax: number, cuts: boolean): Promise<Buffer> {
  const parts: Buffer[] = []
  let bytes = 0
  try {
    for await (const part of body) {
      bytes += part.length
      if (bytes > bytesMax) throw new Error(`responds with more than ${bytesMax} bytes`)
      parts.push(part)
    }
  } catch (error) {
    if (!cuts) throw error
  }
  return Buffer.concat(parts)
}

/**
 * JSON object of a response body, parsed strictly: parsers disagree about duplicate members, so such a body is refused.
 * `sender` names the server in messages. Throws ControlCallFailed for a status other than 200, another media type, or a
 * body that is no object.
 */
export function jsonBody({ status, mediaType, body }: RemoteResponse, sender: string): JsonObject {
  if (status !== 200) throw new ControlCallFailed(`${sender} responds with status ${status}`)
  if (mediaType !== 'application/json' && !/^application\/[\w.-]+\+json$/.test(mediaType)) {
    throw new ControlCallFailed(
      `${sender} responds with ${mediaType === '' ? 'no content type' : mediaType.slice(0, 64)}`,
    )
  }
  const value = parseStrictJson(body)
  if (typeof value === 'string') throw new ControlCallFailed(`${sender} responds with an invalid body: ${value}`)
  return value
}
