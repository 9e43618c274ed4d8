/**
 * Deploys the throttling policies of the registry to the reactors, all of them or none. Deny policies follow after
 * their start delay, and again at each period (`[apim.throttling]`).
 */
import type { AuthUpdate } from '../auth/control-protocol.ts'
import type { Configuration } from '../config/catalogue.ts'
import { DEFAULT_POLICIES, type PolicySet } from '../throttle/policy.ts'
import { CUSTOM_POLICIES_MAX, customPolicies } from '../throttle/policy-index.ts'

interface PolicyDeploymentContext {
  readonly broadcast: (update: AuthUpdate) => void
  /** Reads the policies of the registry. Null on a node without a registry. */
  readonly read: () => Promise<PolicySet | null>
  readonly failed: (error: Error) => void
  /** Policies of the home's files. */
  readonly files: () => PolicySet
  /** Custom policies of these names do not apply, because there are too many. */
  readonly surplus: (names: readonly string[]) => void
}

export class PolicyDeployment {
  readonly #context: PolicyDeploymentContext
  #configuration: Configuration
  #registry: PolicySet = { policies: [], denied: [] }
  #changes = 0
  /** Names that the operator knows of. */
  #surplus = ''
  #areDeniedFetched: boolean
  #delay: NodeJS.Timeout | undefined
  #period: NodeJS.Timeout | undefined

  constructor(configuration: Configuration, context: PolicyDeploymentContext) {
    this.#context = context
    this.#configuration = configuration
    const delayMs = configuration['apim.throttling.blacklist_condition'].start_delay
    this.#areDeniedFetched = delayMs === 0
    if (delayMs > 0) {
      this.#delay = setTimeout(() => {
        this.#areDeniedFetched = true
        void this.#fetch()
      }, delayMs).unref()
    }
    this.#schedule()
  }

  /** Reads the policies of the registry, unless a change tells them meanwhile. Rejects as the registry does. */
  async refresh(): Promise<void> {
    const changes = this.#changes
    const set = await this.#context.read()
    if (set !== null && changes === this.#changes) this.setRegistry(set)
  }

  /** The policies of the registry after a change. */
  setRegistry(set: PolicySet): void {
    this.#changes++
    this.#registry = set
    this.#context.broadcast(this.update)
    this.#reportSurplus()
  }

  /** At a reload. */
  renew(configuration: Configuration): void {
    const before = JSON.stringify(this.update)
    this.#configuration = configuration
    this.#schedule()
    if (JSON.stringify(this.update) !== before) this.#context.broadcast(this.update)
    this.#reportSurplus()
  }

  get update(): AuthUpdate {
    return { kind: 'policies', set: this.#deployable }
  }

  close(): void {
    clearTimeout(this.#delay)
    clearInterval(this.#period)
  }

  get #deployable(): PolicySet {
    const { enable_policy_deploy: deploys, skip_redeploying_policies: skipped } = this.#configuration['apim.throttling']
    const isKept = ({ level, name }: PolicySet['policies'][number]): boolean =>
      skipped.includes(name) && DEFAULT_POLICIES.some(each => each.level === level && each.name === name)
    return {
      policies: deploys ? this.#registry.policies.filter(policy => !isKept(policy)) : [],
      denied: this.#areDeniedFetched ? this.#registry.denied : [],
    }
  }

  /** Files that are added may leave no room for policies that the registry has had. */
  #reportSurplus(): void {
    const all = customPolicies(this.#context.files(), this.#deployable).map(({ name }) => name)
    const surplus = all.slice(CUSTOM_POLICIES_MAX)
    const isKnown = this.#surplus === surplus.join('\n')
    this.#surplus = surplus.join('\n')
    if (surplus.length > 0 && !isKnown) this.#context.surplus(surplus)
  }

  #schedule(): void {
    clearInterval(this.#period)
    const { period } = this.#configuration['apim.throttling.blacklist_condition']
    if (period > 0) this.#period = setInterval(() => void this.#fetch(), period).unref()
  }

  async #fetch(): Promise<void> {
    try {
      await this.refresh()
    } catch (error) {
      this.#context.failed(error as Error)
    }
  }
}
