/** What an API is known by while others come and go: the first of its paths, under the hosts that it has to itself. */
import type { ApiPlan } from './plan.ts'

export function identityOf({ hosts, paths }: Pick<ApiPlan, 'hosts' | 'paths'>): string {
  return `${hosts.join()}${paths[0]!}`
}
