/** The tables of the page: which columns each one has, and which values stand out. */
import { byId } from './dom.js'
import { bytes, count, milliseconds, moment, percent, rate } from './format.js'
import { meaningOf } from './codes.js'
import { Table } from './tables.js'

const ENDPOINT_TONES = { ACTIVE: 'good', TIMEOUT: 'warn', SUSPENDED: 'bad', OFF: 'off' }
const LIFECYCLE_TONES = { PUBLISHED: 'good', PROTOTYPED: 'good', DEPRECATED: 'warn', BLOCKED: 'bad', RETIRED: 'off' }
const DELAY_WARN_MS = 100
const SHARE_WARN = 0.8

export function openTables() {
  return {
    endpoints: endpointsTable(),
    apis: apisTable(),
    limits: limitsTable(),
    pools: poolsTable(),
    caches: cachesTable(),
    threads: threadsTable(),
    faults: faultsTable(),
  }
}

function endpointsTable() {
  return new Table(
    byId('endpoints-table'),
    'Endpoints',
    [
      long('Endpoint', (_, name) => name),
      { ...word('State', row => row.state), tone: row => ENDPOINT_TONES[row.state] ?? 'none' },
      long('URL', row => row.url),
      { ...number('Retried in', row => (row.retryInMs < 0 ? null : row.retryInMs), milliseconds) },
      number('Failures', row => row.failures),
      number('Suspensions', row => row.suspensions),
      number('Recoveries', row => row.recoveries),
      word('Last error', row => (row.lastError === 0 ? '–' : row.lastError)),
    ],
    { filter: 'Filter endpoints', empty: 'No API has an endpoint.' },
  )
}

function apisTable() {
  return new Table(
    byId('apis-table'),
    'APIs',
    [
      long('API', row => `${row.name}:${row.version}`),
      long('Path', row => row.path),
      { ...word('State', row => row.state), tone: row => LIFECYCLE_TONES[row.state] ?? 'none' },
      number('Requests/s', row => row.rates.requests, rate),
      { ...number('Faults/s', row => row.rates.faults, rate), tone: row => (row.rates.faults > 0 ? 'bad' : 'none') },
      number('p99', row => row.rates.p99, milliseconds),
      number('Requests', row => row.requests),
      number('Faults', row => row.faults),
      number('To clients', row => row.responseBytes, bytes),
    ],
    { filter: 'Filter APIs', sort: 6, isDescending: true, empty: 'This node has no API.' },
  )
}

function limitsTable() {
  return new Table(
    byId('limits-table'),
    'Counters of limits',
    [
      long('Key', row => row.key),
      long('Policy', row => row.policy),
      { ...number('Used', row => row.used / row.limit, percent), tone: row => usedTone(row.used / row.limit) },
      number('Count', row => row.used),
      number('Limit', row => row.limit),
      number('Per second', row => row.rate, rate),
      { ...number('Refused', row => row.refused), tone: row => (row.refused > 0 ? 'warn' : 'none') },
      {
        title: 'Resets at',
        text: row => moment(row.resetsAtMs, Date.now()),
        sort: row => row.resetsAtMs,
        isNumber: true,
      },
    ],
    { sort: 2, isDescending: true, empty: 'No counter is in use.' },
  )
}

function poolsTable() {
  return new Table(
    byId('pools-table'),
    'Pools',
    [
      word('Pool', (_, name) => name),
      number('In use', row => row.used),
      number('Limit', row => row.limit, limitText),
      { ...number('Share', row => row.share, percent), tone: row => usedTone(row.share) },
      number('Highest', row => row.highest),
      number('Waiting', row => row.waiting),
      { ...number('Refused', row => row.refused), tone: row => (row.refused > 0 ? 'bad' : 'none') },
    ],
    { empty: 'This node has no pools.' },
  )
}

function cachesTable() {
  return new Table(
    byId('caches-table'),
    'Caches',
    [
      word('Cache', (_, name) => name),
      number('Entries', row => row.entries),
      number('Hits', row => row.hits),
      number('Misses', row => row.misses),
      number('Hit rate', row => row.hits / (row.hits + row.misses), percent),
      number('Evicted', row => row.evictions),
      number('Size', row => row.bytes, bytes),
    ],
    { sort: 2, isDescending: true, empty: 'No cache has been used.' },
  )
}

function threadsTable() {
  return new Table(
    byId('threads-table'),
    'Threads',
    [
      word('Thread', (_, name) => name),
      {
        ...number('Event loop delay', row => row.delayMs, milliseconds),
        tone: row => (row.delayMs > DELAY_WARN_MS ? 'warn' : 'none'),
      },
      number('Heap in use', row => row.heapUsed, bytes),
      number('Heap limit', row => row.heapLimit, bytes),
      number('External memory', row => row.external, bytes),
    ],
    {},
  )
}

function faultsTable() {
  return new Table(
    byId('faults-table'),
    'Connection failures by code and state',
    [
      word('Code', (_, name) => name.split(' ')[1]),
      word('Side', (_, name) => (name.startsWith('source') ? 'client' : 'backend')),
      long('Meaning', (_, name) => meaningOf(...name.split(' '))),
      { title: 'Count', text: value => count(value), sort: value => value, isNumber: true },
    ],
    { sort: 3, isDescending: true, empty: 'No connection has failed since the start.' },
  )
}

/** A column of numbers. */
function number(title, read, text = count) {
  return { title, text: row => text(read(row)), sort: row => read(row) ?? -1, isNumber: true }
}

function word(title, read) {
  return { title, text: (row, name) => String(read(row, name)) }
}

/** A word of any length. */
function long(title, read) {
  return { ...word(title, read), isLong: true }
}

function limitText(limit) {
  return limit < 0 ? 'none' : count(limit)
}

function usedTone(share) {
  return share >= 1 ? 'bad' : share >= SHARE_WARN ? 'warn' : 'none'
}
