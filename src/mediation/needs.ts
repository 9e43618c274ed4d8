/** Computes what flows need (`FlowNeeds`) from the plans of their sequences, in the primary. */
import type { Expression } from './expression.ts'
import { type FlowNeeds, mostOf } from './flow-plan.ts'
import { MEDIATORS } from './mediators/list.ts'
import type { Branch, MediatorPlan, SequencePlan } from './sequence-plan.ts'

/** A sequence by its name; undefined: there is none. */
export type SequenceLookup = (name: string) => SequencePlan | undefined

/** Computes the needs of the parts of a mediator. */
export interface NeedsContext {
  /** `worker` for an expression that reads the body, else `heads`. */
  expression(expression: Expression): FlowNeeds
  steps(steps: readonly MediatorPlan[]): FlowNeeds
  sequence(name: string): FlowNeeds
  branch(branch: Branch): FlowNeeds
}

/** Needs of sequences that run in order; those that they call and their `onError` count. */
export function needsOf(sequences: readonly string[], lookup: SequenceLookup): FlowNeeds {
  const visited = new Set<string>()
  const sequence = (name: string): FlowNeeds => {
    const plan = visited.has(name) ? undefined : lookup(name)
    visited.add(name)
    if (plan === undefined) return 'nothing'
    const needs = steps(plan.steps)
    const needsHandler = plan.onError !== '' && (needs === 'worker' || mayFail(plan, lookup))
    return needsHandler ? mostOf(needs, sequence(plan.onError)) : needs
  }
  const steps = (plans: readonly MediatorPlan[]): FlowNeeds => mostOf(...plans.map(step))
  const step = ({ mediator: name, settings }: MediatorPlan): FlowNeeds =>
    MEDIATORS.find(mediator => mediator.name === name)!.needs(settings, {
      expression: expressionNeeds,
      steps,
      sequence,
      branch: ({ key, steps: plans }) => (key === '' ? steps(plans) : sequence(key)),
    })
  return mostOf(...sequences.map(sequence))
}

/** Over heads alone few mediators fail; they may stand in what the sequence runs. */
function mayFail(plan: SequencePlan, lookup: SequenceLookup): boolean {
  const plans = new Set([plan])
  for (const { calls } of plans) {
    for (const name of calls) {
      const called = lookup(name)
      if (called !== undefined) plans.add(called)
    }
  }
  return [...plans].some(({ steps }) => holdsFailing(steps))
}

/** `send`: the backend fails. `call-template`: a value is missing. */
const FAILING = ['throwError', 'call-template', 'send']

function holdsFailing(settings: unknown): boolean {
  if (typeof settings !== 'object' || settings === null) return false
  if ('mediator' in settings && FAILING.includes(String(settings.mediator))) return true
  return Object.values(settings).some(holdsFailing)
}

function expressionNeeds(expression: Expression): FlowNeeds {
  return readsBody(expression) ? 'worker' : 'heads'
}

function readsBody(expression: Expression): boolean {
  switch (expression.kind) {
    case 'json-path':
    case 'xpath':
    // Its name may be that of any field, or FAULT.
    case 'lookup':
      return true
    case 'call':
    case 'apply':
      return expression.of.some(readsBody)
    case 'filter':
      return [expression.of, ...expression.outer].some(readsBody)
    case 'choice':
      return [expression.condition, expression.yes, expression.otherwise].some(readsBody)
    case 'negative':
    case 'path':
      return readsBody(expression.of)
    case 'operation':
      return readsBody(expression.left) || readsBody(expression.right)
    default:
      return false
  }
}
