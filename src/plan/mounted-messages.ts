/** Messages between a reactor and a worker thread about requests to mounted APIs. Plain data. */
import type { MountedCaller } from '../mounted/interface.ts'

/** Bytes of a body that one side sends before the other has asked for more. */
export const WINDOW_BYTES = 262_144
/** Longest body of a response that goes with the result of its task. */
export const WHOLE_BYTES_MAX = WINDOW_BYTES

type Fields = readonly (readonly [name: string, value: string])[]

export interface RequestData {
  readonly method: string
  /** Path and query behind the context. */
  readonly target: string
  /** Path of the request up to there. */
  readonly base: string
  /** Path of the API, with its variables, and the operation. */
  readonly context: string
  readonly template: string
  readonly verb: string
  readonly scheme: 'http' | 'https'
  readonly host: string
  readonly fields: Fields
  readonly caller: MountedCaller
  readonly address: string
  readonly correlationId: string
}

/** One request. */
export interface MountedTask {
  readonly kind: 'mounted'
  /** Unique in the reactor. */
  readonly id: number
  /** Identity of the API (`apiIdentity`). */
  readonly api: string
  readonly request: RequestData
  readonly body: RequestBodyData
  /** An aborted request gives its place up after that many milliseconds; 0: when its implementation ends. */
  readonly timeoutMs: number
}

/** `stream`: `first` is there, and the rest follows in messages. `length`: -1 where it is not known. */
export type RequestBodyData =
  | { readonly kind: 'whole'; readonly bytes: Uint8Array }
  | { readonly kind: 'stream'; readonly first: Uint8Array; readonly length: number }

export interface ResponseHeadData {
  readonly status: number
  /** '' for that of the status. */
  readonly reason: string
  readonly fields: Fields
}

/**
 * `unopened`: the implementation could not be opened. `threw`: it has thrown, or its body has. `invalid`: its response
 * is none. `too-long`: it does not read a body of that length.
 */
export type MountedFailure = 'unopened' | 'threw' | 'invalid' | 'too-long'

/** Result of a task. `streamed`: the response went in messages, or nobody waits for one. */
export type MountedResult =
  | { readonly kind: 'responds'; readonly head: ResponseHeadData; readonly bytes: Uint8Array }
  | { readonly kind: 'streamed' }
  /** `cause`: class and place of an error, or a rule; without any text of a client. */
  | { readonly kind: 'fails'; readonly failure: MountedFailure; readonly cause: string }

/**
 * `began`: the thread has the request. `wants`: it takes that many further bytes of its body. `head`: a response in
 * pieces begins, whose body has `length` bytes, -1 for unknown. `chunk`: a piece. `end`: the last piece was sent.
 * `waits`: the request waits for its client, with the first `heard` messages of the reactor: for bytes of its body, or
 * until the client takes the response.
 */
export type FromMounted = { readonly kind: 'mounted'; readonly id: number } & (
  | { readonly what: 'began' | 'end' }
  | { readonly what: 'wants'; readonly bytes: number }
  | { readonly what: 'waits'; readonly heard: number }
  | { readonly what: 'head'; readonly head: ResponseHeadData; readonly length: number }
  | { readonly what: 'chunk'; readonly bytes: Uint8Array }
)

/**
 * `chunk`: a piece of the body of the request. `wants`: the client takes that many further bytes. `taken`: the whole
 * response has left. `cut`: nobody waits any more. `client-ended`: the client has sent FIN, and may have left.
 */
export type ToMounted = { readonly kind: 'mounted'; readonly id: number } & (
  | { readonly what: 'chunk'; readonly bytes: Uint8Array; readonly last: boolean }
  | { readonly what: 'wants'; readonly bytes: number }
  | { readonly what: 'taken' | 'cut' | 'client-ended' }
)
