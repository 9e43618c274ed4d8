/** Words the log line of a change of an endpoint's state. */
import { ENDPOINT_STATE, REPORTED_STATE } from './endpoint-states.ts'
import type { EndpointChange } from './endpoint-word.ts'

interface ChangeLine {
  readonly level: 'debug' | 'info' | 'warn'
  readonly event: string
  readonly fields: Record<string, string | number>
}

const EVENTS = [
  'endpoint is active again',
  'endpoint timed out',
  'endpoint suspended',
  'endpoint is tried again',
  'endpoint suspended by its health check',
  'endpoint switched off',
] as const

/** `code`: error code of the failure behind the change; 0 without one. */
export function describeChange(
  { from, to, waitTenths }: EndpointChange,
  url: string,
  cause: string,
  code: number,
): ChangeLine {
  const fields: Record<string, string | number> = {
    ENDPOINT: url,
    FROM: REPORTED_STATE[from],
    TO: REPORTED_STATE[to],
    CAUSE_OF_ERROR: cause,
  }
  if (code !== 0) fields.ERROR_CODE = code
  if (waitTenths >= 0 && to !== ENDPOINT_STATE.ACTIVE) fields.RETRY_IN_MS = waitTenths * 100
  return { level: levelOf(to), event: EVENTS[to], fields }
}

function levelOf(to: EndpointChange['to']): ChangeLine['level'] {
  if (to === ENDPOINT_STATE.PROBING) return 'debug'
  return to === ENDPOINT_STATE.ACTIVE || to === ENDPOINT_STATE.OFF ? 'info' : 'warn'
}
