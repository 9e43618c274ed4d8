/** Issue 16, item 3: policies as files, in both forms, with diagnostics that name file, line and remedy. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readPolicies } from '../../src/apis/policy-files.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import type { Quota } from '../../src/throttle/policy.ts'
import { temporaryHome } from '../config/temporary-home.ts'

const NONE = { header: false, claim: false, query: false }
const ALL = { header: true, claim: true, query: true }

const MIN = { unit: 'min', units: 1, window: 'tumbling' } as const
const NODE = { scope: 'node', failMode: 'local' } as const

function count(timeUnit: string, requestCount: number, unitTime = 1): string {
  const limit = `timeUnit: ${timeUnit}, unitTime: ${unitTime}, requestCount: ${requestCount}`
  return `{ type: REQUESTCOUNTLIMIT, requestCount: { ${limit} } }`
}

test('a file has the REST body alone, or an export around it', async t => {
  const home = temporaryHome(t, {
    'policies/application/small.yaml': `policyName: Small\ndefaultLimit: ${count('min', 7)}\n`,
    'policies/subscription/gold.yaml':
      'type: throttling policy\nsubtype: subscription policy\nversion: v4.3.0\ndata:\n' +
      '  { policyName: Gold, displayName: Gold, stopOnQuotaReach: false,\n' +
      '    rateLimitCount: 100, rateLimitTimeUnit: sec,\n' +
      `    subscriberCount: 3, billingPlan: FREE, customAttributes: [], defaultLimit: ${count('min', 5000)} }\n`,
    'policies/custom/user.json': JSON.stringify({
      ...{ policyName: 'PerUser', keyTemplate: '$userId:$apiContext', scope: 'redis', failMode: 'closed' },
      window: 'sliding',
      defaultLimit: { type: 'REQUESTCOUNTLIMIT', requestCount: { timeUnit: 'hours', unitTime: 2, requestCount: 9 } },
    }),
    'policies/deny/mallory.yaml': 'conditionType: USER\nconditionValue: mallory\n',
    'policies/deny/net.yaml':
      'conditionType: IP\nconditionValue: { fixedIp: 192.0.2.0/24, invert: true }\n' + 'conditionStatus: false\n',
  })
  const { set, errors, warnings } = await readPolicies(home, NONE)
  assert.deepEqual([errors, warnings], [[], []])
  assert.deepEqual(set.policies, [
    { level: 'application', name: 'Small', quota: { type: 'requests', limit: 7, ...MIN }, ...NODE },
    {
      ...{ level: 'subscription', name: 'Gold', quota: { type: 'requests', limit: 5000, ...MIN } },
      burst: { type: 'requests', limit: 100, unit: 'sec', units: 1, window: 'tumbling' },
      ...{ stopOnQuotaReach: false, ...NODE },
    },
    {
      ...{ level: 'custom', name: 'PerUser', keyTemplate: '$userId:$apiContext' },
      quota: { type: 'requests', limit: 9, unit: 'hour', units: 2, window: 'sliding' },
      ...{ scope: 'redis', failMode: 'closed' },
    },
  ])
  assert.deepEqual(
    set.denied.map(({ id: _, ...rest }) => rest),
    [
      { type: 'USER', value: 'mallory', inverted: false, enabled: true },
      { type: 'IP', value: '192.0.2.0/24', inverted: true, enabled: false },
    ],
  )
})

/** [what is written as defaultLimit, the quota]. */
const LIMITS: readonly (readonly [limit: string, quota: Omit<Quota, 'window'> | null])[] = [
  ...(['sec', 'second', 'seconds'] as const).map(
    name => [count(name, 1), { type: 'requests', limit: 1, unit: 'sec', units: 1 }] as const,
  ),
  ...(['min', 'minute', 'minutes'] as const).map(
    name => [count(name, 1), { type: 'requests', limit: 1, unit: 'min', units: 1 }] as const,
  ),
  ...(['hour', 'hours'] as const).map(
    name => [count(name, 1), { type: 'requests', limit: 1, unit: 'hour', units: 1 }] as const,
  ),
  ...(['day', 'days'] as const).map(
    name => [count(name, 1, 3), { type: 'requests', limit: 1, unit: 'day', units: 3 }] as const,
  ),
  ...(['month', 'months'] as const).map(
    name => [count(name, 1), { type: 'requests', limit: 1, unit: 'month', units: 1 }] as const,
  ),
  [count('min', 2_147_483_647), null],
  ...Object.entries({ KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 }).map(
    ([unit, bytes]) =>
      [
        `{ type: BANDWIDTHLIMIT, bandwidth: { timeUnit: hours, unitTime: 1, dataAmount: 5, dataUnit: ${unit} } }`,
        { type: 'bandwidth', limit: 5 * bytes, unit: 'hour', units: 1 },
      ] as const,
  ),
  [
    '{ type: EVENTCOUNTLIMIT, eventCount: { timeUnit: min, unitTime: 1, eventCount: 1000 } }',
    { type: 'events', limit: 1000, unit: 'min', units: 1 },
  ],
]

for (const [limit, quota] of LIMITS) {
  test(`a limit of ${limit}`, async t => {
    const home = temporaryHome(t, { 'policies/advanced/a.yaml': `policyName: A\ndefaultLimit: ${limit}\n` })
    const { set, errors } = await readPolicies(home, NONE)
    assert.deepEqual(errors, [])
    assert.deepEqual(set.policies[0]!.quota, quota === null ? null : { ...quota, window: 'tumbling' })
  })
}

const GROUPS = `policyName: Guarded
userLevel: PER_USER
defaultLimit: ${count('min', 100)}
conditionalGroups:
  - description: all kinds
    conditions:
      - { type: IPCONDITION, invertCondition: true, ipCondition: { ipConditionType: IPSPECIFIC, specificIP: 192.0.2.1 } }
      - { type: IPCONDITION, ipCondition: { ipConditionType: IPRANGE, startingIP: "2001:db8::1", endingIP: "2001:db8::ff" } }
      - { type: HEADERCONDITION, headerCondition: { headerName: X-Kind, headerValue: "a.*" } }
      - { type: QUERYPARAMETERCONDITION, queryParameterCondition: { parameterName: q, parameterValue: "[0-9]+" } }
      - { type: JWTCLAIMSCONDITION, jwtClaimsCondition: { claimUrl: role, attribute: gold } }
    limit: ${count('min', 5)}
`

test('a group has conditions of every type, each of which can be inverted', async t => {
  const home = temporaryHome(t, { 'policies/advanced/guarded.yaml': GROUPS })
  const { set, errors, warnings } = await readPolicies(home, ALL)
  assert.deepEqual([errors, warnings], [[], []])
  const [policy] = set.policies
  assert.ok(policy?.level === 'advanced' && policy.userLevel === 'PER_USER')
  assert.deepEqual(policy.groups[0]!.conditions, [
    { type: 'address', inverted: true, address: '192.0.2.1' },
    { type: 'range', inverted: false, from: '2001:db8::1', to: '2001:db8::ff' },
    { type: 'header', inverted: false, name: 'X-Kind', pattern: 'a.*' },
    { type: 'query', inverted: false, name: 'q', pattern: '[0-9]+' },
    { type: 'claim', inverted: false, name: 'role', pattern: 'gold' },
  ])
})

test('a condition whose key does not enable it is a warning that names the key', async t => {
  const home = temporaryHome(t, { 'policies/advanced/guarded.yaml': GROUPS })
  const { warnings } = await readPolicies(home, NONE)
  const said = warnings.map(formatDiagnostic).map(text => text.slice(text.lastIndexOf('/') + 1))
  assert.deepEqual(
    said.map(text => /^guarded\.yaml:(\d+): .*set (apim\.throttling\.\w+) = true/.exec(text)?.slice(1)),
    [
      ['9', 'apim.throttling.enable_header_based_throttling'],
      ['10', 'apim.throttling.enable_query_param_based_throttling'],
      ['11', 'apim.throttling.enable_jwt_claim_based_throttling'],
    ],
  )
})

const QUERY = (eligible: string, key: string, batch: string): string =>
  `FROM RequestStream SELECT userId, ( ${eligible} ) AS isEligible, str:concat(${key}) as throttleKey ` +
  'INSERT INTO EligibilityStream; FROM EligibilityStream[isEligible==true]#throttler:timeBatch(1 min) ' +
  `SELECT throttleKey, (${batch}) as isThrottled, ` +
  'expiryTimeStamp group by throttleKey INSERT ALL EVENTS into ResultStream;'

const CUSTOM = (query: string): string => `policyName: C\nkeyTemplate: "$userId:$apiContext"\nsiddhiQuery: "${query}"\n`

test('the one shape of Siddhi queries is read', async t => {
  const query = QUERY('true', "userId, ':', apiContext", 'count(userId) >= 12')
  const home = temporaryHome(t, { 'policies/custom/c.yaml': CUSTOM(query) })
  const { set, errors } = await readPolicies(home, NONE)
  assert.deepEqual(errors, [])
  assert.deepEqual(set.policies[0]!.quota, { type: 'requests', limit: 12, ...MIN })
})

/** [what is wrong, file, its text, what the diagnostic says]. */
const WRONG: readonly (readonly [why: string, path: string, text: string, said: RegExp])[] = [
  ['no name', 'application/a.yaml', `defaultLimit: ${count('min', 1)}`, /a\.yaml:1: policyName: is missing \(add it\)/],
  ['no limit', 'application/a.yaml', 'policyName: A', /a\.yaml:1: defaultLimit: is missing \(add it\)/],
  [
    'an unknown member',
    'subscription/a.yaml',
    `policyName: A\nstopOnQuotaRech: true\ndefaultLimit: ${count('min', 1)}`,
    /a\.yaml:2: stopOnQuotaRech: is no member that is known here \(did you mean stopOnQuotaReach\?\)/,
  ],
  [
    'an unknown unit',
    'application/a.yaml',
    `policyName: A\ndefaultLimit: ${count('fortnights', 1)}`,
    /a\.yaml:2: defaultLimit\.requestCount\.timeUnit = "fortnights": expected one of sec, /,
  ],
  [
    'a count of 0',
    'application/a.yaml',
    `policyName: A\ndefaultLimit: ${count('min', 0)}`,
    /requestCount = "?0"?: expected a whole number from 1 /,
  ],
  [
    'a pattern that is none',
    'advanced/a.yaml',
    GROUPS.replace('a.*', 'a('),
    /a\.yaml:9: conditionalGroups\[0\]\.conditions\[2\]\.headerCondition\.headerValue = "a\(": is no regular expression: .*missing closing/,
  ],
  [
    'a header that no request can have',
    'advanced/a.yaml',
    GROUPS.replace(/headerName: [\w-]+/, 'headerName: X Tier'),
    /headerCondition\.headerName = "X Tier": is no name of a header \(write one such as User-Agent\)/,
  ],
  [
    'an address that is none',
    'advanced/a.yaml',
    GROUPS.replace('192.0.2.1', '192.0.2.256'),
    /specificIP = "192\.0\.2\.256": is no IP address/,
  ],
  [
    'a range that ends before it begins',
    'deny/a.yaml',
    'conditionType: IPRANGE\nconditionValue: { startingIp: 192.0.2.9, endingIp: 192.0.2.1 }',
    /a\.yaml:2: conditionValue\.endingIp = "192\.0\.2\.1": is no end of a range from 192\.0\.2\.9/,
  ],
  [
    'an API without its context',
    'deny/a.yaml',
    'conditionType: API\nconditionValue: orders',
    /conditionValue = "orders": names no API \(write context and version, as \/orders\/1\.0\.0\)/,
  ],
  [
    'a key template with an unknown variable',
    'custom/a.yaml',
    `policyName: A\nkeyTemplate: "$userid"\ndefaultLimit: ${count('min', 1)}`,
    /keyTemplate = "\$userid": names \$userid \(use variables that are known/,
  ],
  [
    'a query with a condition',
    'custom/a.yaml',
    CUSTOM(QUERY("userId == 'admin'", "userId, ':', apiContext", 'count(userId) >= 5')),
    /a\.yaml:3: siddhiQuery: has a condition in isEligible, which a key template cannot express/,
  ],
  [
    'a query with another key',
    'custom/a.yaml',
    CUSTOM(QUERY('true', 'userId', 'count(userId) >= 5')),
    /siddhiQuery: counts by \$userId, the policy by \$userId:\$apiContext/,
  ],
  [
    'a query with a sum',
    'custom/a.yaml',
    CUSTOM(QUERY('true', "userId, ':', apiContext", 'sum(bytes) >= 5')),
    /siddhiQuery: has sum in place of count/,
  ],
  [
    'any other query',
    'custom/a.yaml',
    CUSTOM('from X select y'),
    /siddhiQuery: is not of the shape that is recognised/,
  ],
  [
    'a folder of no level',
    'subscriptions/a.yaml',
    'policyName: A',
    /policies\/subscriptions: is the folder of no level \(did you mean subscription\?\)/,
  ],
]

for (const [why, path, text, said] of WRONG) {
  test(`a file with ${why} is an error with place and remedy`, async t => {
    const home = temporaryHome(t, { [`policies/${path}`]: text })
    const { errors } = await readPolicies(home, ALL)
    assert.match(errors.map(formatDiagnostic).join('\n'), said)
  })
}

test('a policy that two files name is an error', async t => {
  const text = `policyName: A\ndefaultLimit: ${count('min', 1)}\n`
  const home = temporaryHome(t, { 'policies/application/a.yaml': text, 'policies/application/b.yaml': text })
  const { errors } = await readPolicies(home, ALL)
  assert.match(
    errors.map(formatDiagnostic).join('\n'),
    /b\.yaml:1: policyName = "A": is declared at .*a\.yaml:1 already/,
  )
})

test('D218: the 25th custom policy by name is an error, because it would limit nobody', async t => {
  const text = (name: string): string => `policyName: ${name}\nkeyTemplate: $userId\ndefaultLimit: ${count('min', 1)}\n`
  const names = Array.from({ length: 25 }, (_, at) => `Rule${String(at).padStart(2, '0')}`)
  // File names are in another order than names of policies.
  const fileOf = (name: string, at: number): [string, string] => [`policies/custom/${99 - at}.yaml`, text(name)]
  const within = await readPolicies(temporaryHome(t, Object.fromEntries(names.slice(1).map(fileOf))), NONE)
  assert.deepEqual([within.errors, within.set.policies.length], [[], 24])
  const beyond = await readPolicies(temporaryHome(t, Object.fromEntries(names.map(fileOf))), NONE)
  assert.equal(beyond.errors.length, 1)
  assert.match(formatDiagnostic(beyond.errors[0]!), /75\.yaml:1: policyName = "?Rule24"?: .* 24 custom policies/)
})
