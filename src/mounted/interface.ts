/**
 * Interface of mounted APIs: what their modules export, get and return. A module is an ES module that exports `open`.
 * It runs on worker threads: several times at once, each in its own thread with its own state.
 */
import type { Kysely, Transaction } from 'kysely'

/**
 * Opens the implementation of an API on one thread, before its first request there. While it rejects, requests get
 * 102574 and the next one opens again. A thread ends without a word, so nothing may depend on its end.
 */
export type OpenMountedApi = (context: MountedContext) => MountedApi | Promise<MountedApi>

export interface MountedContext {
  readonly api: { readonly name: string; readonly version: string }
  /** `settings` of the project, as they are written. */
  readonly settings: Readonly<Record<string, unknown>>
  /** The home folder, for files that operators edit. */
  readonly home: string
  /** Writes to the event log. Values of fields must hold no secrets. */
  readonly log: MountedLog
  /**
   * The database of the API: with the embedded database a file of its own in `data/`, else that of
   * `[database.apim_db]`, which APIs share: their tables need names of their own. Throws where there is none.
   */
  database<Tables>(): MountedDatabase<Tables>
  /** Encrypts secrets at rest, with the key of the node. Throws as `database`, and where that key is unusable. */
  secrets(): MountedSecrets
  /** Asks for `work.due` soon: there is something to do. From any thread of the node; without `work` for nothing. */
  wake(): void
}

/** A database, typed by its tables. Statements of the embedded one block the thread, never a reactor. */
export interface MountedDatabase<Tables> {
  readonly dialect: 'sqlite' | 'postgresql' | 'mysql'
  readonly kysely: Kysely<Tables>
  /** Runs one statement of the dialect's own SQL; its rows. `parameters`: in its notation, `?` or `$1`. */
  query(sql: string, parameters?: readonly unknown[]): Promise<readonly unknown[]>
  /** Runs `work` in a transaction; several times where others write the same rows. */
  transaction<T>(work: (transaction: Transaction<Tables>) => Promise<T>): Promise<T>
  /**
   * As `transaction`, but the commit to the embedded database does not wait for the disk. Others see the changes at
   * once; they are durable when a later `synced` resolves. From then on this holds for every transaction of the
   * database on this thread: SQLite keeps the setting of a connection.
   */
  unsyncedTransaction<T>(work: (transaction: Transaction<Tables>) => Promise<T>): Promise<T>
  /** Resolves when all transactions that have ended are durable. Rejects where they cannot be. */
  synced(): Promise<void>
  /** True if a statement has failed because a row with that key is there already. */
  isDuplicate(error: unknown): boolean
}

/** `context`: names what the text is, so that no text can take the place of another one. */
export interface MountedSecrets {
  encrypt(text: string, context: string): string
  /** A keyed hash, in base64: nobody without the key can try texts against it. */
  digest(text: string): string
  /** Undefined for a text that no key of this node has encrypted with this `context`. */
  decrypt(encrypted: string, context: string): string | undefined
}

type MountedLog = (
  level: 'debug' | 'info' | 'warn' | 'error',
  event: string,
  fields?: Readonly<Record<string, string | number>>,
) => void

export interface MountedApi {
  /**
   * Answers one request; others run meanwhile. What it throws is 102570 for the client and a log line, but for a
   * `BodyTooLong`, which is 102573.
   */
  handle(request: MountedRequest): MountedResponse | Promise<MountedResponse>
  /** Left out: the API does nothing without a request. */
  readonly work?: BackgroundWork
}

/**
 * Work beside requests. The node asks on one of its background threads, and runs jobs there, under the permits of
 * `[mediation] synapse.core_threads` and `max_threads`. Another node on the same database does the same at the same
 * time. What throws, hangs or dies is logged and tried again, each time later.
 */
export interface BackgroundWork {
  /** Returns the work that is due. Called after a start, a `wake`, the end of a job, and `againMs`. */
  due(): Promise<DueWork>
  /**
   * Runs one job, of which no second run begins on the node before the first one has ended. Ends within seconds,
   * because it is asked again while there is more; at once where `signal` is aborted: the API changes, or the gateway
   * stops.
   */
  run(job: string, signal: AbortSignal): Promise<void>
}

export interface DueWork {
  /** Names; each becomes one task. */
  readonly jobs: readonly string[]
  /** Milliseconds until `due` is asked again, at the latest. */
  readonly againMs: number
}

export interface MountedRequest {
  readonly method: string
  /** Canonical path behind the context, without query: `/notes/7`; '' for the context itself. */
  readonly path: string
  /** Without its question mark; '' for none. */
  readonly query: string
  /** The operation that the request has matched. */
  readonly operation: { readonly verb: string; readonly template: string }
  /** Segments at `{name}` in the context and in the template of the operation, decoded; the latter win. */
  readonly variables: Readonly<Record<string, string>>
  /** Where the client finds the API: `https://gw.example/t/acme/notes`. */
  readonly url: string
  /** Fields in order, names as received; without those of the hop, of forwarding, and credentials of the gateway. */
  readonly fields: readonly (readonly [name: string, value: string])[]
  /** All values of a field, joined by ", "; undefined without one. `name`: in any case. */
  field(name: string): string | undefined
  readonly caller: MountedCaller
  /** Address of the client. */
  readonly address: string
  readonly correlationId: string
  readonly body: MountedBody
  /** Aborted when nobody waits for the response any more. What it interrupts need not answer. */
  readonly signal: AbortSignal
  /**
   * The client has closed its sending side: it waits for the response (RFC 9112 9.6), or has left, as most have. Costly
   * work serves others first.
   */
  readonly hasClientEnded: boolean
}

/** The caller, as the filters of the gateway have authenticated it. */
export interface MountedCaller {
  /** `none`: the operation needs no credentials. */
  readonly method: 'oauth2' | 'api_key' | 'basic' | 'mutual_tls' | 'none'
  /** `anonymous` without credentials. */
  readonly user: string
  /** '' where it is not known. */
  readonly tenant: string
  /** An application that acts for itself, without a user. */
  readonly isApplication: boolean
  readonly keyType: 'PRODUCTION' | 'SANDBOX'
  /** Null without an application. */
  readonly application: { readonly id: string; readonly name: string; readonly owner: string } | null
  readonly consumerKey: string
  readonly scopes: readonly string[]
  /** Claims of the token under their local names. */
  readonly claims: Readonly<Record<string, unknown>>
}

/** The body of a request; it can be read once. Reading rejects with `RequestAborted` where the rest never comes. */
export interface MountedBody extends AsyncIterable<Uint8Array> {
  /** Bytes; -1: not known before the end. */
  readonly length: number
  /** The whole body. Rejects with BodyTooLong beyond `most` bytes. */
  bytes(most: number): Promise<Uint8Array>
  /** The whole body as UTF-8; malformed bytes become U+FFFD. Rejects as `bytes`. */
  text(most: number): Promise<string>
}

export interface MountedResponse {
  /** 200 to 599. */
  readonly status: number
  /** Reason phrase; left out: that of the status. */
  readonly reason?: string
  /** Framing, Connection and Date are the gateway's own, and are left out. */
  readonly fields?: readonly (readonly [name: string, value: string])[]
  /** Text is sent as UTF-8. Pieces are asked for as fast as the client takes them. A response to HEAD sends none. */
  readonly body?: string | Uint8Array | AsyncIterable<string | Uint8Array>
  /** Bytes of a body in pieces, where they are known. */
  readonly length?: number
}

/** The body of a request is longer than its reader takes. */
export class BodyTooLong extends Error {
  override readonly name = 'BodyTooLong'
}

/** The client has left, or its body ends before its end. */
export class RequestAborted extends Error {
  override readonly name = 'RequestAborted'
}
