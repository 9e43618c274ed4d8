/** Where APIs stand in their lives: as the records in the data folder say, and else as their projects declare. */
import { identityOf } from '../api-identity.ts'
import type { PlannedApis } from './api-planner.ts'
import type { ApiDefinition } from '../config/api-definition.ts'
import type { Configuration } from '../config/catalogue.ts'
import type { Fault } from '../config/fault.ts'
import type { Log } from '../observe/log.ts'
import type { ApiPlan } from '../plan.ts'
import {
  type LifecycleRecord,
  type LifecycleRecords,
  type LivingApi,
  type Settled,
  settle,
} from '../store/lifecycles.ts'

/** From deprecation to sunset; 0: none. */
export function sunsetAfterMs(configuration: Configuration): number {
  return configuration['apim.lifecycle'].sunset_after * 1000
}

export function livingApi({ lifecycle: declared }: ApiDefinition, plan: ApiPlan): LivingApi {
  return { address: identityOf(plan), name: plan.name, version: plan.version, declared }
}

/** The records for these APIs, now. */
export function settledNow(
  records: LifecycleRecords,
  { byDefinition }: PlannedApis,
  configuration: Configuration,
): Settled {
  const apis = [...byDefinition].map(([definition, { plan }]) => livingApi(definition, plan))
  return settle(records, apis, { nowMs: Date.now(), sunsetAfterMs: sunsetAfterMs(configuration) })
}

/**
 * The same plans, but for those of APIs that stand elsewhere now; the same object where there are none. `asked`: the
 * only ones that may.
 */
export function withLifecycles(
  planned: PlannedApis,
  records: LifecycleRecords,
  asked: Iterable<ApiDefinition> = planned.byDefinition.keys(),
): PlannedApis {
  const byDefinition = new Map(planned.byDefinition)
  let isSame = true
  for (const definition of asked) {
    const one = planned.byDefinition.get(definition)!
    const lifecycle = lifecycleOf(definition, records.get(identityOf(one.plan)))
    if (isSameLife(one.plan.lifecycle, lifecycle)) continue
    isSame = false
    byDefinition.set(definition, { ...one, plan: { ...one.plan, lifecycle } })
  }
  return isSame ? planned : { ...planned, byDefinition, apis: Array.from(byDefinition.values(), ({ plan }) => plan) }
}

function lifecycleOf({ lifecycle }: ApiDefinition, record: LifecycleRecord | undefined): ApiPlan['lifecycle'] {
  const state = record?.state ?? lifecycle
  if (record === undefined || state !== 'DEPRECATED') return { state, deprecatedAtMs: 0, sunsetMs: 0 }
  return { state, deprecatedAtMs: record.sinceMs, sunsetMs: record.sunsetMs }
}

function isSameLife(one: ApiPlan['lifecycle'], other: ApiPlan['lifecycle']): boolean {
  return one.state === other.state && one.deprecatedAtMs === other.deprecatedAtMs && one.sunsetMs === other.sunsetMs
}

/** What nobody has asked for. */
export function logSettled(log: Log, { overruled, forgotten }: Settled): void {
  for (const record of overruled) {
    log.info({ ...fieldsOf(record), DECLARED_THEN: record.declared }, 'a project declares another state; it is newer')
  }
  for (const record of forgotten) log.warn(fieldsOf(record), 'the state of an API that is gone is forgotten')
}

/** `cause`: why the file is behind what is in force; '' where it is not. */
export function unkept(cause: string): readonly Fault[] {
  if (cause === '') return []
  const remedy = 'make room for it: the next change writes it; after a restart states of APIs may be as they were'
  return [{ where: '', key: '', given: '', expected: cause, remedy }]
}

function fieldsOf({ name, version, address, state }: LifecycleRecord): Readonly<Record<string, string>> {
  return { API: `${name}:${version}`, ADDRESS: address, STATE: state }
}
