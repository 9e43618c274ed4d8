/**
 * Properties of caller and API that few sequences read, by the names of the reference platform (D826). A reactor finds
 * one when a sequence reads it; a worker gets those that its flow may read.
 */
import type { SequenceLookup } from './needs.ts'

/** Scope of each property. */
const CALLER_PROPERTIES = {
  'api.ut.userId': 'default',
  'api.ut.userName': 'default',
  'api.ut.consumerKey': 'default',
  'api.ut.application.name': 'default',
  'api.ut.application.id': 'default',
  'api.ut.api': 'default',
  'api.ut.version': 'default',
  'api.ut.api_version': 'default',
  'api.ut.context': 'default',
  'api.ut.resource': 'default',
  'api.ut.HTTP_METHOD': 'default',
  'api.ut.hostName': 'default',
  'api.ut.apiPublisher': 'default',
  AM_KEY_TYPE: 'default',
  TransportInURL: 'axis2',
} as const

export type CallerProperty = keyof typeof CALLER_PROPERTIES

const NAMES = Object.keys(CALLER_PROPERTIES) as readonly CallerProperty[]

export function isCallerProperty(scope: string, name: string): name is CallerProperty {
  return Object.hasOwn(CALLER_PROPERTIES, name) && CALLER_PROPERTIES[name as CallerProperty] === scope
}

/** The properties that sequences, and those that they run, may read. */
export function callerPropertiesOf(sequences: readonly string[], lookup: SequenceLookup): readonly CallerProperty[] {
  const names = new Set(sequences)
  const read = new Set<CallerProperty>()
  for (const name of names) {
    const plan = lookup(name)
    if (plan === undefined) continue
    if (readsUnseen(plan.steps)) return NAMES
    const text = JSON.stringify(plan.steps)
    for (const property of NAMES) if (text.includes(property)) read.add(property)
    for (const called of plan.calls) names.add(called)
  }
  return [...read]
}

/** Tells whether a plan may read more than it shows: by code, computed names, or sequences that a message chooses. */
function readsUnseen(settings: unknown): boolean {
  if (typeof settings === 'string') return settings.includes('get-property(')
  if (typeof settings !== 'object' || settings === null) return false
  const { mediator, kind, settings: own } = settings as { mediator?: unknown; kind?: unknown; settings?: unknown }
  if (mediator === 'class' || mediator === 'script' || kind === 'lookup') return true
  const key = mediator === 'sequence' ? (own as { readonly key: unknown }).key : ''
  return typeof key !== 'string' || Object.values(settings).some(readsUnseen)
}
