/** `api`: what an answer of the gateway comes to in words and as an exit code, and what the gateway is asked. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { ApiAnswer, LifecycleAnswer } from '../../src/primary/api-desk.ts'
import { api } from '../../src/cli/api.ts'
import { UsageError } from '../../src/cli/arguments.ts'
import { sunsetIn } from '../../src/cli/sunset.ts'
import { type ControlRequest, ControlSocket, Refused } from '../../src/primary/control-socket.ts'
import { argumentsFor, Transcript, temporaryHome } from '../config/temporary-home.ts'

const ROW: LifecycleAnswer = {
  name: 'Orders',
  version: '1.0.0',
  paths: ['/orders/1.0.0', '/orders'],
  hosts: [],
  transports: ['http', 'https'],
  state: 'BLOCKED',
  declared: 'PUBLISHED',
  since: '2026-11-21T18:00:00.123Z',
  sunset: '',
  from: 'PUBLISHED',
  failures: [],
}

interface Told {
  readonly code: number
  readonly out: string
  readonly err: string
  readonly asked: readonly ControlRequest[]
}

interface Asking {
  readonly json?: boolean
  readonly sunset?: string
  /** What the gateway answers. */
  readonly answer?: object
  readonly refusal?: string
}

async function asked(t: TestContext, rest: readonly string[], asking: Asking = {}): Promise<Told> {
  const { json = false, sunset = '', answer = {}, refusal = '' } = asking
  const home = temporaryHome(t, {})
  const requests: ControlRequest[] = []
  const command = (request: ControlRequest): object => {
    requests.push(request)
    if (refusal !== '') throw new Refused(refusal)
    return answer
  }
  const socket = await ControlSocket.open(home, { apis: command, api: command, lifecycle: command }, assert.fail)
  t.after(() => socket!.close())
  const [out, err] = [new Transcript(), new Transcript()]
  const code = await api(argumentsFor(home, { dataDir: home, json, rest }), { sunset }, out, err)
  return { code, out: out.text, err: err.text, asked: requests }
}

const ASKED: readonly (readonly [words: readonly string[], sunset: string, request: object])[] = [
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

for (const [words, sunset, request] of ASKED) {
  test(`api ${words.join(' ')}${sunset === '' ? '' : ` --sunset ${sunset}`}`, async t => {
    const answer = words[0] === 'list' ? { apis: [] } : words[0] === 'show' ? SHOWN : ROW
    const { code, asked: requests } = await asked(t, words, { sunset, answer })
    assert.deepEqual([code, requests], [0, [request]])
  })
}

const NONSENSE: readonly (readonly string[])[] = [
  [],
  ['lst'],
  ['list', 'Orders'],
  ['show'],
  ['show', 'a', 'b'],
  ['lifecycle'],
  ['lifecycle', 'Orders'],
]

for (const words of NONSENSE) {
  test(`exit code 2: api ${words.join(' ')}`, async t => {
    const { code, out, err, asked: requests } = await asked(t, words)
    assert.deepEqual([code, out, requests], [2, '', []])
    assert.match(err, /^Usage:\n {2}sluice api /)
  })
}

const MISUSED: readonly (readonly [words: readonly string[], sunset: string, said: RegExp])[] = [
  [['lifecycle', 'Orders', 'blok'], '', /^an action is one of Publish, .*Retire/],
  [['lifecycle', 'Orders', 'block'], '2027-06-30', /--sunset goes with Deprecate/],
  [['lifecycle', 'Orders', 'deprecate'], 'soon', /--sunset is a date/],
  [['list'], '2027-06-30', /--sunset is an option of api lifecycle/],
]

for (const [words, sunset, said] of MISUSED) {
  test(`a usage error: api ${words.join(' ')} --sunset "${sunset}"`, async t => {
    await assert.rejects(asked(t, words, { sunset }), error => error instanceof UsageError && said.test(error.message))
  })
}

test('exit code 1: what the gateway refuses', async t => {
  const refusal = 'Orders:1.0.0 is RETIRED: nothing can be done to it any more'
  for (const json of [false, true]) {
    const { code, out, err } = await asked(t, ['lifecycle', 'Orders', 'block'], { refusal, json })
    assert.deepEqual([code, out, err], [1, '', `${refusal}\n`])
  }
})

test('exit code 1: there is no gateway to ask', async t => {
  const home = temporaryHome(t, {})
  const err = new Transcript()
  const args = argumentsFor(home, { dataDir: home, rest: ['list'] })
  assert.equal(await api(args, { sunset: '' }, new Transcript(), err), 1)
  assert.match(err.text, /^no gateway runs with the data folder /)
})

test('exit code 1: a reactor has not taken it', async t => {
  const answer = { ...ROW, failures: ['reactor 1 has not answered, and takes it over when it can\nat x'] }
  const words = ['lifecycle', 'Orders', 'block']
  const { code, out } = await asked(t, words, { answer })
  const failed = 'failed   reactor 1 has not answered, and takes it over when it can\n'
  assert.deepEqual([code, out], [1, `in force Orders:1.0.0: PUBLISHED -> BLOCKED\n${failed}`])
  const json = await asked(t, words, { answer, json: true })
  assert.deepEqual([json.code, JSON.parse(json.out)], [1, answer])
})

test('a deprecation says until when', async t => {
  const answer = { ...ROW, state: 'DEPRECATED', sunset: '2027-06-30T00:00:00.000Z' }
  const { out } = await asked(t, ['lifecycle', 'Orders', 'deprecate'], { answer })
  assert.equal(out, 'in force Orders:1.0.0: PUBLISHED -> DEPRECATED, sunset 2027-06-30 00:00:00Z\n')
})

test('all APIs are a table; what is as declared, everywhere and of both transports is not said', async t => {
  const plain = { ...ROW, name: 'Menu', paths: ['/menu/2'], version: '2', state: 'PUBLISHED', since: '' }
  const bound = { ...ROW, hosts: ['a.example', 'b.example'], transports: ['https'] }
  assert.equal(
    (await asked(t, ['list'], { answer: { apis: [ROW, plain] } })).out,
    `API           state      since                 declared   path
Orders:1.0.0  BLOCKED    2026-11-21 18:00:00Z  PUBLISHED  /orders/1.0.0
Menu:2        PUBLISHED                                   /menu/2
`,
  )
  const { out } = await asked(t, ['list'], { answer: { apis: [bound] } })
  assert.match(out, /hosts +transports\n.* a\.example b\.example +https\n$/)
  assert.equal((await asked(t, ['list'], { answer: { apis: [] } })).out, 'no API\n')
  assert.deepEqual(JSON.parse((await asked(t, ['list'], { answer: { apis: [ROW] }, json: true })).out), [ROW])
})

const SHOWN: ApiAnswer = {
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
  handlers: [
    { name: 'cors', about: 'origins of a pattern' },
    { name: 'lifecycle', about: 'DEPRECATED' },
  ],
  resources: [
    { template: '/a/{b}', verb: 'GET', authType: 'None', tier: 'Unlimited', scopes: [] },
    { template: '/*', verb: '*', authType: 'Application', tier: 'Gold', scopes: ['read', 'write'] },
  ],
}

test('one API with all there is to say of it', async t => {
  assert.equal(
    (await asked(t, ['show', 'Orders'], { answer: SHOWN })).out,
    `Orders:1.0.0
paths       /orders/1.0.0, /orders
hosts       a.example
transports  https
kind        API of a language model
lifecycle   DEPRECATED since 2026-11-21T18:00:00.123Z; its project declares PUBLISHED
sunset      2027-06-30T00:00:00.000Z
next        Retire
CORS        origins https://*.example; methods GET PUT; headers x-a; exposes x-b; with credentials; for 60 s
provider    admin
plans       Gold, Silver
tier        50KPerMin
security    oauth2 in X-Auth

production endpoints
by weight, and on to the next where one fails
URL        state      retry in
http://a/  ACTIVE
http://b/  SUSPENDED  1.5 s

sandbox endpoints
none

handlers
   handler    does
1  cors       origins of a pattern
2  lifecycle  DEPRECATED

resources
template  method  auth type    tier       scopes
/a/{b}    GET     None         Unlimited
/*        *       Application  Gold       read write
`,
  )
  assert.deepEqual(JSON.parse((await asked(t, ['show', 'Orders'], { answer: SHOWN, json: true })).out), SHOWN)
})

test('one API of which there is little to say', async t => {
  const none = { ...SHOWN.sandbox }
  const answer = { ...SHOWN, hosts: [], since: '', sunset: '', declared: 'RETIRED', state: 'RETIRED', actions: [] }
  const least = { isAi: false, cors: null, handlers: [], resources: [], production: none }
  const { out } = await asked(t, ['show', 'Orders'], { answer: { ...answer, ...least } })
  assert.match(out, /^hosts +every one$/m)
  assert.match(out, /^lifecycle +RETIRED\nnext +nothing\nCORS +off$/m)
  assert.match(out, /^production endpoints\nnone$/m)
  assert.match(out, /^handlers\nnone: requests pass$/m)
  assert.match(out, /^resources\nevery path and method$/m)
})

test('nothing that a project says is obeyed by a terminal', async t => {
  const bad = 'x\u001b[2J\n\u202e'
  const resource = { ...SHOWN.resources[0], template: bad, scopes: [bad] }
  const answer = { ...SHOWN, name: bad, resources: [resource], hosts: [bad], handlers: [{ name: 'a', about: bad }] }
  const { out } = await asked(t, ['show', 'Orders'], { answer })
  assert.doesNotMatch(out, /[\u001b\u202e]/)
  const list = await asked(t, ['list'], { answer: { apis: [{ ...ROW, name: bad, version: bad }] } })
  assert.doesNotMatch(list.out, /[\u001b\u202e]/)
  assert.equal(list.out.split('\n').length, 3)
  const changed = await asked(t, ['lifecycle', 'Orders', 'block'], { answer: { ...ROW, name: bad, failures: [bad] } })
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
  test(`a sunset of "${text}" is ${iso === '' ? 'none' : iso}`, () => {
    const ms = sunsetIn(text)
    assert.equal(ms === undefined ? '' : new Date(ms).toISOString(), iso)
  })
}
