/** Finds log events and counters of failures, and waits for the end of all connections. */
import assert from 'node:assert/strict'
import type { TestGateway } from './gateway.ts'
import { eventually } from './peers.ts'

/** The only `backend failed` event in the log from index `from` on. */
export function failureLine(gateway: TestGateway, from: number): TestGateway['reports'][number] {
  const lines = gateway.reports.slice(from).filter(({ event }) => event === 'backend failed')
  assert.equal(lines.length, 1, JSON.stringify(gateway.reports.slice(from)))
  return lines[0]!
}

/** How many failures of one side were counted under this base code and state. */
export function countedFailures(
  gateway: TestGateway,
  base: number,
  state: number,
  side: 'source' | 'target' = 'target',
): number {
  const row = gateway.metrics().faults.find(it => it.side === side && it.base === base && it.state === state)
  return row?.count ?? 0
}

/** Waits until no client connection and no backend connection is open. */
export async function untilAllClosed(gateway: TestGateway): Promise<void> {
  await eventually('the end of all connections', () => {
    const { connectionsOpen, targetsOpen } = gateway.metrics().counts
    return connectionsOpen === 0 && targetsOpen === 0
  })
}
