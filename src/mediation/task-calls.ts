/**
 * Calls of a task on a worker to its reactor: requests to backends, copies of messages for the background pool, and
 * kept responses. Mediators see the interface `TaskServices`; the calls are what it posts.
 */
import type { CallChain } from '../http1/call-chain.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import type { TraceLink } from '../proxy/exchange/trace-context.ts'
import type { BodyLimits } from './formats/body-limits.ts'
import type { Message, Payload } from './message.ts'
import type { ScriptReply, ScriptTask } from './script-task.ts'
import type { FlowTask, RaisedFault, TransferredMessage } from './worker-task.ts'

/** Sends a request to an endpoint of sequences, and brings its response. */
export interface BackendRequest {
  readonly kind: 'backend'
  /** Identity of the API whose sequence calls (`apiIdentity`). */
  readonly api: string
  /** Name of the endpoint (`SequenceEndpoint`), or OWN_ENDPOINT. */
  readonly endpoint: string
  /** The endpoint of the API, for OWN_ENDPOINT (`FlowTask.own`); else left out. */
  readonly own?: number
  /** The calls in which this call is nested. */
  readonly calls: CallChain
  /** The trace that the request continues; left out: it is not traced. */
  readonly trace?: TraceLink
  /** A blocking call, which `[transport.blocking_http]` limits. */
  readonly isBlocking: boolean
  /** The request of the client goes on, with the fields that tell its way (X-Forwarded-For); left out: another one. */
  readonly isForwarded?: true
  /** Address of the client whose message calls; '' where it is not known. */
  readonly client: string
  /** Names of the request fields that the sequence has set or removed, in lower case. */
  readonly changed: readonly string[]
  readonly message: TransferredMessage
  /** As of `methodOfBody`. */
  readonly bodyMethod?: string | undefined
  /** Values that no log and no trace shows; left out: none. */
  readonly secrets?: readonly string[]
  /** Time until which the task waits for the response, by the monotonic clock; left out: no limit. */
  readonly endMs?: number
  /** Number of the task; left out: the call ends by itself alone. */
  readonly task?: number
}

/** Runs sequences on a copy, which nobody waits for. */
interface BackgroundRequest {
  readonly kind: 'background'
  readonly task: FlowTask
}

/** Asks for a kept response. */
interface KeptRequest {
  readonly kind: 'kept'
  readonly key: string
}

/** Keeps a response for a time. */
export interface KeepRequest {
  readonly kind: 'keep'
  readonly key: string
  readonly lifetimeMs: number
  /** The cache that keeps it, and how many responses that cache keeps. */
  readonly cache: string
  readonly entriesMax: number
  readonly message: TransferredMessage
}

export type TaskCall = BackendRequest | BackgroundRequest | KeptRequest | KeepRequest

/** A backend's response, or the fault for it. */
export type BackendResult =
  | { readonly kind: 'response'; readonly message: TransferredMessage }
  | { readonly kind: 'fault'; readonly fault: RaisedFault }

/** Results of the calls, by kind. */
export interface TaskCallResults {
  readonly backend: BackendResult
  /** Whether the pool has taken the task. */
  readonly background: boolean
  readonly kept: TransferredMessage | null
  readonly keep: null
}

/** The services of one task, which its messages carry. */
export interface TaskServices {
  /** Identity of the API. */
  readonly api: string
  /** An `onError` belongs to the flow of faults. */
  readonly flow: Exclude<FlowTask['flow'], 'onError'>
  /** Limits of bodies, which payloads and properties of sequences obey too. */
  readonly limits: BodyLimits
  /** Names the endpoint of the API (`FlowTask.own`); 0: nothing can be sent to it. */
  readonly own: number
  /** The response flow gathers the responses to copies. */
  readonly gathers: boolean
  /** The calls in which calls of the task are nested. */
  readonly calls: CallChain
  /** The trace that calls of the task continue; null: they are not traced. */
  readonly trace: TraceLink | null
  readonly report: Report
  /** The message as it would go on now, with its body, or as a blocking call sends it. Throws MediationFault. */
  transfer(message: Message, isBlocking?: boolean): TransferredMessage
  /** A message that came from elsewhere; `isBlocking`: as the response to a blocking call. */
  received(transferred: TransferredMessage, isBlocking?: boolean): Message
  /** Counts further copies of messages. Throws MediationFault beyond the limit of a task. */
  claimCopies(count: number): void
  /** Takes a share of the copies that are left, for each of `count` copies that run as tasks of their own. */
  shareCopies(count: number): number
  /**
   * Takes a copy that has become the response to its request to the client: through the response flow in this task
   * where that gathers copies, else as the outcome of the message. Returns false; throws as mediators do.
   */
  respond(copy: Message): Promise<false>
  /** The payload of a text or of bytes of that content type. Throws MediationFault. */
  parse(content: string | Uint8Array, contentType: string): Payload | null
  /** Tells whether the time of the task is over, so that its result has no receiver. */
  isOver(): boolean
  /** Rejects with CallFailed. */
  call<One extends TaskCall>(call: One): Promise<TaskCallResults[One['kind']]>
  readonly code: CodeServices
}

/** Code and texts of the operator, inside the configuration folder. All of them reject with MediationFault. */
export interface CodeServices {
  /** Runs a script on a thread of its own. */
  script(task: ScriptTask): Promise<ScriptReply>
  /** The function that an ES module exports; it runs on the thread of the task. */
  module(path: string, name: string): Promise<(...given: readonly unknown[]) => unknown>
  /** Text of a local entry or a file. */
  text(key: string): Promise<string>
}
