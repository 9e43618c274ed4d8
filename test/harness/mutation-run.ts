/** Runs seeded mutations against a gateway, and checks that it logs no error. */
import assert from 'node:assert/strict'
import type { TestGateway } from './gateway.ts'
import { Random, SEED } from './random.ts'

/** Mutations between two checks of the log. */
const CHECKED_EVERY = 1000

/** Runs `attack` once per seed, `atOnce` at a time. A failure names the seed that begins with it. */
export async function runMutations(
  gateway: TestGateway,
  mutations: number,
  atOnce: number,
  attack: (random: Random, seed: number) => Promise<void>,
): Promise<void> {
  let started = 0
  const worker = async () => {
    while (started < mutations) {
      const seed = SEED + started++
      if (started % CHECKED_EVERY === 0) checkReports(gateway)
      try {
        await attack(new Random(seed), seed)
      } catch (error) {
        throw new Error(`SLUICE_SEED=${seed} begins with this: ${error}`)
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  checkReports(gateway)
}

/** Checks that no error was logged, and drops the checked events. */
function checkReports(gateway: TestGateway): void {
  const reports = gateway.reports as unknown as { level: string }[]
  assert.deepEqual(
    reports.splice(0).filter(({ level }) => level === 'error'),
    [],
  )
}
