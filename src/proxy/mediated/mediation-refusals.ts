/** Refusals of mediation and of mounted APIs, one code for each reason, and their line in the log. */
import { FAULT, type FaultCode } from '../../faults/error-codes.ts'
import type { RaisedFault } from '../../mediation/worker-task.ts'
import type { Report } from '../exchange/connection-context.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { type Refusal, refusal } from '../exchange/outcome.ts'
import { NO_MEMORY } from './fed-message.ts'
import type { WorkerFailureReason } from '../../mediation/worker-service.ts'
import type { MountedFailure } from '../../plan/mounted-messages.ts'

export const REQUEST_TOO_LONG = refusal(102530)
export const RESPONSE_TOO_LONG = refusal(102531)
/** The head of a response is none that a flow can read. */
export const BACKEND_VIOLATES = refusal(101506)
/** A flow has made a message that is none. */
export const UNSENDABLE = refusal(102532)
/** The file of a long body cannot be written or read. */
export const NOT_KEPT = refusal(102533)

/** The gateway has no memory for a message. */
const OUT_OF_MEMORY = refusal(101601)

/** `broken`: the rule that a fed head breaks, or NO_MEMORY. */
export function refusalOfHead(broken: string): Refusal {
  return broken === NO_MEMORY ? OUT_OF_MEMORY : UNSENDABLE
}

const OF_WORKERS: Readonly<Record<WorkerFailureReason, Refusal>> = {
  'queue-full': refusal(102540),
  memory: refusal(102541),
  late: refusal(102542),
  // For the record alone: nobody waits for this answer.
  left: refusal(102542),
  loop: refusal(102512),
  // As short as a full queue: the thread that holds the lock is replaced.
  busy: refusal(102540),
  died: refusal(102543),
  failed: refusal(102544),
}

export function refusalOfWorker(reason: WorkerFailureReason): Refusal {
  return OF_WORKERS[reason]
}

/** Why a request to a mounted API has no response. `late`: its implementation has not answered in time. */
export type MountedLoss = MountedFailure | WorkerFailureReason

const OF_MOUNTED: Readonly<Record<MountedLoss, Refusal>> = {
  ...OF_WORKERS,
  threw: refusal(102570),
  invalid: refusal(102571),
  late: refusal(102572),
  'too-long': refusal(102573),
  unopened: refusal(102574),
}

export function refusalOfMounted(loss: MountedLoss): Refusal {
  return OF_MOUNTED[loss]
}

/** Tells whether the client has waited for as long as `mediation.synapse.global_timeout_interval` allows. */
export function isLateFault({ code }: Pick<Refusal, 'code'>): boolean {
  return code === OF_WORKERS.late.code || code === OF_MOUNTED.late.code
}

/** `reason`: null where the client still gets another answer. `cause`: without any text of a client. */
export function reportRefusal(
  report: Report,
  exchange: Exchange,
  event: string,
  cause: string,
  reason: Refusal | null,
): void {
  const isOfClient = reason !== null && FAULT[reason.code].status < 500
  reportCause(report, exchange, event, cause, isOfClient, reason === null ? {} : { ERROR_CODE: reason.code })
}

/** Reports a fault that a mediator of a flow has raised: its cause names file and line of the mediator. */
export function reportRaised(
  report: Report,
  exchange: Exchange,
  { code, type, status, cause, transport }: RaisedFault,
): void {
  const known = Object.hasOwn(FAULT, code) ? FAULT[code as FaultCode].status : 500
  const isOfClient = transport === undefined && (status ?? known) < 500
  reportCause(report, exchange, 'sequence failed', cause, isOfClient, { ERROR_CODE: type ?? code })
}

function reportCause(
  report: Report,
  exchange: Exchange,
  event: string,
  cause: string,
  isOfClient: boolean,
  code: { readonly ERROR_CODE?: number | string },
): void {
  exchange.errorCause = cause
  report(isOfClient ? 'debug' : 'warn', event, {
    CAUSE_OF_ERROR: cause,
    ...code,
    API: exchange.apiName,
    HTTP_URL: exchange.requestTarget,
    HTTP_METHOD: exchange.method,
    CORRELATION_ID: exchange.correlationId,
    CONNECTION: `http-incoming-${exchange.sourceId}`,
  })
}
