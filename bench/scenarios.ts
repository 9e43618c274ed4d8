/**
 * The scenarios, as data: what is asked of every proxy, how many connections ask, and which figures the table shows.
 */
import { type Contest, CONTESTS } from './contest/contests.ts'
import type { MetricName } from './metric.ts'

export const BODY_BYTES = { '1k': 1024, '10k': 10_240, '100k': 102_400, '1m': 1_048_576 } as const
export type BodyName = keyof typeof BODY_BYTES

interface Titled {
  readonly title: string
  /** Columns of the table, and the first of them by which the chart compares. */
  readonly shows: readonly MetricName[]
  /** What is counted where it is no plain request. */
  readonly unit?: string
}

/** What a proxy must be able to do, and is configured for: its configuration holds nothing else. */
export type Ability = 'requests' | 'tls' | 'tls-backend' | 'handshakes' | 'tunnels' | 'fail-over' | Contest['ability']

/** As many requests as the proxy takes, from a fixed number of connections. */
export interface ClosedLoad extends Titled {
  readonly kind: 'closed'
  readonly path: string
  readonly connections: number
  readonly uploadBytes: number
  readonly downloadBytes: number
  readonly connectionPerRequest: boolean
  /** On which side of the proxy there is TLS. */
  readonly secure?: 'client' | 'backend'
}

/** One TLS connection after the other from each client, with one request on it. */
export interface Handshakes extends Titled {
  readonly kind: 'handshakes'
  readonly path: string
  readonly clients: number
  /** Each connection continues the session of the one before. */
  readonly resumed: boolean
}

/** WebSocket connections with messages under way all the time. */
export interface TunnelLoad extends Titled {
  readonly kind: 'tunnels'
  /** Echo: one message at a time and back again. Flow: as many as fit, from the backend to the client. */
  readonly traffic: 'echo' | 'flow'
  readonly connections: number
  readonly messageBytes: number
}

/** One of two backends falls ill while requests come at a constant rate. */
export interface FailOver extends Titled {
  readonly kind: 'fail-over'
  readonly illness: 'dies' | 'hangs' | 'flaps'
  readonly path: string
  readonly connections: number
  readonly ratePerSecond: number
}

/** A constant rate, as a share of the peak that the same peer reached in the same run. */
export interface OpenLoad extends Titled {
  readonly kind: 'open'
  readonly path: string
  readonly connections: number
  readonly shareOfPeak: number
}

/** Connections that made one request each and then stay open without a word. */
export interface IdleConnections extends Titled {
  readonly kind: 'idle'
  /** The request was to become a WebSocket connection. */
  readonly upgraded?: true
  readonly path: string
  readonly connections: number
}

/** The gateway alone: how soon it is ready, and what it takes with nothing to do. */
interface Startup extends Titled {
  readonly kind: 'startup'
}

export type Scenario = ClosedLoad | OpenLoad | Handshakes | TunnelLoad | IdleConnections | FailOver | Contest | Startup

const BARE: readonly MetricName[] = [
  'cpuMicrosPerRequest',
  'userMicrosPerRequest',
  'systemMicrosPerRequest',
  'requestsPerSecond',
  'busyPercent',
  'p50Ms',
  'p99Ms',
  'rssMiB',
]
const BODIES: readonly MetricName[] = [
  'cpuSecondsPerGigabyte',
  'cpuMicrosPerRequest',
  'requestsPerSecond',
  'megabytesPerSecond',
  'busyPercent',
  'p50Ms',
  'p99Ms',
  'rssMiB',
]
const OPEN: readonly MetricName[] = [
  'p99Ms',
  'p50Ms',
  'p999Ms',
  'maxMs',
  'offeredPerSecond',
  'requestsPerSecond',
  'cpuMicrosPerRequest',
]

const HANDSHAKES: readonly MetricName[] = [
  'cpuMicrosPerRequest',
  'userMicrosPerRequest',
  'systemMicrosPerRequest',
  'requestsPerSecond',
  'busyPercent',
  'rssMiB',
]
const FLOW: readonly MetricName[] = ['cpuSecondsPerGigabyte', 'megabytesPerSecond', 'busyPercent', 'rssMiB']
const FAIL_OVER: readonly MetricName[] = [
  'askedCount',
  'answeredCount',
  'refusedCount',
  'unansweredCount',
  'slowestMs',
  'takenOverMs',
  'usedAgainMs',
]

function failOver(illness: FailOver['illness'], what: string): FailOver {
  const title = `Fail-over: one of two backends ${what}, 400 requests/s`
  const shows = illness === 'flaps' ? FAIL_OVER.filter(name => name !== 'takenOverMs') : FAIL_OVER
  return { kind: 'fail-over', title, illness, path: '/twins/1k', connections: 512, ratePerSecond: 400, shows }
}

function download(title: string, name: BodyName, connections: number, shows: readonly MetricName[]): ClosedLoad {
  const path = `/bench/${name}`
  const downloadBytes = BODY_BYTES[name]
  return { kind: 'closed', title, path, connections, uploadBytes: 0, downloadBytes, connectionPerRequest: false, shows }
}

/** From here on the size of a proxy's buffers matters. */
const LARGE_BODY_BYTES = BODY_BYTES['100k']

export function hasLargeBodies(scenario: Scenario): boolean {
  return scenario.kind === 'closed' && scenario.uploadBytes + scenario.downloadBytes >= LARGE_BODY_BYTES
}

/** What a proxy must be able to do for a scenario; undefined where only the gateway is measured. */
export function abilityFor(scenario: Scenario): Ability | undefined {
  switch (scenario.kind) {
    case 'startup':
      return undefined
    case 'closed':
      if (scenario.secure === undefined) return 'requests'
      return scenario.secure === 'client' ? 'tls' : 'tls-backend'
    case 'idle':
      return scenario.upgraded === true ? 'tunnels' : 'requests'
    case 'open':
      return 'requests'
    case 'contest':
      return scenario.ability
    default:
      return scenario.kind
  }
}

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  bare: download('Bare GET, 1 KiB, 64 keep-alive connections', '1k', 64, BARE),
  'bare-512': download('Bare GET, 1 KiB, 512 keep-alive connections', '1k', 512, BARE),
  'down-10k': download('GET, 10 KiB down, 64 connections', '10k', 64, BODIES),
  'down-100k': download('GET, 100 KiB down, 64 connections', '100k', 64, BODIES),
  'down-1m': download('GET, 1 MiB down, 32 connections', '1m', 32, BODIES),
  'up-1m': {
    kind: 'closed',
    title: 'POST, 1 MiB up, 32 connections',
    path: '/upload/1m',
    connections: 32,
    uploadBytes: BODY_BYTES['1m'],
    downloadBytes: 0,
    connectionPerRequest: false,
    shows: BODIES,
  },
  'connection-per-request': {
    ...download('GET, 1 KiB, a connection per request, 64 at a time', '1k', 64, BARE),
    connectionPerRequest: true,
  },
  tls: { ...download('GET, 1 KiB over TLS 1.3, 64 keep-alive connections', '1k', 64, BARE), secure: 'client' },
  'tls-backend': {
    ...download('GET, 1 KiB, TLS 1.3 to the backend, 64 connections', '1k', 64, BARE),
    secure: 'backend',
  },
  'tls-handshakes': {
    kind: 'handshakes',
    title: 'A TLS 1.3 connection per request, 8 at a time',
    path: '/bench/1k',
    clients: 8,
    resumed: false,
    unit: 'handshake',
    shows: HANDSHAKES,
  },
  'tls-resumed': {
    kind: 'handshakes',
    title: 'A resumed TLS 1.3 connection per request, 8 at a time',
    path: '/bench/1k',
    clients: 8,
    resumed: true,
    unit: 'handshake',
    shows: HANDSHAKES,
  },
  'ws-echo': {
    kind: 'tunnels',
    title: 'WebSocket, 128-byte messages there and back, 64 connections',
    traffic: 'echo',
    connections: 64,
    messageBytes: 128,
    unit: 'message',
    shows: BARE,
  },
  'ws-throughput': {
    kind: 'tunnels',
    title: 'WebSocket, 64 KiB messages from the backend, 16 connections',
    traffic: 'flow',
    connections: 16,
    messageBytes: 65_536,
    unit: 'message',
    shows: FLOW,
  },
  'idle-10k': {
    kind: 'idle',
    title: '10,000 idle keep-alive connections',
    path: '/bench/1k',
    connections: 10_000,
    shows: ['kibPerConnection', 'heldConnections', 'rssMiB', 'pssMiB'],
  },
  'tunnels-10k': {
    kind: 'idle',
    upgraded: true,
    title: '10,000 open WebSocket connections without traffic',
    path: '/ws/echo',
    connections: 10_000,
    shows: ['kibPerConnection', 'heldConnections', 'rssMiB', 'pssMiB'],
  },
  'fail-over-dies': failOver('dies', 'dies'),
  'fail-over-hangs': failOver('hangs', 'hangs'),
  'fail-over-flaps': failOver('flaps', 'dies every second'),
  start: {
    kind: 'startup',
    title: 'Start to ready, and memory at rest with two reactors',
    shows: ['readyMs', 'readyThousandMs', 'readyExportedMs', 'readyDocumentedMs', 'firstReadyMs', 'rssMiB', 'pssMiB'],
  },
  ...CONTESTS,
  'open-50': {
    kind: 'open',
    title: 'Open loop, 1 KiB, 64 connections, 50 % of the peer’s peak',
    path: '/bench/1k',
    connections: 64,
    shareOfPeak: 0.5,
    shows: OPEN,
  },
  'open-80': {
    kind: 'open',
    title: 'Open loop, 1 KiB, 64 connections, 80 % of the peer’s peak',
    path: '/bench/1k',
    connections: 64,
    shareOfPeak: 0.8,
    shows: OPEN,
  },
}
