/** Gives the mediators of a plan the endpoints of files that they name. */
import type { EndpointFiles } from './endpoint-files.ts'
import { withMembers } from './endpoint-groups.ts'
import type { EndpointForm, SequenceEndpoint } from './endpoint-plan.ts'
import type { SequencePlan } from './sequence-plan.ts'

/** The plan, whose mediators know what endpoints of files make of their requests: format and properties. */
export function withEndpointForms(plan: SequencePlan, files: EndpointFiles): SequencePlan {
  const known = new Map<string, EndpointForm>()
  for (const { name, form } of plan.endpoints ?? []) {
    const found = form === null ? files.get(name)?.form : withMembers(form, key => files.get(key)?.form)
    if (found !== undefined && found !== form && !('hint' in found) && changesRequests(found)) known.set(name, found)
  }
  if (known.size === 0) return plan
  const text = JSON.stringify(plan.steps, (_, value: unknown) => {
    const form = isEndpoint(value) ? known.get(value.name) : undefined
    return form === undefined ? value : { name: (value as SequenceEndpoint).name, form }
  })
  return { ...plan, steps: JSON.parse(text) as SequencePlan['steps'] }
}

/** Method and address are for the reactor alone, which knows them by the name. */
function changesRequests({ format, properties }: EndpointForm): boolean {
  return format !== 'kept' || properties !== undefined
}

/** An endpoint of a file, or a group that names files. */
function isEndpoint(value: unknown): value is SequenceEndpoint {
  if (typeof value !== 'object' || value === null || !('name' in value) || !('form' in value)) return false
  const { form } = value as SequenceEndpoint
  return form === null || form.address?.kind === 'group'
}
