/** The lifecycle of each API in the plans: the state of its lifecycle record, or else the declared state. */
import type { ApiDefinition } from '../apis/api-definition.ts'
import {
  type DeclaredState,
  type LifecycleRecord,
  type LifecycleRecords,
  type Reconciliation,
  reconcile,
} from '../apis/lifecycle-records.ts'
import type { Configuration } from '../config/catalogue.ts'
import type { Diagnostic } from '../config/diagnostics.ts'
import type { Log } from '../observe/log.ts'
import type { PlannedApis } from './api-planning.ts'
import { apiIdentity, type ApiPlan } from './reactor-plan.ts'

/** Time from deprecation to sunset; 0 for no sunset. */
export function sunsetAfterMs(configuration: Configuration): number {
  return configuration['apim.lifecycle'].sunset_after * 1000
}

export function declaredState({ lifecycle: declared }: ApiDefinition, plan: ApiPlan): DeclaredState {
  return { address: apiIdentity(plan), name: plan.name, version: plan.version, declared }
}

/** Matches the records with the planned APIs at this moment. */
export function reconcileLifecycles(
  records: LifecycleRecords,
  { byDefinition }: PlannedApis,
  configuration: Configuration,
): Reconciliation {
  const apis = [...byDefinition].map(([definition, { plan }]) => declaredState(definition, plan))
  return reconcile(records, apis, { nowMs: Date.now(), sunsetAfterMs: sunsetAfterMs(configuration) })
}

/**
 * The plans with the lifecycles of the records; the same object if nothing changes. `changeable`: the only APIs whose
 * lifecycle may change.
 */
export function withLifecycles(
  planned: PlannedApis,
  records: LifecycleRecords,
  changeable: Iterable<ApiDefinition> = planned.byDefinition.keys(),
): PlannedApis {
  const byDefinition = new Map(planned.byDefinition)
  let isSame = true
  for (const definition of changeable) {
    const api = planned.byDefinition.get(definition)!
    const lifecycle = lifecycleOf(definition, records.get(apiIdentity(api.plan)))
    if (isEqual(api.plan.lifecycle, lifecycle)) continue
    isSame = false
    byDefinition.set(definition, { ...api, plan: { ...api.plan, lifecycle } })
  }
  return isSame ? planned : { ...planned, byDefinition, apis: Array.from(byDefinition.values(), ({ plan }) => plan) }
}

function lifecycleOf({ lifecycle }: ApiDefinition, record: LifecycleRecord | undefined): ApiPlan['lifecycle'] {
  const state = record?.state ?? lifecycle
  if (record === undefined || state !== 'DEPRECATED') return { state, deprecatedAtMs: 0, sunsetMs: 0 }
  return { state, deprecatedAtMs: record.sinceMs, sunsetMs: record.sunsetMs }
}

function isEqual(one: ApiPlan['lifecycle'], other: ApiPlan['lifecycle']): boolean {
  return one.state === other.state && one.deprecatedAtMs === other.deprecatedAtMs && one.sunsetMs === other.sunsetMs
}

/** Logs the changes of state that no operator has asked for. */
export function logReconciliation(log: Log, { superseded, expired }: Reconciliation): void {
  for (const record of superseded) {
    const fields = { ...fieldsOf(record), DECLARED_THEN: record.declared }
    log.info(fields, 'lifecycle record dropped: the project now declares another state')
  }
  for (const record of expired) log.warn(fieldsOf(record), 'lifecycle record dropped: the API has been absent too long')
}

/** `cause`: why the file of lifecycle records was not written; '' if it was. */
export function unsavedDiagnostics(cause: string): readonly Diagnostic[] {
  if (cause === '') return []
  const hint = 'make room: the next change writes the file; until then a restart may bring back earlier states'
  return [{ where: '', key: '', given: '', expected: cause, hint }]
}

function fieldsOf({ name, version, address, state }: LifecycleRecord): Readonly<Record<string, string>> {
  return { API: `${name}:${version}`, ADDRESS: address, STATE: state }
}
