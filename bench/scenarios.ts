/** The scenarios, as data: requests and connections of the load, and the metrics that the table shows. */
import { LIMIT_SCENARIOS } from './paired/limit-scenarios.ts'
import { MEDIATION_SCENARIOS } from './paired/mediation-scenarios.ts'
import { COST_COLUMNS, type PairedScenario, PAIRED_SCENARIOS } from './paired/paired-scenarios.ts'
import type { MetricName } from './metric.ts'

export const BODY_BYTES = { '1k': 1024, '10k': 10_240, '100k': 102_400, '1m': 1_048_576 } as const
export type BodyName = keyof typeof BODY_BYTES

interface ScenarioTable {
  readonly title: string
  /** Columns of the table; the chart compares the first of them. */
  readonly columns: readonly MetricName[]
  /** Unit of the counts, if it is not a request. */
  readonly unit?: string
}

/** A capability of a peer; its configuration contains only what that capability needs. */
export type Capability =
  | 'requests'
  | 'two-cores'
  | 'tls'
  | 'tls-backend'
  | 'handshakes'
  | 'tunnels'
  | 'fail-over'
  | PairedScenario['capability']

/** A closed loop: as many requests as the proxy takes, from a fixed number of connections. */
export interface ClosedLoad extends ScenarioTable {
  readonly kind: 'closed'
  readonly path: string
  readonly connections: number
  readonly uploadBytes: number
  readonly downloadBytes: number
  readonly connectionPerRequest: boolean
  /** The side of the proxy that uses TLS. */
  readonly tls?: 'client' | 'backend'
  /** The proxy has two workers, on both processors. */
  readonly usesBothCores?: true
}

/** Consecutive TLS connections from each client, with one request on each. */
export interface Handshakes extends ScenarioTable {
  readonly kind: 'handshakes'
  readonly path: string
  readonly clients: number
  /** Each connection resumes the TLS session of the one before. */
  readonly resumed: boolean
}

/** WebSocket connections with constant traffic. */
export interface TunnelLoad extends ScenarioTable {
  readonly kind: 'tunnels'
  /** Echo: one message at a time to the backend and back. Stream: as many as fit, from the backend to the client. */
  readonly traffic: 'echo' | 'stream'
  readonly connections: number
  readonly messageBytes: number
}

/** A load at a constant rate, during which one of two equal backends fails. */
export interface FailOverLoad extends ScenarioTable {
  readonly kind: 'fail-over'
  readonly failure: 'dies' | 'hangs' | 'flaps'
  readonly path: string
  readonly connections: number
  readonly ratePerSecond: number
}

/** An open loop: a constant rate, as a share of the peak that the same peer reached in the same run. */
export interface OpenLoad extends ScenarioTable {
  readonly kind: 'open'
  readonly path: string
  readonly connections: number
  readonly shareOfPeak: number
}

/** Connections with one request each, then open without traffic. */
export interface IdleConnections extends ScenarioTable {
  readonly kind: 'idle'
  /** The request upgrades to a WebSocket connection. */
  readonly upgraded?: true
  /** Connections between client and proxy use TLS. */
  readonly tls?: true
  readonly path: string
  readonly connections: number
}

/** The gateway alone: time from start to ready, and memory without traffic. */
interface Startup extends ScenarioTable {
  readonly kind: 'startup'
}

/** The code of the gateway alone, on sockets in memory (`hot-path.ts`). */
interface Replay extends ScenarioTable {
  readonly kind: 'replay'
}

/** The healthcare-service API on the gateway, beside bare nginx (`healthcare.ts`). */
interface Healthcare extends ScenarioTable {
  readonly kind: 'healthcare'
}

/** Deliveries of the notification-senders API (`deliveries.ts`). */
interface Deliveries extends ScenarioTable {
  readonly kind: 'deliveries'
}

export type Scenario =
  | ClosedLoad
  | OpenLoad
  | Handshakes
  | TunnelLoad
  | IdleConnections
  | FailOverLoad
  | PairedScenario
  | Startup
  | Replay
  | Healthcare
  | Deliveries

const BODY_COLUMNS: readonly MetricName[] = [
  'cpuSecondsPerGigabyte',
  'cpuMicrosPerRequest',
  'requestsPerSecond',
  'megabytesPerSecond',
  'busyPercent',
  'p50Ms',
  'p99Ms',
  'rssMiB',
]
const OPEN_LOOP_COLUMNS: readonly MetricName[] = [
  'p99Ms',
  'p50Ms',
  'p999Ms',
  'maxMs',
  'offeredPerSecond',
  'requestsPerSecond',
  'cpuMicrosPerRequest',
]

const HANDSHAKE_COLUMNS: readonly MetricName[] = [
  'cpuMicrosPerRequest',
  'userMicrosPerRequest',
  'systemMicrosPerRequest',
  'requestsPerSecond',
  'busyPercent',
  'rssMiB',
]
const STREAM_COLUMNS: readonly MetricName[] = ['cpuSecondsPerGigabyte', 'megabytesPerSecond', 'busyPercent', 'rssMiB']
const FAIL_OVER_COLUMNS: readonly MetricName[] = [
  'askedCount',
  'answeredCount',
  'refusedCount',
  'unansweredCount',
  'slowestMs',
  'takenOverMs',
  'usedAgainMs',
]

function failOver(failure: FailOverLoad['failure'], what: string): FailOverLoad {
  const title = `Fail-over: one of two backends ${what}, 400 requests/s`
  const columns = failure === 'flaps' ? FAIL_OVER_COLUMNS.filter(name => name !== 'takenOverMs') : FAIL_OVER_COLUMNS
  return { kind: 'fail-over', title, failure, path: '/replicas/1k', connections: 512, ratePerSecond: 400, columns }
}

function download(title: string, name: BodyName, connections: number, columns: readonly MetricName[]): ClosedLoad {
  const path = `/bench/${name}`
  const downloadBytes = BODY_BYTES[name]
  return {
    kind: 'closed',
    title,
    path,
    connections,
    uploadBytes: 0,
    downloadBytes,
    connectionPerRequest: false,
    columns,
  }
}

/** For bodies of at least this size the buffers of a proxy matter. */
const LARGE_BODY_BYTES = BODY_BYTES['100k']

export function hasLargeBodies(scenario: Scenario): boolean {
  return scenario.kind === 'closed' && scenario.uploadBytes + scenario.downloadBytes >= LARGE_BODY_BYTES
}

/** The capability that a peer needs for a scenario; undefined where only the gateway is measured. */
export function capabilityFor(scenario: Scenario): Capability | undefined {
  switch (scenario.kind) {
    case 'startup':
    case 'replay':
    case 'healthcare':
    case 'deliveries':
      return undefined
    case 'closed':
      if (scenario.tls === undefined) return scenario.usesBothCores === true ? 'two-cores' : 'requests'
      return scenario.tls === 'client' ? 'tls' : 'tls-backend'
    case 'idle':
      if (scenario.tls === true) return 'tls'
      return scenario.upgraded === true ? 'tunnels' : 'requests'
    case 'open':
      return 'requests'
    case 'paired':
      return scenario.capability
    default:
      return scenario.kind
  }
}

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  bare: download('Bare GET, 1 KiB, 64 keep-alive connections', '1k', 64, COST_COLUMNS),
  'bare-512': download('Bare GET, 1 KiB, 512 keep-alive connections', '1k', 512, COST_COLUMNS),
  'bare-two-cores': {
    ...download('Bare GET, two workers on two processors with the load', '1k', 64, COST_COLUMNS),
    usesBothCores: true,
  },
  'down-10k': download('GET, 10 KiB down, 64 connections', '10k', 64, BODY_COLUMNS),
  'down-100k': download('GET, 100 KiB down, 64 connections', '100k', 64, BODY_COLUMNS),
  'down-1m': download('GET, 1 MiB down, 32 connections', '1m', 32, BODY_COLUMNS),
  'up-1m': {
    kind: 'closed',
    title: 'POST, 1 MiB up, 32 connections',
    path: '/upload/1m',
    connections: 32,
    uploadBytes: BODY_BYTES['1m'],
    downloadBytes: 0,
    connectionPerRequest: false,
    columns: BODY_COLUMNS,
  },
  'connection-per-request': {
    ...download('GET, 1 KiB, a connection per request, 64 at a time', '1k', 64, COST_COLUMNS),
    connectionPerRequest: true,
  },
  tls: { ...download('GET, 1 KiB over TLS 1.3, 64 keep-alive connections', '1k', 64, COST_COLUMNS), tls: 'client' },
  'tls-backend': {
    ...download('GET, 1 KiB, TLS 1.3 to the backend, 64 connections', '1k', 64, COST_COLUMNS),
    tls: 'backend',
  },
  'tls-handshakes': {
    kind: 'handshakes',
    title: 'A TLS 1.3 connection per request, 8 at a time',
    path: '/bench/1k',
    clients: 8,
    resumed: false,
    unit: 'handshake',
    columns: HANDSHAKE_COLUMNS,
  },
  'tls-resumed': {
    kind: 'handshakes',
    title: 'A resumed TLS 1.3 connection per request, 8 at a time',
    path: '/bench/1k',
    clients: 8,
    resumed: true,
    unit: 'handshake',
    columns: HANDSHAKE_COLUMNS,
  },
  'ws-echo': {
    kind: 'tunnels',
    title: 'WebSocket, 128-byte messages there and back, 64 connections',
    traffic: 'echo',
    connections: 64,
    messageBytes: 128,
    unit: 'message',
    columns: COST_COLUMNS,
  },
  'ws-throughput': {
    kind: 'tunnels',
    title: 'WebSocket, 64 KiB messages from the backend, 16 connections',
    traffic: 'stream',
    connections: 16,
    messageBytes: 65_536,
    unit: 'message',
    columns: STREAM_COLUMNS,
  },
  'idle-10k': {
    kind: 'idle',
    title: '10,000 idle keep-alive connections',
    path: '/bench/1k',
    connections: 10_000,
    columns: ['kibPerConnection', 'heldConnections', 'rssMiB', 'pssMiB'],
  },
  'idle-tls-2k': {
    kind: 'idle',
    tls: true,
    title: '2,000 idle TLS 1.3 connections',
    path: '/bench/1k',
    connections: 2000,
    columns: ['kibPerConnection', 'heldConnections', 'rssMiB', 'pssMiB'],
  },
  'tunnels-10k': {
    kind: 'idle',
    upgraded: true,
    title: '10,000 open WebSocket connections without traffic',
    path: '/ws/echo',
    connections: 10_000,
    columns: ['kibPerConnection', 'heldConnections', 'rssMiB', 'pssMiB'],
  },
  'fail-over-dies': failOver('dies', 'dies'),
  'fail-over-hangs': failOver('hangs', 'hangs'),
  'fail-over-flaps': failOver('flaps', 'dies every second'),
  start: {
    kind: 'startup',
    title: 'Start to ready, and memory at rest with two reactors',
    columns: ['readyMs', 'readyThousandMs', 'readyExportedMs', 'readyDocumentedMs', 'firstReadyMs', 'rssMiB', 'pssMiB'],
  },
  'hot-path-replay': {
    kind: 'replay',
    title: 'Hot path, replayed in memory: ns per request by phase',
    columns: [
      'leastExchangeNs',
      'exchangeNs',
      'userNs',
      'decodeNs',
      'filterNs',
      'sendNs',
      'readNs',
      'writeNs',
      'accountNs',
      'lineNs',
      'allocatedBytes',
    ],
  },
  healthcare: {
    kind: 'healthcare',
    title: 'Healthcare services: each kind of request to 100,000 of them',
    columns: [
      'requestsPerCoreSecond',
      'requestsPerSecond',
      'leastCpuMicros',
      'cpuMicrosPerRequest',
      'p50Ms',
      'p99Ms',
      'busyPercent',
      'rssMiB',
    ],
  },
  deliveries: {
    kind: 'deliveries',
    title: 'Notifications that wait are delivered, while requests pass',
    columns: [
      'deliveriesPerSecond',
      'cpuMicrosPerDelivery',
      'busyPercent',
      'rssMiB',
      'pssMiB',
      'besideP50Ms',
      'besideP99Ms',
      'besideErrors',
    ],
  },
  ...PAIRED_SCENARIOS,
  ...LIMIT_SCENARIOS,
  ...MEDIATION_SCENARIOS,
  'open-50': {
    kind: 'open',
    title: 'Open loop, 1 KiB, 64 connections, 50 % of the peer’s peak',
    path: '/bench/1k',
    connections: 64,
    shareOfPeak: 0.5,
    columns: OPEN_LOOP_COLUMNS,
  },
  'open-80': {
    kind: 'open',
    title: 'Open loop, 1 KiB, 64 connections, 80 % of the peer’s peak',
    path: '/bench/1k',
    connections: 64,
    shareOfPeak: 0.8,
    columns: OPEN_LOOP_COLUMNS,
  },
}
