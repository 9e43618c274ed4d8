/** The request of an endpoint of a sequence: method, path and query; URI templates (RFC 6570). */
import { DESTINATION_URL, type TemplatePiece } from '../../mediation/endpoint-plan.ts'
import { fromTransfer } from '../../mediation/message-transfer.ts'
import { textOf } from '../../mediation/value.ts'
import type { MessageState, TransferredMessage } from '../../mediation/worker-task.ts'
import type { Target } from '../exchange/contract.ts'
import type { OwnCredential } from '../exchange/caller.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { MessageHead } from './flow-task.ts'

/** Where a message goes. */
export interface ResolvedEndpoint {
  readonly target: Target
  /** The backend is on TLS. */
  readonly secured: boolean
  readonly method: string
  /** Path and query behind the base path of the target: '', or begins with "/" or "?". */
  readonly path: string
  /** Lines of the gateway for the endpoint of an API. Left out: none. */
  readonly callerLines?: string
  readonly ownCredential?: Exchange['ownCredential']
  /** Has access tokens for the endpoint. Left out: it needs none. */
  readonly tokens?: TokenSource
}

/** Throws, or rejects, where there is no token; the message is fit for the log. */
export interface TokenSource {
  get(): OwnCredential | Promise<OwnCredential>
}

/** The endpoints of sequences of a reactor. */
export interface SequenceEndpoints {
  /** A sentence, without any text of a client, where the message cannot be sent to the endpoint of that name. */
  resolve(name: string, message: TransferredMessage): ResolvedEndpoint | string
}

/** Where a request goes, with its method and path there. */
interface Destination {
  readonly target: Target
  readonly head: MessageHead
}

/** `endpoint`: '' for that of the API, which is `own`. A sentence for the log where the request cannot be sent. */
export function destinationOf(
  endpoint: string,
  own: Target,
  head: MessageHead,
  state: MessageState,
  endpoints: SequenceEndpoints,
): Destination | string {
  if (endpoint === '') {
    const hasEndpoint = own.name !== DESTINATION_URL
    return hasEndpoint ? { target: own, head } : 'the API has no endpoint, and the <send> of a flow names none'
  }
  const resolved = endpoints.resolve(endpoint, { ...head, body: { kind: 'none' }, state })
  if (typeof resolved === 'string') return `the endpoint ${endpoint} of a flow: ${resolved}`
  // The mediators send such messages from their tasks, which can send once more.
  if (resolved.tokens !== undefined) return `the endpoint ${endpoint} of a flow needs a token`
  return { target: resolved.target, head: { ...head, method: resolved.method, target: resolved.path } }
}

/** The gateway's own credentials and its JWT are for the endpoints of the API (D300). */
export function withoutCredentials(exchange: Exchange): void {
  exchange.callerLines = ''
  exchange.ownCredential = null
}

/** Characters beyond unreserved ones (RFC 3986 2.3) that encodeURIComponent leaves. */
const LEFT_OVER = /[!'()*]/g
/** Characters that `{+name}` must encode all the same: those that no URI has. */
const NOT_IN_URI = /[^!#$%&'()*+,\-./0-9:;=?@A-Z[\]_a-z~]+/g
const UNFINISHED_ESCAPE = /%(?![\dA-Fa-f]{2})/g

/** Replaces variables by properties of the message; one that is not set is ''. */
export function expand(pieces: readonly TemplatePiece[], message: TransferredMessage): string {
  const source = fromTransfer({ ...message, body: { kind: 'none' } }, null)
  let text = ''
  for (const piece of pieces) {
    if (typeof piece === 'string') text += piece
    else {
      const value = textOf(source.get('default', piece.name)).toWellFormed()
      text += piece.keeps ? reserved(value) : segmentOf(value)
    }
  }
  return text
}

/** The value of a variable, percent-encoded, for one segment. Throws for a lone surrogate. */
export function segmentOf(value: string): string {
  return encodeURIComponent(value).replace(LEFT_OVER, found => `%${found.charCodeAt(0).toString(16).toUpperCase()}`)
}

function reserved(value: string): string {
  return value.replace(NOT_IN_URI, encodeURIComponent).replace(UNFINISHED_ESCAPE, '%25')
}

/** Path and query of an endpoint, and behind them those of the message. */
export function joinTargets(base: string, postfix: string): string {
  const [path, query] = split(base)
  const [morePath, moreQuery] = split(postfix)
  const joined = joinPaths(path, morePath)
  const queries = [query, moreQuery].filter(text => text !== '').join('&')
  return queries === '' ? joined : `${joined}?${queries}`
}

/** One path behind the other, with one slash between them. */
export function joinPaths(path: string, more: string): string {
  return path.endsWith('/') && more.startsWith('/') ? path + more.slice(1) : path + more
}

function split(target: string): readonly [path: string, query: string] {
  const at = target.indexOf('?')
  return at < 0 ? [target, ''] : [target.slice(0, at), target.slice(at + 1)]
}
