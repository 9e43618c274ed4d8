/** Whether a failure is the endpoint's, and what it leads to: TIMEOUT or suspension. */
import type { EndpointSettings } from '../config/endpoint-settings.ts'
import { transportCode } from '../errors/transport-code.ts'
import type { Failure } from '../exchange/contract.ts'
import { CREDENTIALS_REFUSED, POOL_FULL, RESPONSE_FAILED, SEND_ABORTED } from '../protocol/fate.ts'

/** Where an endpoint names no codes: a response that is late, a connection that was closed. */
const TIMEOUT_BASES = [101504, 101505]
/** Of connections that were open already: the backend may just have closed what was idle. */
const LOSSES = [101500, 101501, 101505]
const RESPONSE_HEAD = 4

/** `reused`: the exchange was sent on a connection that had served before. */
export function blameOf(
  { base, state }: Failure,
  { timeoutCodes, suspendCodes }: Pick<EndpointSettings, 'timeoutCodes' | 'suspendCodes'>,
  reused: boolean,
): 'none' | 'timeout' | 'failure' {
  // It has answered: what it did not finish is between it and that client.
  if (state >= RESPONSE_HEAD || isOurs(base, state)) return 'none'
  const names = (codes: readonly number[]): boolean =>
    codes.includes(transportCode(base, state)) || codes.includes(base)
  if (names(timeoutCodes)) return 'timeout'
  if (names(suspendCodes)) return 'failure'
  // A fresh connection will tell; only codes that were named count without one.
  if (reused && LOSSES.includes(base)) return 'none'
  if (timeoutCodes.length === 0 && TIMEOUT_BASES.includes(base)) return 'timeout'
  return suspendCodes.length === 0 ? 'failure' : 'none'
}

/** No connection, no memory, a client that left, a bug, a wrong password: none of them is the endpoint's fault. */
function isOurs(base: number, state: number): boolean {
  return (
    (base === POOL_FULL && state === 0) ||
    base === SEND_ABORTED ||
    base === RESPONSE_FAILED ||
    base === CREDENTIALS_REFUSED
  )
}
