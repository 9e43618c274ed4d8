/**
 * Latency of other clients beside hostile bodies: `npx node bench/hostile-bodies.ts [seconds] [MiB]`. For each body of
 * a list, two clients send it again and again to an API that reads it, while others ask at a constant rate for an API
 * without a flow, and for one whose responses a worker builds. About two minutes.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { gzipSync } from 'node:zlib'
import { driveRecorded } from './load/drive.ts'
import { MeasuredTable, measuredNote } from './measured-table.ts'
import { latencies, successes } from './paired/delay-round.ts'
import { startVariant } from './peers/sluice-variants.ts'
import { type BenchApi, writeHome } from './peers/sluice.ts'
import { memory } from './process-tree.ts'
import { LOAD_CORE, Program, pinned, pinSelf } from './program.ts'

const MIB = 1_048_576
const CLIENTS = 2
/** Pause of a client after an answer, in milliseconds. */
const PAUSE_MS = 20
const OTHERS = { connections: 8, ratePerSecond: 100 }
const BACKEND = fileURLToPath(new URL('backends/http-backend.ts', import.meta.url))
const COLUMNS = { answer: 0, 'in ms': 0, sent: 0, 'passing p50': 1, p99: 1, 'mediated p50': 1, ' p99': 1, MiB: 0 }

type Reads = 'json' | 'xml' | 'xpath' | 'jsonpath' | 'pattern'

interface Hostile {
  readonly name: string
  /** The API that gets it. */
  readonly reads: Reads
  readonly type: 'application/json' | 'application/xml'
  readonly coding?: 'gzip'
  readonly body: () => string | Buffer
}

/** Mediators of the APIs: each builds the body, the last three evaluate an operator's expression that compares. */
const FLOWS: Readonly<Record<Reads, string>> = {
  json: '<property name="read" expression="json-eval($.a)"/>',
  xml: '<property name="read" expression="//a[1]"/>',
  xpath: '<property name="read" expression="count(//a[@id = //b/@id])"/>',
  jsonpath: '<property name="read" expression="json-eval($..[?(@.a == $.b)])"/>',
  pattern: '<filter source="json-eval($.a)" regex="(x+x+)+y"><then/><else/></filter>',
}
const ANSWER = `<payloadFactory media-type="json">
  <format>{"status": "$1"}</format>
  <args><arg expression="get-property('axis2', 'HTTP_SC')"/></args>
</payloadFactory>`

function hostileBodies(longest: number): readonly Hostile[] {
  const json = { reads: 'json', type: 'application/json' } as const
  const xml = { reads: 'xml', type: 'application/xml' } as const
  const pairs = Array.from({ length: 2500 }, (_, at) => `<a id="${at}"/><b id="n${at}"/>`).join('')
  const objects = Array.from({ length: 4000 }, (_, at) => `{"a":${at},"c":[{"a":1}]}`).join(',')
  return [
    { name: 'a million open arrays', ...json, body: () => '['.repeat(MIB) },
    { name: 'a million open elements', ...xml, body: () => '<a>'.repeat(MIB) },
    { name: 'entities that expand', ...xml, body: expandingEntities },
    {
      name: `${longest} MiB of zeros in gzip`,
      ...json,
      coding: 'gzip',
      body: () => gzipSync(Buffer.alloc(longest * MIB, 0x30), { level: 9 }),
    },
    { name: `${longest} MiB of numbers`, ...json, body: () => Buffer.from(`[${'1,'.repeat(longest * (MIB / 2))}1]`) },
    { name: '4 MiB of objects', ...json, body: () => `[${'{"a":1},'.repeat(MIB / 2)}{}]` },
    {
      name: '8 MiB of text, the last byte no UTF-8',
      ...json,
      body: () => Buffer.concat([Buffer.from('{"a":"'), Buffer.alloc(8 * MIB, 'x'), Buffer.from([0xff, 0x22, 0x7d])]),
    },
    { name: 'an XPath that compares all with all', ...xml, reads: 'xpath', body: () => `<r>${pairs}</r>` },
    { name: 'a JSONPath of each item', ...json, reads: 'jsonpath', body: () => `{"b":0,"d":[${objects}]}` },
    { name: 'a pattern that backtracks', ...json, reads: 'pattern', body: () => `{"a":"${'x'.repeat(60_000)}"}` },
  ]
}

function expandingEntities(): string {
  const nested = Array.from({ length: 20 }, (_, at) => `<!ENTITY e${at + 1} "&e${at};&e${at};&e${at};">`).join('')
  return `<!DOCTYPE a [<!ENTITY e0 "xxxxxxxxxx">${nested}]><a>&e20;</a>`
}

// ---- the clients that send hostile bodies ---------------------------------------------------------------------------

interface Attack {
  readonly port: number
  readonly hostile: Omit<Hostile, 'body'>
  readonly bytes: Uint8Array
  readonly seconds: number
}

interface AttackOutcome {
  /** Statuses and codes of the answers; '0': the connection ended without one. */
  readonly answers: readonly string[]
  readonly longestMs: number
  readonly sent: number
}

function attack(data: Attack): Promise<AttackOutcome> {
  const { promise, resolve, reject } = Promise.withResolvers<AttackOutcome>()
  const worker = new Worker(fileURLToPath(import.meta.url), { workerData: data })
  worker.once('message', resolve)
  worker.once('error', reject)
  return promise
}

async function sendHostile({ port, hostile, bytes, seconds }: Attack): Promise<AttackOutcome> {
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
  const coding = hostile.coding === undefined ? {} : { 'content-encoding': hostile.coding }
  const headers = { 'content-type': hostile.type, 'content-length': bytes.byteLength, ...coding }
  const answers = new Set<string>()
  const endMs = performance.now() + seconds * 1000
  let [longestMs, sent] = [0, 0]
  const send = (): Promise<string> => {
    const { promise, resolve } = Promise.withResolvers<string>()
    const to = { port, path: `/${hostile.reads}`, method: 'POST', agent, headers }
    const call = request(to, response => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece))
      response.on('error', () => resolve('0'))
      response.on('end', () => {
        const code = /"code":"?(\d+)|<(?:\w+:)?code>(\d+)/.exec(text)
        resolve([response.statusCode, code?.[1] ?? code?.[2]].filter(each => each !== undefined).join(' '))
      })
    })
    call.on('error', () => resolve('0'))
    call.end(bytes)
    return promise
  }
  const client = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const beganMs = performance.now()
      answers.add(await send())
      sent++
      longestMs = Math.max(longestMs, performance.now() - beganMs)
      await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  agent.destroy()
  return { answers: [...answers].sort(), longestMs, sent }
}

// ---- the measurement ------------------------------------------------------------------------------------------------

function writeGateway(home: string, backendPort: number): void {
  const api = (name: string): BenchApi => ({ name, context: `/${name}`, ports: [backendPort] })
  writeHome(home, ['passing', 'mediated', ...Object.keys(FLOWS)].map(api))
  const flows = { ...Object.fromEntries(Object.keys(FLOWS).map(name => [name, 'In'])), mediated: 'Out' }
  for (const [name, flow] of Object.entries(flows)) {
    const folder = `${home}/apis/${name}/Sequences`
    mkdirSync(folder)
    const mediators = name === 'mediated' ? ANSWER : FLOWS[name as Reads]
    const sequence = `${name}:v1.0.0--${flow}`
    const text = `<sequence xmlns="http://ws.apache.org/ns/synapse" name="${sequence}">${mediators}</sequence>\n`
    writeFileSync(`${folder}/${sequence}.xml`, text)
  }
}

async function measure(seconds: number, longest: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-hostile-'))
  const port = 30_000 + (process.pid % 10_000)
  const backendPort = port + 2
  const backend = new Program('the backend', pinned(LOAD_CORE, [process.execPath, BACKEND, String(backendPort)]))
  writeGateway(`${folder}/home`, backendPort)
  try {
    await backend.waitForPort(backendPort)
    const gateway = await startVariant({ folder, port } as Parameters<typeof startVariant>[0])
    const title = 'Other clients beside hostile bodies, ms'
    const table = new MeasuredTable(title, COLUMNS)
    const others = async <Result>(meanwhile: () => Promise<Result>) => {
      const plan = { port, ...OTHERS, seconds }
      const [mediated, [passing, result]] = await driveRecorded({ ...plan, path: '/mediated/1k' }, () =>
        driveRecorded({ ...plan, path: '/passing/1k' }, meanwhile),
      )
      const lost = [passing, mediated].reduce((sum, outcome) => sum + outcome.due - successes(outcome).length, 0)
      return { figures: [...latencies(passing), ...latencies(mediated)], lost, result }
    }
    const pause = () => new Promise<void>(resolve => setTimeout(resolve, seconds * 1000))
    let lost = 0
    try {
      await others(pause)
      const calm = await others(pause)
      lost += calm.lost
      table.row('none', undefined, undefined, 0, ...calm.figures, memory(gateway.child.pid!).rssMiB)
      for (const { body, ...hostile } of hostileBodies(longest)) {
        const bytes = Buffer.from(body())
        const round = await others(() => attack({ port, hostile, bytes, seconds }))
        const { answers, longestMs, sent } = round.result
        lost += round.lost
        const rss = memory(gateway.child.pid!).rssMiB
        table.row(hostile.name, answers.join(', '), longestMs, sent, ...round.figures, rss)
      }
      measuredNote(`Requests of others without a response: ${lost}.`)
    } finally {
      await gateway.stop()
    }
  } finally {
    await backend.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

if (isMainThread) {
  pinSelf()
  const [seconds = '6', longest = '100'] = process.argv.slice(2)
  await measure(Number(seconds), Number(longest))
} else parentPort!.postMessage(await sendHostile(workerData as Attack))
