/** Refusals of limits and lifecycle in front of the healthcare API. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { issuesOf, startHealthcare } from '../harness/healthcare.ts'
import { leave, managed, sluice } from '../harness/operator.ts'

after(leave)

const TYPE = '/HealthcareService'
const MEDIA_TYPES = ['application/health+json', 'application/fhir+json', 'application/json']

test('throttled requests and a blocked API are OperationOutcomes in each media type', async () => {
  const { at, ask } = await startHealthcare()
  const words = [
    ['application', 'create', 'Slow', '--tier', '10PerMin'],
    ['key', 'generate', 'Slow'],
    ['subscription', 'add', 'Slow', 'HealthcareService:1.0.0'],
    ['token', 'Slow', '--scopes', 'user/HealthcareService.rs'],
  ]
  let token = ''
  for (const command of words) token = (await managed(at, ...command)).trim()
  const outcomes = async (): Promise<readonly (readonly [number, readonly string[], string | null])[]> => {
    const asked = await Promise.all(MEDIA_TYPES.map(accept => ask('GET', TYPE, { token, fields: { accept } })))
    return asked.map(each => [each.status, issuesOf(each), each.fields.get('content-type')])
  }
  for (let request = 0; request < 10; request++) assert.equal((await ask('GET', TYPE, { token })).status, 200)
  const types = MEDIA_TYPES.map(type => `${type}; charset=utf-8`)
  assert.deepEqual(
    await outcomes(),
    types.map(type => [429, ['error throttled 900803'], type]),
  )
  assert.match((await ask('GET', TYPE, { token })).fields.get('retry-after')!, /^\d+$/)
  assert.equal((await sluice(at, 'api', 'lifecycle', 'HealthcareService', 'Block')).code, 0)
  assert.deepEqual(
    await outcomes(),
    types.map(type => [503, ['error transient 700700'], type]),
  )
})
