/** The parts of the page but for the machines: what each one shows of the state. */
import { Chart } from './charts.js'
import { openTables } from './columns.js'
import { byId, element, setAttribute, setText } from './dom.js'
import { bytes, clock, count, milliseconds, rate, span } from './format.js'
import { Parts } from './parts.js'
import { cacheRows, poolRows, threadRows } from './pools.js'
import { perSecond, quantile } from './rates.js'

/** Name, title, series with the variables of their colours, options of the chart. */
const CHARTS = [
  [
    'throughput',
    'Requests per second',
    [
      { name: 'responses 1xx to 3xx', color: 'good' },
      { name: '4xx', color: 'warn' },
      { name: '5xx', color: 'bad' },
    ],
    { format: rate },
  ],
  [
    'latency',
    'Time of an exchange, logarithmic',
    [
      { name: 'median', color: 'accent' },
      { name: '95th percentile', color: 'second' },
      { name: '99th percentile', color: 'bad' },
      { name: 'backend, median', color: 'muted' },
    ],
    { format: milliseconds, isLogarithmic: true },
  ],
  [
    'bytes',
    'Bytes per second',
    [
      { name: 'to clients', color: 'accent' },
      { name: 'from clients', color: 'second' },
    ],
    { format: bytes, steps: Array.from({ length: 50 }, (_, power) => 2 ** power) },
  ],
]
const FIGURES = [
  ['requests', 'Requests/s'],
  ['faults', 'Faults/s'],
  ['p50', 'Median time'],
  ['p99', '99th percentile'],
  ['clients', 'Client connections'],
  ['backends', 'Backend connections'],
  ['tunnels', 'Tunnels'],
  ['memory', 'Memory'],
]
/** Without a change rates fall to 0 after this time. */
const APIS_MS = 6000

const NO_TIMES = { p50: null, p95: null, p99: null, backend: null }

export class Views {
  #figures = new Map()
  #charts
  #parts = new Parts()
  #tables
  /** State of the round before, and its time. */
  #before = null
  /** Rates of APIs by name, since the last change of their counters. */
  #apiRates = new Map()
  #apisBefore = null

  constructor() {
    for (const [name, title] of FIGURES) {
      const value = element('dd', {}, '–')
      byId('figures').append(element('div', { 'data-figure': name }, element('dt', {}, title), value))
      this.#figures.set(name, value)
    }
    const charts = byId('charts')
    const chartOf = ([name, title, series, options]) => [name, new Chart(charts, title, series, options)]
    this.#charts = Object.fromEntries(CHARTS.map(chartOf))
    this.#tables = openTables()
  }

  /** A round: `state` as the gateway has told it. Nothing is drawn while `isPaused`. */
  show(state, isPaused, hasNewApis) {
    const { live } = state
    if (live === undefined) return
    this.#measure(state, hasNewApis)
    const before = this.#before?.live
    this.#before = structuredClone({ live })
    if (isPaused) return
    for (const chart of Object.values(this.#charts)) chart.draw()
    this.#showTables(state, before)
    setText(byId('node'), `up ${span(live.upS)} · ${reactorsOf(live)} · ${clock(live.nowMs)}`)
  }

  /** The next round has no predecessor: rates would be those of a longer time, or of another process. */
  forget() {
    this.#before = null
    this.#apisBefore = null
    this.#apiRates.clear()
  }

  redraw() {
    for (const chart of Object.values(this.#charts)) chart.redraw()
  }

  /** Draws the samples of the last minutes, the oldest first; the next round goes on from the last one. */
  replay(samples) {
    for (const live of samples) {
      this.#chart(live)
      this.#before = { live }
    }
    for (const chart of Object.values(this.#charts)) chart.draw()
  }

  #measure({ live, apis }, hasNewApis) {
    const { counts } = live
    const { requests, faults, p50, p99 } = this.#chart(live)
    const figures = {
      ...{ requests: rate(requests), faults: rate(faults), p50: milliseconds(p50), p99: milliseconds(p99) },
      ...{
        clients: count(counts.connectionsOpen),
        backends: count(counts.targetsOpen),
        tunnels: count(counts.tunnelsOpen),
      },
      memory: bytes(live.residentBytes),
    }
    for (const [name, value] of this.#figures) setText(value, figures[name])
    setAttribute(this.#figures.get('faults').parentElement, 'data-tone', faults > 0 ? 'bad' : 'none')
    const isDue = hasNewApis || live.nowMs - (this.#apisBefore?.nowMs ?? 0) > APIS_MS
    if (apis !== undefined && isDue) this.#measureApis(apis.apis ?? {}, live.nowMs, live.bounds)
  }

  /** Adds a point to each chart; without a sample before, no rate is known. */
  #chart(live) {
    const before = this.#before?.live ?? null
    const seconds = before === null ? 0 : (live.nowMs - before.nowMs) / 1000
    const of = name => (before === null ? null : perSecond(live.counts[name] ?? 0, before.counts[name] ?? 0, seconds))
    const byClass = before === null ? [null, null, null] : statusRates(live.statuses, before.statuses, seconds)
    const faults = before === null ? null : perSecond(live.gatewayFaults, before.gatewayFaults, seconds)
    const { p50, p95, p99, backend } = before === null ? NO_TIMES : newDurations(live, before)
    const timeS = live.nowMs / 1000
    this.#charts.throughput.add(timeS, byClass)
    this.#charts.latency.add(timeS, [p50, p95, p99, backend])
    this.#charts.bytes.add(timeS, [of('bytesToClients'), of('bytesFromClients')])
    return { requests: of('requests'), faults, p50, p99 }
  }

  /** Rows of APIs come every few rounds, all at once. */
  #measureApis(rows, nowMs, bounds) {
    const known = this.#apisBefore
    const seconds = known === null ? 0 : (nowMs - known.nowMs) / 1000
    const limits = listOf(bounds)
    for (const [name, row] of Object.entries(rows)) {
      const before = known?.rows.get(name)
      if (before === undefined) continue
      const buckets = Array.from(
        { length: limits.length + 1 },
        (_, at) => (row.total?.[at] ?? 0) - (before.total[at] ?? 0),
      )
      this.#apiRates.set(name, {
        requests: perSecond(row.requests ?? 0, before.requests, seconds),
        faults: perSecond(row.faults ?? 0, before.faults, seconds),
        p99: milli(quantile(0.99, buckets, limits)),
      })
    }
    const kept = Object.entries(rows).map(([name, row]) => {
      return [name, { requests: row.requests ?? 0, faults: row.faults ?? 0, total: { ...row.total } }]
    })
    this.#apisBefore = { nowMs, rows: new Map(kept) }
  }

  #showTables({ live, lists = {}, apis = {} }, before) {
    const { endpoints, apis: apiTable, limits, pools, caches, threads, faults } = this.#tables
    const rates = this.#apiRates
    this.#parts.show(lists.readiness)
    endpoints.show(() => Object.entries(lists.endpoints ?? {}))
    apiTable.show(() =>
      Object.entries(apis.apis ?? {}).map(([name, row]) => [name, { ...row, rates: rates.get(name) ?? {} }]),
    )
    limits.show(() => Object.entries(lists.counters ?? {}))
    const { live: used = 0, capacity = 0 } = lists.throttle ?? {}
    setText(
      byId('limits-summary'),
      `The counters that are nearest to their limits; ${count(used)} of ${count(capacity)} counters are in use.`,
    )
    pools.show(() => poolRows(live))
    caches.show(() => cacheRows(live.counts))
    threads.show(() => threadRows(live.threads, before?.threads))
    faults.show(() => Object.entries(live.faults ?? {}))
  }
}

function reactorsOf({ reactors = 0, level = '', silent = 0 }) {
  if (reactors === 0) return 'no reactors'
  const late = silent > 0 ? `, ${silent} silent` : ''
  return `${reactors} ${reactors === 1 ? 'reactor' : 'reactors'} (${level}${late})`
}

function statusRates(now = {}, before = {}, seconds) {
  const sums = [0, 0, 0]
  for (const [status, total] of Object.entries(now)) {
    const added = Math.max(0, total - (before[status] ?? 0))
    sums[Number(status) >= 500 || status === '0' ? 2 : Number(status) >= 400 ? 1 : 0] += added
  }
  return sums.map(sum => (seconds > 0 ? sum / seconds : null))
}

/** Quantiles of the exchanges that ended since the round before, in milliseconds. */
function newDurations({ durations = {}, bounds }, before) {
  const limits = listOf(bounds)
  const added = kind =>
    Array.from(
      { length: limits.length + 1 },
      (_, at) => (durations[kind]?.[at] ?? 0) - (before.durations?.[kind]?.[at] ?? 0),
    )
  const total = added('total')
  const at = share => milli(quantile(share, total, limits))
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), backend: milli(quantile(0.5, added('backend'), limits)) }
}

function milli(seconds) {
  return seconds === null ? null : seconds * 1000
}

function listOf(bounds = {}) {
  return Object.values(bounds)
}
