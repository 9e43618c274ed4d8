/** Gives the mediators of a plan the endpoints of files that they name. */
import { type EndpointFiles, lookupIn } from './endpoint-files.ts'
import { withMembers } from './endpoint-groups.ts'
import type { EndpointForm, SequenceEndpoint } from './endpoint-plan.ts'
import type { SequencePlan } from './sequence-plan.ts'

/** The plan, whose mediators know what endpoints of files make of their requests: format and properties. */
export function withEndpointForms(plan: SequencePlan, files: EndpointFiles): SequencePlan {
  const { endpoints = [] } = plan
  const forms = new Map<string, EndpointForm>()
  for (const { name, form } of endpoints) {
    const found = form === null ? files.get(name)?.form : withMembers(form, lookupIn(files))
    if (found === undefined || found === form || 'hint' in found) continue
    const requests = requestsOf(found, files)
    if (requests !== null) forms.set(name, requests)
  }
  const isFound = endpoints.some(({ key }) => key !== undefined)
  if (forms.size === 0 && !isFound) return plan
  const known = isFound
    ? Object.fromEntries(Array.from(files, ([name, { form }]) => [name, requestsOf(form, files)]))
    : {}
  const text = JSON.stringify(plan.steps, (_, value: unknown) => {
    if (!isEndpoint(value)) return value
    if (value.key !== undefined) return { ...value, known }
    const form = forms.get(value.name)
    return form === undefined ? value : { name: value.name, form }
  })
  return { ...plan, steps: JSON.parse(text) as SequencePlan['steps'] }
}

/** Returns the form if it matters to mediators, else null. A list knows what files make of its requests. */
function requestsOf(form: EndpointForm, files: EndpointFiles): EndpointForm | null {
  const { address } = form
  if (address.kind !== 'recipients') return changesRequests(form) ? form : null
  const members = address.members.map(member => {
    const named = typeof member === 'string' ? files.get(member)?.form : undefined
    return typeof member === 'string' && named !== undefined ? { name: member, form: requestsOf(named, files) } : member
  })
  return { ...form, address: { ...address, members } }
}

/** Method and address are for the reactor alone, which knows them by the name. */
function changesRequests({ format, properties, oauth }: EndpointForm): boolean {
  return format !== 'kept' || properties !== undefined || oauth !== undefined
}

/** Kinds of addresses that depend on files. */
const OF_FILES = ['group', 'recipients', 'instance']

/** An endpoint of a file, or one that names files or a template. */
function isEndpoint(value: unknown): value is SequenceEndpoint {
  if (typeof value !== 'object' || value === null || !('name' in value) || !('form' in value)) return false
  const { form, known } = value as SequenceEndpoint
  return known === undefined && (form === null || OF_FILES.includes(form.address?.kind))
}
