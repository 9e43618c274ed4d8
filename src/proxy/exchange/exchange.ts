/**
 * One request, its response, and its accounting. Each client connection has one exchange, used again for each request,
 * because requests of a connection are served in order.
 */
import type { CallChain } from '../../http1/call-chain.ts'
import type { Head } from '../../http1/head.ts'
import { type CapturedFields, NO_CAPTURED_FIELDS } from '../../http1/captured-fields.ts'
import type { EventClock } from '../../runtime/event-clock.ts'
import { NO_TIMELINE } from '../../protocol/timelines.ts'
import type { ByteSocket } from '../../socket/byte-socket.ts'
import type { Api } from './api.ts'
import type { ExchangeMediation } from './api-mediation.ts'
import type { Caller, OwnCredential, TokenMemo } from './caller.ts'
import type { SourceSide, TargetSide } from './contract.ts'
import { CorrelationId } from './correlation-id.ts'
import type { ExchangeHandlers } from './exchange-handlers.ts'
import type { HeadEdit } from './head-edit.ts'
import type { LateCharges } from './late-charges.ts'
import type { Resource, ResourcePath } from './resource.ts'
import type { TraceContext } from './trace-context.ts'

/** CORS grant of a response; composed once per policy and origin. */
export interface CorsGrant {
  /** All lines with Vary, for a response of the gateway. */
  readonly lines: string
  /** CORS lines with Vary, for a backend's response without CORS fields: copying bytes is a third of encoding text. */
  readonly bytes: Uint8Array
  /** Lines of Vary, or '', for a backend's response with CORS fields of its own. */
  readonly vary: string
  /** Lines of other fields, for a backend's response without a field of that name; from an edited sequence. */
  readonly others: readonly { readonly name: string; readonly line: string }[]
  /** The grant of the policy, from which an edited `_cors_request_handler_` has made this one; null: this is it. */
  readonly source: CorsGrant | null
}

const NO_BYTES = new Uint8Array()
export const NO_OTHER_LINES: CorsGrant['others'] = []

export class Exchange {
  /** The connection of the client. */
  readonly client: SourceSide
  /** Taker of the response: the connection of the client, or a mediation in front of it. */
  source: SourceSide
  /** Certificate of the client on its connection. */
  readonly peer: Pick<ByteSocket, 'peerThumbprint'>
  readonly clientAddress: string
  /** N of http-incoming-N. */
  readonly sourceId: number
  readonly correlation: CorrelationId
  /** Null where requests are not traced. */
  trace: TraceContext | null = null

  /** Valid only until a filter waits: the bytes of the head move then. */
  head: Head | null = null
  api: Api | null = null
  target: TargetSide | null = null
  /** Null until a flow of the API runs. */
  mediation: ExchangeMediation | null = null

  /** Handlers of the operator that take part; null: there are none, or the request has no API. */
  handlers: ExchangeHandlers | null = null

  /** Changes of mediation to the head for the backend, and to the head of its response; null: none. */
  requestEdit: HeadEdit | null = null
  responseEdit: HeadEdit | null = null

  method = ''
  /** Request target as received, one character per byte. */
  requestTarget = ''
  /**
   * Canonical path and query, for routing, authorisation and the backend. The same string as `requestTarget` where that
   * is canonical already.
   */
  canonicalTarget = ''
  /** Index in `requestTarget` where the path starts: behind the authority of an absolute-form target. */
  pathAt = 0
  /** Index in `canonicalTarget` behind context and version of the API: start of the target for the backend. */
  backendPathAt = 0
  /** Operations at the path; null: the API has no such resource. */
  resourcePath: ResourcePath | null = null
  /** Operation of the request; null: the resource does not offer the method. */
  resource: Resource | null = null
  /** Key type of the credentials; without credentials that of the API. */
  keyType: 'PRODUCTION' | 'SANDBOX' = 'PRODUCTION'
  /** The token of fields that the client repeats; null for fields that are new. */
  tokenMemo: TokenMemo | null = null
  /** The authenticated client; null before authentication. */
  caller: Caller | null = null
  /** Lines for the backend about caller and credentials, each with its CRLF. */
  callerLines = ''
  /** The gateway's own credentials among `callerLines`; null without any. */
  ownCredential: OwnCredential | null = null
  /** Calls of sequences of this node that the request is nested in; null: a client has sent it, or another node. */
  calls: CallChain | null = null
  /** The address that limits and deny policies see; '' until one of them has asked. */
  countedAddress = ''
  /** Limits that count bytes or messages of the exchange; null: none do. */
  lateCharges: LateCharges | null = null
  /** The client came over TLS. */
  isSecured = false
  /** Origin field (RFC 6454), '' without one. */
  origin = ''
  /** CORS grant for the origin; null: the response gets no CORS fields. */
  corsGrant: CorsGrant | null = null
  /** Further response lines, each with its CRLF. */
  responseLines = ''
  minorVersion = 1
  /** Body length in bytes, CHUNKED or UNTIL_CLOSE. */
  requestFraming = 0
  /** Authority of the request, '' without one. */
  host = ''
  /** Forwarding lines for the backend, as bytes: Via, X-Forwarded-*, Forwarded. */
  forwardedLines: Uint8Array = NO_BYTES
  /** The client is a trusted proxy: its forwarding fields are kept. */
  isTrusted = false
  /** The client's connection may carry another request; failures set this to false. */
  persists = false
  /** Protocols of the Upgrade for the backend; '' for none (RFC 9110 7.8). */
  upgrade = ''
  /** Protocols of the backend's 101; '' for no tunnel. */
  tunnelProtocol = ''
  /** The client accepts trailers (TE: trailers). */
  acceptsTrailers = false

  status = 0
  requestBodyBytes = 0
  responseBodyBytes = 0
  startedMs = 0
  requestDoneMs = 0
  sentMs = 0
  /** When the whole request was sent to the backend. */
  requestSentMs = 0
  connectMs = 0
  firstByteMs = 0
  doneMs = 0
  /** Wait of its flows for a worker, and the time that workers took. */
  queueMs = 0
  mediationMs = 0
  targetId = 0
  sourceState = 0
  targetState = -1
  backend = ''
  /** The backend connection has served before. */
  reusesConnection = false
  /** Endpoints of a group that were tried, one bit each. */
  triedEndpoints = 0
  /** Row of the endpoint that counts it among its pending requests, -1: none. */
  pendingSlot = -1
  /** Seconds for Retry-After of a refusal; 0: unknown. */
  retryAfterS = 0
  errorBase = 0
  errorState = 0
  /** Cause of the failure in words, as the event log has it; '' for none. */
  errorCause = ''
  /** Id of its timeline (`protocol/timelines.ts`). */
  timeline = NO_TIMELINE
  userAgent = ''
  referer = ''
  /** Request fields for faults, because the head is gone when a backend fails. */
  captured: CapturedFields = NO_CAPTURED_FIELDS

  constructor(client: SourceSide, peer: Exchange['peer'], clientAddress: string, sourceId: number, idPrefix: string) {
    this.client = client
    this.source = client
    this.peer = peer
    this.clientAddress = clientAddress
    this.sourceId = sourceId
    this.correlation = new CorrelationId(idPrefix)
  }

  get apiName(): string {
    return this.api === null ? '' : this.api.name
  }

  get correlationId(): string {
    return this.correlation.text
  }

  /** Started and not finished. */
  get isOpen(): boolean {
    return this.startedMs !== 0 && this.doneMs === 0
  }

  /** Method of the request for the backend. */
  get sentMethod(): string {
    return this.requestEdit === null || this.requestEdit.method === '' ? this.method : this.requestEdit.method
  }

  get isHead(): boolean {
    return this.method === 'HEAD'
  }

  /** Resets everything for the next request of the connection. */
  begin(clock: Pick<EventClock, 'now'>): void {
    if (this.mediation !== null) this.#unmediate()
    if (this.trace !== null) this.trace.clear()
    this.handlers = null
    this.requestEdit = null
    this.responseEdit = null
    this.head = null
    this.api = null
    this.target = null
    this.method = ''
    this.requestTarget = ''
    this.canonicalTarget = ''
    this.pathAt = 0
    this.resourcePath = null
    this.resource = null
    this.keyType = 'PRODUCTION'
    this.tokenMemo = null
    this.caller = null
    this.callerLines = ''
    this.ownCredential = null
    this.calls = null
    this.countedAddress = ''
    this.lateCharges = null
    this.origin = ''
    this.corsGrant = null
    this.responseLines = ''
    this.minorVersion = 1
    this.requestFraming = 0
    this.upgrade = ''
    this.tunnelProtocol = ''
    this.persists = false
    this.correlation.clear()
    this.host = ''
    this.status = 0
    this.requestBodyBytes = 0
    this.responseBodyBytes = 0
    this.startedMs = clock.now()
    this.requestDoneMs = 0
    this.sentMs = 0
    this.requestSentMs = 0
    this.connectMs = 0
    this.firstByteMs = 0
    this.doneMs = 0
    this.queueMs = 0
    this.mediationMs = 0
    this.targetId = 0
    this.targetState = -1
    this.backend = ''
    this.retryAfterS = 0
    this.errorBase = 0
    this.errorState = 0
    this.errorCause = ''
    this.userAgent = ''
    this.referer = ''
    this.captured = NO_CAPTURED_FIELDS
  }

  /** Most exchanges are not mediated: one check spares them two stores. */
  #unmediate(): void {
    this.mediation = null
    this.source = this.client
  }
}
