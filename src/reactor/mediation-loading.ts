/** Loads the modules of mediation that a plan needs: for most reactors none, which saves each of them 100 modules. */
import { areLoaded } from '../mediation/mediators/loaded.ts'
import type { ApiPlan, LivePlan } from '../plan/reactor-plan.ts'
import type { BodyChecks } from '../mediation/policies/well-formed-body.ts'
import type { ReactorMediation } from './reactor-mediation.ts'

/** True if an API has flows, or a worker answers it. */
export function isMediated({ mediation, mounted }: Pick<ApiPlan, 'mediation' | 'mounted'>): boolean {
  return mediation !== null || mounted !== null
}

/** Null: no message of these APIs is mediated. Before a reactor is made, and before each of its deployments. */
export async function loadMediation(
  { faults, bodyChecks = null }: Pick<LivePlan, 'faults'> & { readonly bodyChecks?: BodyChecks | null },
  apis: readonly ApiPlan[],
): Promise<typeof ReactorMediation | null> {
  const sequences = [...faults.sequences, ...apis.flatMap(({ mediation }) => mediation?.sequences ?? [])]
  if (!sequences.every(({ steps }) => areLoaded(steps))) await import('../mediation/mediators/list.ts')
  if (bodyChecks === null && !apis.some(isMediated)) return null
  return (await import('./reactor-mediation.ts')).ReactorMediation
}
