/** What can be said of the keys of the registry before anything is opened: for `check`, a start and a reload. */
import type { Configuration } from '../config/catalogue.ts'
import { ConfigurationFaults, type Fault } from '../config/fault.ts'
import { AccountRules } from './account-rules.ts'
import { databasePlan } from './database-plan.ts'

export function judgeRegistry(configuration: Configuration): {
  readonly faults: readonly Fault[]
  readonly warnings: readonly Fault[]
} {
  const faults: Fault[] = []
  const warnings: Fault[] = []
  const judge = (what: () => readonly Fault[]) => {
    try {
      warnings.push(...what())
    } catch (error) {
      if (!(error instanceof ConfigurationFaults)) throw error
      faults.push(...error.faults)
    }
  }
  judge(() => databasePlan(configuration, '').warnings)
  judge(() => {
    new AccountRules(configuration['user_store.properties'])
    return []
  })
  return { faults, warnings }
}
