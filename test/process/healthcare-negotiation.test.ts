/** Media types, header fields and scopes of the standard, through the gateway (R4, http.html; SMART STU2.2). */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { codesOf, startHealthcare } from '../harness/healthcare.ts'
import { leave } from '../harness/operator.ts'
import { connectPeer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'

after(leave)

const TYPE = '/HealthcareService'
const SERVICE = { resourceType: 'HealthcareService', name: 'A' }
const HEALTH = 'application/health+json'
const FHIR = 'application/fhir+json'

/** Scopes that the project of the package does not name: the key manager grants those of the project alone. */
const OWN_SCOPES = [
  ...[
    'user/HealthcareService.cu',
    'user/HealthcareService.sr',
    'user/HealthcareService.us',
    'user/HealthcareService.cs',
  ],
  ...['system/HealthcareService.read', 'system/HealthcareService.write', 'system/HealthcareService.*'],
  ...['system/*.read', 'system/*.cruds', 'system/Patient.cruds', 'user/HealthcareService.rs?service-type=urn:x|1'],
]
const { base, ask, token } = await startHealthcare(project => {
  const own = OWN_SCOPES.map(name => `    - scope: { name: "${name}" }\n`).join('')
  return project.replace(/^ {2}scopes:.*\n/m, line => `${line}${own}`)
})
const created = await ask('PUT', `${TYPE}/a`, { body: { ...SERVICE, id: 'a' } })
assert.equal(created.status, 201, created.text)

/** Accept, media type of the response; '' for 406. */
const ACCEPTED: readonly (readonly [accept: string, type: string])[] = [
  ['*/*', HEALTH],
  ['application/*', HEALTH],
  ['text/*', 'text/json'],
  [HEALTH, HEALTH],
  [FHIR, FHIR],
  ['APPLICATION/FHIR+JSON', FHIR],
  ['application/json', 'application/json'],
  ['text/json', 'text/json'],
  [`${FHIR};charset=utf-8`, FHIR],
  [`${FHIR}; fhirVersion=4.0`, FHIR],
  [`${FHIR}; fhirVersion=3.0`, ''],
  [`${FHIR};q=0.5, application/json`, 'application/json'],
  [`application/json;q=0.2, ${FHIR};q=0.9, */*;q=0.1`, FHIR],
  [`text/html, ${FHIR};q=0.4`, FHIR],
  ['text/html, application/xhtml+xml, */*;q=0.8', HEALTH],
  [`${FHIR};q=0`, ''],
  [`${HEALTH};q=0, */*`, FHIR],
  ['application/fhir+xml', ''],
  ['application/xml', ''],
  ['text/turtle', ''],
  ['text/html', ''],
]
for (const [accept, type] of ACCEPTED) {
  test(`Accept: ${accept} is answered with ${type || '406'}`, async () => {
    for (const path of [`${TYPE}/a`, TYPE, '/metadata']) {
      const asked = await ask('GET', path, { fields: { accept } })
      assert.equal(asked.status, type === '' ? 406 : 200, path)
      assert.equal(asked.fields.get('content-type'), `${type || HEALTH}; charset=utf-8`)
      if (type === '') assert.deepEqual(codesOf(asked), ['not-supported'])
    }
  })
}

test('no Accept is answered with the default type', async () => {
  const client = await connectPeer(Number(new URL(base).port))
  client.send('GET /healthcare/metadata HTTP/1.1\r\nHost: a\r\n\r\n')
  const { status, fields } = await takeResponse(client)
  client.destroy()
  assert.deepEqual([status, fields.get('content-type')], [200, [`${HEALTH}; charset=utf-8`]])
})

/** Value of `_format`, which wins over Accept, and the type of the response; '' for 406. */
const FORMATS: readonly (readonly [format: string, type: string])[] = [
  ['json', HEALTH],
  ['application/json', 'application/json'],
  ['text/json', 'text/json'],
  ['application/fhir%2Bjson', FHIR],
  ['application/fhir+json', FHIR],
  ['application/fhir%20json', FHIR],
  ['application/health%2Bjson', HEALTH],
  ['application/health+json', HEALTH],
  ['', 'text/json'],
  ['xml', ''],
  ['ttl', ''],
  ['html/json', ''],
  ['application/fhir%2Bxml', ''],
  ['application/fhir+turtle', ''],
]
for (const [format, type] of FORMATS) {
  test(`_format=${format} is answered with ${type || '406'}, whatever Accept says`, async () => {
    for (const path of [`${TYPE}/a?`, `${TYPE}?name=a&`, `${TYPE}/a/_history?`]) {
      const asked = await ask('GET', `${path}_format=${format}`, { fields: { accept: 'text/json' } })
      assert.equal(asked.status, type === '' ? 406 : 200, asked.text)
      assert.equal(asked.fields.get('content-type'), `${type || HEALTH}; charset=utf-8`)
    }
  })
}

/** Content-Type of a create and its status. */
const SENT: readonly (readonly [type: string, status: number])[] = [
  [HEALTH, 201],
  [FHIR, 201],
  ['application/json', 201],
  ['text/json', 201],
  [`${FHIR}; charset=utf-8`, 201],
  [`${FHIR};charset="UTF-8"`, 201],
  [`${FHIR}; fhirVersion=4.0`, 201],
  [`${FHIR}; fhirVersion=3.0`, 415],
  [`${FHIR}; charset=iso-8859-1`, 415],
  ['application/fhir+xml', 415],
  ['application/x-www-form-urlencoded', 415],
  ['application/json-patch+json', 415],
  ['text/plain', 415],
]
for (const [type, status] of SENT) {
  test(`a create with ${type} is ${status}`, async () => {
    const asked = await ask('POST', TYPE, { fields: { 'content-type': type }, body: SERVICE })
    assert.equal(asked.status, status, asked.text)
    if (status === 415) assert.deepEqual(codesOf(asked), ['not-supported'])
  })
}

test('X-Request-Id and X-Correlation-Id of the client come back (http.html#custom)', async () => {
  const given = { 'x-request-id': 'r-1', 'x-correlation-id': 'c-1' }
  for (const path of [`${TYPE}/a`, `${TYPE}/unknown`, TYPE, '/metadata']) {
    const { fields } = await ask('GET', path, { fields: given })
    assert.deepEqual([fields.get('x-request-id'), fields.get('x-correlation-id')], ['r-1', 'c-1'], path)
  }
  const { fields } = await ask('GET', `${TYPE}/a`)
  assert.deepEqual([fields.get('x-request-id') !== null, fields.get('x-correlation-id')], [true, null])
})

test('a preflight needs no token and allows every method and field of the standard (http.html#security)', async () => {
  const wanted =
    'authorization, content-type, accept, prefer, if-match, if-none-match, if-modified-since, if-none-exist, x-request-id'
  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']) {
    const headers = {
      ...{ origin: 'https://app.example', 'access-control-request-method': method },
      'access-control-request-headers': wanted,
    }
    // The methods of an operation are those of its path.
    const path = method === 'POST' ? TYPE : `${TYPE}/a`
    const { status, headers: sent } = await fetch(`${base}${path}`, { method: 'OPTIONS', headers })
    const listOf = (name: string): readonly string[] => (sent.get(name) ?? '').toLowerCase().split(/, */)
    // The gateway answers preflights of every API with 200; any 2xx is one (Fetch, CORS-preflight fetch).
    assert.equal(status, 200)
    assert.ok(
      listOf('access-control-allow-methods').includes(method.toLowerCase()),
      `${method}: ${sent.get('access-control-allow-methods')}`,
    )
    const missing = wanted.split(', ').filter(name => !listOf('access-control-allow-headers').includes(name))
    assert.deepEqual(missing, [])
  }
})

/** A scope, and what it allows: read, version read, history of one, search, history of all, create, update, delete. */
const READS = ['read', 'version read', 'history'] as const
const GRANTS: readonly (readonly [scope: string, allowed: readonly string[]])[] = [
  ['patient/HealthcareService.r', READS],
  ['user/HealthcareService.s', ['search', 'history of all']],
  ['user/HealthcareService.c', ['create']],
  ['user/HealthcareService.u', ['update', 'patch']],
  ['user/HealthcareService.d', ['delete']],
  ['system/HealthcareService.rs', [...READS, 'search', 'history of all']],
  ['user/HealthcareService.cu', ['create', 'update', 'update as create', 'patch']],
  ['user/HealthcareService.cs', ['create', 'conditional create', 'search', 'history of all']],
  ['user/HealthcareService.us', ['update', 'conditional update', 'patch', 'search', 'history of all']],
  ['system/HealthcareService.read', [...READS, 'search', 'history of all']],
  ['system/HealthcareService.write', ['create', 'update', 'update as create', 'patch', 'delete']],
  ['system/*.read', [...READS, 'search', 'history of all']],
  ['user/HealthcareService.sr', []],
  ['system/Patient.cruds', []],
  ['user/HealthcareService.rs?service-type=urn:x|1', []],
]
let fresh = 0
const INTERACTIONS: Readonly<Record<string, (token: string) => ReturnType<typeof ask>>> = {
  read: token => ask('GET', `${TYPE}/a`, { token }),
  'version read': token => ask('GET', `${TYPE}/a/_history/1`, { token }),
  history: token => ask('GET', `${TYPE}/a/_history`, { token }),
  search: token => ask('GET', `${TYPE}?name=a`, { token }),
  'history of all': token => ask('GET', `${TYPE}/_history?_count=1`, { token }),
  create: token => ask('POST', TYPE, { token, body: SERVICE }),
  'conditional create': token => ask('POST', TYPE, { token, fields: { 'if-none-exist': '_id=a' }, body: SERVICE }),
  update: token => ask('PUT', `${TYPE}/a`, { token, body: { ...SERVICE, id: 'a' } }),
  'conditional update': token => ask('PUT', `${TYPE}?_id=a`, { token, body: SERVICE }),
  'update as create': token => {
    const id = `fresh-${fresh++}`
    return ask('PUT', `${TYPE}/${id}`, { token, body: { ...SERVICE, id } })
  },
  patch: token =>
    ask('PATCH', `${TYPE}/a`, { token, fields: { 'content-type': 'application/json-patch+json' }, body: [] }),
  delete: token => ask('DELETE', `${TYPE}/none`, { token }),
  'conditional delete': token => ask('DELETE', `${TYPE}?_id=none`, { token }),
}
for (const [scope, allowed] of GRANTS) {
  test(`${scope} allows ${allowed.join(', ') || 'nothing'}`, async () => {
    const given = await token(scope)
    const found: string[] = []
    for (const [name, run] of Object.entries(INTERACTIONS)) {
      const { status, text } = await run(given)
      assert.ok([200, 201, 204, 403].includes(status), `${name}: ${text}`)
      if (status !== 403) found.push(name)
    }
    assert.deepEqual(
      found,
      Object.keys(INTERACTIONS).filter(name => allowed.includes(name)),
    )
  })
}

for (const scope of ['system/HealthcareService.*', 'system/*.cruds', 'system/HealthcareService.cruds']) {
  test(`${scope} allows everything`, async () => {
    const given = await token(scope)
    for (const [name, run] of Object.entries(INTERACTIONS)) {
      assert.ok((await run(given)).status < 300, name)
    }
  })
}
