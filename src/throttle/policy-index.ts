/**
 * Policies of a reactor by level and name. A file of the home governs what it names; then the registry; then the tiers
 * that are built in. Every change replaces the contents and increments the version.
 */
import { DenyIndex } from './deny-index.ts'
import {
  type AdvancedPolicy,
  type ApplicationPolicy,
  type Condition,
  type CustomPolicy,
  DEFAULT_POLICIES,
  type PolicySet,
  type SubscriptionPolicy,
  type ThrottlingPolicy,
  UNLIMITED,
} from './policy.ts'
import { NO_THROTTLING, type ThrottlePlan } from './throttle-plan.ts'

/** Custom policies that apply: a request is charged to 31 counters at most (D218). */
export const CUSTOM_POLICIES_MAX = 24

/** The result of a look-up by name. */
interface Tier<P extends ThrottlingPolicy> {
  readonly policy: P
  /** False: no policy has the name, and `policy` is the smallest default tier of the level. */
  readonly isKnown: boolean
}

/** Limits whoever has a tier that no policy describes: the smallest default tier of each level. */
const SMALLEST = { application: '10PerMin', subscription: 'Unauthenticated', advanced: '10KPerMin' } as const

type NamedLevel = keyof typeof SMALLEST

type TiersByLevel = Readonly<Record<NamedLevel, ReadonlyMap<string, Tier<ThrottlingPolicy>>>>

const NOTHING: PolicySet = { policies: [], denied: [] }

export class PolicyIndex {
  /** Changes with every change of a policy: whatever was derived from policies holds for one version. */
  version = 1
  #plan: ThrottlePlan = NO_THROTTLING
  #registry: PolicySet = NOTHING
  #byName: TiersByLevel = byName(NO_THROTTLING, NOTHING)
  #custom: readonly CustomPolicy[] = []
  #denied = new DenyIndex([])

  get plan(): ThrottlePlan {
    return this.#plan
  }

  /** In the order in which they are asked, at most `CUSTOM_POLICIES_MAX`. Not to be kept beyond a version. */
  get custom(): readonly CustomPolicy[] {
    return this.#custom
  }

  /** Not to be kept beyond a version. */
  get denied(): DenyIndex {
    return this.#denied
  }

  /** At the start and at a reload. */
  setPlan(plan: ThrottlePlan): void {
    this.#plan = plan
    this.#rebuild()
  }

  /** The control thread tells the policies of the registry. */
  setRegistry(registry: PolicySet): void {
    this.#registry = registry
    this.#rebuild()
  }

  application(name: string): Tier<ApplicationPolicy> {
    return this.#find('application', name) as Tier<ApplicationPolicy>
  }

  subscription(name: string): Tier<SubscriptionPolicy> {
    return this.#find('subscription', name) as Tier<SubscriptionPolicy>
  }

  /** Tier of an API or a resource. */
  advanced(name: string): Tier<AdvancedPolicy> {
    return this.#find('advanced', name) as Tier<AdvancedPolicy>
  }

  #find(level: NamedLevel, name: string): Tier<ThrottlingPolicy> {
    return this.#byName[level].get(name) ?? UNKNOWN[level]
  }

  #rebuild(): void {
    this.#byName = byName(this.#plan, this.#registry)
    this.#custom = customPolicies(this.#plan.files, this.#registry).slice(0, CUSTOM_POLICIES_MAX)
    this.#denied = new DenyIndex(this.#plan.denies ? [...this.#plan.files.denied, ...this.#registry.denied] : [])
    this.version++
  }
}

/** Tiers of a name that no policy has. */
const UNKNOWN: Readonly<Record<NamedLevel, Tier<ThrottlingPolicy>>> = {
  application: unknown('application'),
  subscription: unknown('subscription'),
  advanced: unknown('advanced'),
}

function unknown(level: NamedLevel): Tier<ThrottlingPolicy> {
  const policy = DEFAULT_POLICIES.find(each => each.level === level && each.name === SMALLEST[level])!
  return { policy, isKnown: false }
}

function byName(plan: ThrottlePlan, registry: PolicySet): TiersByLevel {
  const tiersOf = (level: NamedLevel): ReadonlyMap<string, Tier<ThrottlingPolicy>> =>
    new Map([...inForce(level, plan, registry)].map(([name, policy]) => [name, { policy, isKnown: true }]))
  return { application: tiersOf('application'), subscription: tiersOf('subscription'), advanced: tiersOf('advanced') }
}

/** Custom policies of files, then those of the registry, each by name. The first `CUSTOM_POLICIES_MAX` apply. */
export function customPolicies(files: PolicySet, registry: PolicySet): readonly CustomPolicy[] {
  const ofFiles = customOf(files)
  const names = new Set(ofFiles.map(({ name }) => name))
  return [...ofFiles, ...customOf(registry).filter(({ name }) => !names.has(name))]
}

function customOf({ policies }: PolicySet): readonly CustomPolicy[] {
  const custom = policies.filter(policy => policy.level === 'custom')
  return custom.sort((one, other) => (one.name < other.name ? -1 : 1))
}

/** The policies of one level in force, by name. Condition groups of types that are not enabled are left out. */
function inForce(
  level: NamedLevel,
  { files, hasUnlimited, conditions }: Pick<ThrottlePlan, 'files' | 'hasUnlimited' | 'conditions'>,
  registry: PolicySet,
): ReadonlyMap<string, ThrottlingPolicy> {
  const all = [...DEFAULT_POLICIES, ...registry.policies, ...files.policies].filter(each => each.level === level)
  // APIs and operations have the name as a default: without the tier they have no limit of their own either.
  const isMissing = ({ name }: ThrottlingPolicy): boolean => name === UNLIMITED && !hasUnlimited && level !== 'advanced'
  const isEnabled = ({ type }: Condition): boolean => type === 'address' || type === 'range' || conditions[type]
  const enabled = (policy: ThrottlingPolicy): ThrottlingPolicy => {
    if (policy.level !== 'advanced') return policy
    return { ...policy, groups: policy.groups.filter(group => group.conditions.every(isEnabled)) }
  }
  return new Map(all.filter(each => !isMissing(each)).map(policy => [policy.name, enabled(policy)]))
}

/** Names of the policies that files and the gateway itself have. */
export function namesInForce(level: NamedLevel, plan: ThrottlePlan): ReadonlySet<string> {
  return new Set(inForce(level, plan, NOTHING).keys())
}
