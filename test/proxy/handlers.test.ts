/** Handlers of the operator: on the reactor and on threads, in every phase, failing and hanging. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import type { ApiMediationPlan } from '../../src/mediation/flow-plan.ts'
import type { ApiPlan } from '../../src/plan/reactor-plan.ts'
import { ModuleStates } from '../../src/runtime/module-states.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { NO_ACCESS } from '../harness/api-plan.ts'
import { type FlowGateway, flowsOf, set, startFlows, takeHead } from '../harness/flows.ts'
import { connectPeer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { switchingProtocols } from '../harness/tunnels.ts'

const SYNCHRONOUS = 'export const synchronous = true\n'
const LEVELS = [
  ['on the reactor', SYNCHRONOUS],
  ['on a thread', ''],
] as const

interface Given {
  readonly timeoutMs?: number
  readonly moduleLimitMs?: number
  readonly threads?: number
  readonly mediation?: ApiMediationPlan | null
  /** Parts of the API, whose filters then run before the handlers. */
  readonly api?: Partial<ApiPlan>
}

/** Starts a gateway with these modules as handlers, in order. */
async function start(t: TestContext, modules: readonly string[], given: Given = {}): Promise<FlowGateway> {
  const { timeoutMs = 10_000, moduleLimitMs = 2000, threads = 2, mediation = null, api = {} } = given
  const files = Object.fromEntries(modules.map((code, index) => [`h${index}.mjs`, code]))
  const handlers = modules.map((_, index) => ({ name: `h${index}`, path: `h${index}.mjs` }))
  const states = ModuleStates.allocate(1, handlers.length)
  const plan = { handlers, states, threads, timeoutMs, heapBytes: 32 * 1_048_576 }
  const options = {
    home: temporaryHome(t, files),
    handlers: plan,
    moduleLimitMs,
    hasFilterChain: given.api !== undefined,
  }
  return startFlows(t, [mediation], options, { overrides: api })
}

const REQUEST = 'GET /a/pets?limit=5 HTTP/1.1\r\nHost: h\r\nX-One: 1\r\nX-Two: 2\r\n\r\n'

/** What the backend got, and what the client got. */
async function exchange({ gateway, backend }: FlowGateway) {
  const client = await connectPeer(gateway.port)
  client.send(REQUEST)
  const peer = await backend.next()
  const sent = await takeHead(peer)
  peer.send('HTTP/1.1 200 OK\r\nX-Back: b\r\nContent-Length: 2\r\n\r\nok')
  const received = await takeResponse(client)
  client.destroy()
  peer.destroy()
  return { sent, received }
}

/** The response to a request that no backend gets. */
async function refused({ gateway }: FlowGateway) {
  const client = await connectPeer(gateway.port)
  client.send(REQUEST)
  const received = await takeResponse(client)
  client.destroy()
  return received
}

for (const [level, prefix] of LEVELS) {
  const module = (code: string) => prefix + code

  test(`a handler ${level} reads the request, and sets and removes its fields`, async t => {
    const code = `export function request(view) {
      const { method, target, api, resource, client, caller, status, phase } = view
      view.setField('X-Seen', JSON.stringify([method, target, api.name !== '', client, caller, status, phase]))
      view.setField('X-One', view.field('x-ONE') + '1')
      view.removeField('X-Two')
      view.setField('X-Gone', String(view.field('X-Two')))
    }`
    const { sent, received } = await exchange(await start(t, [module(code)]))
    assert.match(sent, /^X-Seen: \["GET","\/a\/pets\?limit=5",true,"127\.0\.0\.1",null,0,"request"\]\r$/m)
    assert.match(sent, /^X-One: 11\r$/m)
    assert.match(sent, /^X-Gone: undefined\r$/m)
    assert.doesNotMatch(sent, /X-Two/)
    assert.equal(received.status, 200)
  })

  test(`handlers ${level} run in order, see the changes before them, and share attributes`, async t => {
    const first = `export function request(view) { view.setField('X-A', '1'); view.attributes.n = 1 }`
    const second = `export async function request(view) { view.setField('X-A', view.field('x-a') + view.attributes.n) }`
    const modules = [module(first), module(prefix === '' ? second : second.replace('async ', ''))]
    const { sent } = await exchange(await start(t, modules))
    assert.match(sent, /^X-A: 11\r$/m)
  })

  test(`fields of handlers ${level} are set behind those of a flow`, async t => {
    const code = `export function request(view) { view.setField('X-H', 'handler'); view.setField('X-B', 'handler') }`
    for (const body of ['', '<payloadFactory media-type="json"><format>{}</format></payloadFactory>']) {
      const mediation = await flowsOf({ request: set('X-F', 'flow') + set('X-B', 'flow') + body })
      const { sent } = await exchange(await start(t, [module(code)], { mediation }))
      assert.match(sent, /^X-F: flow\r$/m)
      assert.match(sent, /^X-H: handler\r$/m)
      assert.match(sent, /^X-B: handler\r$/m)
      assert.doesNotMatch(sent, /^X-B: flow/m)
    }
  })

  test(`a handler ${level} refuses a request with 403`, async t => {
    const response = await refused(await start(t, [module('export const request = () => false')]))
    assert.equal(response.status, 403)
    assert.match(response.body, /102593/)
  })

  for (const code of [
    `throw new TypeError('text of a client')`,
    `throw 'text of a client'`,
    `view.setField('Connection', 'x')`,
    `view.setField('X', 'a\\r\\nb: c')`,
    `for (let n = 0; n < 200; n++) view.setField('X-' + n, 'x')`,
    `for (let n = 0; n < 50; n++) view.setField('X-' + n, 'x'.repeat(500))`,
  ]) {
    test(`a handler ${level} that does ${code} costs its exchange a 500, with one log line`, async t => {
      const text = `export function request(view) { if (view.target.includes('limit=5')) { ${code} } }`
      const ends = await start(t, [module(text)])
      for (let n = 0; n < 3; n++) {
        const response = await refused(ends)
        assert.equal(response.status, 500)
        assert.match(response.body, /102590/)
      }
      const lines = ends.gateway.reports.filter(({ event }) => event === 'handler failed')
      assert.equal(lines.length, 1)
      assert.doesNotMatch(JSON.stringify(lines), /text of a client/)
    })
  }

  test(`a handler ${level} that fails behind the request is only logged`, async t => {
    const code = `export function response() { throw new Error() }\nexport function end() { throw new Error() }`
    const ends = await start(t, [module(code)])
    assert.equal((await exchange(ends)).received.status, 200)
    while (!ends.gateway.reports.some(({ event }) => event === 'handler failed')) await setTimeout(10)
  })

  test(`the phases of a handler ${level} hear of each exchange once`, async t => {
    const phases = ['request', 'response', 'end'].map(phase => `export function ${phase}(view) { see(view) }`)
    const code = `let seen = ''
      function see({ phase, status }) {
        seen += phase + status + '_'
        if (phase === 'end') throw Object.assign(new Error(), { name: seen })
      }
      ${phases.join('\n')}`
    const ends = await start(t, [module(code)], { threads: 1 })
    await exchange(ends)
    const failed = () => ends.gateway.reports.find(({ event }) => event === 'handler failed')
    while (failed() === undefined) await setTimeout(10)
    assert.match(String(failed()!.fields.CAUSE_OF_ERROR), /^request0_response200_end200_ /)
  })
}

test('a handler on the reactor changes fields of responses, of backends and of the gateway', async t => {
  const code = `${SYNCHRONOUS}export function request(v) { v.attributes.key = 'k' }
    export function response(v) {
      v.setField('X-Seen', [v.status, v.field('x-back'), v.attributes.key].join())
      v.removeField('X-Back')
    }`
  const ends = await start(t, [code, `${SYNCHRONOUS}export const request = v => v.field('x-one') === '1' || undefined`])
  const { received } = await exchange(ends)
  assert.deepEqual(received.fields.get('x-seen'), ['200,b,k'])
  assert.equal(received.fields.get('x-back'), undefined)
  const refusing = await start(t, [code, `${SYNCHRONOUS}export const request = () => false`])
  assert.deepEqual((await refused(refusing)).fields.get('x-seen'), ['403,,k'])
})

for (const [code, status, fault] of [
  ['for (;;) {}', 504, 102591],
  ['return new Promise(() => {})', 504, 102591],
  ['process.exit(1)', 500, 102590],
  ['const a = []; for (;;) a.push(new Array(1e5).fill(a.length))', 500, 102590],
] as const) {
  test(`a handler on a thread that does ${code} costs its exchange a ${status}, and no other`, async t => {
    const text = `export function request(v) { if (v.field('x-bad')) { ${code} } }`
    const ends = await start(t, [text], { timeoutMs: 2000 })
    const client = await connectPeer(ends.gateway.port)
    client.send('GET /a/ HTTP/1.1\r\nHost: h\r\nX-Bad: 1\r\n\r\n')
    assert.equal((await exchange(ends)).received.status, 200)
    const response = await takeResponse(client)
    assert.equal(response.status, status)
    assert.match(response.body, new RegExp(String(fault)))
    assert.equal((await exchange(ends)).received.status, 200)
  })
}

test('a request for which too many handlers wait gets 503', async t => {
  const { gateway } = await start(t, ['export const request = () => new Promise(() => {})'], { threads: 1 })
  // One runs or waits for the start of its thread, and 100 wait.
  const clients = await Promise.all(Array.from({ length: 102 }, () => connectPeer(gateway.port)))
  for (const client of clients) client.send(REQUEST)
  const response = await Promise.race(clients.map(takeResponse))
  assert.equal(response.status, 503)
  assert.match(response.body, /102592/)
  for (const client of clients) client.destroy()
})

test('a handler that cannot be loaded refuses every request, with its cause in the log', async t => {
  const ends = await start(t, ['export const other = 1'])
  assert.equal((await refused(ends)).status, 500)
  const [line] = ends.gateway.reports.filter(({ event }) => event === 'handler not loaded')
  assert.match(String(line!.fields.CAUSE_OF_ERROR), /exports none of request, response, end/)
})

test('a synchronous handler that returns a promise is refused', async t => {
  const ends = await start(t, [`${SYNCHRONOUS}export async function request() {}`])
  assert.equal((await refused(ends)).status, 500)
})

/** A module on the reactor that keeps the phases and statuses that it has seen, by exchange, in this process. */
const AUDIT = `${SYNCHRONOUS}
  const see = v => { v.attributes.seen = (v.attributes.seen ?? '') + v.phase + v.status + ' ' }
  export const request = see
  export const response = see
  export function end(v) { see(v); (globalThis.audited ??= []).push(v.attributes.seen.trim()) }`

function audited(): readonly string[] {
  return (globalThis as { audited?: string[] }).audited?.splice(0) ?? []
}

/** The phase `end` runs behind the turn of the event loop in which the response leaves. */
async function soonAudited(): Promise<readonly string[]> {
  for (;;) {
    const seen = audited()
    if (seen.length > 0) return seen
    await setTimeout(1)
  }
}

for (const [what, code, status] of [
  ['is late', 'return new Promise(() => {})', 504],
  ['dies', 'process.exit(1)', 500],
  ['throws', 'throw new Error()', 500],
] as const) {
  test(`handlers that have run hear response and end where a later one ${what}`, async t => {
    const ends = await start(t, [AUDIT, `export function request() { ${code} }`], { timeoutMs: 1000 })
    audited()
    assert.equal((await refused(ends)).status, status)
    assert.deepEqual(await soonAudited(), [`request0 response${status} end${status}`])
  })
}

const GET_PETS = [{ verb: 'GET', template: '/pets', authType: 'None', scopes: [], tier: '' }]
for (const [what, api, request, status] of [
  ['authentication', { access: { ...NO_ACCESS, schemes: ['oauth2'] } }, 'GET /a/pets', 401],
  ['an unknown resource', { resources: GET_PETS }, 'GET /a/dogs', 403],
  ['an unknown method', { resources: GET_PETS }, 'POST /a/pets', 405],
  ['a block', { lifecycle: { state: 'BLOCKED', deprecatedAtMs: 0, sunsetMs: 0 } }, 'GET /a/pets', 503],
] as const) {
  test(`handlers hear response and end of a refusal by ${what}, and no request`, async t => {
    const ends = await start(t, [AUDIT], { api: api as Partial<ApiPlan> })
    audited()
    const client = await connectPeer(ends.gateway.port)
    client.send(`${request} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n`)
    assert.equal((await takeResponse(client)).status, status)
    client.destroy()
    assert.deepEqual(await soonAudited(), [`response${status} end${status}`])
  })
}

test('a handler sets fields of a response 101, and hears of the end of its tunnel', async t => {
  const sets = `${SYNCHRONOUS}export const response = v => v.setField('X-Seen', [v.status, v.field('x-back')].join())`
  const { gateway, backend } = await start(t, [AUDIT, sets])
  audited()
  const client = await connectPeer(gateway.port)
  client.send('GET /a/pets HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  const peer = await backend.next()
  await takeHead(peer)
  peer.send(switchingProtocols('websocket', 'X-Back: b'))
  const head = await takeHead(client)
  assert.match(head, /^HTTP\/1\.1 101 .*^X-Back: b\r$.*^X-Seen: 101,b\r$.*^Upgrade: websocket\r$/ims)
  peer.send('frames')
  await client.untilText('frames')
  assert.deepEqual(audited(), [])
  client.destroy()
  peer.destroy()
  assert.deepEqual(await soonAudited(), ['request0 response101 end101'])
})

test('handlers hear nothing of an API that does not exist for a request', async t => {
  const code = `${AUDIT}\nexport const other = 1`
  const ends = await start(t, [code], { api: { transports: ['https'] } })
  audited()
  assert.equal((await refused(ends)).status, 404)
  assert.deepEqual(audited(), [])
})

test('a handler on a thread reads the response, and its end has the attributes of its response', async t => {
  const code = `export function response(v) {
      v.attributes.back = v.field('x-BACK') + v.field('X-Set') + v.field('x-none')
      return new Promise(resolve => setTimeout(resolve, 100))
    }
    export function end(v) { throw Object.assign(new Error(), { name: 'seen ' + v.attributes.back }) }`
  const sets = `${SYNCHRONOUS}export const response = v => v.setField('X-Set', 's')`
  const ends = await start(t, [sets, code])
  assert.equal((await exchange(ends)).received.status, 200)
  const failed = () => ends.gateway.reports.find(({ event }) => event === 'handler failed')
  while (failed() === undefined) await setTimeout(10)
  assert.match(String(failed()!.fields.CAUSE_OF_ERROR), /^seen bsundefined /)
})

test('phases behind refused requests leave half of the places for requests', async t => {
  const audit = 'export const end = () => new Promise(() => {})'
  const check = 'export const request = () => undefined'
  const ends = await start(t, [`${SYNCHRONOUS}export const request = v => v.field('x-good') === '1'`, audit, check], {
    threads: 1,
    timeoutMs: 1000,
  })
  const clients = await Promise.all(Array.from({ length: 60 }, () => connectPeer(ends.gateway.port)))
  for (const client of clients) client.send(REQUEST)
  for (const client of clients) assert.equal((await takeResponse(client)).status, 403)
  for (const client of clients) client.destroy()
  const causes = ends.gateway.reports.map(({ fields }) => String(fields.CAUSE_OF_ERROR))
  assert.ok(causes.includes('50 phases behind requests wait for threads'), causes.join())
})

for (const [what, hangs] of [
  ['run in order', false],
  ['hang alone: those behind a hang run on threads', true],
] as const) {
  test(`the phases end of one turn ${what}`, async t => {
    const ended: string[] = []
    Object.assign(globalThis, { ended })
    const code = `${SYNCHRONOUS}export function end(v) {
        globalThis.ended.push(v.target.slice(-2))
        if (${hangs}) for (;;) {}
      }`
    const refuses = `${SYNCHRONOUS}export const request = () => false`
    const { gateway } = await start(t, [code, refuses], { moduleLimitMs: 200, timeoutMs: 1000 })
    const client = await connectPeer(gateway.port)
    // More than run in one call.
    const numbers = Array.from({ length: 80 }, (_, index) => String(index + 10))
    client.send(numbers.map(n => `GET /a/pets?n=${n} HTTP/1.1\r\nHost: h\r\n\r\n`).join(''))
    for (const _ of numbers) assert.equal((await takeResponse(client)).status, 403)
    const isIsolated = () => gateway.reports.some(({ event }) => event === 'handler isolated')
    while (!isIsolated() && ended.length < numbers.length) await setTimeout(5)
    // Threads have another global object. Beside other programs a handler is isolated at a later hang.
    assert.deepEqual(ended, hangs ? numbers.slice(0, Math.max(1, ended.length)) : numbers)
    client.destroy()
  })
}
