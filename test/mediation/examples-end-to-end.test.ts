/** The examples of the language, from a request of a client to the backend and back; the table says what they do. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type ApiMediationPlan, type FlowPlan, gathersCopies } from '../../src/mediation/flow-plan.ts'
import { needsOf } from '../../src/mediation/needs.ts'
import type { SequencePlan } from '../../src/mediation/sequence-plan.ts'
import { operation } from '../harness/filter-chain.ts'
import { startGateway } from '../harness/gateway.ts'
import { type Peer, connectPeer, refusingPort, ScriptedBackend } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { planEndpoints } from '../harness/sequence-calls.ts'
import { type Owner, sharedBySuite } from '../harness/suite.ts'
import { EXAMPLES } from './examples/table.ts'
import { parseFile } from './test-sequences.ts'

type Example = (typeof EXAMPLES)[number]
type Exchange = Example['exchanges'][number]
type Expected = Exchange['request']

const FOLDER = join(import.meta.dirname, 'examples')
/** The local entry that an example names. */
const SCHEMA = '{"type":"object","required":["id"],"properties":{"id":{"type":"number"}}}'
const NAMESPACE = 'http://ws.apache.org/ns/synapse'
const ENTRY = `<localEntry xmlns="${NAMESPACE}" key="order-schema"><![CDATA[${SCHEMA}]]></localEntry>`
/** Their requests reach the backend in any order. */
const PARALLEL = ['parallel-calls', 'scatter-gather', 'split-and-send', 'best-quote']
/** The request is accepted before the backend has it. */
const FORGETS = ['accept-and-forget']

interface Got {
  readonly start: string
  readonly fields: ReadonlyMap<string, readonly string[]>
  readonly body: string
}

/** One gateway with one API per example, under its name, and one backend. */
const shared = sharedBySuite(async owner => {
  const backend = await ExampleBackend.start(owner)
  const closed = await refusingPort()
  owner.after(() => closed.close())
  const apis = await Promise.all(
    EXAMPLES.map(async ({ name, resource }) => ({
      context: `/${name}`,
      port: name === 'error-wording' ? closed.port : backend.port,
      overrides: {
        mediation: await mediationOf(name, backend.port),
        resources: resource === undefined ? [] : [operation(`GET ${resource}`)],
      },
    })),
  )
  const sequenceEndpoints = planEndpoints(apis.flatMap(({ overrides }) => overrides.mediation.sequences))
  const gateway = await startGateway(apis, { sequenceEndpoints, hasFilterChain: true, home: homeWithEntry(owner) })
  owner.after(() => gateway.stop())
  return { gateway, backend }
})

for (const example of EXAMPLES) {
  test(`an example does what the table says: ${example.name}: ${example.about}`, async t => {
    const { gateway, backend } = await shared
    const before = gateway.reports.length
    for (const exchange of example.exchanges) {
      backend.script(exchange.backend, PARALLEL.includes(example.name))
      const client = await connectPeer(gateway.port)
      t.after(() => client.destroy())
      client.send(requestText(example.name, exchange.request))
      const { status, fields, body } = await takeResponse(client)
      if (FORGETS.includes(example.name)) await backend.untilDone()
      const said = gateway.reports.slice(before).filter(({ level }) => level !== 'debug')
      const shown = JSON.stringify([body, backend.got, said])
      expectMessage({ start: String(status), fields, body }, exchange.response, `response ${shown}`)
      backend.check(shown)
      const { logged } = exchange
      if (logged !== undefined) assert.ok(holds(JSON.stringify(gateway.reports.slice(before)), logged), shown)
    }
  })
}

function homeWithEntry(owner: Owner): string {
  const home = mkdtempSync(join(tmpdir(), 'sluice-examples-'))
  owner.after(() => rmSync(home, { recursive: true, force: true }))
  const folder = join(home, 'synapse-configs', 'default', 'local-entries')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'order-schema.xml'), ENTRY)
  return home
}

/** Plans the flows of an example; the backend of its endpoints listens on `port`. */
async function mediationOf(name: string, port: number): Promise<ApiMediationPlan> {
  const sequences: SequencePlan[] = []
  const add = async (file: string): Promise<void> => {
    if (sequences.some(({ name }) => name === file)) return
    const text = readFileSync(join(FOLDER, `${file}.xml`), 'utf8').replaceAll(
      'backend.example:8080',
      `127.0.0.1:${port}`,
    )
    const { plan, errors } = await parseFile(text, file)
    assert.deepEqual(errors, [])
    sequences.push(structuredClone(plan!))
    for (const called of plan!.calls) await add(called)
  }
  const flow = async (end: string): Promise<FlowPlan> => {
    const file = name + end
    if (!existsSync(join(FOLDER, `${file}.xml`))) return { sequences: [], needs: 'nothing' }
    await add(file)
    const lookup = (wanted: string) => sequences.find(({ name }) => name === wanted)
    const plan = { sequences: [file], needs: needsOf([file], lookup) }
    return end === '-out' && gathersCopies([file], lookup) ? { ...plan, gathers: true } : plan
  }
  const flows = { request: await flow(''), response: await flow('-out'), fault: await flow('-fault') }
  return { sequences, flows, byOperation: {} }
}

function requestText(api: string, { start, fields = {}, body = '' }: Expected): string {
  const [method, target] = start.split(' ')
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  const length = body === '' ? '' : `content-length: ${body.length}\r\n`
  return `${method} /${api}${target} HTTP/1.1\r\nhost: gateway\r\n${lines.join('')}${length}\r\n${body}`
}

/** Answers requests as an exchange says, and keeps what was not as it says. */
class ExampleBackend {
  readonly #server: ScriptedBackend
  #pairs: Exchange['backend'] = []
  #isParallel = false
  #answered = Promise.withResolvers<null>()
  got: Got[] = []

  private constructor(server: ScriptedBackend) {
    this.#server = server
  }

  static async start(owner: Owner): Promise<ExampleBackend> {
    const server = await ScriptedBackend.listen(peer => void backend.#serve(peer))
    const backend = new ExampleBackend(server)
    owner.after(() => server.close())
    return backend
  }

  get port(): number {
    return this.#server.port
  }

  script(pairs: Exchange['backend'], isParallel: boolean): void {
    this.#pairs = pairs
    this.#isParallel = isParallel
    this.#answered = Promise.withResolvers()
    this.got = []
  }

  async untilDone(): Promise<void> {
    await this.#answered.promise
  }

  async #serve(peer: Peer): Promise<void> {
    while (!peer.isClosed) {
      await peer.untilRequest()
      if (!peer.text.includes('\r\n\r\n')) return
      const [start = '', ...lines] = peer
        .take(peer.text.indexOf('\r\n\r\n') + 4)
        .trimEnd()
        .split('\r\n')
      const fields = new Map<string, string[]>()
      for (const line of lines) {
        const [name = '', value = ''] = line.split(/: ?(.*)/)
        fields.set(name.toLowerCase(), [...(fields.get(name.toLowerCase()) ?? []), value])
      }
      const length = Number(fields.get('content-length')?.[0] ?? 0)
      await peer.untilLength(length)
      this.got.push({ start: start.replace(/ HTTP\/1\.1$/, ''), fields, body: peer.take(length) })
      const answer = this.#answerTo(this.got.at(-1)!)
      peer.send(responseText(answer))
      if (this.got.length === this.#pairs.length) this.#answered.resolve(null)
    }
  }

  #answerTo(got: Got): Expected {
    const pair = this.#isParallel
      ? this.#pairs.find(([wanted]) => isRequest(got, wanted))
      : this.#pairs[this.got.length - 1]
    return pair?.[1] ?? { start: '500', body: 'unexpected' }
  }

  check(shown: string): void {
    assert.equal(this.got.length, this.#pairs.length, shown)
    for (const [at, [wanted]] of this.#pairs.entries()) {
      const got = this.#isParallel ? this.got.find(got => isRequest(got, wanted)) : this.got[at]
      assert.ok(got, `${wanted.start} in ${shown}`)
      expectMessage(got, wanted, `backend ${shown}`)
    }
  }
}

function responseText({ start, fields = {}, body = '' }: Expected): string {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${start} Scripted\r\n${lines.join('')}content-length: ${body.length}\r\n\r\n${body}`
}

function expectMessage(got: Got, wanted: Expected, shown: string): void {
  assert.ok(holds(got.start, wanted.start), `start ${got.start}, not ${wanted.start}: ${shown}`)
  for (const [name, value] of Object.entries(wanted.fields ?? {})) {
    const has = got.fields.get(name)?.join(', ') ?? ''
    assert.ok(holds(has, value), `${name}: ${has}, not ${value}: ${shown}`)
  }
  if (wanted.body === undefined) return
  assert.ok(hasBody(got, wanted.body), `body ${got.body}, not ${wanted.body}: ${shown}`)
}

/** Whether a request of several in any order is the wanted one. */
function isRequest(got: Got, { start, body }: Expected): boolean {
  return holds(got.start, start) && (body === undefined || hasBody(got, body))
}

function hasBody(got: Got, wanted: string): boolean {
  return holds(got.body, wanted) || sameJson(got.body, wanted)
}

function sameJson(got: string, wanted: string): boolean {
  try {
    assert.deepEqual(JSON.parse(got), JSON.parse(wanted))
    return true
  } catch {
    return false
  }
}

/** Whether a text is the wanted one, or matches it: a pattern between slashes. */
function holds(text: string, wanted: string): boolean {
  const pattern = /^\/(.+)\/$/s.exec(wanted)?.[1]
  return pattern === undefined ? text === wanted : new RegExp(pattern, 's').test(text)
}
