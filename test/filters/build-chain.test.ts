/** Filter chains: which filters an API gets for its plan, in which order, and how they are described. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildFilterChain, describeFilterChain, isServed } from '../../src/filters/build-chain.ts'
import type { ApiPlan } from '../../src/plan/reactor-plan.ts'
import { NO_ACCESS, PLAIN_API } from '../harness/api-plan.ts'
import { OPEN_CORS } from '../harness/filter-chain.ts'

const API: ApiPlan = {
  ...PLAIN_API,
  name: 'Pets',
  paths: ['/pets/1.0.0'],
  endpoints: { ...PLAIN_API.sandbox },
}
const RESOURCE = { template: '/pets', verb: 'GET', authType: 'None', tier: 'Unlimited', scopes: [] } as const
/** Noon of 21 and 22 November 2026. */
const DATES = { deprecatedAtMs: 1795262400500, sunsetMs: 1795348800000 }

/** What stands behind every authentication. */
const TELLS = 'backend credentials: backends get a JWT that names the caller if [apim.jwt] is enabled'
const SECURED = { ...NO_ACCESS, api: 'Pets:1.0.0', schemes: ['oauth2'] } as const

interface Case {
  readonly name: string
  readonly unlike: Partial<ApiPlan>
  readonly chain: readonly string[]
}

const CASES: readonly Case[] = [
  { name: 'an API without settings', unlike: {}, chain: [] },
  { name: 'a prototype', unlike: { lifecycle: { ...DATES, state: 'PROTOTYPED' } }, chain: [] },
  { name: 'CORS', unlike: { cors: OPEN_CORS }, chain: ['cors: every origin'] },
  { name: 'CORS that is not enabled', unlike: { cors: { ...OPEN_CORS, enabled: false } }, chain: [] },
  {
    name: 'CORS for few named origins',
    unlike: { cors: { ...OPEN_CORS, origins: ['https://a.example', 'https://b.example'], credentials: true } },
    chain: ['cors: https://a.example, https://b.example, with credentials'],
  },
  {
    name: 'CORS for names and patterns',
    unlike: { cors: { ...OPEN_CORS, origins: ['https://a.example', 'https://*.example'] } },
    chain: ['cors: origins: 1 by name, 1 by pattern'],
  },
  { name: 'CORS without an origin', unlike: { cors: { ...OPEN_CORS, origins: [] } }, chain: ['cors: no origin'] },
  {
    name: 'resources',
    unlike: { resources: [RESOURCE] },
    chain: ['resources: other paths 403 with 900906, other methods 405'],
  },
  {
    name: 'one transport',
    unlike: { transports: ['https'] },
    chain: ['transports: https only, elsewhere 404 as for an unknown API'],
  },
  {
    name: 'blocked',
    unlike: { lifecycle: { state: 'BLOCKED', deprecatedAtMs: 0, sunsetMs: 0 } },
    chain: ['lifecycle: BLOCKED: 503 with 700700'],
  },
  {
    name: 'deprecated',
    unlike: { lifecycle: { state: 'DEPRECATED', ...DATES } },
    chain: ['lifecycle: DEPRECATED: Deprecation: @1795262400, Sunset: Sun, 22 Nov 2026 12:00:00 GMT'],
  },
  {
    name: 'deprecated without a date',
    unlike: { lifecycle: { state: 'DEPRECATED', deprecatedAtMs: 0, sunsetMs: 0 } },
    chain: [],
  },
  {
    name: 'tokens',
    unlike: { access: SECURED },
    chain: ['authentication: oauth2; subscription to Pets:1.0.0', TELLS],
  },
  {
    name: 'several schemes, with a mandatory certificate',
    unlike: {
      access: {
        ...SECURED,
        schemes: ['mutual_tls', 'oauth2', 'basic'],
        requiresCertificate: true,
        requiresOther: true,
      },
    },
    chain: [
      'authentication: mutual_tls, oauth2, basic, a certificate and one of the other schemes; subscription to Pets:1.0.0',
      TELLS,
    ],
  },
  {
    name: 'basic only, which needs no subscription',
    unlike: { access: { ...SECURED, schemes: ['basic'] } },
    chain: ['authentication: basic', TELLS],
  },
  {
    name: 'a prototype with authentication',
    unlike: { access: SECURED, lifecycle: { ...DATES, state: 'PROTOTYPED' } },
    chain: ['authentication: a prototype: no credentials are required'],
  },
  {
    name: 'resources without authentication',
    unlike: { access: SECURED, resources: [RESOURCE] },
    chain: ['resources: other paths 403 with 900906, other methods 405'],
  },
  {
    name: 'retired',
    unlike: { lifecycle: { ...DATES, state: 'RETIRED' }, cors: OPEN_CORS },
    chain: ['lifecycle: RETIRED: 404 as for an unknown API'],
  },
  {
    name: 'created',
    unlike: { lifecycle: { ...DATES, state: 'CREATED' }, cors: OPEN_CORS },
    chain: ['lifecycle: CREATED: 404 as for an unknown API'],
  },
  {
    name: 'all filters, in order',
    unlike: {
      transports: ['http'],
      cors: OPEN_CORS,
      resources: [RESOURCE, { ...RESOURCE, verb: 'PUT', authType: 'Application' }],
      lifecycle: { state: 'BLOCKED', deprecatedAtMs: 0, sunsetMs: 0 },
      access: SECURED,
    },
    chain: [
      'transports: http only, elsewhere 404 as for an unknown API',
      'cors: every origin',
      'lifecycle: BLOCKED: 503 with 700700',
      'resources: other paths 403 with 900906, other methods 405',
      'authentication: oauth2; subscription to Pets:1.0.0',
      TELLS,
    ],
  },
]

/** Filters that every served API has, because deny policies and limits change while it runs. */
const LIMITS = ['denial', 'throttling']

for (const { name, unlike, chain } of CASES) {
  test(`the chain of ${name}`, () => {
    const api = { ...API, ...unlike }
    const explained = describeFilterChain(api).filter(filter => !isServed(api) || !LIMITS.includes(filter.name))
    assert.deepEqual(
      explained.map(({ name, about }) => `${name}: ${about}`),
      chain,
    )
    if (isServed(api))
      assert.deepEqual(
        buildFilterChain(api, null, null).map(({ name }) => name),
        describeFilterChain(api).map(({ name }) => name),
      )
  })
}

test('denial stands behind CORS, throttling between authentication and credentials for backends', () => {
  const { unlike } = CASES.at(-1)!
  assert.deepEqual(
    describeFilterChain({ ...API, ...unlike }).map(({ name }) => name),
    ['transports', 'cors', 'denial', 'lifecycle', 'resources', 'authentication', 'throttling', 'backend credentials'],
  )
})

test('throttling tells the policy of the API, and a hard limit', () => {
  const hardLimits = { production: { limit: 5, unit: 'sec' }, sandbox: null } as const
  const { about } = describeFilterChain({ ...API, tier: '10KPerMin', hardLimits }).at(-1)!
  assert.equal(about, 'the API by 10KPerMin, then of subscription and application; a hard limit')
})

test('APIs with equal settings share their filters', () => {
  const more = { cors: OPEN_CORS, resources: [RESOURCE], transports: ['https'] } as const
  const [one, other] = [
    buildFilterChain({ ...API, ...more }, null, null),
    buildFilterChain({ ...API, name: 'Dogs', ...more }, null, null),
  ]
  for (const [i, filter] of one.entries()) if (!LIMITS.includes(filter.name)) assert.equal(other[i], filter)
})
