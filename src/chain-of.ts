/** Which handlers stand between route and target of an API, in which order; built when it is deployed. */
import type { Handler } from './exchange/contract.ts'
import type { ApiPlan } from './plan.ts'

export function chainOf(_api: ApiPlan): readonly Handler[] {
  return []
}
