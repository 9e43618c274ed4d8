/**
 * Services of a reactor for its connections: settings, memory, time, reporting. One for plain connections and one for
 * connections on TLS, which differ in settings and in what settings size; they share everything else.
 */
import type { FieldKinds } from '../../http1/field-kinds.ts'
import type { BodySpans } from '../../http1/body.ts'
import type { Head, HeadPool } from '../../http1/head.ts'
import type { ReaderLimits } from '../../http1/message-reader.ts'
import type { DeadlineWheel } from '../../runtime/deadline-wheel.ts'
import type { EventClock } from '../../runtime/event-clock.ts'
import type { ReadBuffer, ReadMemory } from './read-buffer.ts'
import type { Composer } from './write-buffer.ts'
import type { BodyPart } from './contract.ts'
import type { Exchange } from './exchange.ts'
import type { Tunnel } from './tunnel.ts'

/**
 * Settings of plain connections, from `[transport.passthru_http]`, or of those on TLS, from
 * `[transport.passthru_https]`; times in milliseconds, sizes in bytes. A reload writes its values into the same object,
 * so every read sees the current value; steps under way keep the value they began with.
 */
export interface Settings {
  readonly socketTimeoutMs: number
  readonly connectTimeoutMs: number
  /** Longest wait for a response; 0: only `socketTimeoutMs`. */
  readonly responseTimeoutMs: number
  readonly headerReadMs: number
  /** For each further 64 KiB of a request body; 0: off. */
  readonly bodyReadMs: number
  /** Least bytes per second that a client takes while bytes wait for it; 0: off. */
  readonly responseRateMin: number
  readonly keepAliveMs: number
  readonly targetKeepAliveMs: number
  /** Longest silence of a tunnel. */
  readonly tunnelIdleMs: number
  readonly headerBytesMax: number
  readonly headerCountMax: number
  readonly targetBytesMax: number
  /** -1: unlimited. */
  readonly bodyBytesMax: number
  readonly pipelineBytesMax: number
  readonly extensionBytesMax: number
  readonly trailerBytesMax: number
  readonly responseHeaderBytesMax: number
  readonly connectionsPerHostMax: number
  /** Failures in a row that suspend an endpoint; 0: none do. */
  readonly suspendFailures: number
  /** Clients that these failures must come from. */
  readonly suspendClients: number
  readonly suspendWindowMs: number
  readonly abortOnHalfClose: boolean
  readonly closesTargets: boolean
  readonly preservesServer: boolean
  readonly preservesUserAgent: boolean
  readonly preservesHost: boolean
  /** Name of the correlation field. */
  readonly correlationField: string
  /** Start of the correlation line, as bytes: the name with colon and space. */
  readonly correlationStart: Uint8Array
  readonly forwardedFields: 'x-forwarded' | 'forwarded' | 'both' | 'none'
}

/** The body part of a reactor, written by the reader that hands it on. */
interface MutableBodyPart extends BodyPart {
  readonly spans: BodySpans
  count: number
  floor: number
  last: boolean
  trailers: Head
  buffer: ReadBuffer
}

/** Reports to the event log: level, event and the documented fields. */
export type Report = (
  level: 'debug' | 'info' | 'warn' | 'error',
  event: string,
  fields: Record<string, string | number>,
) => void

export interface ConnectionContext {
  readonly settings: Settings
  readonly memory: ReadMemory
  readonly composer: Composer
  readonly wheel: DeadlineWheel
  /** Fields of requests; fields of responses. */
  readonly requestKinds: FieldKinds
  readonly responseKinds: FieldKinds
  readonly requestHeads: HeadPool
  readonly responseHeads: HeadPool
  /** Limits of clients' and of backends' messages; a reload changes them in place. */
  readonly requestLimits: ReaderLimits
  readonly responseLimits: ReaderLimits
  readonly trailerHeads: HeadPool
  readonly part: MutableBodyPart
  readonly report: Report
  /** Counters, by the cells of observe/metrics.ts. */
  readonly metrics: { add(cell: number, by: number): void }
  /** Milliseconds of `clock`. */
  readonly now: () => number
  readonly clock: EventClock
  /** Name of this node in Via, which no other node has (RFC 9110 7.6.3). */
  readonly pseudonym: string
  /** As of `ReactorPlan`. */
  readonly callToken: string
  /** Registers every tunnel, so that a tunnel can be cut when its caller loses the right to it. */
  readonly tunnels: { opened(exchange: Exchange, tunnel: Tunnel): void }
  /** `Date: …` with its CRLF, updated every second. */
  dateLine: string
  /** The process is stopping: no further connection is accepted and none is kept alive. */
  isDraining: boolean
  /** While it stops: a connection of a client whose last response did not say `close` waits for one more request. */
  keepsIdle: boolean
}

/** The contexts of a reactor: a connection gets one of them when it is accepted or opened, and keeps it. */
export interface ConnectionContexts {
  readonly plain: ConnectionContext
  readonly secured: ConnectionContext
}
