/**
 * Calculates what pool sizes mean on this machine: threads, tasks per thread, and how many messages of a burst run,
 * wait and are refused. Pools that are not built yet are calculated too, because configurations size them already.
 */
import { availableParallelism } from 'node:os'
import type { Configuration } from '../config/catalogue.ts'
import { ConfigurationErrors } from '../config/diagnostics.ts'
import { type PoolSize, poolSizes } from '../database/database-settings.ts'
import { connectionLimits, openFileLimit } from '../plan/descriptor-planning.ts'
import { planListeners } from '../plan/listener-planning.ts'
import { reactorCount } from '../plan/reactor-planning.ts'
import { type RemoteRequestLimits, remoteRequestLimits } from '../plan/remote-requests.ts'
import { scriptThreadsEach, TASK_BYTES, workerThreadCount } from '../plan/worker-plan.ts'
import { workerSettings } from '../plan/worker-planning.ts'
import { ARENA_BYTES, chunkSize } from '../runtime/arena.ts'
import { START_MS, WAITING_PER_THREAD } from '../runtime/isolated-threads.ts'
import { counted } from './terminal.ts'

/** Numbers of this machine and its configuration on which the sums of pools depend. */
export interface PoolFacts {
  readonly processors: number
  readonly reactors: number
  /** Worker threads of both kinds. */
  readonly workers: number
  /** Threads of the whole process by what they run; both transports share those of mediation. */
  readonly threads: { readonly mediation: number; readonly background: number }
  /** Largest total size of the messages that wait for workers. */
  readonly queueBytes: number
  /** Limit of open files and sockets of a process; 0 if unknown. */
  readonly openFiles: number
  readonly requests: RemoteRequestLimits
  /** Empty if a database is not configured correctly. */
  readonly databases: readonly PoolSize[]
}

export function poolFacts(configuration: Configuration, dataDir: string): PoolFacts {
  const reactors = reactorCount(configuration, planListeners(configuration))
  const { threads } = workerSettings(configuration)
  return {
    processors: availableParallelism(),
    reactors,
    workers: workerThreadCount(threads, reactors),
    // Each reactor has a thread of its own at least.
    threads: { mediation: Math.max(threads.mediation, reactors), background: Math.max(threads.background, reactors) },
    queueBytes: configuration['transport.passthru_http'].worker_pool_queue_bytes,
    openFiles: openFileLimit(),
    requests: remoteRequestLimits(configuration),
    databases: databasePools(configuration, dataDir),
  }
}

function databasePools(configuration: Configuration, dataDir: string): readonly PoolSize[] {
  try {
    return poolSizes(configuration, dataDir)
  } catch (error) {
    if (error instanceof ConfigurationErrors) return []
    throw error
  }
}

/** Outcome for the messages, connections or calls of a burst. */
interface Burst {
  readonly size: number
  readonly runs: number
  readonly waits: number
  readonly refused: number
}

export interface PoolCalculation {
  readonly lines: readonly string[]
  readonly burst: Burst
}

/** Returns the value of another key of the same section or row. */
type Values = (key: string) => number
/** Undefined where the sizes are not known. */
type Calculate = (value: Values, facts: PoolFacts, burst: number) => PoolCalculation | undefined

const workers = executor('messages', 'mediation', {
  core: 'worker_pool_size_core',
  max: 'worker_pool_size_max',
  queue: 'worker_pool_queue_length',
  beyond: 'answered with 503 and 102540',
  beyondBytes: 'answered with 503 and 102541',
  note: 'http and https count apart, on the same threads; a message that only passes through never enters the pool',
})

const background = executor('tasks', 'background', {
  core: 'synapse.core_threads',
  max: 'synapse.max_threads',
  queue: 'synapse.threads_queue_length',
  beyond: 'refused',
  beyondBytes: 'refused',
  note: 'for messages that no client waits for, such as copies that sequences make and do not wait for',
})

/** Connections of a transport. */
const connections = {
  io_buffer_size: buffers,
  'http.max.connection.per.host.port': perBackend,
  max_open_connections: openConnections,
} as const

/** Section without indexes -> key -> calculation. */
const CALCULATIONS: Readonly<Record<string, Readonly<Record<string, Calculate>>>> = {
  'transport.passthru_http': {
    ...workerKeys(),
    ...connections,
    max_connections_per_client: perClient,
    reactors,
  },
  'transport.passthru_https': { ...workerKeys(), ...connections },
  mediation: {
    'synapse.core_threads': background,
    'synapse.max_threads': background,
    'synapse.threads_queue_length': background,
    'synapse.script_mediator_pool_size': scripts,
    'handlers.pool_size': handlers,
    'inbound.core_threads': inbound,
    'inbound.max_threads': inbound,
  },
  'apim.key_manager': { 'pool.max_idle': remoteRequests },
  'database.apim_db': { 'pool_options.maxActive': database, 'pool_options.maxWait': database },
  'apim.http_client': { max_total: remoteRequests, default_max_per_route: remoteRequests },
  'apim.throttling': publisherCalculations(),
  'apim.throttling.url_group': publisherCalculations(),
}

export function poolCalculation(section: string, key: string): Calculate | undefined {
  return CALCULATIONS[section]?.[key]
}

function workerKeys(): Readonly<Record<string, Calculate>> {
  return { worker_pool_size_core: workers, worker_pool_size_max: workers, worker_pool_queue_length: workers }
}

interface Executor {
  readonly core: string
  readonly max: string
  /** -1 for an unbounded queue. */
  readonly queue: string
  /** Outcome for a task beyond the queue, by its length and by its bytes. */
  readonly beyond: string
  readonly beyondBytes: string
  readonly note: string
}

/** A pool with a queue: it grows beyond its core size only when the queue is full. */
function executor(what: string, pool: keyof PoolFacts['threads'], keys: Executor): Calculate {
  return (value, { threads, queueBytes }, size) => {
    const [core, max, queue] = [value(keys.core), value(keys.max), value(keys.queue)]
    const isUnbounded = queue < 0
    const atOnce = isUnbounded ? core : Math.max(core, max)
    const waitingMax = Math.floor(queueBytes / TASK_BYTES)
    const first = Math.min(size, core)
    const waits = least(size - first, queue, waitingMax)
    const more = isUnbounded ? 0 : Math.min(size - first - waits, atOnce - core)
    const growth = isUnbounded
      ? `the queue is unbounded, so ${keys.max} (${max}) has no effect: the pool stays at ${keys.core} (${core})`
      : `${core} at once, then ${queue} wait, then up to ${max} at once; one more is ${keys.beyond}`
    const length = `worker_pool_queue_bytes (${bytes(queueBytes)}) holds ${waitingMax} that wait`
    const memory = `${length}, fewer with bodies; one more is ${keys.beyondBytes}`
    const burst = { size, runs: first + more, waits, refused: size - first - waits - more }
    return calculation(burst, what, [
      `${atOnce} ${what} at once: ${spread(atOnce, threads[pool], 'task')}`,
      growth,
      ...(isUnbounded || queue > waitingMax ? [memory] : []),
      keys.note,
    ])
  }
}

function buffers(value: Values, { reactors }: PoolFacts, size: number): PoolCalculation {
  const chunk = chunkSize(value('io_buffer_size'))
  const most = reactors * Math.floor(ARENA_BYTES / chunk)
  const runs = Math.min(size, most)
  return calculation({ size, runs, waits: 0, refused: size - runs }, 'connections, each in the middle of a head', [
    `${bytes(chunk)} for a connection in the middle of a head, and none between requests`,
    `${size} in the middle of a head: ${bytes(runs * chunk)} on ${counted(reactors, 'reactor')}`,
    `${bytes(ARENA_BYTES)} of a reactor are used up by ${most / reactors} of them, and by long bodies`,
  ])
}

function perBackend(value: Values, { reactors, openFiles }: PoolFacts, size: number): PoolCalculation {
  const limit = value('http.max.connection.per.host.port')
  const { backends } = connectionLimits(openFiles, reactors)
  const runs = least(size, limit, backends)
  return calculation({ size, runs, waits: 0, refused: size - runs }, 'requests to one backend', [
    `${limit} connections to one backend, of ${counted(reactors, 'reactor')} together`,
    ...(backends < 0 ? [] : [`ulimit -n ${openFiles} allows ${backends} connections to all backends`]),
    'there is no queue: one more is answered at once with 503 and 101600',
  ])
}

/** `limits`: -1 for none. */
function least(size: number, ...limits: readonly number[]): number {
  return Math.min(size, ...limits.filter(limit => limit >= 0))
}

/** The limit of open files, in words; nothing where it is unknown. */
function clientFiles({ reactors, openFiles }: PoolFacts): readonly string[] {
  const { clients } = connectionLimits(openFiles, reactors)
  if (clients < 0) return []
  return [`ulimit -n ${openFiles} allows ${clients} clients of all listeners, and as many connections to backends`]
}

function openConnections(value: Values, facts: PoolFacts, size: number): PoolCalculation {
  const { reactors, openFiles } = facts
  const limit = value('max_open_connections')
  const runs = least(size, limit, connectionLimits(openFiles, reactors).clients)
  return calculation({ size, runs, waits: 0, refused: size - runs }, 'connections', [
    limit < 0
      ? 'no limit of this transport'
      : `${limit} connections, of ${counted(reactors, 'reactor')} together; one more is reset at once and counted`,
    ...clientFiles(facts),
  ])
}

function perClient(value: Values, facts: PoolFacts, size: number): PoolCalculation {
  const { reactors, openFiles } = facts
  const limit = value('max_connections_per_client')
  const runs = least(size, limit, connectionLimits(openFiles, reactors).clients)
  return calculation({ size, runs, waits: 0, refused: size - runs }, 'connections of one address', [
    limit < 0 ? 'no limit' : `${limit} connections of one address, on ${counted(reactors, 'reactor')} together`,
    ...clientFiles(facts),
  ])
}

function reactors(_: Values, { processors, reactors: threads }: PoolFacts, size: number): PoolCalculation {
  return calculation({ size, runs: size, waits: 0, refused: 0 }, 'connections', [
    `${counted(threads, 'thread')} on ${counted(processors, 'processor')}`,
    `the operating system distributes a burst, about ${Math.ceil(size / threads)} connections each`,
    `up to ${bytes(ARENA_BYTES)} of buffers each, ${bytes(threads * ARENA_BYTES)} in all; unused ones take no memory`,
  ])
}

/** The burst is one of `database.apim_db`. */
function database(_: Values, { databases }: PoolFacts, size: number): PoolCalculation | undefined {
  const [first, other] = databases
  if (first === undefined) return undefined
  const { connections, waitingMax, waitMs } = first
  const pools = databases.map(({ sections, connections: most }) => {
    return `${counted(most, 'connection')} to ${sections.join(' and ')}`
  })
  const runs = Math.min(size, connections)
  const waits = Math.min(size - runs, waitingMax)
  return calculation({ size, runs, waits, refused: size - runs - waits }, 'statements', [
    `${pools.join(', ')}${other === undefined ? ', which are one database with one pool' : ''}`,
    `${waitingMax} statements may wait, each ${waitMs} ms at most`,
  ])
}

/** The burst goes to one address. */
function remoteRequests(_: Values, { requests }: PoolFacts, size: number): PoolCalculation {
  const { requestsMax, perHostMax, idleMax, waitingMax } = requests
  const runs = Math.min(size, perHostMax)
  const waits = Math.min(size - runs, waitingMax)
  return calculation({ size, runs, waits, refused: size - runs - waits }, 'requests to one address', [
    `${perHostMax} requests to one address at once, ${requestsMax} to all of them`,
    `${Math.min(perHostMax, idleMax)} connections to one address are kept idle at most`,
    'a token that holds its own claims needs no request',
  ])
}

/** No queue: a message without a thread stays unread at its origin. */
function inbound(value: Values, { processors }: PoolFacts, size: number): PoolCalculation {
  const [core, max] = [value('inbound.core_threads'), value('inbound.max_threads')]
  const atOnce = Math.max(core, max)
  const runs = Math.min(size, atOnce)
  return calculation({ size, runs, waits: size - runs, refused: 0 }, 'tasks of inbound endpoints', [
    `${atOnce} tasks at once: ${spread(atOnce, Math.min(atOnce, processors), 'task')}`,
    `${core} at once, then up to ${max} at once; the rest waits, without a limit`,
  ])
}

function scripts(value: Values, { workers }: PoolFacts, size: number): PoolCalculation {
  const each = scriptThreadsEach(value('synapse.script_mediator_pool_size'), workers)
  return isolatedThreads(each * workers, size, {
    what: 'scripts',
    where: `each of ${counted(workers, 'worker thread')} has its share, one at least`,
    timeout: 'synapse.script_mediator_timeout',
    beyond: 'a fault with 102583',
  })
}

function handlers(value: Values, { reactors }: PoolFacts, size: number): PoolCalculation {
  return isolatedThreads(value('handlers.pool_size') * reactors, size, {
    what: 'phases of handlers on threads',
    where: `on ${counted(reactors, 'reactor')}`,
    timeout: 'handlers.timeout',
    beyond: 'refused',
  })
}

interface OneTaskThreads {
  readonly what: string
  readonly where: string
  /** Key of the longest time of one task. */
  readonly timeout: string
  /** Outcome for a task beyond the queue. */
  readonly beyond: string
}

/** Threads that run one task each. */
function isolatedThreads(threads: number, size: number, { what, where, timeout, beyond }: OneTaskThreads) {
  const most = threads * WAITING_PER_THREAD
  const runs = Math.min(size, threads)
  const waits = Math.min(size - runs, most)
  return calculation({ size, runs, waits, refused: size - runs - waits }, what, [
    `${threads} at once: one on each thread, ${where}`,
    `${most} wait, ${START_MS / 1000} s longer than ${timeout} at most; one more is ${beyond}`,
  ])
}

function publishers(value: Values, _: PoolFacts, size: number): PoolCalculation {
  const [atOnce, most] = [value('publisher.pool_size'), value('publisher.max_pool_size')]
  const [made, kept] = [value('publisher.init_idle_size'), value('publisher.max_idle')]
  const runs = Math.min(size, most)
  return calculation({ size, runs, waits: size - runs, refused: 0 }, 'events', [
    `${atOnce} events published at once, up to ${most} while more wait`,
    `publishers beyond ${atOnce} end after ${value('publisher.keep_alive_time')} s idle`,
    `${made} publishers created at the start, up to ${kept} kept idle`,
  ])
}

function publisherCalculations(): Readonly<Record<string, Calculate>> {
  const names = ['max_idle', 'init_idle_size', 'pool_size', 'max_pool_size', 'keep_alive_time']
  return Object.fromEntries(names.map(name => [`publisher.${name}`, publishers]))
}

function calculation(burst: Burst, what: string, lines: readonly string[]): PoolCalculation {
  const { size, runs, waits, refused } = burst
  return { burst, lines: [...lines, `a burst of ${size} ${what}: ${runs} run, ${waits} wait, ${refused} are refused`] }
}

/** `4 threads x about 3 tasks`: tasks of one reactor run on its own threads alone. */
function spread(count: number, threads: number, noun: string): string {
  return `${counted(threads, 'thread')} x ${threads === 1 ? '' : 'about '}${counted(Math.ceil(count / threads), noun)}`
}

const KIB = 1024

function bytes(count: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']
  const power = count < KIB ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(count) / Math.log2(KIB)))
  return `${Number((count / KIB ** power).toFixed(1))} ${units[power]}`
}
