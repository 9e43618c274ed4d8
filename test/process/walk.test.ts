/** `walk` on a running gateway: the steps of one request. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { takeResponse } from '../harness/responses.ts'
import { begin, dial, home, leave, SILENT, sluice, start, startTwo, untilListed } from '../harness/operator.ts'
import type { Peer } from '../harness/peers.ts'
import { freePort } from '../harness/program.ts'
import { openProject } from '../harness/open-project.ts'
import { put, putApi } from '../harness/reloading.ts'

after(leave)

const dead = await freePort()
const LIMITED = {
  ...{ name: 'Limited', context: '/limited', apiThrottlingPolicy: '10KPerMin' },
  endpointConfig: { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${dead}` } },
}
const at = home()
putApi(at, 'Dead', 'dead', `http://127.0.0.1:${dead}`)
put(at, 'apis/Limited/api.yaml', openProject(LIMITED))
const ONCE = { ...LIMITED, name: 'Once', context: '/once', apiThrottlingPolicy: 'Once', maxTps: { production: 1000 } }
const DAILY = '{ type: REQUESTCOUNTLIMIT, requestCount: { timeUnit: days, unitTime: 1, requestCount: 1 } }'
put(at, 'apis/Once/api.yaml', openProject(ONCE))
put(at, 'policies/advanced/Once.yaml', `policyName: Once\ndefaultLimit: ${DAILY}\n`)
/** The gateway of all tests but one. */
const gateway = await start(at)

interface Walked {
  readonly reactor: number
  readonly response: { readonly status: number; readonly bytes: number; readonly failure: string }
  readonly trace: {
    readonly isComplete: boolean
    readonly status: number
    readonly api: string
    readonly requestBodyBytes: number
    readonly responseBodyBytes: number
    readonly errorBase: number
    readonly steps: readonly { us: number; where: string; what: string; detail: string; bytes: number }[]
  }
}

/** Side, event and next state of each step, or its note. */
function course({ trace }: Walked): readonly string[] {
  return trace.steps.map(({ where, what, detail }) => `${where} ${what} ${detail}`.replace(/\d{4,5}/g, 'PORT'))
}

const REUSED = [
  'source REQUEST_BEGIN REQUEST_HEAD',
  'source REQUEST_END REQUEST_DONE',
  'gateway route Test, /t/1.0.0, /*',
  'gateway filter cors passes',
  'gateway filter denial passes',
  'gateway filter throttling passes',
  'gateway backend 127.0.0.1:PORT, reusing http-outgoing-1',
  'target REQUEST_BEGIN REQUEST_HEAD',
  'target REQUEST_END REQUEST_DONE',
  'target RESPONSE_BEGIN RESPONSE_HEAD',
  'source RESPONSE_BEGIN RESPONSE_HEAD',
  'source RESPONSE_BODY RESPONSE_BODY',
  'target RESPONSE_BODY RESPONSE_BODY',
  'target RESPONSE_DATA RESPONSE_BODY',
  'source RESPONSE_DATA RESPONSE_BODY',
  'source RESPONSE_END RESPONSE_DONE',
  'source REUSE REQUEST_READY',
  'target RESPONSE_END RESPONSE_DONE',
  'target REUSE REQUEST_READY',
]

test('walk: prints every event of both machines in order, for one request', async () => {
  const first = await sluice(gateway.home, 'walk', '/t/', '--json')
  assert.deepEqual([first.code, first.err], [0, ''])
  const fresh = course(JSON.parse(first.out))
  assert.deepEqual(fresh.slice(0, 9), [
    ...REUSED.slice(0, 6),
    'gateway backend 127.0.0.1:PORT, connecting as http-outgoing-1',
    'target CONNECTED REQUEST_READY',
    'gateway connected 127.0.0.1',
  ])
  assert.deepEqual(fresh.slice(9), REUSED.slice(7))

  const second = await sluice(gateway.home, 'walk', '/t/', '--json')
  const walked: Walked = JSON.parse(second.out)
  assert.deepEqual(course(walked), REUSED)
  assert.deepEqual(walked.response, { ...walked.response, status: 200, bytes: 2, failure: '' })
  assert.deepEqual(walked.trace, { ...walked.trace, isComplete: true, status: 200, api: 'Test', responseBodyBytes: 2 })
  const times = walked.trace.steps.map(({ us }) => us)
  assert.equal(times[0], 0)
  assert.deepEqual(
    times,
    times.toSorted((one, other) => one - other),
  )
  assert.deepEqual(
    walked.trace.steps.filter(({ bytes }) => bytes > 0).map(({ what, bytes }) => [what, bytes]),
    [['RESPONSE_DATA', 2]],
  )
})

test('walk: sends the body, fields and method of its options; byte counts stand with their events', async () => {
  const words = ['-X', 'PUT', '-d', 'hello', '-H', 'X-One: 1', '-H', 'Host: elsewhere', '-H', 'activityid: mine']
  const { code, out } = await sluice(gateway.home, 'walk', `http://localhost:${gateway.port}/t/x?y`, '--json', ...words)
  assert.equal(code, 0)
  const { trace }: Walked = JSON.parse(out)
  assert.equal(trace.requestBodyBytes, 5)
  assert.deepEqual(
    trace.steps.filter(({ bytes }) => bytes > 0).map(({ where, what, bytes }) => [where, what, bytes]),
    [
      ['source', 'REQUEST_DATA', 5],
      ['source', 'RESPONSE_DATA', 2],
    ],
  )
})

test('walk: prints source events on the left and target events on the right', async () => {
  const { code, out } = await sluice(gateway.home, 'walk', '/t/')
  assert.equal(code, 0)
  assert.match(out, /^GET \/t\/ {2}http:\/\/127\.0\.0\.1:\d+, reactor 0$/m)
  assert.match(out, /^ {8}0 {2}REQUEST_BEGIN → REQUEST_HEAD$/m)
  assert.match(out, /^ +\d+ {4}· route {2}Test, \/t\/1\.0\.0, \/\*$/m)
  assert.match(out, /^ +\d+ {50}REQUEST_BEGIN → REQUEST_HEAD$/m)
  assert.match(out, /^ +\d+ {2}RESPONSE_DATA → RESPONSE_BODY {2}\+2 bytes$/m)
  assert.match(out, /^200 OK {2}API Test, 0 bytes to the gateway, 2 back, [\d.]+ ms for the client$/m)
})

test('walk: prints the steps of a refused request', async () => {
  const { code, out } = await sluice(gateway.home, 'walk', '/nowhere', '--json')
  assert.equal(code, 0)
  const walked: Walked = JSON.parse(out)
  assert.equal(walked.trace.status, 404)
  assert.deepEqual(course(walked), [
    'source REQUEST_BEGIN REQUEST_HEAD',
    'source REQUEST_END REQUEST_DONE',
    'gateway fault 404, sequence main',
    'source RESPONSE_BEGIN RESPONSE_HEAD',
    'source RESPONSE_END RESPONSE_DONE',
    'source REUSE REQUEST_READY',
  ])
})

test('walk: shows the limits that a request meets, with what is left and when it resets', async () => {
  const { out } = await sluice(gateway.home, 'walk', '/limited/', '--json')
  const { trace }: Walked = JSON.parse(out)
  const quotas = trace.steps.filter(({ what }) => what === 'quota').map(({ detail }) => detail)
  assert.match(quotas.join(), /^api 10KPerMin: 9999 of 10000 left, resets in \d+ s$/)
})

test('walk: shows all limits of a refused request, the one that refuses with nothing left', async () => {
  await sluice(gateway.home, 'walk', '/once/', '--json')
  const { out } = await sluice(gateway.home, 'walk', '/once/', '--json')
  const { trace }: Walked = JSON.parse(out)
  assert.equal(trace.status, 429)
  const quotas = trace.steps.filter(({ what }) => what === 'quota').map(({ detail }) => detail)
  assert.match(quotas.join(), /^api Once: 0 of 1 left, resets in \d+ s,hard maxTps: \d+ of 1000 left, resets in \d+ s$/)
})

test('walk: names the command that explains a failure', async () => {
  const { code, out } = await sluice(gateway.home, 'walk', '/dead/1.0.0/')
  assert.equal(code, 0)
  assert.match(out, /^502 Bad Gateway {2}API Dead/m)
  assert.match(out, /^explained by: sluice why 101503 0$/m)
})

test('walk: prints no step of other requests', async () => {
  const crowded = await startTwo()
  const noise: Peer[] = []
  for (let count = 0; count < 8; count++) noise.push(await dial(crowded))
  let isOver = false
  const crowd = noise.map(async client => {
    while (!isOver) {
      client.send('GET /t/noise HTTP/1.1\r\nHost: a\r\n\r\n')
      assert.equal((await takeResponse(client)).body, 'ok')
    }
  })
  const { code, out } = await sluice(crowded.home, 'walk', '/t/', '--json')
  isOver = true
  await Promise.all(crowd)
  assert.equal(code, 0)
  const events = course(JSON.parse(out))
  for (const side of ['source', 'target'])
    assert.equal(events.filter(event => event.startsWith(`${side} REQUEST_BEGIN`)).length, 1, events.join('\n'))
  assert.equal(events.filter(event => event.includes('RESPONSE_DATA')).length, 2)
})

test('walk: a second one is refused while the first runs, and an interrupted one ends', async () => {
  const first = begin(gateway.home, 'walk', `/t${SILENT}`)
  await untilListed(gateway.home, 'REQUEST_DONE', 'target')
  assert.deepEqual(await sluice(gateway.home, 'walk', '/t/'), {
    code: 1,
    out: '',
    err: 'another walk is running; wait for its end\n',
  })
  await first.kill()
  for (;;) {
    const { code, err } = await sluice(gateway.home, 'walk', '/t/')
    if (code === 0) break
    assert.match(err, /another walk is running/)
  }
})

test('walk: prints the steps of a request without a response', async () => {
  const { code, out } = await sluice(gateway.home, 'walk', `/t${SILENT}`)
  assert.equal(code, 1)
  assert.match(out, /REQUEST_END → REQUEST_DONE\n\nno response {2}API Test/)
  assert.match(out, /^incomplete: the steps within 10 seconds$/m)
})
