/**
 * Faults of the healthcare API as OperationOutcomes (R4, operationoutcome.html) in the media type that the client asks
 * for. The table of situations gives the issue of each code; the status is that of the code.
 */
import { type FaultDetails, reasonPhrase } from '../faults/fault-details.ts'
import { capturedValue } from '../http1/captured-fields.ts'
import type { FormattedResponse } from '../mediation/formatter.ts'
import { HEALTH_JSON, responseType } from '../mounted/healthcare/media-types.ts'
import { operationOutcome } from '../mounted/healthcare/outcome.ts'
import { gatewayIssue } from '../mounted/healthcare/situations.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'

export function outcomeFault(
  { canonicalTarget, captured }: Pick<Exchange, 'canonicalTarget' | 'captured'>,
  { code, status, description }: Pick<FaultDetails, 'code' | 'status' | 'description'>,
): FormattedResponse {
  const mediaType = responseType(capturedValue(captured, 'accept'), formatIn(canonicalTarget)) ?? HEALTH_JSON
  return {
    status,
    reason: reasonPhrase(status),
    lines: `Content-Type: ${mediaType}; charset=utf-8\r\n`,
    body: JSON.stringify(operationOutcome([gatewayIssue(code, status, description)])),
  }
}

/** Value of `_format`; undefined without one. */
function formatIn(target: string): string | undefined {
  const query = target.indexOf('?')
  if (query < 0 || !target.includes('_format', query)) return undefined
  return new URLSearchParams(target.slice(query + 1)).get('_format') ?? undefined
}
