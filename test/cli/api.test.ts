/** `api`: requests to the gateway, and output and exit code for its reports. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { ApiDetails, LifecycleReport } from '../../src/primary/api-service.ts'
import { api, parseSunset } from '../../src/cli/api.ts'
import { UsageError } from '../../src/cli/arguments.ts'
import { type CommandRequest, ControlSocket, CommandRefused } from '../../src/primary/control-socket.ts'
import { argumentsFor, Transcript, temporaryHome } from '../config/temporary-home.ts'

const ROW: LifecycleReport = {
  name: 'Orders',
  version: '1.0.0',
  paths: ['/orders/1.0.0', '/orders'],
  hosts: [],
  transports: ['http', 'https'],
  state: 'BLOCKED',
  declared: 'PUBLISHED',
  since: '2026-11-21T18:00:00.123Z',
  sunset: '',
  mediation: '',
  mounted: '',
  from: 'PUBLISHED',
  failures: [],
}

interface Outcome {
  readonly code: number
  readonly out: string
  readonly err: string
  readonly requests: readonly CommandRequest[]
}

interface RunOptions {
  readonly json?: boolean
  readonly sunset?: string
  /** Report of the gateway. */
  readonly report?: object
  readonly refusal?: string
}

/** Runs the command against a control socket with the report. */
async function run(t: TestContext, rest: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const { json = false, sunset = '', report = {}, refusal = '' } = options
  const home = temporaryHome(t, {})
  const requests: CommandRequest[] = []
  const command = (request: CommandRequest): object => {
    requests.push(request)
    if (refusal !== '') throw new CommandRefused(refusal)
    return report
  }
  const socket = await ControlSocket.open(home, { apis: command, api: command, lifecycle: command }, assert.fail)
  t.after(() => socket!.close())
  const [out, err] = [new Transcript(), new Transcript()]
  const code = await api(argumentsFor(home, { dataDir: home, json, rest }), { sunset }, out, err)
  return { code, out: out.text, err: err.text, requests }
}

const REQUESTS: readonly (readonly [words: readonly string[], sunset: string, request: object])[] = [
  [['list'], '', { command: 'apis' }],
  [['show', 'Orders:1.0.0'], '', { command: 'api', name: 'Orders:1.0.0' }],
  [['lifecycle', 'Orders', 'block'], '', { command: 'lifecycle', name: 'Orders', action: 'block' }],
  [
    ['lifecycle', 'Orders', 'Deploy', 'as', 'a', 'Prototype'],
    '',
    { command: 'lifecycle', name: 'Orders', action: 'Deploy as a Prototype' },
  ],
  [
    ['lifecycle', 'Orders', 'deprecate'],
    '2027-06-30',
    { command: 'lifecycle', name: 'Orders', action: 'deprecate', sunsetMs: Date.UTC(2027, 5, 30) },
  ],
]

for (const [words, sunset, request] of REQUESTS) {
  test(`the request of api ${words.join(' ')}${sunset === '' ? '' : ` --sunset ${sunset}`}`, async t => {
    const report = words[0] === 'list' ? { apis: [] } : words[0] === 'show' ? DETAILS : ROW
    const { code, requests } = await run(t, words, { sunset, report })
    assert.deepEqual([code, requests], [0, [request]])
  })
}

const INVALID: readonly (readonly string[])[] = [
  [],
  ['lst'],
  ['list', 'Orders'],
  ['show'],
  ['show', 'a', 'b'],
  ['lifecycle'],
  ['lifecycle', 'Orders'],
]

for (const words of INVALID) {
  test(`exit code 2: api ${words.join(' ')}`, async t => {
    const { code, out, err, requests } = await run(t, words)
    assert.deepEqual([code, out, requests], [2, '', []])
    assert.match(err, /^Usage:\n {2}sluice api /)
  })
}

const MISUSED: readonly (readonly [words: readonly string[], sunset: string, message: RegExp])[] = [
  [['lifecycle', 'Orders', 'blok'], '', /^an action is one of Publish, .*Retire/],
  [['lifecycle', 'Orders', 'block'], '2027-06-30', /--sunset goes with Deprecate/],
  [['lifecycle', 'Orders', 'deprecate'], 'soon', /--sunset is a date/],
  [['list'], '2027-06-30', /--sunset is an option of api lifecycle/],
]

for (const [words, sunset, message] of MISUSED) {
  test(`a usage error: api ${words.join(' ')} --sunset "${sunset}"`, async t => {
    const isRefusal = (error: unknown) => error instanceof UsageError && message.test(error.message)
    await assert.rejects(run(t, words, { sunset }), isRefusal)
  })
}

test('exit code 1: the gateway refuses the command', async t => {
  const refusal = 'Orders:1.0.0 is RETIRED: nothing can be done to it any more'
  for (const json of [false, true]) {
    const { code, out, err } = await run(t, ['lifecycle', 'Orders', 'block'], { refusal, json })
    assert.deepEqual([code, out, err], [1, '', `${refusal}\n`])
  }
})

test('exit code 1: there is no gateway to call', async t => {
  const home = temporaryHome(t, {})
  const err = new Transcript()
  const args = argumentsFor(home, { dataDir: home, rest: ['list'] })
  assert.equal(await api(args, { sunset: '' }, new Transcript(), err), 1)
  assert.match(err.text, /^no gateway runs with the data folder /)
})

test('exit code 1: a reactor has not applied the change', async t => {
  const report = { ...ROW, failures: ['reactor 1 has not applied the change\nat x'] }
  const words = ['lifecycle', 'Orders', 'block']
  const { code, out } = await run(t, words, { report })
  const failed = 'failed   reactor 1 has not applied the change\n'
  assert.deepEqual([code, out], [1, `applied  Orders:1.0.0: PUBLISHED -> BLOCKED\n${failed}`])
  const json = await run(t, words, { report, json: true })
  assert.deepEqual([json.code, JSON.parse(json.out)], [1, report])
})

test('a deprecation shows the sunset', async t => {
  const report = { ...ROW, state: 'DEPRECATED', sunset: '2027-06-30T00:00:00.000Z' }
  const { out } = await run(t, ['lifecycle', 'Orders', 'deprecate'], { report })
  assert.equal(out, 'applied  Orders:1.0.0: PUBLISHED -> DEPRECATED, sunset 2027-06-30 00:00:00Z\n')
})

test('api list prints a table without the usual: declared states, all hosts, both transports', async t => {
  const plain = { ...ROW, name: 'Menu', paths: ['/menu/2'], version: '2', state: 'PUBLISHED', since: '' }
  const bound = { ...ROW, hosts: ['a.example', 'b.example'], transports: ['https'], mediation: 'reactor' }
  assert.equal(
    (await run(t, ['list'], { report: { apis: [ROW, plain] } })).out,
    `API           state      since                 declared   path
Orders:1.0.0  BLOCKED    2026-11-21 18:00:00Z  PUBLISHED  /orders/1.0.0
Menu:2        PUBLISHED                                   /menu/2
`,
  )
  const { out } = await run(t, ['list'], { report: { apis: [bound] } })
  assert.match(out, /hosts +transports +mediation\n.* a\.example b\.example +https +reactor\n$/)
  assert.equal((await run(t, ['list'], { report: { apis: [] } })).out, 'no API\n')
  assert.deepEqual(JSON.parse((await run(t, ['list'], { report: { apis: [ROW] }, json: true })).out), [ROW])
})

const DETAILS: ApiDetails = {
  name: 'Orders',
  version: '1.0.0',
  paths: ['/orders/1.0.0', '/orders'],
  hosts: ['a.example'],
  transports: ['https'],
  state: 'DEPRECATED',
  declared: 'PUBLISHED',
  since: '2026-11-21T18:00:00.123Z',
  sunset: '2027-06-30T00:00:00.000Z',
  actions: ['Retire'],
  isAi: true,
  mounted: '',
  access: {
    provider: 'admin',
    plans: ['Gold', 'Silver'],
    tier: '50KPerMin',
    authHeader: 'X-Auth',
    securitySchemes: [],
    scopeRoles: {},
  },
  production: {
    kind: 'load_balance',
    algorithm: 'weighted',
    failsOver: true,
    endpoints: [
      { url: 'http://a/', state: 'ACTIVE', retryInMs: -1 },
      { url: 'http://b/', state: 'SUSPENDED', retryInMs: 1500 },
    ],
  },
  sandbox: { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints: [] },
  cors: {
    enabled: true,
    origins: ['https://*.example'],
    methods: ['GET', 'PUT'],
    headers: ['x-a'],
    exposedHeaders: ['x-b'],
    credentials: true,
    maxAgeS: 60,
  },
  filters: [
    { name: 'cors', about: 'origins of a pattern' },
    { name: 'lifecycle', about: 'DEPRECATED' },
  ],
  mediation: 'worker',
  flows: [
    { operation: '', flow: 'request', sequences: ['A:v1--In', 'addHeader_v1'], needs: 'constant' },
    { operation: 'GET /a/{b}', flow: 'response', sequences: ['toXml'], needs: 'worker' },
  ],
  resources: [
    { template: '/a/{b}', verb: 'GET', authType: 'None', tier: 'Unlimited', scopes: [] },
    { template: '/*', verb: '*', authType: 'Application', tier: 'Gold', scopes: ['read', 'write'] },
  ],
}

test('api show prints everything about an API', async t => {
  assert.equal(
    (await run(t, ['show', 'Orders'], { report: DETAILS })).out,
    `Orders:1.0.0
paths       /orders/1.0.0, /orders
hosts       a.example
transports  https
kind        API of a language model
lifecycle   DEPRECATED since 2026-11-21T18:00:00.123Z; its project declares PUBLISHED
sunset      2027-06-30T00:00:00.000Z
actions     Retire
CORS        origins https://*.example; methods GET PUT; headers x-a; exposes x-b; with credentials; for 60 s
provider    admin
plans       Gold, Silver
tier        50KPerMin
security    oauth2 in X-Auth

production endpoints
weighted; a failed request goes to the next endpoint
URL        state      retry in
http://a/  ACTIVE
http://b/  SUSPENDED  1.5 s

sandbox endpoints
none

filters
   filter     does
1  cors       origins of a pattern
2  lifecycle  DEPRECATED

mediation
operation   flow      sequences               run
all others  request   A:v1--In, addHeader_v1  while the head is written
GET /a/{b}  response  toXml                   on a worker

resources
template  method  auth type    tier       scopes
/a/{b}    GET     None         Unlimited
/*        *       Application  Gold       read write
`,
  )
  assert.deepEqual(JSON.parse((await run(t, ['show', 'Orders'], { report: DETAILS, json: true })).out), DETAILS)
})

test('api show prints an API with defaults only', async t => {
  const none = { ...DETAILS.sandbox }
  const report = { ...DETAILS, hosts: [], since: '', sunset: '', declared: 'RETIRED', state: 'RETIRED', actions: [] }
  const least = { isAi: false, cors: null, filters: [], flows: [], resources: [], production: none }
  const { out } = await run(t, ['show', 'Orders'], { report: { ...report, ...least } })
  assert.match(out, /^hosts +all$/m)
  assert.match(out, /^lifecycle +RETIRED\nactions +none\nCORS +off$/m)
  assert.match(out, /^production endpoints\nnone$/m)
  assert.match(out, /^filters\nnone: all requests pass$/m)
  assert.match(out, /^resources\nall paths and methods$/m)
})

test('control characters of a project are escaped on a terminal', async t => {
  const bad = 'x\u001b[2J\n\u202e'
  const resource = { ...DETAILS.resources[0], template: bad, scopes: [bad] }
  const report = { ...DETAILS, name: bad, resources: [resource], hosts: [bad], filters: [{ name: 'a', about: bad }] }
  const { out } = await run(t, ['show', 'Orders'], { report })
  assert.doesNotMatch(out, /[\u001b\u202e]/)
  const list = await run(t, ['list'], { report: { apis: [{ ...ROW, name: bad, version: bad }] } })
  assert.doesNotMatch(list.out, /[\u001b\u202e]/)
  assert.equal(list.out.split('\n').length, 3)
  const changed = await run(t, ['lifecycle', 'Orders', 'block'], { report: { ...ROW, name: bad, failures: [bad] } })
  assert.doesNotMatch(changed.out, /[\u001b\u202e]/)
})

const SUNSETS: readonly (readonly [text: string, iso: string])[] = [
  ['2027-06-30', '2027-06-30T00:00:00.000Z'],
  ['2027-06-30T12:30', '2027-06-30T12:30:00.000Z'],
  ['2027-06-30T12:30Z', '2027-06-30T12:30:00.000Z'],
  ['2027-06-30T12:30:15Z', '2027-06-30T12:30:15.000Z'],
  ['2027-06-30T12:30:15.5Z', '2027-06-30T12:30:15.500Z'],
  ['2027-06-30T12:30:15+02:00', '2027-06-30T10:30:15.000Z'],
  ['2028-02-29', '2028-02-29T00:00:00.000Z'],
  ['2027-02-29', ''],
  ['2027-13-01', ''],
  ['2027-06-31T00:00Z', ''],
  ['2027-06-30T25:00Z', ''],
  ['2027-6-30', ''],
  ['30.06.2027', ''],
  ['2027-06-30 12:30', ''],
  ['2027-06-30Z', ''],
  ['+12027-06-30', ''],
  ['180d', ''],
  ['', ''],
]

for (const [text, iso] of SUNSETS) {
  test(`a sunset of "${text}" is ${iso === '' ? 'invalid' : iso}`, () => {
    const ms = parseSunset(text)
    assert.equal(ms === undefined ? '' : new Date(ms).toISOString(), iso)
  })
}
