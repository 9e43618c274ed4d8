/** Mediation of an API and of one exchange, as the pipeline and both sides of the proxy see it. */
import type { MessageState } from '../../mediation/worker-task.ts'
import type { Failure, Target } from './contract.ts'
import type { Exchange } from './exchange.ts'
import type { MessageCheck } from './message-inspection.ts'
import type { Refusal } from './outcome.ts'

/** A fault that is not worded yet. */
export interface PendingFault {
  readonly refusal: Refusal
  /** Failure of the transport behind the refusal; null for other refusals. */
  readonly failure: Failure | null
  /** Fault sequence in place of that of the code; null for that. */
  readonly sequence: string | null
}

/** The flows of an API. */
export interface ApiMediation {
  /** Takes an exchange in place of its target: the request flow decides what becomes of it. As `Target.send`. */
  send(exchange: Exchange, target: Target): void
  /**
   * Words a fault by the fault flow of the API, now or once a worker has run it. Returns false where the API has none
   * for the operation: then the fault sequence of the code words it.
   */
  refuse(exchange: Exchange, fault: PendingFault): boolean
}

/** Takes the onError of the `<send>` whose endpoint has failed; '' for none, and for other faults. */
export function takeOnError({ mediation }: Exchange, { failure }: PendingFault): string {
  if (failure === null || mediation?.onError === undefined) return ''
  const { onError } = mediation
  mediation.onError = ''
  return onError
}

/** Mediation of one exchange, made when the first flow of the exchange runs. */
export interface ExchangeMediation {
  /** Properties and variables that one flow leaves for the next. */
  state: MessageState
  /** Sequence that runs where the endpoint of a `<send>` fails, until its response begins; '' or left out: none. */
  onError?: string
  /** Checks the messages of the tunnel; null or left out: nothing does. */
  readonly messages?: MessageCheck | null
  /** The exchange is over, whatever its outcome: releases what the mediation holds. */
  ended(): void
}
