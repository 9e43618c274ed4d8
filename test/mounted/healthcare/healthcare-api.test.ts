/** The module on an embedded database, without a gateway: its sample, and bodies within Bundles. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Database, MountedDatabases } from '../../../src/mounted/database-access.ts'
import { open } from '../../../src/mounted/healthcare/healthcare-api.ts'
import { readJson } from '../../../src/mounted/healthcare/json-text.ts'
import { ServiceStorage } from '../../../src/mounted/healthcare/storage.ts'
import type { HealthcareTables } from '../../../src/mounted/healthcare/storage-schema.ts'
import { validateResource } from '../../../src/mounted/healthcare/validation.ts'
import type { MountedApi, MountedCaller, MountedResponse } from '../../../src/mounted/interface.ts'
import type { RequestData } from '../../../src/plan/mounted-messages.ts'
import { MountedRequestView } from '../../../src/worker/mounted-request.ts'
import { RequestBody } from '../../../src/worker/request-body.ts'
import { embeddedSettings, service } from './storage-databases.ts'

const ANYBODY: MountedCaller = {
  ...{
    user: 'anonymous',
    tenant: '',
    isApplication: false,
    application: null,
    consumerKey: '',
    scopes: [],
    claims: {},
  },
  method: 'none',
  keyType: 'PRODUCTION',
}

function databaseOf(t: TestContext): Database<HealthcareTables> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-healthcare-'))
  const database = new MountedDatabases({ settings: embeddedSettings(), folder }).of<HealthcareTables>('Care')
  t.after(async () => {
    await database.kysely.destroy()
    rmSync(folder, { recursive: true })
  })
  return database
}

async function opened(
  database: Database<HealthcareTables>,
  settings: Readonly<Record<string, unknown>> = {},
): Promise<MountedApi> {
  return open({
    api: { name: 'Care', version: '1.0.0' },
    settings,
    home: '/nowhere',
    secrets: () => assert.fail('the API has no secrets'),
    log: () => {},
    database: <Tables>() => database as unknown as Database<Tables>,
    wake: () => undefined,
  })
}

function requestOf(method: string, target: string, body = ''): MountedRequestView {
  const data: RequestData = {
    ...{ method, target, base: '/healthcare', context: '/healthcare', template: '/*', verb: '*' },
    ...{ host: 'gw.example', address: '127.0.0.1', correlationId: 'c', caller: ANYBODY },
    scheme: 'https',
    fields: [['Content-Type', 'application/fhir+json']],
  }
  const whole = { kind: 'whole', bytes: new TextEncoder().encode(body) } as const
  return new MountedRequestView(data, new RequestBody(whole, () => {}))
}

async function ask(api: MountedApi, method: string, target: string, body = ''): Promise<MountedResponse> {
  return api.handle(requestOf(method, target, body))
}

const bundle = (type: string, ...entry: readonly object[]): string =>
  JSON.stringify({ resourceType: 'Bundle', type, entry })

test('an empty database gets the sample, and one with services of its own does not', async t => {
  const database = databaseOf(t)
  const storage = await ServiceStorage.open(database)
  const countOf = async (): Promise<number> => (await storage.history('', { count: 1 })).total
  await opened(database)
  assert.equal(await countOf(), 0)
  await Promise.all([opened(database, { sample_services: 3 }), opened(database, { sample_services: 3 })])
  assert.equal(await countOf(), 3)

  const own = databaseOf(t)
  const others = await ServiceStorage.open(own)
  await others.write(writer => writer.create(service({ name: 'Own' })))
  await opened(own, { sample_services: 3 })
  assert.equal((await others.history('', { count: 1 })).total, 1)
})

test('a JSON Patch in a Binary keeps its digits, and is refused where parsers read it differently', async t => {
  const database = databaseOf(t)
  const storage = await ServiceStorage.open(database)
  await storage.write(writer => writer.create(service(), '7'))
  const api = await opened(database)
  const patch = (text: string) => ({
    resource: {
      ...{ resourceType: 'Binary', contentType: 'application/json-patch+json' },
      data: Buffer.from(text).toString('base64'),
    },
    request: { method: 'PATCH', url: 'HealthcareService/7' },
  })
  const value = '[{"url":"urn:x","valueDecimal":1.00}]'
  const added = await ask(
    api,
    'POST',
    '',
    bundle('batch', patch(`[{"op":"add","path":"/extension","value":${value}}]`)),
  )
  assert.match(String(added.body), /"valueDecimal":1\.00\b/)
  const repeated = '[{"op":"add","op":"remove","path":"/extension","value":[]}]'
  assert.match(String((await ask(api, 'POST', '', bundle('batch', patch(repeated)))).body), /"status":"400 .*repeated/)
})

test('reads pass searches that wait, and a search whose client has left is not run', async t => {
  const database = databaseOf(t)
  await (await ServiceStorage.open(database)).write(writer => writer.create(service({ name: 'A' }), '7'))
  const api = await opened(database)
  const finished: string[] = []
  const run = async (name: string, target: string, request = requestOf('GET', target)): Promise<void> => {
    const outcome = await Promise.resolve(api.handle(request)).then(
      ({ status }) => status,
      error => error.name,
    )
    finished.push(`${name} ${outcome}`)
  }
  const left = requestOf('GET', '/HealthcareService?name=a')
  const all = [
    run('first search', '/HealthcareService?name=a'),
    run('second search', '/HealthcareService?name:contains=a'),
    run('search of a client that leaves', '', left),
    run('third search', '/HealthcareService?_id=7'),
    run('read', '/HealthcareService/7'),
  ]
  left.abort()
  await Promise.all(all)
  assert.equal(finished[0], 'read 200')
  assert.deepEqual(finished.toSorted(), [
    'first search 200',
    'read 200',
    'search of a client that leaves RequestAborted',
    'second search 200',
    'third search 200',
  ])
})

test('a search whose client has sent FIN is run behind others, and beyond eight of them 503', async t => {
  const database = databaseOf(t)
  await (await ServiceStorage.open(database)).write(writer => writer.create(service({ name: 'A' }), '7'))
  const api = await opened(database)
  const finished: string[] = []
  const run = async (name: string, hasClientEnded: boolean): Promise<void> => {
    const request = requestOf('GET', '/HealthcareService?name=a')
    request.hasClientEnded = hasClientEnded
    const { status, fields = [] } = await api.handle(request)
    finished.push(`${name} ${status}`)
    if (status === 503) assert.deepEqual(new Map(fields).get('Retry-After'), '1')
  }
  const doubtful = Array.from({ length: 20 }, () => run('may have left', true))
  await Promise.all([...doubtful, run('is there', false), run('is there', false)])
  assert.deepEqual(
    finished.filter(outcome => !outcome.endsWith('503')),
    ['is there 200', 'is there 200', ...new Array(8).fill('may have left 200')],
  )
  assert.equal(finished.length, 22)
})

test('searches of a Bundle that would begin too late are refused, and change nothing', async t => {
  const api = await opened(databaseOf(t), { bundle_search_ms_max: 10 })
  const statusesOf = async (body: string): Promise<readonly string[]> => {
    const text = String((await ask(api, 'POST', '', body)).body)
    return [...text.matchAll(/"status":"(\d+)|"code":"(too-costly)"/g)].map(([, status, code]) => status ?? code!)
  }
  const get = (url: string) => ({ request: { method: 'GET', url } })
  const create = (more: object) => ({
    resource: service(),
    request: { method: 'POST', url: 'HealthcareService', ...more },
  })
  const many = new Array(400).fill(get('HealthcareService?name=a'))
  const statuses = await statusesOf(bundle('batch', ...many, create({})))
  assert.deepEqual(statuses.slice(-4), ['400', 'too-costly', 'too-costly', '201'])
  const conditional = Array.from({ length: 400 }, (_, at) => create({ ifNoneExist: `identifier=${at}` }))
  const { status, body } = await ask(api, 'POST', '', bundle('transaction', ...conditional))
  assert.deepEqual([status, /"code":"too-costly"/.test(String(body))], [400, true])
  const count = await ask(api, 'GET', '/HealthcareService?_summary=count')
  assert.match(String(count.body), /"total":1\b/)
})

test('no entry of a Bundle runs once its response is long', async t => {
  const api = await opened(databaseOf(t), { bundle_response_bytes_max: 1000 })
  const read = { request: { method: 'GET', url: 'HealthcareService/a' } }
  const resource = service({ id: 'a', comment: 'c'.repeat(300) })
  const change = { resource, request: { method: 'PUT', url: 'HealthcareService/a' } }
  await ask(api, 'PUT', '/HealthcareService/a', JSON.stringify(resource))
  const statusesOf = (text: unknown) => [...String(text).matchAll(/"status":"(\d+)/g)].map(([, status]) => status)
  const { body } = await ask(api, 'POST', '', bundle('batch', ...new Array(20).fill(read), change))
  // Sixteen entries run at once.
  assert.deepEqual(statusesOf(body), [...new Array(16).fill('200'), ...new Array(5).fill('400')])
  assert.equal(String(body).match(/"code":"too-costly"/g)?.length, 10)
  const created = Array.from({ length: 20 }, () => ({
    ...ENTRY,
    request: { method: 'POST', url: 'HealthcareService' },
  }))
  const { status } = await ask(api, 'POST', '', bundle('transaction', ...created))
  assert.equal(status, 400)
  const transaction = await ask(api, 'POST', '', bundle('transaction', ...new Array(5).fill(read)))
  assert.deepEqual(statusesOf(transaction.body), ['200', '200', '400', '400', '400'])
  const { body: counted } = await ask(api, 'GET', '/HealthcareService?_summary=count')
  assert.match(String(counted), /"total":1\b/)
})

const ENTRY = { resource: service({ id: 'b', name: 'B' }), request: { method: 'PUT', url: 'HealthcareService/b' } }
const REFUSED = { request: { method: 'GET', url: 'HealthcareService/none' } }
/** Method, target and body of requests in order, and the type of the resource in the response. */
const ANSWERS: readonly (readonly [method: string, target: string, body: string, type: string])[] = [
  ['GET', '/metadata', '', 'CapabilityStatement'],
  ['PUT', '/HealthcareService/a', JSON.stringify(service({ id: 'a', name: 'A' })), 'HealthcareService'],
  ['GET', '/HealthcareService/a?_summary=true', '', 'HealthcareService'],
  ['POST', '', bundle('batch', ENTRY, REFUSED), 'Bundle'],
  ['POST', '', bundle('transaction', ENTRY), 'Bundle'],
  ['GET', '/HealthcareService', '', 'Bundle'],
  ['GET', '/HealthcareService?name=nobody', '', 'Bundle'],
  ['GET', '/HealthcareService?colour=red&_summary=text', '', 'Bundle'],
  ['GET', '/HealthcareService?_count=1&_total=accurate', '', 'Bundle'],
  ['GET', '/HealthcareService?_summary=count', '', 'Bundle'],
  ['DELETE', '/HealthcareService/a', '', ''],
  ['GET', '/HealthcareService/_history', '', 'Bundle'],
  ['GET', '/HealthcareService/a/_history?_count=1', '', 'Bundle'],
  ['GET', '/HealthcareService/a', '', 'OperationOutcome'],
  ['POST', '/HealthcareService', '{"resourceType":"HealthcareService","a b":[]}', 'OperationOutcome'],
]

test('every response is a valid resource', async t => {
  const api = await opened(databaseOf(t))
  for (const [method, target, body, type] of ANSWERS) {
    const { body: given } = await ask(api, method, target, body)
    if (type === '') continue
    const faults = validateResource(readJson(String(given)), type)
    // A missing narrative is a warning.
    assert.deepEqual(
      faults.filter(({ detail }) => detail !== 'dom-6'),
      [],
      `${method} ${target}`,
    )
  }
})
