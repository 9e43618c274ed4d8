/** Issue 16, items 3 and 4: policies of a running program, by file, reload, command, and REST over HTTPS. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { after, test } from 'node:test'
import { openProject } from '../harness/open-project.ts'
import { backend, home, leave, sluice, start } from '../harness/operator.ts'
import { freePort, type Home, type RunningGateway } from '../harness/program.ts'
import { put } from '../harness/reloading.ts'

after(leave)

const PASSWORD = 'a password of this test'
const ADMIN = '/api/am/admin/v4/throttling'

/** Requests per day, so that no window ends within the test. */
function policy(name: string, requestCount: number): string {
  const limit = `{ timeUnit: days, unitTime: 1, requestCount: ${requestCount} }`
  return `policyName: ${name}\ndefaultLimit: { type: REQUESTCOUNTLIMIT, requestCount: ${limit} }\n`
}

function limitedHome(apiThrottlingPolicy: string): Home {
  const at = home(backend.port, 'new')
  const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${backend.port}` } }
  put(at, 'apis/Test/api.yaml', openProject({ name: 'Test', context: '/t', apiThrottlingPolicy, endpointConfig }))
  return at
}

async function get(port: number): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(`http://127.0.0.1:${port}/t/1.0.0/x`, { headers: { connection: 'close' } })
  return { status: response.status, text: await response.text() }
}

async function statuses({ port }: RunningGateway, count: number): Promise<readonly number[]> {
  const all: number[] = []
  for (let i = 0; i < count; i++) all.push((await get(port)).status)
  return all
}

async function run(at: Home, ...words: string[]): Promise<ReturnType<typeof JSON.parse>> {
  const { code, out, err } = await sluice(at, ...words, '--json')
  assert.deepEqual([code, err], [0, ''])
  return JSON.parse(out)
}

/** Sends a request to the REST API with the certificate of the listener as authority. */
async function rest(at: Home, port: number, method: string, path: string, body: object | null = null) {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>()
  const authorization = `Basic ${Buffer.from(`admin:${PASSWORD}`).toString('base64')}`
  const headers = { authorization, host: 'localhost', 'content-type': 'application/json' }
  const ca = readFileSync(join(at.data, 'listener.pem'))
  const options = { host: '127.0.0.1', servername: 'localhost', port, ca, agent: false, method, path, headers }
  const sent = request(options, async answer => {
    let text = ''
    for await (const piece of answer.setEncoding('utf8')) text += piece
    resolve({ status: answer.statusCode!, text })
  })
  sent.on('error', reject).end(body === null ? '' : JSON.stringify(body))
  const { status, text } = await promise
  return { status, json: text === '' ? null : JSON.parse(text) }
}

test('a policy of the registry is in force on the next request, and what a file names, the file governs', async () => {
  const port = await freePort()
  const at = limitedHome('Daily')
  const sets = ['management.enable=true', `management.port=${port}`, `super_admin.password=${PASSWORD}`]
  const gateway = await start(at, sets)
  const limit = { type: 'REQUESTCOUNTLIMIT', requestCount: { timeUnit: 'days', unitTime: 1, requestCount: 2 } }
  const body = { policyName: 'Daily', defaultLimit: limit }
  const created = await rest(at, port, 'POST', `${ADMIN}/policies/advanced`, body)
  assert.equal(created.status, 201)
  assert.deepEqual(await statuses(gateway, 3), [200, 200, 429])
  const inUse = await rest(at, port, 'DELETE', `${ADMIN}/policies/advanced/${created.json.policyId}`)
  assert.deepEqual([inUse.status, inUse.json.description], [409, 'the policy Daily is in use: API Test:1.0.0'])
  put(at, 'policies/advanced/daily.yaml', policy('Daily', 5))
  assert.equal((await sluice(at, 'reload')).code, 0)
  const governed = await rest(at, port, 'PUT', `${ADMIN}/policies/advanced/${created.json.policyId}`, body)
  assert.equal(governed.status, 403)
  const [row] = (await run(at, 'throttle', 'policy', 'list', 'advanced')).policies.filter(
    ({ name }: { name: string }) => name === 'Daily',
  )
  assert.deepEqual([row.limit, row.source], ['5 requests per day', 'file'])
  // A policy of another name that is applied from a file keeps the counts of this one.
  put(at, 'other.yaml', policy('Other', 1))
  const applied = await run(at, 'throttle', 'policy', 'apply', join(at.path, 'other.yaml'), '--level', 'custom').catch(
    (error: Error) => error.message,
  )
  assert.match(String(applied), /keyTemplate/)
  const denied = await rest(at, port, 'POST', `${ADMIN}/deny-policies`, {
    conditionType: 'API',
    conditionValue: '/t/1.0.0',
  })
  const refused = await get(gateway.port)
  assert.match(refused.text, /900805/)
  await rest(at, port, 'PATCH', `${ADMIN}/deny-policy/${denied.json.conditionId}`, { conditionStatus: false })
  assert.doesNotMatch((await get(gateway.port)).text, /900805/)
  await run(at, 'throttle', 'deny', 'enable', '/t/1.0.0')
  assert.match((await get(gateway.port)).text, /900805/)
  await run(at, 'throttle', 'deny', 'remove', '/t/1.0.0')
  assert.doesNotMatch((await get(gateway.port)).text, /900805/)
})

test('an error in a policy refuses the reload as a whole, and the policy in force goes on', async () => {
  const at = limitedHome('Daily')
  put(at, 'policies/advanced/daily.yaml', policy('Daily', 2))
  const gateway = await start(at)
  put(at, 'policies/advanced/daily.yaml', policy('Daily', 0))
  const { code, out, err } = await sluice(at, 'reload')
  assert.equal(code, 78)
  assert.match(
    `${out}${err}`,
    /daily\.yaml:2: defaultLimit\.requestCount\.requestCount = .*: expected a whole number from 1/,
  )
  assert.deepEqual(await statuses(gateway, 3), [200, 200, 429])
})

test('check tells a key that names a tier that no policy has', async () => {
  const at = limitedHome('')
  const { out, err } = await sluice(at, 'check', '--set', 'apim.throttling.unauthenticated_tier=Bronce')
  assert.match(
    `${out}${err}`,
    /apim\.throttling\.unauthenticated_tier = "Bronce": is no subscription policy .*did you mean Bronze\?/,
  )
})

test('without enable_unlimited_tier, check names that key where Unlimited is named', async () => {
  const { out, err } = await sluice(limitedHome(''), 'check', '--set', 'apim.throttling.enable_unlimited_tier=false')
  assert.match(
    `${out}${err}`,
    /unauthenticated_tier = "Unlimited": is no subscription policy .*\(set apim\.throttling\.enable_unlimited_tier = true, or/,
  )
})

test('check tells an error of a policy, and a tier that no policy has', async () => {
  const at = limitedHome('Dialy')
  put(at, 'policies/advanced/daily.yaml', policy('Daily', 2))
  const warned = await sluice(at, 'check')
  assert.match(
    `${warned.out}${warned.err}`,
    /apiThrottlingPolicy = "Dialy": is no advanced policy .*did you mean Daily\?/,
  )
  put(at, 'policies/advanced/daily.yaml', 'policyName: Daily\n')
  const { code, out, err } = await sluice(at, 'check')
  assert.equal(code, 78)
  assert.match(`${out}${err}`, /daily\.yaml:1: defaultLimit: is missing/)
})

test('start --watch applies a policy file as it changes', async () => {
  const at = limitedHome('Daily')
  put(at, 'policies/advanced/daily.yaml', policy('Daily', 1000))
  const gateway = await start(at, [], {}, ['--watch'])
  assert.deepEqual(await statuses(gateway, 2), [200, 200])
  put(at, 'policies/advanced/daily.yaml', policy('Daily', 1))
  while ((await statuses(gateway, 1))[0] !== 429) await sleep(20)
})
