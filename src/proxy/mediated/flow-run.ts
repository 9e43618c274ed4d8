/** Runs one flow of an exchange on a worker: with its trace, its times, and what admits the operations of a query. */
import { nextCall } from '../../http1/call-chain.ts'
import type { FlowResult, FlowTask, MessageState } from '../../mediation/worker-task.ts'
import { tracer } from '../../protocol/tracer.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import type { Target } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { type RefusedFlow, runAdmitted } from './admitted-flow.ts'
import type { HeldBody } from './body-collector.ts'
import { deleteFile } from './body-store.ts'
import { flowTask, type MessageHead } from './flow-task.ts'
import { traceTask } from './flow-trace.ts'
import { type FlowListener, type MediationServices, type OperationFlows, timedWorkers } from './mediation-services.ts'

interface FlowRun {
  readonly flow: FlowTask['flow']
  readonly sequences: readonly string[]
  readonly exchange: Exchange
  /** The endpoint of the API; null: the exchange has none. */
  readonly target: Target | null
  readonly flows: OperationFlows
  readonly head: MessageHead
  readonly held: HeldBody
  readonly state: MessageState
  /** Whether anybody still waits for the result. */
  readonly isAwaited: () => boolean
}

export type FlowOutcome = FlowResult | RefusedFlow

/**
 * `listener`: as of `timedWorkers`. Rejects with WorkerFailure. Null: nobody waits for the result, and no worker got
 * the message.
 */
export async function runFlow(
  run: FlowRun,
  services: MediationServices,
  context: ConnectionContext,
  listener: FlowListener,
): Promise<FlowOutcome | null> {
  const { flow, sequences, exchange, target, flows, head, held, state, isAwaited } = run
  const { api } = flows
  traceTask(exchange, { flow, sequences }, head.fields, held, state)
  const { begin, mediate, account } = timedWorkers(services, exchange, context.now, listener)
  const admission = flow === 'request' && exchange.upgrade === '' ? flows.admission : null
  const gathers = flow === 'request' && flows.plan.response.gathers === true
  const own = flow === 'request' ? services.ownTargets.add(exchange, target) : 0
  const calls = exchange.calls === null && !exchange.isSecured ? null : nextCall(exchange.calls, exchange.isSecured)
  const { trace } = exchange
  const gathering = gathers ? { sequences: flows.plan.response.sequences } : null
  const collects = tracer?.collects.properties === true
  const options = { gathering, own, calls, trace: trace === null ? null : trace.link, collects }
  try {
    // A refusal may come at once, and what follows must not run inside of the caller.
    await begin()
    // The client has left meanwhile, and the file of the body is gone.
    if (!isAwaited()) return null
    if (admission === null) {
      const length = held.kind === 'none' ? 0 : held.length
      return await mediate(flowTask(api, flow, sequences, head, held, state, options), length)
    }
    return await runAdmitted({ admission, exchange, api, sequences, options, head, held, state, mediate, isAwaited })
  } finally {
    if (own !== 0) services.ownTargets.delete(own)
    if (isAwaited()) account()
  }
}

/** A result that nobody waits for. */
export function dropResult(result: FlowOutcome): void {
  if ('message' in result && result.message.body.kind === 'file') deleteFile(result.message.body.path)
}
