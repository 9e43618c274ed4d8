/** From the plan of a reactor to its APIs: pools, endpoints, groups, handler chains. */
import type { Handler, Target } from './exchange/contract.ts'
import type { ApiPlan, EndpointPlan } from './plan.ts'
import { ApiTable } from './route/api-table.ts'
import { Endpoint } from './target/endpoint.ts'
import { EndpointGroup } from './target/endpoint-group.ts'
import type { EndpointTable } from './target/endpoint-table.ts'
import { HostPool, type PoolContext } from './target/host-pool.ts'
import { HttpUpstream } from './target/upstream.ts'

/** Endpoints with the same route share its pool. */
export function deploy(
  plans: readonly ApiPlan[],
  chainOf: (api: ApiPlan) => readonly Handler[],
  context: PoolContext,
  states: EndpointTable,
): { apis: ApiTable; pools: readonly HostPool[] } {
  const pools = new Map<number, HostPool>()
  const endpointOf = (plan: EndpointPlan): Endpoint => {
    const { route, basePath } = plan
    const pool = pools.get(route.row) ?? new HostPool(route, context)
    pools.set(route.row, pool)
    return new Endpoint(plan, new HttpUpstream(pool, basePath, context.around), states, context.around)
  }
  const entries = plans.flatMap(plan => {
    const { name, paths } = plan
    const api = { name, path: paths[0]!, handlers: chainOf(plan), target: targetOf(plan, endpointOf, context) }
    return paths.map(path => ({ path, api }))
  })
  return { apis: new ApiTable(entries), pools: [...pools.values()] }
}

function targetOf(
  { name, endpoints: { kind, algorithm, failsOver, endpoints } }: ApiPlan,
  endpointOf: (plan: EndpointPlan) => Endpoint,
  { around }: PoolContext,
): Target {
  const [first, ...others] = endpoints.map(endpointOf)
  if (kind === 'single') return first!
  return new EndpointGroup(name, [first!, ...others], kind === 'failover' ? 'in_order' : algorithm, failsOver, around)
}
