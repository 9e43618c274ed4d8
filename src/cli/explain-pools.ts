/**
 * What the sizes of pools come to on this machine, with the operator's own numbers: how many threads and tasks that is,
 * and how many of a burst run, wait and are refused. A pool that is not built yet has its sum all the same, because its
 * numbers are in configurations already.
 */
import { ARENA_BYTES } from '../structure/arena.ts'
import type { Machine } from './machine.ts'

/** What becomes of the messages, connections or calls of a burst. */
interface Burst {
  readonly size: number
  readonly runs: number
  readonly waits: number
  readonly refused: number
}

export interface PoolSum {
  readonly lines: readonly string[]
  readonly burst: Burst
}

/** The value of another key: of the same section or row, by its name in there. */
type Values = (key: string) => number
type Sum = (value: Values, machine: Machine, burst: number) => PoolSum

const workers = executor('messages', {
  core: 'worker_pool_size_core',
  max: 'worker_pool_size_max',
  queue: 'worker_pool_queue_length',
  beyond: 'answered with 503',
  note: 'a message that only passes through never enters this pool',
})

const background = executor('tasks', {
  core: 'synapse.core_threads',
  max: 'synapse.max_threads',
  queue: 'synapse.threads_queue_length',
  beyond: 'refused',
  note: 'for what no client waits for, such as notices and events',
})

/** Section without places -> key -> its sum. */
const SUMS: Readonly<Record<string, Readonly<Record<string, Sum>>>> = {
  'transport.passthru_http': {
    worker_pool_size_core: workers,
    worker_pool_size_max: workers,
    worker_pool_queue_length: workers,
    io_buffer_size: buffers,
    'http.max.connection.per.host.port': perBackend,
    max_open_connections: openConnections,
    max_connections_per_client: perClient,
    reactors,
  },
  mediation: {
    'synapse.core_threads': background,
    'synapse.max_threads': background,
    'synapse.threads_queue_length': background,
    'synapse.script_mediator_pool_size': scripts,
    'inbound.core_threads': inbound,
    'inbound.max_threads': inbound,
  },
  'apim.key_manager': { 'pool.init_idle_capacity': keyManager, 'pool.max_idle': keyManager },
  'database.apim_db': { 'pool_options.maxActive': database, 'pool_options.maxWait': database },
  'apim.http_client': { max_total: httpClient, default_max_per_route: httpClient },
  'apim.throttling': publisherSums(),
  'apim.throttling.url_group': publisherSums(),
}

export function sumOf(section: string, key: string): Sum | undefined {
  return SUMS[section]?.[key]
}

interface Executor {
  readonly core: string
  readonly max: string
  /** -1 where it is unbounded. */
  readonly queue: string
  /** What becomes of one that finds no place. */
  readonly beyond: string
  readonly note: string
}

/** A pool with a queue: it grows from its core size to the largest when the queue is full, and not before. */
function executor(what: string, keys: Executor): Sum {
  return (value, { processors }, size) => {
    const [core, max, queue] = [value(keys.core), value(keys.max), value(keys.queue)]
    const isUnbounded = queue < 0
    const atOnce = isUnbounded ? core : Math.max(core, max)
    const first = Math.min(size, core)
    const waits = isUnbounded ? size - first : Math.min(size - first, queue)
    const more = isUnbounded ? 0 : Math.min(size - first - waits, atOnce - core)
    const threads = Math.min(atOnce, processors)
    const growth = isUnbounded
      ? `the queue is unbounded, so ${keys.max} (${max}) has no effect: the pool stays at ${keys.core} (${core})`
      : `${core} at once, then ${queue} wait, then up to ${max} at once; one more is ${keys.beyond}`
    const burst = { size, runs: first + more, waits, refused: size - first - waits - more }
    return sum(burst, what, [`${atOnce} ${what} at once: ${spread(atOnce, threads, 'task')}`, growth, keys.note])
  }
}

function buffers(value: Values, { reactors }: Machine, size: number): PoolSum {
  // The arena lends powers of two.
  const chunk = 2 ** Math.ceil(Math.log2(value('io_buffer_size')))
  const most = reactors * Math.floor(ARENA_BYTES / chunk)
  const runs = Math.min(size, most)
  return sum({ size, runs, waits: 0, refused: size - runs }, 'connections, each in the middle of a head', [
    `${bytes(chunk)} for a connection in the middle of a head, and none between requests`,
    `${size} in the middle of a head: ${bytes(runs * chunk)} on ${counted(reactors, 'reactor')}`,
    `${bytes(ARENA_BYTES)} of a reactor are used up by ${most / reactors} of them, and by long bodies`,
  ])
}

function perBackend(value: Values, { reactors }: Machine, size: number): PoolSum {
  const limit = value('http.max.connection.per.host.port')
  const runs = Math.min(size, limit)
  return sum({ size, runs, waits: 0, refused: size - runs }, 'requests to one backend', [
    `${limit} connections to one backend, of ${counted(reactors, 'reactor')} together`,
    'there is no queue: one more is answered at once with 503 and 101504',
  ])
}

function openConnections(value: Values, { reactors, openFiles }: Machine, size: number): PoolSum {
  const limit = value('max_open_connections')
  const runs = limit < 0 ? size : Math.min(size, limit)
  const files =
    openFiles === 0
      ? []
      : [`${openFiles} files may be open in this process; a connection takes one, and one more to its backend`]
  return sum({ size, runs, waits: 0, refused: size - runs }, 'connections', [
    limit < 0
      ? 'no limit: memory and open files are the only ones'
      : `${limit} connections, of ${counted(reactors, 'reactor')} together; one more is reset at once and counted`,
    ...files,
  ])
}

function perClient(value: Values, { reactors }: Machine, size: number): PoolSum {
  const limit = value('max_connections_per_client')
  const runs = limit < 0 ? size : Math.min(size, limit)
  return sum({ size, runs, waits: 0, refused: size - runs }, 'connections of one address', [
    limit < 0 ? 'no limit' : `${limit} connections of one address, on ${counted(reactors, 'reactor')} together`,
  ])
}

function reactors(_: Values, { processors, reactors: threads }: Machine, size: number): PoolSum {
  return sum({ size, runs: size, waits: 0, refused: 0 }, 'connections', [
    `${counted(threads, 'thread')} on ${counted(processors, 'processor')}`,
    `a burst is spread by the operating system, about ${Math.ceil(size / threads)} connections each`,
    `up to ${bytes(ARENA_BYTES)} of buffers each, ${bytes(threads * ARENA_BYTES)} in all; what was not used is free`,
  ])
}

function database(value: Values, { processors }: Machine, size: number): PoolSum {
  const limit = value('pool_options.maxActive')
  const runs = Math.min(size, limit)
  const threads = Math.min(limit, processors)
  return sum({ size, runs, waits: size - runs, refused: 0 }, 'statements', [
    `${limit} connections of the process: ${spread(limit, threads, 'connection')}`,
    `who waits fails after ${value('pool_options.maxWait')} ms`,
  ])
}

function httpClient(value: Values, _: Machine, size: number): PoolSum {
  const total = value('max_total')
  const toOne = Math.min(total, value('default_max_per_route'))
  return sum(
    { size, runs: Math.min(size, toOne), waits: Math.max(0, size - toOne), refused: 0 },
    'calls to one address',
    [
      `${toOne} calls to one key manager at once, ${total} to all of them`,
      'a token that holds its own claims needs no call',
    ],
  )
}

/** No key bounds a queue of theirs: what finds no thread stays where it came from, unread. */
function inbound(value: Values, { processors }: Machine, size: number): PoolSum {
  const [core, max] = [value('inbound.core_threads'), value('inbound.max_threads')]
  const atOnce = Math.max(core, max)
  const runs = Math.min(size, atOnce)
  return sum({ size, runs, waits: size - runs, refused: 0 }, 'tasks of inbound endpoints', [
    `${atOnce} tasks at once: ${spread(atOnce, Math.min(atOnce, processors), 'task')}`,
    `${core} at once, then up to ${max} at once; the rest waits, and no key bounds how many`,
  ])
}

function scripts(value: Values, { processors }: Machine, size: number): PoolSum {
  const engines = value('synapse.script_mediator_pool_size')
  const runs = Math.min(size, engines)
  return sum({ size, runs, waits: size - runs, refused: 0 }, 'messages through one script mediator', [
    `${engines} scripts of one mediator at once: ${spread(engines, Math.min(engines, processors), 'script')}`,
    'a message waits until an engine is free; another mediator has as many of its own',
  ])
}

/** Its sizes say how many connections are kept, not how many there may be. */
function keyManager(value: Values, _: Machine, size: number): PoolSum {
  const [open, kept] = [value('pool.init_idle_capacity'), value('pool.max_idle')]
  const onOpen = Math.min(size, open)
  const onNew = size - onOpen
  const closed = Math.max(0, size - Math.max(open, kept))
  return sum({ size, runs: size, waits: 0, refused: 0 }, 'calls to the key manager', [
    `${open} connections from the start, up to ${kept} kept without work`,
    `of ${size} calls at once ${onOpen} on open connections, ${onNew} on new ones; ${closed} are closed behind it`,
  ])
}

function publishers(value: Values, _: Machine, size: number): PoolSum {
  const [atOnce, most] = [value('publisher.pool_size'), value('publisher.max_pool_size')]
  const [made, kept] = [value('publisher.init_idle_size'), value('publisher.max_idle')]
  const runs = Math.min(size, most)
  return sum({ size, runs, waits: size - runs, refused: 0 }, 'events', [
    `${atOnce} events published at once, up to ${most} while more wait`,
    `what is beyond ${atOnce} ends after ${value('publisher.keep_alive_time')} s without work`,
    `${made} publishers made at start, up to ${kept} kept without work`,
  ])
}

function publisherSums(): Readonly<Record<string, Sum>> {
  const names = ['max_idle', 'init_idle_size', 'pool_size', 'max_pool_size', 'keep_alive_time']
  return Object.fromEntries(names.map(name => [`publisher.${name}`, publishers]))
}

function sum(burst: Burst, what: string, lines: readonly string[]): PoolSum {
  const { size, runs, waits, refused } = burst
  return { burst, lines: [...lines, `a burst of ${size} ${what}: ${runs} run, ${waits} wait, ${refused} are refused`] }
}

/** Some threads have one less where it does not come out even. */
function spread(count: number, threads: number, noun: string): string {
  const most = count % threads === 0 ? '' : 'up to '
  return `${counted(threads, 'thread')} x ${most}${counted(Math.ceil(count / threads), noun)}`
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

const KIB = 1024

function bytes(count: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']
  const power = count < KIB ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(count) / Math.log2(KIB)))
  return `${Number((count / KIB ** power).toFixed(1))} ${units[power]}`
}
