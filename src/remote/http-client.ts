/**
 * HTTP requests to those whom the authority asks: few, small, and bounded in every way. On TLS, or to this machine; no
 * redirect is followed, because where credentials go and keys come from is what is configured, and nothing else.
 */
import type { Agent } from 'undici'
import { isLoopbackHost } from '../structure/host-name.ts'
import { InquiryFailed } from '../identity/identity-state.ts'
import type { TlsClientPlan } from '../socket/tls.ts'
import { Turns } from './turns.ts'

interface ClientSettings {
  /** Requests under way at once, to all hosts (`apim.http_client.max_total`). */
  readonly requestsMax: number
  /** Connections to one host and port (`default_max_per_route`). */
  readonly perHostMax: number
  /** Of them, those kept open while nothing is asked (`apim.key_manager.pool.max_idle`). */
  readonly idleMax: number
  /** By `host:port`, and `default` for all others; without it: as Node does. */
  readonly trust: Readonly<Record<string, TlsClientPlan>>
  /** Certificates (PEM) that are trusted of servers on this machine besides. */
  readonly ownCertificates: readonly string[]
}

interface ClientLimits {
  readonly connectMs: number
  /** A whole request, with the wait for its turn. */
  readonly requestMs: number
  /** How long a connection that nobody uses is kept. */
  readonly idleMs: number
  /** Requests to one host that wait for their turn. */
  readonly waitingMax: number
}
/** That of https: on plain HTTP nobody is trusted. */
const DEFAULT_PORT = '443'
/** Less than a reactor waits for its answer: what it is told of a failure then has a cause. */
const LIMITS: ClientLimits = { connectMs: 3000, requestMs: 4000, idleMs: 30_000, waitingMax: 1024 }

interface RemoteRequest {
  readonly url: string
  /** Left out: GET. */
  readonly form?: URLSearchParams
  readonly authorization?: string
  /** Of the body of the answer. */
  readonly bytesMax: number
}

export interface RemoteAnswer {
  readonly status: number
  /** In lower case, without parameters. */
  readonly mediaType: string
  readonly body: Buffer
}

export class HttpClient {
  readonly #settings: ClientSettings
  readonly #limits: ClientLimits
  /** By what they trust: for most hosts it is the same one. */
  readonly #agents = new Map<string, Promise<Agent>>()
  readonly #turns: Turns

  /** `limits`: for tests. */
  constructor(settings: ClientSettings, limits: Partial<ClientLimits> = {}) {
    this.#settings = settings
    this.#limits = { ...LIMITS, ...limits }
    this.#turns = new Turns({ ...settings, waitingMax: this.#limits.waitingMax })
  }

  /** Any status but a redirect is an answer. Rejects with InquiryFailed, in whose message is no query or credential. */
  async send(request: RemoteRequest): Promise<RemoteAnswer> {
    const url = URL.parse(request.url)
    const refusal = url === null ? 'its address is no URL' : addressFault(url)
    if (url === null || refusal !== '') throw new InquiryFailed(refusal)
    const whom = `${url.protocol}//${url.host}${url.pathname}`
    const signal = AbortSignal.timeout(this.#limits.requestMs)
    try {
      const others = await this.#turns.begin(url.host, signal)
      try {
        return await this.#exchange(url, request, signal, others)
      } finally {
        this.#turns.end(url.host)
      }
    } catch (error) {
      throw new InquiryFailed(`${whom}: ${this.#causeOf(error as NodeJS.ErrnoException, signal)}`)
    }
  }

  /** What is under way fails. */
  async close(): Promise<void> {
    const agents = await Promise.all(this.#agents.values())
    await Promise.all(agents.map(agent => agent.destroy()))
  }

  /** `others`: requests to the host that are under way already. */
  async #exchange(url: URL, request: RemoteRequest, signal: AbortSignal, others: number): Promise<RemoteAnswer> {
    const { form, authorization, bytesMax } = request
    const agent = await this.#agentFor(url)
    const { statusCode, headers, body } = await agent.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: form === undefined ? 'GET' : 'POST',
      headers: {
        accept: 'application/json',
        'user-agent': 'sluice',
        ...(authorization === undefined ? {} : { authorization }),
        ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
      },
      body: form === undefined ? null : form.toString(),
      // Its connection is one more than are kept.
      reset: others >= this.#settings.idleMax,
      signal,
    })
    if (statusCode >= 300 && statusCode < 400) {
      await body.dump({ limit: 0 }).catch(() => {})
      throw new Error(`answers with a redirect (${statusCode}), which is not followed`)
    }
    const encoding = headers['content-encoding'] ?? 'identity'
    if (encoding !== 'identity') throw new Error(`answers in an encoding (${String(encoding).slice(0, 32)})`)
    const [mediaType = ''] = String(headers['content-type'] ?? '').split(';')
    const bytes = await readAtMost(body, bytesMax)
    return { status: statusCode, mediaType: mediaType.trim().toLowerCase(), body: bytes }
  }

  #agentFor({ hostname, port }: URL): Promise<Agent> {
    const { trust } = this.#settings
    const address = `${hostname}:${port || DEFAULT_PORT}`
    const name = Object.hasOwn(trust, address) ? address : 'default'
    const isHere = isLoopbackHost(hostname)
    const key = `${name} ${isHere}`
    const known = this.#agents.get(key) ?? this.#open(trust[name], isHere)
    this.#agents.set(key, known)
    return known
  }

  /** The library is loaded when somebody is asked for the first time. */
  async #open(trust: TlsClientPlan | undefined, isHere: boolean): Promise<Agent> {
    const { Agent: Opened } = await import('undici')
    const { perHostMax, ownCertificates } = this.#settings
    const { connectMs, requestMs, idleMs } = this.#limits
    const more = isHere ? ownCertificates : []
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
    if (signal.aborted) return `no answer within ${this.#limits.requestMs} ms`
    // Several addresses were tried.
    const { code } = error instanceof AggregateError ? (error.errors[0] as NodeJS.ErrnoException) : error
    return error.message === '' ? String(code) : error.message
  }
}

/** '' where requests may go there. */
function addressFault({ protocol, hostname, username, password }: URL): string {
  if (username !== '' || password !== '') return 'its address holds credentials, which belong elsewhere'
  if (protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname))) return ''
  return `${protocol}//${hostname} is neither https nor this machine`
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

async function readAtMost(body: AsyncIterable<Buffer>, bytesMax: number): Promise<Buffer> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of body) {
    bytes += part.length
    if (bytes > bytesMax) throw new Error(`answers with more than ${bytesMax} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts)
}
