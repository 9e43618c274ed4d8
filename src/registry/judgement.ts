/** What can be said of the keys of the registry before anything is opened: for `check`, a start and a reload. */
import type { Configuration } from '../config/catalogue.ts'
import { ConfigurationFaults, type Fault } from '../config/fault.ts'
import { AccountRules } from './account-rules.ts'
import { databasePlan } from './database-plan.ts'

/** A key that one node makes is unknown to the others, which then refuse its tokens. */
const KEYS_APART: Fault = {
  where: '',
  key: 'oauth.signing_key.lifetime',
  given: '',
  expected:
    'each node replaces its signing key by itself, and nodes that share the database refuse tokens of the new one',
  remedy: 'leave it at -1 where several nodes share a database, and copy data/signing-keys.json to all of them',
}

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
  judge(() => {
    const { apim, warnings: found } = databasePlan(configuration, '')
    const areReplaced = configuration.oauth['signing_key.lifetime'] > 0
    return apim.server !== null && areReplaced ? [...found, KEYS_APART] : found
  })
  judge(() => {
    new AccountRules(configuration['user_store.properties'])
    return []
  })
  return { faults, warnings }
}
