/** What a gateway says of a failure of its backend: one line in the log, one more in a counter. */
import assert from 'node:assert/strict'
import type { TestGateway } from './gateway.ts'

/** The one line of the log that tells of a failure of the backend, from the `from`th on. */
export function failureLine(gateway: TestGateway, from: number): TestGateway['reports'][number] {
  const lines = gateway.reports.slice(from).filter(({ event }) => event === 'back end failed')
  assert.equal(lines.length, 1, JSON.stringify(gateway.reports.slice(from)))
  return lines[0]!
}

/** How often a failure of a backend was counted under this base code and state. */
export function countedFailures(gateway: TestGateway, base: number, state: number): number {
  const row = gateway.metrics().faults.find(it => it.side === 'target' && it.base === base && it.state === state)
  return row?.count ?? 0
}
