/**
 * Plans of mediation flows: which sequences run on a request, on a response and on a fault of an API, and where. The
 * primary computes them; reactors and workers compile them.
 */
import type { ResourceDefinition } from '../apis/api-definition.ts'
import type { SequenceEndpoint } from './endpoint-plan.ts'
import type { CallerProperty } from './caller-properties.ts'
import type { KeptPart } from './policies/kept-request.ts'
import type { MediatorPlan, SequencePlan } from './sequence-plan.ts'

/**
 * The needs of a flow, in rising order. `nothing`: it has no step. `constant`: it sets and removes constant fields
 * alone, so that it is one edit of the head, made at deployment. `heads`: it reads and changes heads, and never waits:
 * it runs on the reactor. `worker`: it reads or makes a body, or waits: it runs on a worker.
 */
export type FlowNeeds = 'nothing' | 'constant' | 'heads' | 'worker'

export interface FlowPlan {
  /** Names of the sequences that run in order; those of the API come before those of the home. */
  readonly sequences: readonly string[]
  readonly needs: FlowNeeds
  /** The `<aggregate>` of a response flow gathers the responses to copies that the request flow sends. */
  readonly gathers?: true
  /** Properties that the sequences may read and that a worker gets for them alone; left out: none. */
  readonly reads?: readonly CallerProperty[]
}

export interface FlowsPlan {
  readonly request: FlowPlan
  readonly response: FlowPlan
  /** Words the faults of the API, in place of the fault sequence of each code; no sequences: none of its own. */
  readonly fault: FlowPlan
}

/** The mediation of one API. */
export interface ApiMediationPlan {
  /** Sequences of the API itself: those of its project, and those that its policies became. */
  readonly sequences: readonly SequencePlan[]
  readonly flows: FlowsPlan
  /** Flows of operations with policies of their own, by `VERB template`; the others have `flows`. */
  readonly byOperation: Readonly<Record<string, FlowsPlan>>
  /** Left out: the resource of the request alone decides. */
  readonly admission?: AdmissionPlan
}

/**
 * A check before anything else of the request flow runs: its sequence says which operations a request asks for, and all
 * of them must admit the caller. GraphQL APIs have one.
 */
export interface AdmissionPlan {
  readonly sequence: string
  /** `verb`: QUERY, MUTATION or SUBSCRIPTION. `template`: name of the field. */
  readonly operations: readonly ResourceDefinition[]
}

export const NO_FLOW: FlowPlan = { sequences: [], needs: 'nothing' }

const RISING: readonly FlowNeeds[] = ['nothing', 'constant', 'heads', 'worker']

/** The highest of several needs; `nothing` for none. */
export function mostOf(...needs: readonly FlowNeeds[]): FlowNeeds {
  return RISING[Math.max(0, ...needs.map(each => RISING.indexOf(each)))]!
}

/** Mediators that make copies. Those that an `<aggregate>` of the same flow gathers have it in their settings. */
export const COPIERS = ['clone', 'iterate']
/** Mediators that copy the message where their endpoint is a list of recipients. */
const SENDERS = ['call', 'send']

/** Returns how often a mediator makes copies. `perhaps`: files decide whether its endpoint is a list of recipients. */
export function copiesOf({ mediator, settings }: MediatorPlan): 'always' | 'perhaps' | 'never' {
  if (COPIERS.includes(mediator)) return 'always'
  if (!SENDERS.includes(mediator)) return 'never'
  const { endpoint } = settings as { readonly endpoint: SequenceEndpoint | null }
  if (endpoint === null) return 'never'
  if (endpoint.form === null || endpoint.form.address.kind === 'instance') return 'perhaps'
  return endpoint.form.address.kind === 'recipients' ? 'always' : 'never'
}

type Lookup = (name: string) => SequencePlan | undefined

/** Tells whether sequences, or those they run, hold an `<aggregate>` that gathers no copies of its own flow. */
export function gathersCopies(sequences: readonly string[], lookup: Lookup): boolean {
  return hasStep(sequences, lookup, step => (copiesOf(step) === 'always' ? 'skipped' : step.mediator === 'aggregate'))
}

/** Tells whether sequences, or those that they run, make copies. */
export function makesCopies(sequences: readonly string[], lookup: Lookup): boolean {
  return hasStep(sequences, lookup, step => copiesOf(step) !== 'never')
}

/** Tells whether sequences, or those that they run, set a property of the scope default. */
export function setsProperty(sequences: readonly string[], lookup: Lookup, property: string): boolean {
  return hasStep(sequences, lookup, ({ mediator, settings }) => {
    if (mediator !== 'property') return false
    const { name, scope } = settings as { readonly name: unknown; readonly scope: unknown }
    return name === property && scope === 'default'
  })
}

const KEPT_PARTS: readonly KeptPart[] = ['request_headers', 'request_body']

/** Parts of the request that interceptor services of a response flow are asked with. */
export function keptParts(sequences: readonly string[], lookup: Lookup): readonly KeptPart[] {
  return KEPT_PARTS.filter(part =>
    hasStep(sequences, lookup, ({ mediator, settings }) => {
      return mediator === 'interceptor' && (settings as { includes: readonly string[] }).includes.includes(part)
    }),
  )
}

/** Mediators that only a worker runs. */
const WORKER_ALONE = [
  'cache',
  'call',
  'callout',
  'class',
  'clone',
  'interceptor',
  'iterate',
  'opa',
  'scatter-gather',
  'script',
]

/** Tells whether sequences, or those that they run, hold a mediator that fails on a reactor. */
export function needsWorkerAlone(sequences: readonly string[], lookup: Lookup): boolean {
  return hasStep(sequences, lookup, ({ mediator, settings }) => {
    if (mediator !== 'payloadFactory') return WORKER_ALONE.includes(mediator)
    const { template } = settings as { readonly template: object }
    return 'key' in template || 'freemarker' in template
  })
}

/** `skipped`: what is within that mediator does not count. */
type Wanted = (step: MediatorPlan) => boolean | 'skipped'

function hasStep(sequences: readonly string[], lookup: Lookup, isWanted: Wanted): boolean {
  const names = new Set(sequences)
  for (const name of names) {
    const plan = lookup(name)
    if (plan === undefined) continue
    if (holdsStep(plan.steps, isWanted)) return true
    for (const called of plan.calls) names.add(called)
  }
  return false
}

function holdsStep(settings: unknown, isWanted: Wanted): boolean {
  if (typeof settings !== 'object' || settings === null) return false
  const step = settings as Partial<MediatorPlan>
  const found = typeof step.mediator === 'string' && isWanted(step as MediatorPlan)
  return found === false ? Object.values(settings).some(each => holdsStep(each, isWanted)) : found === true
}
