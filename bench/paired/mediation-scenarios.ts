/**
 * Paired scenarios of mediation: JSON that is transformed on its way, beside nginx with njs and HAProxy with Lua; what
 * a header policy adds; and how long other requests of a reactor wait while its workers are saturated.
 */
import { COST_COLUMNS, GET, type PairedScenario } from './paired-scenarios.ts'
import type { RequestSpec } from '../load/load-plan.ts'
import type { MetricName } from '../metric.ts'

interface OrderLine {
  readonly sku: string
  readonly quantity: number
  readonly price: number
  readonly gift: boolean
  readonly note: string | null
}

interface Order {
  readonly orderId: string
  readonly customer: { readonly first: string; readonly last: string; readonly verified: boolean }
  readonly trace: string
  readonly items: readonly OrderLine[]
}

/** An order as every peer transforms it: three members have other names, `trace` is left out, `source` is new. */
interface TransformedOrder {
  readonly id: string
  readonly buyer: Order['customer']
  readonly lines: Order['items']
  readonly source: 'gateway'
}

/** A document of exactly `bytes` bytes of JSON; `trace` fills up what whole lines leave. */
export function orderOf(bytes: number): Order {
  const order = (items: readonly OrderLine[], trace = ''): Order => {
    const customer = { first: 'Ada', last: 'Lovelace "de" Zoë', verified: true }
    return { orderId: '6f1c2a34-9f1b-4b7e-8c58-0c2f5d7e9a10', customer, trace, items }
  }
  const items: OrderLine[] = []
  for (;;) {
    const longer = [...items, lineOf(items.length)]
    const left = bytes - Buffer.byteLength(JSON.stringify(order(longer)))
    if (left < 0) break
    items.push(longer.at(-1)!)
  }
  return order(items, 't'.repeat(bytes - Buffer.byteLength(JSON.stringify(order(items)))))
}

function lineOf(index: number): OrderLine {
  const note = index % 3 === 0 ? null : `shelf ${index}`
  return { sku: `A-${1000 + index}`, quantity: 1 + (index % 9), price: 0.25 * (index + 1), gift: index % 2 === 0, note }
}

export function transformed({ orderId, customer, items }: Order): TransformedOrder {
  return { id: orderId, buyer: customer, lines: items, source: 'gateway' }
}

/** The backend counts what comes to the first path, and sends back what comes to the second one. */
const ORDERS_PATH = '/mediation/orders'
const ECHO_BODY_PATH = '/mediation/echo'
/** The API beside the mediated one: GET of 1 KiB, without a flow. */
const PASSING_PATH = '/bench/1k'

function post(bytes: number): RequestSpec {
  return {
    method: 'POST',
    fields: { Origin: null, 'Content-Type': 'application/json' },
    paths: [ORDERS_PATH],
    body: JSON.stringify(orderOf(bytes)),
    uploadBytes: 0,
    expectedStatuses: [200],
    downloadBytes: null,
  }
}

const USER = 'userMicrosPerRequest'
const MEDIATED = 'sluice-mediated'
const UNMEDIATED = 'sluice-unmediated'
const PEERS = [MEDIATED, 'nginx', 'haproxy']
const COMMON = { kind: 'paired', connections: 64, roundsPerStart: 4, reference: 'nginx' } as const

function transforming(title: string, bytes: number): PairedScenario {
  const baselines = ['nginx', 'haproxy', UNMEDIATED]
  return {
    ...COMMON,
    title: `Mediation: ${title}`,
    columns: COST_COLUMNS,
    capability: 'mediation',
    peers: [...PEERS, UNMEDIATED],
    comparisons: baselines.flatMap(baseline => [
      { candidate: MEDIATED, baseline },
      { candidate: MEDIATED, baseline, metric: USER },
    ]),
    request: post(bytes),
    transformation: { peers: PEERS, path: ECHO_BODY_PATH, expected: transformed(orderOf(bytes)) },
  }
}

const DELAY_COLUMNS: readonly MetricName[] = [
  'idleLoopP99Ms',
  'loopP99Ms',
  'idleBesideP50Ms',
  'besideP50Ms',
  'idleBesideP99Ms',
  'besideP99Ms',
  'besideErrors',
  'requestsPerSecond',
  'busyPercent',
]

/** User time that a policy may add at most, as a part of that of the ceiling. */
const HEADER_POLICY_MAX = 0.1

export const MEDIATION_SCENARIOS: Readonly<Record<string, PairedScenario>> = {
  'mediation-1k': transforming('POST of 1 KiB of JSON, transformed', 1024),
  'mediation-10k': transforming('POST of 10 KiB of JSON, transformed', 10_240),
  'mediation-delay': {
    ...COMMON,
    title: 'Mediation: requests that pass the same reactor while its workers are saturated',
    columns: DELAY_COLUMNS,
    capability: 'mediation-delay',
    peers: [...PEERS, UNMEDIATED],
    comparisons: [],
    request: post(10_240),
    transformation: { peers: PEERS, path: ECHO_BODY_PATH, expected: transformed(orderOf(10_240)) },
    beside: { path: PASSING_PATH, connections: 8, ratePerSecond: 200 },
  },
  'mediation-headers': {
    ...COMMON,
    title: 'Mediation: GET of 1 KiB through a policy of constant fields in both directions',
    columns: ['leastUserMicros', USER, 'leastSystemMicros', 'systemMicrosPerRequest', ...COST_COLUMNS.slice(3)],
    capability: 'mediation-headers',
    peers: ['ceiling', 'sluice-no-policy', 'sluice-header-policy'],
    reference: 'ceiling',
    comparisons: [
      {
        candidate: 'sluice-header-policy',
        baseline: 'sluice-no-policy',
        per: 'ceiling',
        metric: USER,
        limit: HEADER_POLICY_MAX,
      },
      { candidate: 'sluice-header-policy', baseline: 'sluice-no-policy' },
    ],
    request: { ...GET, paths: [PASSING_PATH] },
  },
}
