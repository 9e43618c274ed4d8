/** Ids by which an `<aggregate>` names the copies of a `<clone>` or `<iterate>`, also those of another flow. */
import { type Diagnostic, formatValue } from '../config/diagnostics.ts'
import { nearest } from '../config/nearest.ts'
import { COPIERS } from './flow-plan.ts'
import type { MediatorPlan, SequencePlan } from './sequence-plan.ts'

interface Use {
  readonly id: string
  /** File and line. */
  readonly where: string
}

/** Warnings about each `<aggregate>` whose id no mediator that makes copies has. */
export function idleAggregates(plans: readonly SequencePlan[]): readonly Diagnostic[] {
  const [uses, ids] = [new Map<string, Use>(), new Set<string>()]
  for (const { label, steps } of plans) {
    forEachStep(steps, ({ mediator, line, settings }) => {
      const { id = '' } = settings as { readonly id?: string }
      if (id === '') return
      if (COPIERS.includes(mediator)) ids.add(id)
      else if (mediator === 'aggregate') uses.set(`${label}:${line} ${id}`, { id, where: `${label}:${line}` })
    })
  }
  return [...uses.values()].filter(({ id }) => !ids.has(id)).map(({ id, where }) => warningOf(id, where, [...ids]))
}

function warningOf(id: string, where: string, ids: readonly string[]): Diagnostic {
  const near = nearest(id, ids)
  const expected = 'is no id of a <clone> or <iterate>, so that only copies without an id are gathered'
  const hint = near === '' ? 'give the <clone> or <iterate> this id, or remove it here' : `did you mean ${near}?`
  return { where, key: 'aggregate/id', given: formatValue(id), expected, hint }
}

function forEachStep(settings: unknown, act: (step: MediatorPlan) => void): void {
  if (typeof settings !== 'object' || settings === null) return
  const step = settings as Partial<MediatorPlan>
  if (typeof step.mediator === 'string' && typeof step.line === 'number') act(step as MediatorPlan)
  for (const each of Object.values(settings)) forEachStep(each, act)
}
