/** What a connection gets from its thread: settings, memory, time, and where to report. Made once per reactor. */
import type { FieldKinds } from '../http1/field-kinds.ts'
import { Head } from '../http1/head.ts'
import type { ReaderLimits } from '../http1/message-reader.ts'
import type { Arena } from '../structure/arena.ts'
import type { DeadlineWheel } from '../structure/deadline-wheel.ts'
import type { Inbox, ReadMemory } from './inbox.ts'
import type { Composer } from './outbox.ts'
import type { BodyPart } from './contract.ts'
import type { Exchange } from './exchange.ts'
import type { Tunnel } from './tunnel.ts'

/**
 * The settings that connections read, from `[transport.passthru_http]`; times in milliseconds, sizes in bytes. A reload
 * puts its values into the same object: what is read of it is of now, and only what was begun keeps what it began with.
 */
export interface Settings {
  readonly socketTimeoutMs: number
  readonly connectTimeoutMs: number
  /** Longest wait for a response; 0: only `socketTimeoutMs`. */
  readonly responseMs: number
  readonly headerReadMs: number
  /** For each further 64 KiB of a request body; 0: off. */
  readonly bodyReadMs: number
  readonly keepAliveMs: number
  readonly targetKeepAliveMs: number
  /** For a tunnel in which nothing moves. */
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
  readonly abortOnHalfClose: boolean
  readonly closesTargets: boolean
  readonly preservesServer: boolean
  readonly preservesUserAgent: boolean
  readonly preservesHost: boolean
  /** Name of the correlation field. */
  readonly correlationField: string
  /** The same with colon and space: how its line starts. */
  readonly correlationStart: string
  readonly forwardedFields: 'x-forwarded' | 'forwarded' | 'both' | 'none'
}

/** Heads for the messages of a thread: one that is used again and again, and spares for those that come in pieces. */
export class Heads {
  readonly #capacity: number
  readonly #spare: Head[] = []
  scratch: Head

  constructor(capacity: number) {
    this.#capacity = capacity
    this.scratch = new Head(capacity)
  }

  /** The scratch head becomes the caller's. */
  pin(): Head {
    const pinned = this.scratch
    this.scratch = this.#spare.pop() ?? new Head(this.#capacity)
    return pinned
  }

  unpin(head: Head): void {
    if (this.#spare.length < SPARE_MAX) this.#spare.push(head)
  }
}
const SPARE_MAX = 64

/** The one BodyPart of a thread: handed on and read before the next read. */
interface MutableBodyPart extends BodyPart {
  spans: number
  floor: number
  last: boolean
  trailers: Head
  inbox: Inbox
}

/** A failure for the log: level, event and the documented fields. */
export type Report = (
  level: 'debug' | 'info' | 'warn' | 'error',
  event: string,
  fields: Record<string, string | number>,
) => void

export interface Surroundings {
  readonly settings: Settings
  readonly arena: Arena
  readonly memory: ReadMemory
  readonly composer: Composer
  readonly wheel: DeadlineWheel
  /** Of requests, and of responses. */
  readonly requestKinds: FieldKinds
  readonly kinds: FieldKinds
  readonly requestHeads: Heads
  readonly responseHeads: Heads
  /** Of the messages of clients, and of backends; renewed in place like the settings. */
  readonly requestLimits: ReaderLimits
  readonly responseLimits: ReaderLimits
  readonly trailerHeads: Heads
  readonly part: MutableBodyPart
  readonly report: Report
  /** Counters, by the cells of observe/metrics.ts. */
  readonly metrics: { add(cell: number, by: number): void }
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** Those of callers who may lose the right to them. */
  readonly tunnels: { opened(exchange: Exchange, tunnel: Tunnel): void }
  /** `Date: …` with its CRLF, renewed every second. */
  dateLine: string
  /** No further connection and no further keep-alive: the process is stopping. */
  isDraining: boolean
}
