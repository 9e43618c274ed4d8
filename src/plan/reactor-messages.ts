/** Messages between the primary and a reactor. */
import type { MessagePort } from 'node:worker_threads'
import type { ConnectionList, ConnectionQuery } from '../observe/connection-list.ts'
import type { FailureList, FailureQuery } from '../observe/flight-recorder.ts'
import type { Trace } from '../observe/exchange-trace.ts'
import type { ApiChanges, LivePlan } from './reactor-plan.ts'
import type { CallMessage, ResultMessage } from '../runtime/call-channel.ts'
import type { SocketTable } from './listening-sockets.ts'
import type { ThreadReport } from './thread-messages.ts'

/** A question of the primary to a reactor. */
export type ReactorCall =
  | { readonly kind: 'connections'; readonly query: ConnectionQuery }
  /** Exchanges that the flight recorder has kept. */
  | { readonly kind: 'failures'; readonly query: FailureQuery }
  /** Watch for the exchange with this correlation id. False: the reactor watches for another one already. */
  | {
      readonly kind: 'watch'
      readonly correlationId: string
      readonly waitMs: number
      /** Parts of messages that the trace keeps; left out: none. */
      readonly collects?: { readonly payloads: boolean; readonly properties: boolean }
    }
  /** The trace of the watched exchange once it is over or no longer watched for; null: the reactor never saw it. */
  | { readonly kind: 'trace'; readonly correlationId: string }
  | { readonly kind: 'unwatch'; readonly correlationId: string }
  /** The listening sockets, for another process. */
  | { readonly kind: 'sockets' }
  /** Stop accepting: another process has the sockets. Open connections go on. */
  | { readonly kind: 'closeListeners' }
  /** Apply other settings, keys and APIs. Where it fails, nothing has changed. */
  | { readonly kind: 'deploy'; readonly live: LivePlan; readonly apis: ApiChanges }

export interface ReactorCallResults {
  readonly connections: ConnectionList
  readonly failures: FailureList
  readonly watch: boolean
  readonly trace: Trace | null
  readonly unwatch: true
  readonly sockets: SocketTable
  readonly closeListeners: true
  readonly deploy: true
}

export type FromReactor =
  /** Ports in the order of the listeners. */
  | ThreadReport<readonly number[]>
  | ResultMessage
  /** Descriptors of the listening sockets, once they are open. */
  | { readonly kind: 'listening'; readonly fds: readonly number[] }
  /** Access log lines for standard output. */
  | { readonly kind: 'access'; readonly batch: Uint8Array }

export type ToReactor =
  | CallMessage<ReactorCall>
  /** `keepsIdle`: idle connections of clients stay for one more request, because another process goes on. */
  | { readonly kind: 'drain'; readonly keepsIdle: boolean }
  | { readonly kind: 'cutOff' }
  | { readonly kind: 'reopenLogs' }
  /** Channel to the control thread; it replaces the one to a control thread that has died. */
  | { readonly kind: 'channel'; readonly port: MessagePort }
  /** Tests only, with SLUICE_TEST_HOOKS=1: block the event loop for good. */
  | { readonly kind: 'hang' }
