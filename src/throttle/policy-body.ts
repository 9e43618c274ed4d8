/**
 * Policies in the form of the reference platform, which REST bodies and files share, and the members of our own: a
 * limit of custom policies, `window`, `scope` and `failMode`. Every member is known and checked.
 */
import { type BodyProblem, BodyReader } from './body-reader.ts'
import { checkRange, groupsBody, readAddress, readGroups } from './condition-body.ts'
import { readInterval } from './address-intervals.ts'
import { limitBody, readLimit, readUnit, readWindow, unitName } from './limit-body.ts'
import type {
  AdvancedPolicy,
  ApplicationPolicy,
  CustomPolicy,
  DenyPolicy,
  PolicyLevel,
  Sharing,
  SubscriptionPolicy,
  ThrottlingPolicy,
} from './policy.ts'
import { readSiddhiQuery } from './siddhi-query.ts'

interface BodyResult<T> {
  /** Without meaning if there are errors. */
  readonly value: T
  readonly errors: readonly BodyProblem[]
}

export const POLICY_LEVELS: readonly PolicyLevel[] = ['application', 'subscription', 'advanced', 'custom']

const NAME = /^[^\p{Cc}\s/\\]{1,255}$/u
const QUERY_CHARS_MAX = 10_000
const TEMPLATE_CHARS_MAX = 1000
const VARIABLES = [
  ...['resourceKey', 'userId', 'apiContext', 'apiVersion', 'appTenant', 'apiTenant', 'appId', 'clientIp'],
]

/** Members of every level. The gateway sets `policyId`, `isDeployed` and `type`, and ignores what clients send. */
const COMMON = [
  ...['policyId', 'policyName', 'displayName', 'description', 'isDeployed', 'type'],
  ...['window', 'scope', 'failMode'],
]
const OF_LEVEL: Readonly<Record<PolicyLevel, readonly string[]>> = {
  application: ['defaultLimit'],
  subscription: [
    ...['defaultLimit', 'stopOnQuotaReach', 'rateLimitCount', 'rateLimitTimeUnit', 'subscriberCount', 'billingPlan'],
    ...['customAttributes', 'monetization', 'permissions', 'graphQLMaxComplexity', 'graphQLMaxDepth'],
  ],
  advanced: ['defaultLimit', 'userLevel', 'conditionalGroups'],
  custom: ['keyTemplate', 'siddhiQuery', 'defaultLimit'],
}

/** Reads the body of a policy. */
export function readPolicy(level: PolicyLevel, body: unknown): BodyResult<ThrottlingPolicy> {
  const reader = new BodyReader(body)
  if (!reader.map([], [...COMMON, ...OF_LEVEL[level]])) return { value: NO_POLICY, errors: reader.errors }
  const name = reader.text(['policyName'])
  if (name !== '' && !NAME.test(name))
    reader.error(['policyName'], name, 'is no name of a policy', 'leave out spaces and slashes')
  const value = READERS[level](reader, name, readSharing(reader))
  return { value, errors: reader.errors }
}

const NO_POLICY: ThrottlingPolicy = {
  ...{ level: 'application', name: '', quota: null, scope: 'node', failMode: 'local' },
}

const READERS: Readonly<Record<PolicyLevel, (reader: BodyReader, name: string, sharing: Sharing) => ThrottlingPolicy>> =
  {
    application: readApplicationPolicy,
    subscription: readSubscriptionPolicy,
    advanced: readAdvancedPolicy,
    custom: readCustomPolicy,
  }

function readSharing(reader: BodyReader): Sharing {
  return {
    scope: reader.choice(['scope'], ['node', 'redis'], 'node'),
    failMode: reader.choice(['failMode'], ['open', 'closed', 'local'], 'local'),
  }
}

function readApplicationPolicy(reader: BodyReader, name: string, sharing: Sharing): ApplicationPolicy {
  return { level: 'application', name, quota: readLimit(reader, ['defaultLimit'], readWindow(reader)), ...sharing }
}

function readSubscriptionPolicy(reader: BodyReader, name: string, sharing: Sharing): SubscriptionPolicy {
  const window = readWindow(reader)
  return {
    level: 'subscription',
    name,
    quota: readLimit(reader, ['defaultLimit'], window),
    burst: readBurst(reader),
    stopOnQuotaReach: reader.flag(['stopOnQuotaReach'], true),
    ...readQueryLimits(reader),
    ...sharing,
  }
}

function readQueryLimits(reader: BodyReader): Pick<SubscriptionPolicy, 'graphQL'> {
  const graphQL = { depth: readCount(reader, 'graphQLMaxDepth'), complexity: readCount(reader, 'graphQLMaxComplexity') }
  return graphQL.depth + graphQL.complexity === 0 ? {} : { graphQL }
}

/** The reference platform writes 0, or -1, for no limit. */
function readCount(reader: BodyReader, name: 'graphQLMaxDepth' | 'graphQLMaxComplexity'): number {
  const count = reader.value([name])
  return count === undefined || count === null || count === 0 || count === -1
    ? 0
    : reader.integer([name], 1, 1_000_000_000)
}

/** The reference platform writes a count of 0, or -1, for no burst limit. */
function readBurst(reader: BodyReader): SubscriptionPolicy['burst'] {
  const count = reader.value(['rateLimitCount'])
  if (count === undefined || count === 0 || count === -1) return null
  const limit = reader.integer(['rateLimitCount'], 1, 1_000_000_000)
  const unit = reader.has(['rateLimitTimeUnit']) ? readUnit(reader, ['rateLimitTimeUnit'], ['sec', 'min']) : 'sec'
  return { type: 'requests', limit, unit, units: 1, window: 'tumbling' }
}

function readAdvancedPolicy(reader: BodyReader, name: string, sharing: Sharing): AdvancedPolicy {
  const window = readWindow(reader)
  return {
    level: 'advanced',
    name,
    userLevel: reader.choice(['userLevel'], ['PER_API', 'PER_USER'], 'PER_API'),
    groups: readGroups(reader, window),
    quota: readLimit(reader, ['defaultLimit'], window),
    ...sharing,
  }
}

function readCustomPolicy(reader: BodyReader, name: string, sharing: Sharing): CustomPolicy {
  const keyTemplate = reader.text(['keyTemplate'], TEMPLATE_CHARS_MAX)
  for (const [, variable = ''] of keyTemplate.matchAll(/\$(\w*)/g)) {
    if (VARIABLES.includes(variable)) continue
    const known = VARIABLES.map(each => `$${each}`).join(' ')
    reader.error(['keyTemplate'], keyTemplate, `names $${variable}`, `use variables that are known: ${known}`)
  }
  if (keyTemplate !== '' && !keyTemplate.includes('$'))
    reader.error(['keyTemplate'], keyTemplate, 'names no variable', 'write for example $userId:$apiContext')
  return { level: 'custom', name, keyTemplate, quota: readCustomQuota(reader, keyTemplate), ...sharing }
}

const NO_QUOTA = { type: 'requests', limit: 1, unit: 'min', units: 1, window: 'tumbling' } as const

function readCustomQuota(reader: BodyReader, keyTemplate: string): CustomPolicy['quota'] {
  const window = readWindow(reader)
  if (reader.has(['defaultLimit'])) {
    const quota = readLimit(reader, ['defaultLimit'], window)
    if (quota === null) reader.error(['defaultLimit'], undefined, 'has no limit', 'write one')
    if (quota?.type === 'events')
      reader.error(['defaultLimit', 'type'], 'EVENTCOUNTLIMIT', 'is not possible here', 'count requests or bandwidth')
    return quota ?? NO_QUOTA
  }
  if (!reader.has(['siddhiQuery'])) {
    reader.error(['defaultLimit'], undefined, 'is missing', 'add it, as in policies of other levels')
    return NO_QUOTA
  }
  const query = reader.text(['siddhiQuery'], QUERY_CHARS_MAX)
  const result = readSiddhiQuery(query, keyTemplate)
  if ('quota' in result) return { ...result.quota, window }
  if (query !== '') reader.error(['siddhiQuery'], undefined, result.reason, 'write defaultLimit in its place')
  return NO_QUOTA
}

/** The REST body of a policy; `policyId` and `isDeployed` are the caller's. */
export function policyBody(policy: ThrottlingPolicy): Readonly<Record<string, unknown>> {
  const { name, scope, failMode, quota } = policy
  const window = quota?.window === 'sliding' ? { window: 'sliding' } : {}
  const own = {
    ...window,
    ...(scope === 'node' ? {} : { scope }),
    ...(failMode === 'local' ? {} : { failMode }),
  }
  const common = { policyName: name, displayName: name, description: '', ...own, defaultLimit: limitBody(quota) }
  if (policy.level === 'application') return { ...common, type: 'ApplicationThrottlePolicy' }
  if (policy.level === 'advanced') {
    const { userLevel, groups } = policy
    return { ...common, type: 'AdvancedThrottlePolicy', userLevel, conditionalGroups: groupsBody(groups) }
  }
  if (policy.level === 'custom') return { ...common, type: 'CustomRule', keyTemplate: policy.keyTemplate }
  const { burst, stopOnQuotaReach } = policy
  const rate = burst === null ? {} : { rateLimitCount: burst.limit, rateLimitTimeUnit: unitName(burst.unit) }
  return { ...common, type: 'SubscriptionThrottlePolicy', stopOnQuotaReach, ...rate }
}

const DENY_TYPES = ['API', 'APPLICATION', 'USER', 'SUBSCRIPTION', 'IP', 'IPRANGE'] as const
const DENY_VALUE_CHARS_MAX = 700

/** Reads the body of a deny policy, all but its id. */
export function readDenyPolicy(body: unknown): BodyResult<Omit<DenyPolicy, 'id'>> {
  const reader = new BodyReader(body)
  const value = { type: 'USER', value: '', inverted: false, enabled: true } as const
  if (!reader.map([], ['conditionId', 'conditionUUID', 'conditionType', 'conditionValue', 'conditionStatus']))
    return { value, errors: reader.errors }
  const type = reader.choice(['conditionType'], DENY_TYPES)
  const enabled = reader.flag(['conditionStatus'], true)
  const rest = type === 'IP' || type === 'IPRANGE' ? readAddresses(reader, type) : readExact(reader, type)
  return { value: { type, enabled, ...rest }, errors: reader.errors }
}

function readAddresses(reader: BodyReader, type: 'IP' | 'IPRANGE'): Pick<DenyPolicy, 'value' | 'inverted'> {
  const at = ['conditionValue']
  const members = type === 'IP' ? ['fixedIp', 'invert'] : ['startingIp', 'endingIp', 'invert']
  if (!reader.map(at, members)) return { value: '', inverted: false }
  const inverted = reader.flag([...at, 'invert'], false)
  if (type === 'IP') {
    const value = reader.text([...at, 'fixedIp'])
    if (value !== '' && (value.includes('-') || readInterval(value) === undefined))
      reader.error([...at, 'fixedIp'], value, 'is no IP address', 'write one, or a network such as 192.0.2.0/24')
    return { value, inverted }
  }
  const from = readAddress(reader, [...at, 'startingIp'])
  const to = readAddress(reader, [...at, 'endingIp'])
  checkRange(reader, [...at, 'endingIp'], from, to)
  return { value: `${from}-${to}`, inverted }
}

/** Shapes of values: what a value that has another one would never match. */
const SHAPES: Readonly<Record<Exclude<DenyPolicy['type'], 'IP' | 'IPRANGE'>, readonly [RegExp, string]>> = {
  API: [/^\/\S*[^/]$/, 'write context and version, as /orders/1.0.0'],
  APPLICATION: [/^[^:]+:.+$/, 'write owner:name'],
  USER: [/^\S.*$/, 'write the name of the user'],
  SUBSCRIPTION: [/^\/[^:\s]*:[^:]+:.+$/, 'write /context/version:owner:name'],
}

function readExact(reader: BodyReader, type: keyof typeof SHAPES): Pick<DenyPolicy, 'value' | 'inverted'> {
  const value = reader.text(['conditionValue'], DENY_VALUE_CHARS_MAX)
  const [shape, hint] = SHAPES[type]
  if (value !== '' && !shape.test(value)) reader.error(['conditionValue'], value, `names no ${type}`, hint)
  return { value, inverted: false }
}

export function denyBody({ id, type, value, inverted, enabled }: DenyPolicy): Readonly<Record<string, unknown>> {
  return {
    conditionId: id,
    conditionType: type,
    conditionValue: valueBody(type, value, inverted),
    conditionStatus: enabled,
  }
}

function valueBody(type: DenyPolicy['type'], value: string, invert: boolean): unknown {
  if (type === 'IP') return { fixedIp: value, invert }
  if (type !== 'IPRANGE') return value
  const [startingIp, endingIp] = value.split('-')
  return { startingIp, endingIp, invert }
}
