/**
 * Sends batches of analytics events to the nodes of one group. The gateway logs in at `analytics_auth_url` with name
 * and password, and sends events to `analytics_url` with the session that it gets, so that only the login holds the
 * password. `tcp` is plain HTTP to this machine, `ssl` is HTTPS.
 */
import { basicAuthorization } from '../auth/basic-credentials.ts'
import { ControlCallFailed } from '../auth/control-protocol.ts'
import { jsonBody, type RemoteResponse } from './remote/http-client.ts'
import type { RemoteServices } from './remote-services.ts'

interface AnalyticsGroupSettings {
  readonly events: readonly string[]
  /** In the order of `events`. */
  readonly logins: readonly string[]
  /** '': as `failover`. */
  readonly type: '' | 'loadbalance' | 'failover'
}

/** A batch: name for its receiver, and lines of JSON. */
export interface SentBatch {
  readonly id: string
  readonly lines: string
}

/** `refused`: the cause; no later attempt can succeed. */
export type BatchResult = 'accepted' | { readonly refused: string }

/** Where a group sends its batches: nodes, or a module of the operator. */
export interface BatchSink {
  /** Rejects where nobody takes batches now. */
  send(batch: SentBatch): Promise<BatchResult>
  /** No batch follows. */
  close?(): void
}

interface NodeAddress {
  readonly events: string
  readonly login: string
}

const RESPONSE_BYTES_MAX = 65_536
const SESSION_CHARS_MAX = 4096
const MEDIA_TYPE = 'application/x-ndjson'
/** A batch that a node cannot take because of its content. */
const REFUSED = [400, 413, 415, 422]

export class AnalyticsNodes implements BatchSink {
  readonly #nodes: readonly NodeAddress[]
  readonly #type: AnalyticsGroupSettings['type']
  readonly #authorization: string
  readonly #send: RemoteServices['send']
  /** By address for login. */
  readonly #sessions = new Map<string, string>()
  /** The node of the next batch. */
  #next = 0

  constructor(
    { events, logins, type }: AnalyticsGroupSettings,
    { name, password }: { readonly name: string; readonly password: string },
    send: RemoteServices['send'],
  ) {
    this.#nodes = events.map((address, index) => ({ events: httpUrl(address), login: httpUrl(logins[index]!) }))
    this.#type = type
    this.#authorization = basicAuthorization(name, password)
    this.#send = send
  }

  async send(batch: SentBatch): Promise<BatchResult> {
    const causes: string[] = []
    const first = this.#next
    if (this.#type === 'loadbalance') this.#next = (first + 1) % this.#nodes.length
    for (let tried = 0; tried < this.#nodes.length; tried++) {
      const index = (first + tried) % this.#nodes.length
      try {
        const result = await this.#sendTo(this.#nodes[index]!, batch)
        // The group stays with a node that works.
        if (this.#type !== 'loadbalance') this.#next = index
        return result
      } catch (error) {
        causes.push((error as Error).message)
      }
    }
    throw new ControlCallFailed(causes.join('; '))
  }

  async #sendTo(node: NodeAddress, batch: SentBatch): Promise<BatchResult> {
    const known = this.#sessions.get(node.login)
    const session = known ?? (await this.#login(node))
    const response = await this.#post(node, batch, session)
    if (response.status !== 401) return this.#resultOf(response, node)
    this.#sessions.delete(node.login)
    // A session that was just made and is refused needs a person.
    if (known === undefined) throw new ControlCallFailed(`${node.events} refuses the session of ${node.login}`)
    return this.#resultOf(await this.#post(node, batch, await this.#login(node)), node)
  }

  #resultOf({ status }: RemoteResponse, { events }: NodeAddress): BatchResult {
    if (status >= 200 && status < 300) return 'accepted'
    const cause = `${events} responds with status ${status}`
    if (REFUSED.includes(status)) return { refused: cause }
    throw new ControlCallFailed(cause)
  }

  #post({ events }: NodeAddress, { id, lines }: SentBatch, session: string): Promise<RemoteResponse> {
    const url = `${events}/events?batch=${encodeURIComponent(id)}`
    const content = { type: MEDIA_TYPE, body: lines }
    // The status alone decides.
    const limits = { bytesMax: RESPONSE_BYTES_MAX, cutsBody: true } as const
    return this.#send({ url, content, authorization: `Bearer ${session}`, ...limits })
  }

  async #login({ login }: NodeAddress): Promise<string> {
    const form = new URLSearchParams()
    const url = `${login}/login`
    const response = await this.#send({ url, form, authorization: this.#authorization, bytesMax: RESPONSE_BYTES_MAX })
    const { session } = jsonBody(response, login)
    if (typeof session !== 'string' || !/^[!-~]+$/.test(session) || session.length > SESSION_CHARS_MAX) {
      throw new ControlCallFailed(`${login} responds without a session`)
    }
    this.#sessions.set(login, session)
    return session
  }
}

/** `tcp://h:1` and `ssl://h:1` as addresses of HTTP, without a slash at the end. */
function httpUrl(address: string): string {
  return address.replace(/^tcp:/, 'http:').replace(/^ssl:/, 'https:').replace(/\/+$/, '')
}
