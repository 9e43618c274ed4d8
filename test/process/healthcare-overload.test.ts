/** What clients of the healthcare API are told when the gateway cannot run it: 503, 504 and 500 in each media type. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { issuesOf, startHealthcare } from '../harness/healthcare.ts'
import { leave } from '../harness/operator.ts'

after(leave)

const TYPE = '/HealthcareService'
const SERVICE = JSON.stringify({ resourceType: 'HealthcareService', name: 'A' })
const MEDIA_TYPES = ['application/health+json', 'application/fhir+json', 'application/json']
const POOL = 'transport.passthru_http.worker_pool'

type Started = Awaited<ReturnType<typeof startHealthcare>>

/** Status, issues, media type and Retry-After of one request by each media type. */
async function refusalsOf({ ask }: Started): Promise<readonly (readonly [number, readonly string[], string | null])[]> {
  const asked = await Promise.all(MEDIA_TYPES.map(accept => ask('GET', `${TYPE}?name=a`, { fields: { accept } })))
  return asked.map(each => [each.status, issuesOf(each), each.fields.get('content-type')])
}

const expected = (status: number, issue: string) =>
  MEDIA_TYPES.map(type => [status, [issue], `${type}; charset=utf-8`] as const)

test('a full worker pool is 503 transient with 102540, until a place is free', async () => {
  const sets = [`${POOL}_size_core=1`, `${POOL}_size_max=1`, `${POOL}_queue_length=0`]
  const at = await startHealthcare(project => project, sets)
  const { ask } = at
  assert.equal((await ask('GET', TYPE)).status, 200)
  // A request that waits for the database holds its place; one that waits for its client does not (D805).
  const database = new DatabaseSync(join(at.at.data, 'api-HealthcareService.db'))
  database.exec('begin immediate')
  const posts: ReturnType<typeof ask>[] = []
  // A GET that comes first takes the place, and the POST is refused.
  do posts.push(ask('POST', TYPE, { body: SERVICE }))
  while ((await ask('GET', TYPE)).status === 200)
  assert.deepEqual(await refusalsOf(at), expected(503, 'error transient 102540'))
  const { status, fields } = await ask('POST', TYPE, { body: SERVICE })
  assert.deepEqual([status, fields.get('location')], [503, null])
  database.exec('rollback')
  database.close()
  const created = (await Promise.all(posts)).filter(post => post.status !== 503)
  assert.deepEqual(
    created.map(post => post.status),
    [201],
  )
  const found = await ask('GET', `${TYPE}?_summary=count`)
  assert.deepEqual([found.status, found.json.total], [200, 1])
})

test('requests without a response in time are 504 timeout with 102572', async () => {
  const at = await startHealthcare(project => project, ['mediation.synapse.global_timeout_interval=1'])
  const answers = await refusalsOf(at)
  assert.deepEqual(answers, expected(504, 'error timeout 102572'))
})

test('a failure of the database is 500 exception with 102570', async () => {
  const at = await startHealthcare()
  assert.equal((await at.ask('GET', TYPE)).status, 200)
  const database = new DatabaseSync(join(at.at.data, 'api-HealthcareService.db'))
  database.exec('alter table healthcare_texts rename to moved')
  assert.deepEqual(await refusalsOf(at), expected(500, 'fatal exception 102570'))
  database.exec('alter table moved rename to healthcare_texts')
  assert.equal((await at.ask('GET', TYPE)).status, 200)
  database.close()
})

test('an API whose settings are wrong is 503 transient with 102574', async () => {
  const at = await startHealthcare(project => project.replace('body_bytes_max: 2097152', 'body_bytes_max: -1'))
  assert.deepEqual(await refusalsOf(at), expected(503, 'error transient 102574'))
})
