/**
 * Messages between a reactor and its workers: tasks, results, and calls of a task to backends. Plain data, which
 * a structured clone copies; bodies are transferred, not copied.
 */
import type { CallChain } from '../http1/call-chain.ts'
import type { TraceLink } from '../proxy/exchange/trace-context.ts'
import type { Value } from './value.ts'

/** A message on its way between threads. */
export interface TransferredMessage {
  /** In the response flow too: method, path and query of the request. */
  readonly method: string
  /** Path and query behind the context of the API, as the backend gets them: `/pets?limit=5`. */
  readonly target: string
  /** 0 in the request flow. */
  readonly status: number
  /** Reason phrase; '' for that of the status. */
  readonly reason: string
  /** Fields in order, names as received, without those of one hop. Of results, Content-Length is left out too. */
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly body: TransferredBody
  readonly state: MessageState
}

/**
 * `none`: no body. `bytes`: the whole body, with its content coding still applied. `file`: the whole body in a file of
 * that length. The reactor deletes the file of a task once its result is there, and the file of a result. `untouched`
 * in a result: the flow did not change the body: the body that the reactor holds goes on.
 */
export type TransferredBody =
  | { readonly kind: 'none' | 'untouched' }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'file'; readonly path: string; readonly length: number }

/** The state of a message from the request flow to the response flow and the fault flow. */
export interface MessageState {
  readonly default: readonly (readonly [string, Value])[]
  readonly axis2: readonly (readonly [string, Value])[]
  readonly operation: readonly (readonly [string, Value])[]
  readonly variables: readonly (readonly [string, Value])[]
  /** Destination that a sequence has set (`To`). */
  readonly to?: string
  /** Parameters of the sequence template that runs; left out: none runs. */
  readonly parameters?: readonly (readonly [string, Value])[]
  /** Values of secret fields that sequences have read: no log shows them. */
  readonly secrets?: readonly string[]
  /** The request as the client sent it, for its response flow; left out: that asks for no part of it. */
  readonly request?: KeptRequest
}

export interface KeptRequest {
  /** By names in lower case. */
  readonly headers?: Readonly<Record<string, string>>
  /** Base64; null: the body was too long to be kept. */
  readonly body?: string | null
}

export const NO_STATE: MessageState = { default: [], axis2: [], operation: [], variables: [] }

/** Runs one flow of an API on a message. */
export interface FlowTask {
  readonly kind: 'flow'
  /** Identity of the API (`apiIdentity`). */
  readonly api: string
  /** `onError`: that of a `<send>` that has failed. Where it ends without an answer, the fault goes on. */
  readonly flow: 'request' | 'response' | 'fault' | 'onError'
  /** Names of the sequences that run in order. */
  readonly sequences: readonly string[]
  readonly message: TransferredMessage
  /** The aggregate of the response flow, which gathers the responses to copies that this request flow sends. */
  readonly gathering?: TaskGathering
  /**
   * Set for a request flow and its copies in the background: names the endpoint of the API in calls of the task
   * (`BackendRequest.own`). 0, or left out: none.
   */
  readonly own?: number
  /** The chain in which calls of the task are nested; left out: FIRST_CALL. */
  readonly calls?: CallChain
  /** The trace that calls of the task continue; left out: they pass the fields of the message on. */
  readonly trace?: TraceLink
  /** The result says which properties the flow leaves; left out: no trace collects them. */
  readonly collects?: true
  /** Copies that the task may make, of a task in the background; left out: as many as a message of a client. */
  readonly copiesMax?: number
}

/** The response flow runs in the task of the request flow, so that its `<aggregate>` sees the copies of one message. */
export interface TaskGathering {
  /** Names of the sequences of the response flow. */
  readonly sequences: readonly string[]
}

/**
 * `continues`: to the backend, or to the client with the response. `responds`: to the client at once. `loops`: to the
 * start of the response flow. `drops`: no message goes on (D83). `faults`: a mediator failed, or a sequence raised a
 * fault. `left`: text of the properties that the flow leaves, for a task that collects them.
 */
export type FlowResult = { readonly left?: string } & (
  | {
      readonly kind: 'continues' | 'responds' | 'loops'
      readonly message: TransferredMessage
      readonly endpoint: string
      /** The body is that of an answer to an earlier call. Left out: another one, or none. */
      readonly isBodyOfAnswer?: true
      /** Sequence that runs where the endpoint fails; left out: none. */
      readonly onError?: string
    }
  | { readonly kind: 'drops' }
  | { readonly kind: 'faults'; readonly fault: RaisedFault; readonly state: MessageState }
)

/** A fault that a sequence raised. */
export interface RaisedFault {
  /** Code of the fault, as the sequence gave it; 0: that of a failed mediation. */
  readonly code: number
  readonly message: string
  readonly detail: string
  /** Cause for the log: without any text of a client. */
  readonly cause: string
  /** Fault sequence by which the fault is worded; '' for that of its code. */
  readonly sequence: string
  /** Kind that `<throwError>` gave, which sequences read as ERROR_CODE; left out: the code. */
  readonly type?: string
  /** Status of the response that `<throwError>` finds in CUSTOM_HTTP_SC; left out: that of the code. */
  readonly status?: number
  /** A failed connection to a backend: `code` is base and state. Left out: another fault. */
  readonly transport?: { readonly base: number; readonly state: number }
}
