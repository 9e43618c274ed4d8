/** Hostile requests to the healthcare API get an answer or a refusal, and no other request waits for them. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { codesOf, startHealthcare } from '../harness/healthcare.ts'
import { leave, managed } from '../harness/operator.ts'
import { connectPeer } from '../harness/peers.ts'
import { freePort } from '../harness/program.ts'
import { takeResponse } from '../harness/responses.ts'

const ENTRY = '{"request":{"method":"GET","url":"a"}}'

after(leave)

const { at, ask, base, token } = await startHealthcare(
  project => project.replace('sample_services: 0', 'sample_services: 2000'),
  // The token endpoint of the gateway passes requests on to that of the key manager.
  ['management.enable=true', `management.port=${await freePort()}`],
)
const TYPE = '/HealthcareService'
const origin = new URL(base).origin
const bearer = `Authorization: Bearer ${await token('system/HealthcareService.cruds')}\r\n`
const MEGABYTE = 1_048_576
const times = (count: number, make: (index: number) => string, separator: string): string =>
  Array.from({ length: count }, (_, index) => make(index)).join(separator)

type Row = readonly [what: string, query: string, status: number, code: string]

const REFUSED: readonly Row[] = [
  ['a thousand alternatives', `identifier=${times(1000, index => `${index}`, ',')}`, 400, 'too-costly'],
  ['seventeen conditions', times(17, index => `name=a${index}`, '&'), 400, 'too-costly'],
  ['nine parts of names', `name:contains=${times(9, index => `a${index}`, ',')}`, 400, 'too-costly'],
  ['ten chained parameters', times(10, index => `organization.name=a${index}`, '&'), 400, 'not-supported'],
  ['a chain of ten', `organization${'.partof'.repeat(10)}.name=a`, 400, 'not-supported'],
  ['a count that is no number', '_count=1e9', 400, 'value'],
  ['an unknown escape', 'name=a%5Cb', 400, 'value'],
]
for (const [what, query, status, code] of REFUSED) {
  test(`a search with ${what} is ${status} ${code}`, async () => {
    const asked = await ask('GET', `${TYPE}?${query}`)
    assert.equal(asked.status, status, asked.text)
    assert.ok(codesOf(asked).includes(code), asked.text)
  })
}

/** Number of matches. */
const FOUND: readonly (readonly [what: string, query: string, matches: number])[] = [
  ['a percent sign', 'name=%25', 0],
  ['a percent sign in a part', 'name:contains=%25', 0],
  ['an underscore', 'name:contains=_', 0],
  ['a percent sign between letters, which is punctuation', 'name:contains=al%25cohol', 0],
  [
    'sixteen conditions of sixteen values',
    times(16, at => `service-type:not=${times(16, i => `${at}x${i}`, ',')}`, '&'),
    20,
  ],
  ['eight parts of names that nothing has', `name:contains=${times(8, index => `zq${index}`, ',')}`, 0],
]
for (const [what, query, matches] of FOUND) {
  test(`a search with ${what} finds ${matches}`, async () => {
    const { status, json, text } = await ask('GET', `${TYPE}?${query}`)
    assert.equal(status, 200, text)
    assert.equal(((json.entry ?? []) as readonly unknown[]).length, matches)
  })
}

test('_count=10000 gives 500 matches, and the self link says 500', async () => {
  const { status, json } = await ask('GET', `${TYPE}?_count=10000`)
  const [self] = json.link as readonly { readonly relation: string; readonly url: string }[]
  assert.deepEqual([status, (json.entry as readonly unknown[]).length, self!.relation], [200, 500, 'self'])
  assert.equal(new URL(self!.url).searchParams.get('_count'), '500')
  const history = (await ask('GET', `${TYPE}/_history?_count=10000`)).json
  const [own] = history.link as readonly { readonly url: string }[]
  assert.equal(new URL(own!.url).searchParams.get('_count'), '500')
})

const BODIES: readonly (readonly [what: string, path: string, body: string, status: number, code: string])[] = [
  ['100,000 nested arrays', TYPE, `{"resourceType":"HealthcareService","type":${'['.repeat(100_000)}`, 400, 'invalid'],
  ['100,000 nested objects', TYPE, `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`, 400, 'invalid'],
  [
    'a Bundle beyond 2 MiB',
    '',
    `{"resourceType":"Bundle","type":"batch","id":"${'a'.repeat(3 * MEGABYTE)}"}`,
    413,
    'too-long',
  ],
  [
    'a Bundle of 501 entries',
    '',
    `{"resourceType":"Bundle","type":"batch","entry":[${times(501, () => ENTRY, ',')}]}`,
    400,
    'too-costly',
  ],
]
for (const [what, path, body, status, code] of BODIES) {
  test(`${what} are ${status} ${code}`, async () => {
    const asked = await ask('POST', path, { body })
    assert.equal(asked.status, status, asked.text.slice(0, 300))
    assert.ok(codesOf(asked).includes(code), asked.text)
  })
}

test('a body with a Content-Encoding is 415 not-supported', async () => {
  const asked = await ask('POST', TYPE, {
    body: '{"resourceType":"HealthcareService"}',
    fields: { 'content-encoding': 'gzip' },
  })
  assert.deepEqual([asked.status, codesOf(asked)], [415, ['not-supported']])
})

/** Requests whose API is not known when they are refused: the fault is that of any API. */
const UNKNOWN_API: readonly (readonly [what: string, lines: string, status: number])[] = [
  ['1 MiB of URL', `GET /healthcare${TYPE}?name=${'a'.repeat(MEGABYTE)} HTTP/1.1\r\nHost: a\r\n${bearer}`, 414],
  [
    'a URL beyond target.max_bytes',
    `GET /healthcare${TYPE}?name:exact=${'a'.repeat(9000)} HTTP/1.1\r\nHost: a\r\n${bearer}`,
    414,
  ],
  ['1 MiB of a field', `GET /healthcare${TYPE} HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(MEGABYTE)}\r\n`, 431],
  ['a malformed field', `GET /healthcare${TYPE} HTTP/1.1\r\nHost: a\r\nX y: a\r\n`, 400],
  ['a malformed escape in the path', `GET /healthcare${TYPE}/%zz HTTP/1.1\r\nHost: a\r\n`, 400],
  ['an unknown method', `FOO /healthcare${TYPE} HTTP/1.1\r\nHost: a\r\n`, 501],
  ['an unknown context', 'GET /health HTTP/1.1\r\nHost: a\r\n', 404],
]
for (const [what, lines, status] of UNKNOWN_API) {
  test(`${what} is refused before the API is known: ${status}, the fault of any API`, async () => {
    const client = await connectPeer(Number(new URL(base).port))
    client.send(`${lines}\r\n`)
    const { status: given, body } = await takeResponse(client)
    client.destroy()
    assert.deepEqual([given, Object.keys(JSON.parse(body))], [status, ['fault']])
  })
}

/** Requests whose API is known: unknown operations, paths and methods. */
const KNOWN_API: readonly (readonly [method: string, path: string, status: number, code: string])[] = [
  ['GET', '/nothing/here', 404, 'not-found'],
  ['GET', `${TYPE}/a/b`, 404, 'not-found'],
  ['GET', `${TYPE}/a/_history/1/2`, 404, 'not-found'],
  ['PUT', `${TYPE}/_search`, 405, 'not-supported'],
  ['DELETE', `${TYPE}/a/_history/1`, 405, 'not-supported'],
  ['PUT', '/metadata', 405, 'not-supported'],
]
for (const [method, path, status, code] of KNOWN_API) {
  test(`${method} ${path} is ${status} ${code} in the asked media type`, async () => {
    const asked = await ask(method, path, { fields: { accept: 'application/fhir+json' } })
    assert.deepEqual([asked.status, codesOf(asked)], [status, [code]])
    assert.equal(asked.fields.get('content-type'), 'application/fhir+json; charset=utf-8')
  })
}

test('requests to other APIs are answered while the worker runs 500 costly searches', async () => {
  const url = `HealthcareService?name:contains=zq0,zq1,zq2,zq3,zq4,zq5,zq6,zq7&_sort=organization&_total=accurate`
  const entry = new Array(500).fill({ request: { method: 'GET', url } })
  const finished: string[] = []
  const costly = ask('POST', '', { body: { resourceType: 'Bundle', type: 'batch', entry } }).then(({ json }) => {
    finished.push('searches')
    return json.entry as readonly { readonly response: { readonly status: string } }[]
  })
  const passing = (async () => {
    for (let request = 0; request < 50; request++) assert.equal((await fetch(`${origin}/t/1.0.0/x`)).status, 200)
    finished.push('passing')
  })()
  const [entries] = await Promise.all([costly, passing])
  // Searches that would begin after ten seconds are refused, on a slow machine.
  const statuses = new Set(entries.map(({ response }) => response.status))
  assert.deepEqual(statuses.difference(new Set(['200 OK', '400 Bad Request'])), new Set())
  assert.equal(entries[0]!.response.status, '200 OK')
  assert.deepEqual(finished, ['passing', 'searches'])
})

test('a search passes those of 64 clients that have closed their side, and may have left', async () => {
  const query = 'specialty:not=none&_sort=organization&_count=500&_total=accurate'
  const answers: string[] = []
  const closing = await Promise.all(
    Array.from({ length: 64 }, async () => {
      const client = await connectPeer(Number(new URL(base).port))
      client.send(`GET /healthcare${TYPE}?${query} HTTP/1.1\r\nHost: a\r\n${bearer}\r\n`)
      client.end()
      return client
    }),
  )
  const others = closing.map(async client => {
    answers.push(String((await takeResponse(client)).status))
    client.destroy()
  })
  const { status } = await ask('GET', `${TYPE}?_id=sample-000007`)
  const before = [...answers]
  await Promise.all(others)
  assert.equal(status, 200)
  // Eight a thread wait, others are refused; without turns of their own all 64 would be answered first.
  assert.ok(before.filter(each => each === '200').length < 32, before.join(' '))
  assert.deepEqual(new Set(answers), new Set(['200', '503']))
})

test('tokens of an application and of its user are accepted, each with any one of the three prefixes', async () => {
  const json = async (...words: string[]) => {
    return JSON.parse(await managed(at, ...words, '--json')) as Record<string, string>
  }
  await json('application', 'create', 'Ward')
  const { consumerKey, secret } = await json('key', 'generate', 'Ward', '--grants', 'client_credentials,password')
  await json('subscription', 'add', 'Ward', 'HealthcareService:1.0.0')
  const { password } = await json('user', 'add', 'gerda', '--roles', 'Internal/subscriber')
  const grants: readonly Record<string, string>[] = [
    { grant_type: 'client_credentials' },
    { grant_type: 'password', username: 'gerda', password: password! },
  ]
  for (const grant of grants) {
    for (const prefix of ['patient', 'user', 'system']) {
      const response = await fetch(`${origin}/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(`${consumerKey}:${secret}`)}` },
        body: new URLSearchParams({ ...grant, scope: `${prefix}/HealthcareService.rs` }),
      })
      const text = await response.text()
      const { access_token: given = '', scope } = JSON.parse(text) as Record<string, string>
      assert.equal(scope, `${prefix}/HealthcareService.rs`, text)
      const answers = [
        await ask('GET', `${TYPE}?_count=1`, { token: given }),
        await ask('GET', `${TYPE}/sample-000001`, { token: given }),
        await ask('DELETE', `${TYPE}/sample-000001`, { token: given }),
      ]
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 403],
        `${grant.grant_type} ${prefix}`,
      )
    }
  }
})
