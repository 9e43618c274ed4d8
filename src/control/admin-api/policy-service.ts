/** Policies as administrators see and change them: files of the home over the registry over the built-in tiers. */
import { BodyReader, type BodyProblem } from '../../throttle/body-reader.ts'
import { ENABLING_KEYS } from '../../throttle/condition-body.ts'
import {
  type DenyPolicy,
  DEFAULT_POLICIES,
  type PolicyLevel,
  type ThrottlingPolicy,
  UNLIMITED,
} from '../../throttle/policy.ts'
import { CUSTOM_POLICIES_MAX } from '../../throttle/policy-index.ts'
import { policyBody, readDenyPolicy, readPolicy } from '../../throttle/policy-body.ts'
import { policyId } from '../registry/policy-store.ts'
import type { AdminServices } from './admin-services.ts'
import { invalidProblem, notFoundProblem, Problem } from './problem.ts'

export interface ListedPolicy {
  readonly id: string
  readonly policy: ThrottlingPolicy
  readonly body: Readonly<Record<string, unknown>>
  readonly source: 'file' | 'database' | 'built in'
  /** Why a condition group does not apply; '' where all do. */
  readonly warning: string
}

interface ListedDenyPolicy {
  readonly policy: DenyPolicy
  readonly source: 'file' | 'database'
}

/** Levels whose policies API definitions name. */
const OF_APIS: readonly PolicyLevel[] = ['subscription', 'advanced']
/** Users of a policy that a refusal names. */
const USERS_SHOWN = 5

export class PolicyService {
  readonly #services: () => AdminServices

  constructor(services: () => AdminServices) {
    this.#services = services
  }

  /** By name. The tier `Unlimited` is missing where `enable_unlimited_tier` is false. */
  async list(level: PolicyLevel): Promise<readonly ListedPolicy[]> {
    const { registry, throttling } = this.#services()
    const found = new Map<string, ListedPolicy>()
    const add = (policy: ThrottlingPolicy, source: ListedPolicy['source'], body = policyBody(policy)): void => {
      if (policy.level !== level) return
      if (policy.name === UNLIMITED && !throttling.hasUnlimited && level !== 'advanced') return
      const id = policyId(level, policy.name)
      found.set(policy.name, { id, policy, body, source, warning: this.#warningOf(policy) })
    }
    for (const policy of DEFAULT_POLICIES) add(policy, 'built in')
    for (const { policy, body } of await registry.policies.list()) add(policy, 'database', body)
    for (const policy of throttling.files.policies) add(policy, 'file')
    return [...found.values()].sort((one, other) => one.policy.name.localeCompare(other.policy.name, 'en'))
  }

  /** By id or name. Throws Problem. */
  async get(level: PolicyLevel, idOrName: string): Promise<ListedPolicy> {
    const found = (await this.list(level)).find(({ id, policy }) => id === idOrName || policy.name === idOrName)
    if (found === undefined) throw notFoundProblem(`${level} policy`)
    return found
  }

  /** Refuses a name that exists. Throws Problem. */
  async create(level: PolicyLevel, body: object, user: string): Promise<ListedPolicy> {
    const policy = requirePolicy(level, body)
    const all = await this.list(level)
    const known = all.find(each => each.policy.name === policy.name)
    if (known !== undefined) {
      refuseFile(known)
      throw new Problem(409, `there is already a policy ${policy.name}, which is ${origin(known)}; change it instead`)
    }
    requireRoom(level, all.length)
    return this.#put(policy, body, user)
  }

  /** Replaces a policy. A changed tier that is built in is kept by the registry from then on. Throws Problem. */
  async update(level: PolicyLevel, id: string, body: object, user: string): Promise<ListedPolicy> {
    const known = await this.get(level, id)
    refuseFile(known)
    const policy = requirePolicy(level, body)
    if (policy.name !== known.policy.name)
      throw invalidProblem('policyName', `the name of a policy stays: expected ${known.policy.name}`)
    return this.#put(policy, body, user)
  }

  /** Creates or replaces the policy of the body's name. Throws Problem. */
  async apply(level: PolicyLevel, body: object, user: string): Promise<ListedPolicy> {
    const policy = requirePolicy(level, body)
    const all = await this.list(level)
    const known = all.find(each => each.policy.name === policy.name)
    if (known === undefined) requireRoom(level, all.length)
    else refuseFile(known)
    return this.#put(policy, body, user)
  }

  /** Removes a policy that nobody uses. A changed tier becomes what is built in again. Throws Problem. */
  async remove(level: PolicyLevel, idOrName: string, user: string): Promise<ListedPolicy> {
    const known = await this.get(level, idOrName)
    refuseFile(known)
    const { name } = known.policy
    if (known.source === 'built in') throw new Problem(403, `the policy ${name} is built in: it cannot be removed`)
    const isBuiltIn = DEFAULT_POLICIES.some(each => each.level === level && each.name === name)
    const users = isBuiltIn ? [] : await this.#usersOf(level, name)
    if (users.length > 0) throw new Problem(409, `the policy ${name} is in use: ${users.join(', ')}`)
    await this.#services().registry.policies.remove(known.id)
    this.#report('policy removed', user, `${level}:${name}`)
    return known
  }

  /** Throws Problem unless a policy of the level has this name. `field`: of the request. */
  async requireTier(level: PolicyLevel, name: string, field = 'throttlingPolicy'): Promise<void> {
    const known = (await this.list(level)).map(({ policy }) => policy.name)
    if (!known.includes(name)) throw invalidProblem(field, `is no ${level} policy; there are ${known.join(', ')}`)
  }

  async listDenied(): Promise<readonly ListedDenyPolicy[]> {
    const { registry, throttling } = this.#services()
    const stored = await registry.policies.listDenied()
    return [
      ...throttling.files.denied.map(policy => ({ policy, source: 'file' as const })),
      ...stored.map(policy => ({ policy, source: 'database' as const })),
    ]
  }

  /** Throws Problem. */
  async getDenied(id: string): Promise<ListedDenyPolicy> {
    const found = (await this.listDenied()).find(({ policy }) => policy.id === id)
    if (found === undefined) throw notFoundProblem('deny policy')
    return found
  }

  /** Throws Problem. */
  async deny(body: object, user: string): Promise<DenyPolicy> {
    const { value: policy, errors } = readDenyPolicy(body)
    refuseProblems(errors)
    const { type, value, inverted } = policy
    const { files } = this.#services().throttling
    if (files.denied.some(each => each.type === type && each.value === value && each.inverted === inverted))
      throw new Problem(409, 'a file in policies/deny/ has this deny policy')
    const created = await this.#services().registry.policies.createDenied(policy)
    this.#report('deny policy added', user, `${type} ${value}`)
    return created
  }

  /** In force on every reactor when the method resolves. Throws Problem. */
  async switchDenied(id: string, enabled: boolean, user: string): Promise<DenyPolicy> {
    await this.#requireStored(id)
    const changed = await this.#services().registry.policies.setDenied(id, enabled)
    this.#report(enabled ? 'deny policy enabled' : 'deny policy disabled', user, `${changed.type} ${changed.value}`)
    return changed
  }

  /** Throws Problem. */
  async removeDenied(id: string, user: string): Promise<DenyPolicy> {
    const policy = await this.#requireStored(id)
    await this.#services().registry.policies.removeDenied(id)
    this.#report('deny policy removed', user, `${policy.type} ${policy.value}`)
    return policy
  }

  async #requireStored(id: string): Promise<DenyPolicy> {
    const { policy, source } = await this.getDenied(id)
    if (source === 'file') throw new Problem(403, 'a file in policies/deny/ has the deny policy: change the file')
    return policy
  }

  async #put(policy: ThrottlingPolicy, body: object, user: string): Promise<ListedPolicy> {
    await this.#services().registry.policies.put(policy, withoutReadOnly(body))
    this.#report('policy changed', user, `${policy.level}:${policy.name}`)
    return this.get(policy.level, policyId(policy.level, policy.name))
  }

  async #usersOf(level: PolicyLevel, name: string): Promise<readonly string[]> {
    const { registry, declared, apis } = this.#services()
    const users = [...(await registry.policies.usersOf(level, name))]
    if (level === 'application') {
      for (const { tier, name: application } of declared.applications)
        if (tier === name) users.push(`application ${application} of a file`)
    }
    if (level === 'subscription') {
      for (const { tier, api } of declared.subscriptions)
        if (tier === name) users.push(`subscription of a file to ${api}`)
    }
    for (const { name: api, version, tier, tiers, operations } of OF_APIS.includes(level) ? await apis.list() : []) {
      const ofResources = (): boolean => tier === name || operations.some(each => each.throttlingPolicy === name)
      const isUser = level === 'subscription' ? tiers.includes(name) : ofResources()
      if (isUser) users.push(`API ${api}:${version}`)
    }
    return users.slice(0, USERS_SHOWN)
  }

  #warningOf(policy: ThrottlingPolicy): string {
    if (policy.level !== 'advanced') return ''
    const { conditions: enabled } = this.#services().throttling
    for (const { type } of policy.groups.flatMap(({ conditions }) => conditions)) {
      if (type === 'address' || type === 'range' || enabled[type]) continue
      return `groups with conditions of type ${type} do not apply: set ${ENABLING_KEYS[type]} = true`
    }
    return ''
  }

  #report(event: string, user: string, subject: string): void {
    this.#services().report('info', event, { USER: user, SUBJECT: subject })
  }
}

const READ_ONLY = ['policyId', 'isDeployed', 'type']

function withoutReadOnly(body: object): object {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !READ_ONLY.includes(name)))
}

function origin({ source }: ListedPolicy): string {
  return source === 'database' ? 'in the database' : source === 'file' ? 'in a file' : 'built in'
}

function refuseFile({ source, policy: { level, name } }: ListedPolicy): void {
  if (source !== 'file') return
  throw new Problem(403, `a file in policies/${level}/ has the policy ${name}: change the file and reload`)
}

/** Throws Problem where one more custom policy would not apply (D218). */
function requireRoom(level: PolicyLevel, count: number): void {
  if (level !== 'custom' || count < CUSTOM_POLICIES_MAX) return
  throw new Problem(409, `there are ${CUSTOM_POLICIES_MAX} custom policies already: remove one first`)
}

function requirePolicy(level: PolicyLevel, body: object): ThrottlingPolicy {
  const { value, errors } = readPolicy(level, body)
  refuseProblems(errors)
  return value
}

/** Throws Problem with every error. */
function refuseProblems(errors: readonly BodyProblem[]): void {
  const [first] = errors
  if (first === undefined) return
  const fields = errors.map(({ path, expected, hint }) => ({ code: pathText(path), message: `${expected} (${hint})` }))
  throw new Problem(400, `${fields[0]!.code}: ${fields[0]!.message}`.replace(/^: /, 'body: '), fields)
}

function pathText(path: BodyProblem['path']): string {
  return path
    .map(part => (typeof part === 'number' ? `[${part}]` : `.${part}`))
    .join('')
    .replace(/^\./, '')
}

/** The body that a client or command sends, without the envelope of an exported file. */
export function withoutEnvelope(body: object): object {
  const inner = new BodyReader(body).value(['data'])
  return typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? inner : body
}
