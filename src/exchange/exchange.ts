/**
 * One request, its reply, its accounting: the parcel handed from room to room. There is one per client connection, used
 * again for each request, because requests of a connection are served one after the other.
 */
import type { Head } from '../http1/head.ts'
import { type KeptFields, NOTHING_KEPT } from '../http1/kept-fields.ts'
import type { ByteSocket } from '../socket/byte-socket.ts'
import type { Api } from './api.ts'
import type { Caller, OwnCredential } from './caller.ts'
import type { CorsGrant } from './cors-grant.ts'
import type { Downstream, Upstream } from './contract.ts'
import { CorrelationId } from './correlation-id.ts'
import type { Resource, ResourcePath } from './resource.ts'

export class Exchange {
  /** The client's side. */
  readonly downstream: Downstream
  /** What the client has shown of itself on the connection. */
  readonly peer: Pick<ByteSocket, 'peerThumbprint'>
  readonly clientAddress: string
  /** N of http-incoming-N. */
  readonly sourceId: number
  readonly correlation: CorrelationId

  /** Valid only until the walk's first wait: the bytes of the head move on afterwards. */
  head: Head | null = null
  api: Api | null = null
  upstream: Upstream | null = null

  method = ''
  /** As received, one character per byte. */
  requestTarget = ''
  /**
   * Canonical path and query: what is matched, authorised and passed on. The same string as `requestTarget` where that
   * is canonical already.
   */
  target = ''
  /** Index in `target` where its path starts: behind the authority of an absolute-form target. */
  pathAt = 0
  /** Index in `target` behind context and version of the API: what the backend gets. */
  restAt = 0
  /** What may be done at the path; null: the API has no such resource. */
  place: ResourcePath | null = null
  /** What the request does there; null: not with this method. */
  resource: Resource | null = null
  /** Of the key that it came with; without one, of the gateway's environment. */
  keyType: 'PRODUCTION' | 'SANDBOX' = 'PRODUCTION'
  /** Who asks; null: nobody has asked that yet. */
  caller: Caller | null = null
  /** Lines for the backend that say who asks and with which credentials, each with its CRLF. */
  callerLines = ''
  /** What of them a backend may refuse; null: nothing. */
  ownCredential: OwnCredential | null = null
  /** The client came over TLS. */
  isSecured = false
  /** Origin field (RFC 6454), '' where there is none. */
  origin = ''
  /** What CORS lets the page behind it do; null: nothing is said of it. */
  grant: CorsGrant | null = null
  /** Further lines for the response, each with its CRLF. */
  replyLines = ''
  minorVersion = 1
  /** Body length in bytes, CHUNKED or UNTIL_CLOSE. */
  requestFraming = 0
  /** Authority that the client asked for, '' when it named none. */
  host = ''
  /** Whole lines for the backend that say where the request came from. */
  forwardedLines = ''
  /** The client is a proxy of ours: what it says of its own client is believed. */
  isTrusted = false
  /** The client's connection may carry another request; what goes wrong takes that back. */
  persists = false
  /** Protocols that the backend is asked to switch to; '' for none (RFC 9110 7.8). */
  upgrade = ''
  /** The client accepts trailers (TE: trailers). */
  acceptsTrailers = false

  status = 0
  requestBodyBytes = 0
  responseBodyBytes = 0
  startedMs = 0
  requestDoneMs = 0
  sentMs = 0
  /** When the request was complete on its way to the backend. */
  requestSentMs = 0
  connectMs = 0
  firstByteMs = 0
  doneMs = 0
  targetId = 0
  sourceState = 0
  targetState = -1
  backend = ''
  /** The backend connection that it was given has served before. */
  reusesConnection = false
  /** Endpoints of a group that it was sent to, a bit each. */
  triedEndpoints = 0
  /** Row of the endpoint that counts it among its pending requests, -1: none. */
  pendingRow = -1
  /** Seconds after which asking again is worth while, for a refusal; 0: nobody knows. */
  retryAfterS = 0
  errorBase = 0
  errorState = 0
  userAgent = ''
  referer = ''
  /** What a fault may be worded after, because the head is gone when a backend fails. */
  kept: KeptFields = NOTHING_KEPT

  constructor(
    downstream: Downstream,
    peer: Exchange['peer'],
    clientAddress: string,
    sourceId: number,
    idPrefix: string,
  ) {
    this.downstream = downstream
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

  /** Begun and not accounted for. */
  get isOpen(): boolean {
    return this.startedMs !== 0 && this.doneMs === 0
  }

  get isHead(): boolean {
    return this.method === 'HEAD'
  }

  /** Ready for the next request of the connection. */
  begin(startedMs: number): void {
    this.head = null
    this.api = null
    this.upstream = null
    this.method = ''
    this.requestTarget = ''
    this.target = ''
    this.pathAt = 0
    this.place = null
    this.resource = null
    this.keyType = 'PRODUCTION'
    this.caller = null
    this.callerLines = ''
    this.ownCredential = null
    this.origin = ''
    this.grant = null
    this.replyLines = ''
    this.minorVersion = 1
    this.requestFraming = 0
    this.upgrade = ''
    this.persists = false
    this.correlation.clear()
    this.host = ''
    this.status = 0
    this.requestBodyBytes = 0
    this.responseBodyBytes = 0
    this.startedMs = startedMs
    this.requestDoneMs = 0
    this.sentMs = 0
    this.requestSentMs = 0
    this.connectMs = 0
    this.firstByteMs = 0
    this.doneMs = 0
    this.targetId = 0
    this.targetState = -1
    this.backend = ''
    this.retryAfterS = 0
    this.errorBase = 0
    this.errorState = 0
    this.userAgent = ''
    this.referer = ''
    this.kept = NOTHING_KEPT
  }
}
