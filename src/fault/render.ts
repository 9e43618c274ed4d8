/** The default body of the specification ("Error body shape"), for a fault that no sequence words. */
import type { FaultFacts } from './facts.ts'

export const JSON_LINE = 'Content-Type: application/json; charset=UTF-8\r\n'

export function faultBody({ code, message, description }: FaultFacts): string {
  return JSON.stringify({ fault: { code, type: 'Status report', message, description } })
}
