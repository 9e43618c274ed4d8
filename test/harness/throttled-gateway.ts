/** A gateway with limits, a clock of its own, and callers with tiers. */
import { after } from 'node:test'
import type { ResourceDefinition } from '../../src/apis/api-definition.ts'
import type { ApiPlan } from '../../src/plan/reactor-plan.ts'
import {
  type AdvancedPolicy,
  type ApplicationPolicy,
  type Condition,
  type CustomPolicy,
  type DenyPolicy,
  type PolicySet,
  type Quota,
  type SubscriptionPolicy,
  type ThrottlingPolicy,
  UNLIMITED,
} from '../../src/throttle/policy.ts'
import { NO_THROTTLING, type ThrottlePlan } from '../../src/throttle/throttle-plan.ts'
import { NO_ACCESS } from './api-plan.ts'
import { sendRequest } from './filter-chain.ts'
import { type GatewayOptions, startGateway, type TestApi, type TestGateway } from './gateway.ts'
import { connectPeer } from './peers.ts'
import { OWN_ISSUER, ScriptedControl } from './scripted-control.ts'
import { StrictBackend } from './strict-backend.ts'

const ON_NODE = { scope: 'node', failMode: 'local' } as const
/** The start of a minute, an hour and a day in UTC: 2026-Nov-22. */
export const MIDNIGHT = Date.UTC(2026, 10, 22)

export function quota(limit: number, changes: Partial<Quota> = {}): Quota {
  return { type: 'requests', limit, unit: 'min', units: 1, window: 'tumbling', ...changes }
}

export function subscription(name: string, of: Quota | null, changes: Partial<SubscriptionPolicy> = {}) {
  const policy = { level: 'subscription', name, quota: of, burst: null, stopOnQuotaReach: true, ...ON_NODE } as const
  return { ...policy, ...changes } satisfies SubscriptionPolicy
}

export function application(name: string, of: Quota | null): ApplicationPolicy {
  return { level: 'application', name, quota: of, ...ON_NODE }
}

export function advanced(name: string, of: Quota | null, changes: Partial<AdvancedPolicy> = {}): AdvancedPolicy {
  return { level: 'advanced', name, userLevel: 'PER_API', groups: [], quota: of, ...ON_NODE, ...changes }
}

/** A policy whose only group has one condition and a quota of 1. */
export function conditional(name: string, condition: Condition): AdvancedPolicy {
  return advanced(name, null, { groups: [{ description: '', conditions: [condition], quota: quota(1) }] })
}

export function custom(name: string, keyTemplate: string, of: Quota): CustomPolicy {
  return { level: 'custom', name, keyTemplate, quota: of, ...ON_NODE }
}

let denials = 0

export function denial(type: DenyPolicy['type'], value: string, changes: Partial<DenyPolicy> = {}): DenyPolicy {
  return { id: `deny-${++denials}`, type, value, inverted: false, enabled: true, ...changes }
}

export function operation(template: string, tier: string = UNLIMITED, authType?: ResourceDefinition['authType']) {
  return { template, verb: 'GET', authType: authType ?? 'Application & Application User', tier, scopes: [] }
}

/** A response as tests of limits read it. */
interface ThrottledResponse {
  readonly status: number
  /** Fault code; 0 for a response of the backend. */
  readonly code: number
  readonly body: string
  readonly fields: ReadonlyMap<string, readonly string[]>
}

export class ThrottledGateway {
  readonly clock: { ms: number }
  readonly gateway: TestGateway
  readonly backend: StrictBackend
  readonly control: ScriptedControl
  readonly #tokens = new Map<string, string>()
  #set: PolicySet = { policies: [], denied: [] }

  private constructor(gateway: TestGateway, backend: StrictBackend, clock: { ms: number }) {
    this.gateway = gateway
    this.backend = backend
    this.clock = clock
    this.control = new ScriptedControl(gateway.authState)
  }

  /** `port`: of another backend; 0 for one that answers every request. */
  static async start(
    apisOf: (port: number) => readonly TestApi[],
    plan: Partial<ThrottlePlan> = {},
    options: GatewayOptions = {},
  ): Promise<ThrottledGateway> {
    const backend = await StrictBackend.listen()
    const clock = { ms: MIDNIGHT }
    const gateway = await startGateway(apisOf(backend.port), {
      hasFilterChain: true,
      authChanges: { issuers: [OWN_ISSUER] },
      throttling: { ...NO_THROTTLING, ...plan },
      wallMs: () => clock.ms,
      ...options,
    })
    after(() => {
      gateway.stop()
      backend.close()
    })
    return new ThrottledGateway(gateway, backend, clock)
  }

  /** Replaces the policies of the registry. */
  apply(policies: readonly ThrottlingPolicy[], denied: readonly DenyPolicy[] = []): void {
    this.#set = { policies, denied }
    this.gateway.authState.apply({ kind: 'policies', set: this.#set })
  }

  /** Replaces the deny policies alone. */
  deny(...denied: readonly DenyPolicy[]): void {
    this.apply(this.#set.policies, denied)
  }

  /** A token of an application that is subscribed to APIs, with the context names of the APIs. */
  token(name: string, tiers: { readonly application?: string; readonly subscription?: string }, ...apis: string[]) {
    const { application: tier = UNLIMITED, subscription: ofSubscription = UNLIMITED } = tiers
    this.control.subscribe(name, '')
    this.control.update({
      applications: [{ id: name, name, owner: 'owner', tenant: 'carbon.super', tier, attributes: {} }],
      subscriptions: apis.map(api => {
        const of = { id: `${name} ${api}`, applicationId: name, api: `${api}:1.0.0`, status: 'ACTIVE' } as const
        return { ...of, tier: ofSubscription }
      }),
    })
    const token = this.control.token(name)
    this.#tokens.set(name, token)
    return token
  }

  /** A request with the token of an application; '' for none. */
  async request(target: string, caller = '', fields = ''): Promise<ThrottledResponse> {
    const client = await connectPeer(this.gateway.port)
    const token = this.#tokens.get(caller)
    const credentials = token === undefined ? '' : `Authorization: Bearer ${token}\r\n`
    const { status, body, fields: received } = await sendRequest(client, `GET ${target}`, credentials + fields)
    client.destroy()
    const code = body.startsWith('{"fault"') ? (JSON.parse(body).fault.code as number) : 0
    return { status, code, body, fields: received }
  }

  /** Fault codes of so many requests, 0 for those that passed. */
  async codes(count: number, target: string, caller = '', fields = ''): Promise<readonly number[]> {
    const codes: number[] = []
    for (let i = 0; i < count; i++) codes.push((await this.request(target, caller, fields)).code)
    return codes
  }
}

/** An API with tokens; its name is the context without the slash. */
export function securedApi(port: number, name: string, overrides: Partial<ApiPlan> = {}): TestApi {
  const access = { ...NO_ACCESS, api: `${name}:1.0.0`, schemes: ['oauth2'] as const }
  return { context: `/${name}`, port, overrides: { access, ...overrides } }
}

/** An API without credentials. */
export function openApi(port: number, name: string, overrides: Partial<ApiPlan> = {}): TestApi {
  return { context: `/${name}`, port, overrides }
}
