/** The chain of an API: which handlers it has for what its plan says, in which order, and in which words. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chainOf, explainChain, isServed } from '../../src/chain-of.ts'
import type { ApiPlan } from '../../src/plan.ts'
import { NO_ACCESS, PLAIN_API } from '../harness/api-plan.ts'
import { OPEN_CORS } from '../harness/chained.ts'

const API: ApiPlan = {
  ...PLAIN_API,
  name: 'Pets',
  paths: ['/pets/1.0.0'],
  endpoints: { ...PLAIN_API.sandbox },
}
const RESOURCE = { template: '/pets', verb: 'GET', authType: 'None', tier: 'Unlimited', scopes: [] } as const
/** 21 and 22 November 2026, noon. */
const DATES = { deprecatedAtMs: 1795262400500, sunsetMs: 1795348800000 }

/** What stands behind every authentication. */
const TELLS = 'backend credentials: back ends learn who calls where [apim.jwt] is enabled'
const SECURED = { ...NO_ACCESS, subject: 'Pets:1.0.0', schemes: ['oauth2'] } as const

interface Case {
  readonly name: string
  readonly unlike: Partial<ApiPlan>
  readonly chain: readonly string[]
}

const CASES: readonly Case[] = [
  { name: 'nothing to do', unlike: {}, chain: [] },
  { name: 'a prototype passes', unlike: { lifecycle: { ...DATES, state: 'PROTOTYPED' } }, chain: [] },
  { name: 'CORS', unlike: { cors: OPEN_CORS }, chain: ['cors: every origin'] },
  { name: 'CORS that is not enabled', unlike: { cors: { ...OPEN_CORS, enabled: false } }, chain: [] },
  {
    name: 'CORS of few by name',
    unlike: { cors: { ...OPEN_CORS, origins: ['https://a.example', 'https://b.example'], credentials: true } },
    chain: ['cors: https://a.example, https://b.example, with credentials'],
  },
  {
    name: 'CORS of many',
    unlike: { cors: { ...OPEN_CORS, origins: ['https://a.example', 'https://*.example'] } },
    chain: ['cors: origins: 1 by name, 1 by pattern'],
  },
  { name: 'CORS of nobody', unlike: { cors: { ...OPEN_CORS, origins: [] } }, chain: ['cors: no origin'] },
  {
    name: 'resources',
    unlike: { resources: [RESOURCE] },
    chain: ['resources: other paths 403 with 900906, other methods 405'],
  },
  {
    name: 'one transport',
    unlike: { transports: ['https'] },
    chain: ['transports: https alone, elsewhere 404 as for an unknown API'],
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
    name: 'deprecated at no known time',
    unlike: { lifecycle: { state: 'DEPRECATED', deprecatedAtMs: 0, sunsetMs: 0 } },
    chain: [],
  },
  {
    name: 'tokens',
    unlike: { access: SECURED },
    chain: ['authentication: oauth2; subscriptions to Pets:1.0.0', TELLS],
  },
  {
    name: 'several ways in, for a client with a certificate',
    unlike: {
      access: { ...SECURED, schemes: ['mutual_tls', 'oauth2', 'basic'], needsCertificate: true, needsOther: true },
    },
    chain: [
      'authentication: mutual_tls, oauth2, basic, a certificate and one of the others; subscriptions to Pets:1.0.0',
      TELLS,
    ],
  },
  {
    name: 'passwords alone, which nothing is subscribed to for',
    unlike: { access: { ...SECURED, schemes: ['basic'] } },
    chain: ['authentication: basic', TELLS],
  },
  {
    name: 'a prototype, whatever it would ask for',
    unlike: { access: SECURED, lifecycle: { ...DATES, state: 'PROTOTYPED' } },
    chain: ['authentication: a prototype: nobody is asked'],
  },
  {
    name: 'resources that all ask for nothing',
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
    name: 'everything, in order',
    unlike: {
      transports: ['http'],
      cors: OPEN_CORS,
      resources: [RESOURCE, { ...RESOURCE, verb: 'PUT', authType: 'Application' }],
      lifecycle: { state: 'BLOCKED', deprecatedAtMs: 0, sunsetMs: 0 },
      access: SECURED,
    },
    chain: [
      'transports: http alone, elsewhere 404 as for an unknown API',
      'cors: every origin',
      'lifecycle: BLOCKED: 503 with 700700',
      'resources: other paths 403 with 900906, other methods 405',
      'authentication: oauth2; subscriptions to Pets:1.0.0',
      TELLS,
    ],
  },
]

for (const { name, unlike, chain } of CASES) {
  test(`the chain for: ${name}`, () => {
    const api = { ...API, ...unlike }
    const explained = explainChain(api)
    assert.deepEqual(
      explained.map(({ name, about }) => `${name}: ${about}`),
      chain,
    )
    if (isServed(api))
      assert.deepEqual(
        chainOf(api, null).map(({ name }) => name),
        explained.map(({ name }) => name),
      )
  })
}

test('APIs that are alike share their handlers', () => {
  const more = { cors: OPEN_CORS, resources: [RESOURCE], transports: ['https'] } as const
  const [one, other] = [chainOf({ ...API, ...more }, null), chainOf({ ...API, name: 'Dogs', ...more }, null)]
  for (const [i, handler] of one.entries()) assert.equal(other[i], handler)
})
