/** Makes one endpoint of the members of a group: `<failover>` or `<loadbalance>`, which may hold a group each. */
import type { EndpointDefinition, EndpointPart, EndpointsDefinition } from '../apis/api-definition.ts'
import { ENDPOINTS_MAX } from '../apis/endpoints.ts'
import type {
  EndpointForm,
  EndpointProperty,
  GroupAddress,
  RecipientsAddress,
  TemplateInstance,
  TemplatePiece,
} from './endpoint-plan.ts'

/** Why members make no group. */
export interface GroupViolation {
  readonly expected: string
  readonly hint: string
}

/** `given`: key of a file. */
type NamedViolation = GroupViolation & { readonly given: string }

interface Part {
  readonly endpoints: readonly EndpointDefinition[]
  readonly part: EndpointPart
  readonly pieces: readonly TemplatePiece[]
}

/** Violation of a mediator or a group that names a list of recipients. */
export const NO_LIST: GroupViolation = {
  expected: 'is a list of recipients, to which only <send> and <call> send',
  hint: 'name one endpoint, or write <send> or <call>',
}

const HTTP_HINT = 'write all of them as <http>, which names the whole URL, or as <address>'

/** Returns an endpoint for the whole group, or why its members make none. */
export function groupOf(
  { isFailover, algorithm, failsOver }: Omit<GroupAddress, 'members'>,
  members: readonly EndpointForm[],
): EndpointForm | GroupViolation {
  const parts = members.map(partOf)
  const violation = parts.find(part => 'hint' in part)
  if (violation !== undefined) return violation
  const whole = parts as readonly Part[]
  const endpoints = whole.flatMap(part => part.endpoints)
  if (endpoints.length === 0 || endpoints.length > ENDPOINTS_MAX) {
    return { expected: `expected 1 to ${ENDPOINTS_MAX} endpoints`, hint: 'write each in an <endpoint>' }
  }
  const [{ method, format, appendsPath, properties, oauth }] = members as [EndpointForm]
  if (members.some(other => other.method !== method || other.format !== format)) {
    return { expected: 'has endpoints of different methods or formats', hint: 'give all of them the same one' }
  }
  if (members.some(other => other.appendsPath !== appendsPath)) {
    return { expected: 'has both <http> and other endpoints', hint: HTTP_HINT }
  }
  if (members.some(other => JSON.stringify(other.properties) !== JSON.stringify(properties))) {
    return { expected: 'has endpoints with different properties', hint: 'set the properties of the group instead' }
  }
  if (members.some(other => JSON.stringify(other.oauth) !== JSON.stringify(oauth))) {
    return { expected: 'has endpoints with different OAuth', hint: 'give all of them the same client and token URL' }
  }
  const [{ pieces }] = whole as [Part]
  if (whole.some(part => JSON.stringify(part.pieces) !== JSON.stringify(pieces))) {
    return { expected: 'has endpoints with different variables or queries', hint: 'give all of them the same path' }
  }
  const group: EndpointsDefinition = {
    ...{ kind: isFailover ? 'failover' : 'load_balance', algorithm, failsOver, endpoints },
    ...(whole.every(({ part }) => part.size === 1) ? {} : { parts: whole.map(({ part }) => part) }),
  }
  const behind = pieces.length === 0 ? {} : { pieces }
  const address = { kind: 'urls', endpoints: group, ...behind } as const
  const form: EndpointForm = { method, format, appendsPath, address, ...(oauth === undefined ? {} : { oauth }) }
  return properties === undefined ? form : { ...form, properties }
}

function partOf({ address, asMember }: EndpointForm): Part | GroupViolation {
  if (address.kind === 'urls') {
    const { endpoints, pieces = [] } = address
    if (endpoints.parts !== undefined) {
      return { expected: 'has a group within a group within it', hint: 'groups are nested once: leave out one of them' }
    }
    const isInOrder = endpoints.kind !== 'load_balance'
    const part = { size: endpoints.endpoints.length, isInOrder, failsOver: isInOrder || endpoints.failsOver }
    const own = endpoints.endpoints.map(each =>
      endpoints.kind === 'single' && asMember !== undefined ? { ...each, settings: asMember } : each,
    )
    return { endpoints: own, part, pieces }
  }
  if (address.kind === 'template' && address.origin !== '') {
    const settings = asMember ?? address.settings
    const part = { size: 1, isInOrder: true, failsOver: true }
    return { endpoints: [{ url: address.origin, settings }], part, pieces: address.pieces }
  }
  if (address.kind === 'recipients') return NO_LIST
  const hint = 'write scheme and host of its URL without variables'
  return { expected: 'has an endpoint whose address only messages tell', hint }
}

/** The endpoint, which also sets these properties. */
export function withProperties(form: EndpointForm, more: readonly EndpointProperty[]): EndpointForm {
  return more.length === 0 ? form : { ...form, properties: [...(form.properties ?? []), ...more] }
}

/** An endpoint of which there is no file. */
export function missingFile(name: string): NamedViolation {
  const hint = `add synapse-configs/default/endpoints/${name}.xml`
  return { given: name, expected: 'there is no endpoint of this name, or its file is faulty', hint }
}

/** The files of a home. */
export interface EndpointLookup {
  /** A form without names of files; undefined for no file. */
  formOf(name: string): EndpointForm | undefined
  /** The endpoint that a template makes; undefined where there is no such template. */
  instanceOf(instance: TemplateInstance): EndpointForm | GroupViolation | undefined
}

/** The form with the endpoints of files, and of templates, that it names. */
export function withMembers(form: EndpointForm, lookup: EndpointLookup): EndpointForm | NamedViolation {
  const { address } = form
  if (address.kind === 'instance') return instantiated(address, lookup)
  if (address.kind === 'recipients') return withRecipients(form, address, lookup)
  if (address.kind !== 'group') return form
  const members: EndpointForm[] = []
  for (const member of address.members) {
    const named = typeof member === 'string' ? lookup.formOf(member) : withMembers(member, lookup)
    if (named === undefined) return missingFile(String(member))
    if ('hint' in named) return named
    members.push(named)
  }
  const group = groupOf(address, members)
  const given = address.members.find(member => typeof member === 'string') ?? ''
  return 'hint' in group ? { ...group, given } : withProperties(group, form.properties ?? [])
}

/** The list, whose groups have the endpoints of the files that they name. Files that the list names stay names. */
function withRecipients(
  form: EndpointForm,
  address: RecipientsAddress,
  lookup: EndpointLookup,
): EndpointForm | NamedViolation {
  const members: RecipientsAddress['members'][number][] = []
  for (const member of address.members) {
    const isForm = typeof member !== 'string' && !('name' in member)
    const name = typeof member === 'string' ? member : 'name' in member ? member.name : ''
    const found = isForm ? withMembers(member, lookup) : lookup.formOf(name)
    if (found === undefined) return missingFile(name)
    if ('hint' in found) return found
    if (found.address.kind === 'recipients') return { ...NO_LIST, given: name }
    members.push(isForm ? found : member)
  }
  return { ...form, address: { kind: 'recipients', ...address, members } }
}

function instantiated(instance: TemplateInstance, lookup: EndpointLookup): EndpointForm | NamedViolation {
  const { template } = instance
  const found = lookup.instanceOf(instance)
  if (found === undefined) {
    const hint = `add synapse-configs/default/templates/${template}.xml`
    return { given: template, expected: 'there is no template of endpoints of this name, or its file is faulty', hint }
  }
  if ('hint' in found) return { ...found, given: template }
  // A template may hold a group that names files.
  const whole = withMembers(found, lookup)
  if (!('hint' in whole)) return whole
  return { ...whole, given: template, expected: `has a template that names ${whole.given}: ${whole.expected}` }
}
