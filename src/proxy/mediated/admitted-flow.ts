/**
 * A request flow of which the reactor admits the operations first. One task finds the operations that the request asks
 * for; after their admission a second task runs the sequences of the flow, if any.
 */
import type { FlowResult, TransferredBody } from '../../mediation/worker-task.ts'
import type { WorkerService } from '../../mediation/worker-service.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Refusal } from '../exchange/outcome.ts'
import type { HeldBody } from './body-collector.ts'
import { flowTask, type MessageHead, type TaskOptions } from './flow-task.ts'
import type { Admission } from './mediation-services.ts'

/** Words a query that is refused, in place of the fault flow (D825). */
const REFUSED_SEQUENCE = 'fault'

interface AdmittedFlow {
  readonly admission: Admission
  readonly exchange: Exchange
  /** Identity of the API. */
  readonly api: string
  readonly sequences: readonly string[]
  readonly options: TaskOptions
  readonly head: MessageHead
  readonly held: HeldBody
  readonly state: Parameters<typeof flowTask>[5]
  readonly mediate: WorkerService['mediate']
  /** Whether anybody still waits for the result. */
  readonly isAwaited: () => boolean
}

/** The operations are refused. */
export interface RefusedFlow {
  readonly kind: 'refused'
  readonly refusal: Refusal
}

/** Rejects with WorkerFailure. */
export async function runAdmitted(flow: AdmittedFlow): Promise<FlowResult | RefusedFlow> {
  const { admission, exchange, api, sequences, options, head, held, state, mediate, isAwaited } = flow
  const length = held.kind === 'none' ? 0 : held.length
  const found = await mediate(flowTask(api, 'request', [admission.sequence], head, held, state), length)
  if (found.kind === 'faults') return { ...found, fault: { ...found.fault, sequence: REFUSED_SEQUENCE } }
  if (found.kind !== 'continues' || !isAwaited()) return found
  const { message } = found
  const outcome = await admission.admit(exchange, message.state)
  if (outcome !== undefined && outcome.code !== 0) return { kind: 'refused', refusal: outcome }
  if (sequences.length === 0 || !isAwaited()) return found
  const { body } = message
  const kept = copyOf(body)
  const task = flowTask(api, 'request', sequences, message, held, message.state, options)
  const own = body.kind === 'bytes' ? { ...task, message: { ...task.message, body } } : task
  const result = await mediate(own, body.kind === 'bytes' ? body.bytes.length : length)
  if (result.kind === 'drops' || result.kind === 'faults' || result.message.body.kind !== 'untouched') return result
  return { ...result, message: { ...result.message, body: kept } }
}

/** The buffer of a body moves to the second task. A query has no body in a file but the one that was received. */
function copyOf(body: TransferredBody): TransferredBody {
  return body.kind === 'bytes' ? { kind: 'bytes', bytes: body.bytes.slice() } : body
}
