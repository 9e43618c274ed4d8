/** A client library of the standard uses the healthcare API through the gateway, with tokens of the key manager. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Client } from 'fhir-kit-client'
import { ALL, startHealthcare } from '../harness/healthcare.ts'
import { leave } from '../harness/operator.ts'

after(leave)

const { base, token } = await startHealthcare()
const client = new Client({ baseUrl: base, bearerToken: await token(ALL) })
const resourceType = 'HealthcareService'
const NEW = { resourceType, active: true, name: 'Dental clinic', identifier: [{ system: 'urn:ids', value: 'd-1' }] }

interface Bundle {
  readonly total?: number
  readonly entry?: readonly {
    readonly resource: { readonly id: string }
    readonly response: { readonly status: string }
  }[]
  readonly link: { readonly relation: string; readonly url: string }[]
}
function bundle(value: unknown): Bundle & { readonly resourceType: string; [name: string]: unknown } {
  return value as ReturnType<typeof bundle>
}

test('the client reads the capability statement and finds the type in it', async () => {
  const statement = (await client.capabilityStatement()) as unknown as {
    fhirVersion: string
    rest: { resource: { type: string }[] }[]
  }
  assert.deepEqual([statement.fhirVersion, statement.rest[0]!.resource[0]!.type], ['4.0.1', resourceType])
})

test('the client creates, reads, updates, patches, reads versions and history, and deletes', async () => {
  const created = await client.create({ resourceType, body: NEW })
  const id = String(created.id)
  assert.equal((await client.read({ resourceType, id })).name, 'Dental clinic')
  await client.update({ resourceType, id, body: { ...NEW, id, name: 'Dental centre' } })
  const jsonPatch = [
    { op: 'test' as const, path: '/active', value: true },
    { op: 'replace' as const, path: '/active', value: false },
  ]
  const options = { headers: { 'Content-Type': 'application/json-patch+json' } }
  assert.equal((await client.patch({ resourceType, id, jsonPatch, options })).active, false)
  assert.equal((await client.vread({ resourceType, id, version: '1' })).name, 'Dental clinic')
  assert.equal((await client.vread({ resourceType, id, version: '2' })).name, 'Dental centre')
  await client.delete({ resourceType, id })
  await assert.rejects(
    client.read({ resourceType, id }),
    (error: { response: { status: number } }) => error.response.status === 410,
  )
  const history = bundle(await client.history({ resourceType, id }))
  assert.deepEqual(
    history.entry!.map(({ response }) => response.status),
    ['204 No Content', '200 OK', '200 OK', '201 Created'],
  )
  assert.ok(bundle(await client.history({ resourceType })).total! >= 4)
})

test('the client searches by GET and by POST, and follows the links of the pages', async () => {
  for (let number = 1; number <= 5; number++) {
    await client.create({ resourceType, body: { ...NEW, name: `Paged ${number}` } })
  }
  const searchParams = { name: 'paged', _count: 2, _sort: '-name' }
  for (const postSearch of [false, true]) {
    const found: string[] = []
    let page = bundle(await client.search({ resourceType, searchParams, options: { postSearch } }))
    for (;;) {
      found.push(...page.entry!.map(({ resource }) => (resource as unknown as { name: string }).name))
      const next = await client.nextPage({ bundle: page })
      if (next === undefined || next === null) break
      page = bundle(next)
    }
    assert.deepEqual(found, ['Paged 5', 'Paged 4', 'Paged 3', 'Paged 2', 'Paged 1'])
  }
})

test('the client creates and updates by conditions', async () => {
  const body = { ...NEW, identifier: [{ system: 'urn:ids', value: 'only' }] }
  const options = { headers: { 'If-None-Exist': 'identifier=urn:ids|only' } }
  const [first, second] = [
    await client.create({ resourceType, body, options }),
    await client.create({ resourceType, body, options }),
  ]
  assert.equal(first.id, second.id)
  const searchParams = { identifier: 'urn:ids|only' }
  const updated = await client.update({ resourceType, searchParams, body: { ...body, name: 'By condition' } })
  assert.deepEqual([updated.id, updated.name], [first.id, 'By condition'])
})

const URN = 'urn:uuid:8e7c0f5e-44c9-4e2d-9a9e-1f0a3f6b2c1d'
function post(name: string, more: object = {}) {
  return { resource: { resourceType, name }, request: { method: 'POST', url: resourceType }, ...more }
}

test('the client runs a batch, whose entries fail for themselves', async () => {
  const entry = [post('batch one'), { request: { method: 'GET', url: `${resourceType}/none` } }, post('batch two')]
  const result = bundle(await client.batch({ body: { resourceType: 'Bundle', type: 'batch', entry } }))
  assert.deepEqual(
    result.entry!.map(({ response }) => response.status),
    ['201 Created', '404 Not Found', '201 Created'],
  )
})

test('the client runs a transaction: references are resolved, and one fault undoes everything', async () => {
  const extension = [{ url: 'urn:x:sibling', valueReference: { reference: URN } }]
  const second = { resource: { resourceType, name: 'two', extension }, request: { method: 'POST', url: resourceType } }
  const body = (entry: readonly object[]) => ({ resourceType: 'Bundle', type: 'transaction', entry })
  const done = bundle(await client.transaction({ body: body([post('one', { fullUrl: URN }), second]) }))
  const [one, two] = done.entry!.map(
    ({ resource }) => resource as unknown as { id: string; extension: typeof extension },
  )
  assert.equal(two!.extension[0]!.valueReference.reference, `${resourceType}/${one!.id}`)
  const failing = { request: { method: 'DELETE', url: `${resourceType}/${one!.id}`, ifMatch: 'W/"9"' } }
  await assert.rejects(
    client.transaction({ body: body([post('undone'), failing]) }),
    (error: { response: { status: number } }) => error.response.status === 412,
  )
  assert.equal(bundle(await client.search({ resourceType, searchParams: { name: 'undone' } })).entry, undefined)
})

test('the client goes back a page, and resolves references to services and contained resources', async () => {
  for (const name of ['Back 1', 'Back 2']) await client.create({ resourceType, body: { ...NEW, name } })
  const first = bundle(await client.search({ resourceType, searchParams: { name: 'back', _count: 1, _sort: 'name' } }))
  const second = bundle(await client.nextPage({ bundle: first }))
  const again = bundle(await client.prevPage({ bundle: second }))
  const [one] = first.entry!
  assert.deepEqual(
    again.entry!.map(({ resource }) => resource.id),
    [one!.resource.id],
  )
  const reference = `${resourceType}/${one!.resource.id}`
  assert.equal((await client.resolve({ reference })).name, 'Back 1')
  assert.equal((await client.resolve({ reference: `${base}/${reference}` })).name, 'Back 1')
  const contained = [{ resourceType: 'Location', id: 'l', name: 'Inside' }]
  const body = { ...NEW, contained, location: [{ reference: '#l' }] }
  const context = await client.create({ resourceType, body })
  assert.equal((await client.resolve({ reference: '#l', context })).name, 'Inside')
})

test('the client deletes by criteria, and its own requests have the media types of the standard', async () => {
  await client.create({ resourceType, body: { ...NEW, identifier: [{ system: 'urn:ids', value: 'gone' }] } })
  await client.request(`${resourceType}?identifier=urn:ids|gone`, { method: 'DELETE' })
  assert.equal(bundle(await client.search({ resourceType, searchParams: { identifier: 'gone' } })).total, 0)
  const { response } = Client.httpFor(await client.read({ resourceType, id: String((await anyService()).id) }))
  assert.equal(response?.headers.get('content-type'), 'application/fhir+json; charset=utf-8')
})

async function anyService(): Promise<{ readonly id: string }> {
  return bundle(await client.search({ resourceType, searchParams: { _count: 1 } })).entry![0]!.resource
}

test('the client finds the token endpoint by the SMART configuration', async () => {
  const { tokenUrl } = (await client.smartAuthMetadata()) as { readonly tokenUrl?: URL }
  assert.equal(String(tokenUrl), `${new URL(base).origin}/token`)
  // The client asks for the statement at the same time, and takes the first answer.
  const statement = await client.capabilityStatement()
  const { rest } = statement as unknown as { rest: readonly { security: { extension: readonly object[] } }[] }
  const token = { url: 'token', valueUri: `${new URL(base).origin}/token` }
  assert.deepEqual(rest[0]!.security.extension, [
    { url: 'http://fhir-registry.smarthealthit.org/StructureDefinition/oauth-uris', extension: [token] },
  ])
})
