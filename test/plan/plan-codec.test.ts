/** How a plan gets to a reactor: as it is, with shared CORS definitions, and as it is now. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CorsDefinition } from '../../src/apis/api-definition.ts'
import { decodePlan, encodePlan } from '../../src/plan/plan-codec.ts'
import type { ApiPlan, ReactorPlan } from '../../src/plan/reactor-plan.ts'
import { PLAIN_API } from '../harness/api-plan.ts'

const CORS: CorsDefinition = {
  enabled: true,
  origins: ['https://shop.example', '*'],
  methods: ['GET'],
  headers: ['Ä-Field'],
  exposedHeaders: [],
  credentials: false,
  maxAgeS: -1,
}

function api(path: string, cors: CorsDefinition | null): ApiPlan {
  const endpoints = { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints: [] } as const
  const resources = [{ template: '/ü/{id}', verb: 'GET', authType: 'None', tier: '\u{1f600}', scopes: ['"'] }] as const
  return { ...PLAIN_API, name: path, paths: [path], endpoints, cors, resources }
}

function planOf(apis: readonly ApiPlan[], reactor = 0): ReactorPlan {
  return { reactor, apis, heartbeats: new SharedArrayBuffer(4), logLevel: 'info' } as unknown as ReactorPlan
}

test('a plan is decoded as it was encoded, and APIs with the same CORS share it', () => {
  const apis = [api('/a', CORS), api('/b', null), api('/c', { ...CORS, maxAgeS: 5 }), api('/d', CORS)]
  const plan = planOf(apis)
  const decoded = decodePlan(structuredClone(encodePlan(plan)))
  assert.deepEqual(decoded, plan)
  assert.equal(decoded.apis[0]!.cors, decoded.apis[3]!.cors)
})

test('the encoded APIs are those of the plan, not those of the last one', () => {
  const first = [api('/a', null)]
  assert.deepEqual(decodePlan(encodePlan(planOf(first))).apis, first)
  const second = [api('/b', CORS)]
  assert.deepEqual(decodePlan(encodePlan(planOf(second))).apis, second)
  assert.deepEqual(decodePlan(encodePlan(planOf(first, 1))).apis, first)
})
