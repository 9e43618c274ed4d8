/** Services of a reactor, and of an API, for mediated exchanges. */
import type { FlowsPlan } from '../../mediation/flow-plan.ts'
import { type TaskWait, WorkerFailure, type WorkerService } from '../../mediation/worker-service.ts'
import type { MessageState, RaisedFault } from '../../mediation/worker-task.ts'
import type { PendingFault } from '../exchange/api-mediation.ts'
import type { ConnectionContexts, Report } from '../exchange/connection-context.ts'
import type { FilterResult, SourceSide } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Refusal } from '../exchange/outcome.ts'
import type { TurnQuota } from '../../runtime/turn-quota.ts'
import type { BodyStore } from './body-store.ts'
import type { OwnTargets } from './own-targets.ts'
import type { SequenceEndpoints } from './sequence-endpoint.ts'

/** One per reactor. */
export interface MediationServices {
  /** By the transport of the client. */
  readonly workers: Readonly<Record<keyof ConnectionContexts, Pick<WorkerService, 'mediate'>>>
  /** Quota of messages that go to workers, and of results that come back. */
  readonly turns: Pick<TurnQuota, 'next'>
  readonly store: BodyStore
  readonly contexts: ConnectionContexts
  readonly report: Report
  /** Endpoints that sequences name. */
  readonly endpoints: SequenceEndpoints
  readonly ownTargets: OwnTargets
  /** Answers with a fault, which the fault flow of the API may word. */
  refuse(exchange: Exchange, fault: PendingFault): void
  /** The same for a fault that a sequence has raised. */
  refuseRaised(exchange: Exchange, fault: RaisedFault): void
  /** Answers with a fault that a fault sequence words, before it returns. */
  refuseAtOnce(exchange: Exchange, fault: PendingFault): void
  /** Logs an error of the gateway itself. */
  bug(exchange: Exchange, error: unknown): void
}

/** Admits the operations that a request asks for (GraphQL), before any other sequence of its flow runs. */
export interface Admission {
  /** Finds the operations. */
  readonly sequence: string
  /** `state`: as the sequence has left it. A refusal ends the exchange. */
  admit(exchange: Exchange, state: MessageState): FilterResult
  /** For a request that opens a connection over which operations come; undefined: it may. */
  admitConnection(exchange: Exchange): Refusal | undefined
}

/** The flows of an operation. */
export interface OperationFlows {
  /** Null: the filters have admitted the request. */
  readonly admission: Admission | null
  /** Identity of the API (`apiIdentity`). */
  readonly api: string
  readonly plan: FlowsPlan
  /** The log has told that a response flow waits for the end of an event stream. */
  hasToldOfStream: boolean
  /** Puts a response flow that needs no worker in front of the client; returns what takes the response. */
  prepareResponse(exchange: Exchange, state: MessageState): SourceSide
}

/** `error`: what `WorkerService.mediate` has rejected with. */
export function failureOf(error: unknown): WorkerFailure {
  return error instanceof WorkerFailure ? error : new WorkerFailure('failed', String(error))
}

/** Hears of the task of a flow, as `TaskWait` does. */
export type FlowListener = Pick<TaskWait, 'entered' | 'queued'>

/**
 * The workers for one flow of an exchange. `begin`: waits for the turn of its message. `mediate`: the result has its
 * turn too. `account`: adds the times of the flow to the exchange.
 */
export function timedWorkers(
  { workers, turns }: Pick<MediationServices, 'workers' | 'turns'>,
  exchange: Pick<Exchange, 'isSecured' | 'queueMs' | 'mediationMs'>,
  now: () => number,
  listener: FlowListener,
) {
  const service = workers[exchange.isSecured ? 'secured' : 'plain']
  const sinceMs = now()
  let queueMs = 0
  const waited = (ms: number): void => {
    queueMs += ms
  }
  const begin = async (): Promise<void> => {
    await turns.next()
    waited(Math.max(0, now() - sinceMs))
  }
  const mediate: typeof service.mediate = async (task, bytes) => {
    const result = await service.mediate(task, bytes, {
      entered: giveUp => listener.entered(giveUp),
      queued: leave => listener.queued(leave),
      waited,
    })
    await turns.next()
    return result
  }
  const account = (): void => {
    exchange.queueMs += queueMs
    exchange.mediationMs += Math.max(0, now() - sinceMs - queueMs)
  }
  return { begin, mediate, account }
}
