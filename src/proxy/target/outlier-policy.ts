/** Outlier policy: the effect of a failure on the state of its endpoint (D43). */
import type { EndpointSettings } from '../../apis/api-definition.ts'
import {
  CONNECT_FAILED,
  CONNECT_TIMED_OUT,
  CREDENTIALS_REFUSED,
  NO_MEMORY,
  POOL_FULL,
  RESPONSE_FAILED,
  SEND_ABORTED,
  transportCode,
} from '../../protocol/failure-table.ts'
import { hasResponse, STATE } from '../../protocol/states.ts'
import type { Failure } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'

/** Time-outs where an endpoint lists no codes: a late response, a connection that was closed. */
const TIMEOUT_BASES = [101504, 101505]
/** Losses of a reused connection: the backend may just have closed an idle connection. */
const LOSSES = [101500, 101501, 101505]
const UNREADABLE_RESPONSE = 101506

/**
 * `timeout`, `suspension`: the failure counts by itself. `in-a-row`: the failure belongs to its exchange, which a
 * client may have caused, and counts only with others in a row.
 */
type Effect = 'ignored' | 'timeout' | 'suspension' | 'in-a-row'

export function classifyFailure(
  failure: Pick<Failure, 'base' | 'state' | 'kind'>,
  settings: Pick<EndpointSettings, 'eachFailureCounts' | 'retriesBeforeSuspension' | 'timeoutCodes' | 'suspendCodes'>,
  exchange: Pick<Exchange, 'reusesConnection' | 'upgrade' | 'sentMs'>,
): Effect {
  const { base, state } = failure
  const { timeoutCodes, suspendCodes, eachFailureCounts } = settings
  // An endpoint that has begun to respond is available.
  if (hasResponse(state) || isOwnFailure(base)) return 'ignored'
  const lists = (codes: readonly number[]): boolean =>
    codes.includes(transportCode(base, state)) || codes.includes(base)
  if (lists(timeoutCodes)) return 'timeout'
  if (lists(suspendCodes)) return 'suspension'
  // Listed codes count all the same; otherwise the next fresh connection shows whether the endpoint is available.
  if (exchange.reusesConnection && LOSSES.includes(base)) return 'ignored'
  const cause = causeOf(failure, exchange)
  if (timeoutCodes.length === 0 && TIMEOUT_BASES.includes(base)) {
    const eachCounts = eachFailureCounts || settings.retriesBeforeSuspension > 0
    return cause === 'loss' && eachCounts ? 'timeout' : 'in-a-row'
  }
  if (suspendCodes.length > 0) return 'ignored'
  if (cause === 'connect') return 'suspension'
  return cause === 'loss' && eachFailureCounts ? 'suspension' : 'in-a-row'
}

/** `exchange`: the likely cause is the request itself: its body, its response, or its wish to switch protocols. */
function causeOf(
  { base, state, kind }: Pick<Failure, 'base' | 'state' | 'kind'>,
  { upgrade, sentMs }: Pick<Exchange, 'upgrade' | 'sentMs'>,
): 'connect' | 'exchange' | 'loss' {
  // A proxy that has got the request itself and refuses it is connected.
  const isRefusedByProxy = kind === 'proxy' && sentMs > 0
  if ((base === CONNECT_FAILED || base === CONNECT_TIMED_OUT) && !isRefusedByProxy) return 'connect'
  const isOfExchange = base === UNREADABLE_RESPONSE || state === STATE.REQUEST_BODY || upgrade !== ''
  return isOfExchange || isRefusedByProxy ? 'exchange' : 'loss'
}

/** Failures of the gateway: connection limit, memory, a client that left, a bug, refused credentials of its own. */
function isOwnFailure(base: number): boolean {
  return (
    base === POOL_FULL ||
    base === NO_MEMORY ||
    base === SEND_ABORTED ||
    base === RESPONSE_FAILED ||
    base === CREDENTIALS_REFUSED
  )
}
