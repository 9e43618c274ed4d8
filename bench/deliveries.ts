/**
 * The scenario `deliveries`: notifications that wait in the embedded database leave for a provider, while requests of
 * other clients pass. The outbox is filled before the gateway starts, which delivers without a request.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { databaseSettings } from '../src/database/database-settings.ts'
import { Outbox } from '../src/delivery/outbox.ts'
import { MountedDatabases } from '../src/mounted/database-access.ts'
import type { MountedCaller, MountedRequest } from '../src/mounted/interface.ts'
import { open } from '../src/mounted/notifications/notifications-api.ts'
import { loadConfiguration } from '../test/harness/configuration.ts'
import { driveRecorded } from './load/drive.ts'
import type { RecordingOutcome } from './load/load-plan.ts'
import type { Sample } from './metric.ts'
import { latencies, successes } from './paired/delay-round.ts'
import { READY, ROOT, startSluice, WITHOUT_KEY_MANAGER, writeHome } from './peers/sluice.ts'
import { PROXY_CORE } from './program.ts'
import type { RoundRecorder } from './results.ts'
import { measureLoad, type RunningPeer } from './rounds.ts'

const API = 'NotificationSenders'
const TENANT = 'acme'
const CALLER: MountedCaller = {
  ...{ method: 'oauth2', user: 'ann', tenant: TENANT, isApplication: false, keyType: 'PRODUCTION', application: null },
  ...{ consumerKey: '', scopes: [], claims: {} },
}
/** Deliveries that one transaction stores. */
const STORED_TOGETHER = 50
/** Deliveries per second that the gateway certainly does not exceed: so many wait for each second of a round. */
const PER_SECOND_MAX = 10_000
/** Limit of one sender. */
const WAITING_MAX = 100_000
/** From the start of the gateway to the measurement: deliveries begin after a second, and their code is compiled. */
const WARM_UP_SECONDS = 4
/** Requests of another client that pass meanwhile. */
const PASSING = { path: '/bench/1k', connections: 16, ratePerSecond: 200 }

/** Senders of each row, with the deliveries of each on the way at once. */
export const DELIVERY_ROWS: Readonly<Record<string, { readonly senders: number }>> = {
  'no deliveries': { senders: 0 },
  'one sender': { senders: 1 },
  'eight senders': { senders: 8 },
}

interface DeliveriesRun {
  readonly rounds: number
  readonly seconds: number
  readonly port: number
  /** Port of the backend behind the requests that pass. */
  readonly backendPort: number
  /** Empty; of this scenario. */
  readonly folder: string
  reportProgress(round: number, row: string): void
  probe(): Promise<void>
}

/** A provider that takes every message. */
interface Provider {
  readonly url: string
  readonly taken: () => number
  close(): void
}

export async function deliveryRounds(recorder: RoundRecorder, run: DeliveriesRun): Promise<readonly string[]> {
  const { rounds, seconds } = run
  const provider = await startProvider()
  const events = Math.min(WAITING_MAX, (WARM_UP_SECONDS + seconds) * PER_SECOND_MAX)
  try {
    for (const [row, { senders }] of Object.entries(DELIVERY_ROWS)) await fill(run, row, senders, events, provider.url)
    for (let round = 1; round <= rounds; round++) {
      const rows = Object.keys(DELIVERY_ROWS)
      for (const row of round % 2 === 1 ? rows : rows.toReversed()) {
        run.reportProgress(round, row)
        await recorder.measure(row, () => deliveryRound(run, row, provider))
      }
      await run.probe()
    }
  } finally {
    provider.close()
  }
  const each = `${PASSING.ratePerSecond} requests/s of another client pass meanwhile, and count in the processor time`
  return [`${events} deliveries wait in each database at the start of the gateway. ${each}.`]
}

async function startProvider(): Promise<Provider> {
  let taken = 0
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(202).end()
    taken++
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const close = (): void => {
    server.close()
    server.closeAllConnections()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/send`, taken: () => taken, close }
}

async function deliveryRound(run: DeliveriesRun, row: string, provider: Provider): Promise<Sample> {
  const { seconds, port } = run
  const gateway = await startGateway(run, row)
  try {
    await sleep(WARM_UP_SECONDS * 1000)
    let passed: RecordingOutcome | null = null
    let deliveries = 0
    const sample = await measureLoad(gateway, async () => {
      const before = provider.taken()
      const startMs = performance.now()
      const [recorded] = await driveRecorded({ port, ...PASSING, seconds }, () => sleep(seconds * 1000))
      passed = recorded
      deliveries = provider.taken() - before
      const requests = successes(recorded).length
      const lasted = (performance.now() - startMs) / 1000
      return { requests: Math.max(deliveries, requests), seconds: lasted, errors: recorded.due - requests }
    })
    if (DELIVERY_ROWS[row]!.senders > 0 && deliveries === 0) throw new Error(`no delivery: ${gateway.program.output}`)
    return rowSample(sample, deliveries, passed!)
  } finally {
    await gateway.program.stop()
  }
}

function rowSample(sample: Sample, deliveries: number, passed: RecordingOutcome): Sample {
  const [besideP50Ms, besideP99Ms] = latencies(passed)
  const { requestsPerSecond = 0, cpuMicrosPerRequest = 0, busyPercent = 0, othersPercent = 0 } = sample
  const { rssMiB = 0, pssMiB = 0, errors: besideErrors = 0 } = sample
  return {
    ...{ busyPercent, othersPercent, rssMiB, pssMiB, besideP50Ms, besideP99Ms, besideErrors },
    ...(deliveries === 0 ? {} : { deliveriesPerSecond: requestsPerSecond, cpuMicrosPerDelivery: cpuMicrosPerRequest }),
  }
}

/** A gateway whose data folder is a copy of that of its row. */
async function startGateway({ folder, port }: DeliveriesRun, row: string): Promise<RunningPeer> {
  const { home, data: filled } = foldersOf(folder, row)
  const data = `${folder}/data`
  rmSync(data, { recursive: true, force: true })
  cpSync(filled, data, { recursive: true })
  const places = { home, data, port, profileFolder: undefined }
  const program = startSluice({ ...places, reactors: 1, cores: PROXY_CORE, settings: WITHOUT_KEY_MANAGER })
  await program.waitForLine(READY)
  return { name: 'sluice', program, address: { port, certificate: undefined }, folder }
}

function foldersOf(folder: string, row: string): { readonly home: string; readonly data: string } {
  const own = `${folder}/${row.replaceAll(' ', '-')}`
  return { home: `${own}/home`, data: `${own}/data` }
}

/** Home and database of a row, with as many deliveries as `events`, divided among its senders. */
async function fill({ folder, backendPort }: DeliveriesRun, row: string, senders: number, events: number, url: string) {
  const { home, data } = foldersOf(folder, row)
  mkdirSync(`${home}/apis`, { recursive: true })
  mkdirSync(data, { recursive: true })
  writeHome(home, [{ name: 'Bench', context: '/bench', ports: [backendPort] }])
  if (senders === 0) return
  const project = readFileSync(`${ROOT}/conf/apis/${API}/api.yaml`, 'utf8')
  mkdirSync(`${home}/apis/${API}`)
  writeFileSync(
    `${home}/apis/${API}/api.yaml`,
    project.replace('allowed_addresses: []', 'allowed_addresses: [127.0.0.1]'),
  )
  const { configuration } = loadConfiguration(home, [], data)
  const settings = databaseSettings(configuration, data).apim
  const databases = new MountedDatabases({ settings, folder: data, encryptionKey: configuration.encryption.key })
  const api = await open({
    api: { name: API, version: '1.0.0' },
    settings: { allowed_addresses: ['127.0.0.1'] },
    home,
    log: () => {},
    database: <Tables>() => databases.of<Tables>(API),
    secrets: () => databases.secrets(),
    wake: () => {},
  })
  const names = Array.from({ length: senders }, (_, at) => `texts${at}`)
  for (const name of names) {
    const sender = { name, provider: 'Vonage', providerURL: url, key: 'k', secret: 's', sender: 'Acme' }
    const { status, body } = await api.handle(post('/sms', sender))
    if (status !== 201) throw new Error(`the sender is refused: ${String(body)}`)
  }
  const outbox = await Outbox.open(databases.of(API), { cipher: databases.secrets() })
  const event = JSON.stringify({ recipient: '+15550100', text: 'x'.repeat(100), isTemplate: false, ...NO_MORE })
  for (let stored = 0; stored < events; stored += STORED_TOGETHER) {
    const name = names[(stored / STORED_TOGETHER) % senders]!
    const delivery = { sender: { tenant: TENANT, channel: 'sms', name }, event }
    const deliveries = Array.from({ length: STORED_TOGETHER }, () => delivery)
    const { kind } = await outbox.accept({ tenant: TENANT, key: randomUUID(), deliveries })
    if (kind !== 'accepted') throw new Error('the outbox is full')
  }
  await databases.of(API).kysely.destroy()
}

const NO_MORE = { subject: '', properties: {} }

function post(path: string, value: object): MountedRequest {
  const bytes = new TextEncoder().encode(JSON.stringify(value))
  const fields: MountedRequest['fields'] = [['Content-Type', 'application/json']]
  return {
    ...{ method: 'POST', path, query: '', operation: { verb: 'POST', template: path }, variables: { tenant: TENANT } },
    ...{ url: 'http://gw.example', fields, caller: CALLER, address: '127.0.0.1', correlationId: 'bench' },
    field: name => fields.find(([each]) => each.toLowerCase() === name.toLowerCase())?.[1],
    signal: new AbortController().signal,
    hasClientEnded: false,
    body: {
      length: bytes.length,
      bytes: async () => bytes,
      text: async () => new TextDecoder().decode(bytes),
      async *[Symbol.asyncIterator]() {
        yield bytes
      },
    },
  }
}
