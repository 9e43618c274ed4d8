/** The commands of the control socket: reads their requests, calls the reactors, combines the results. */
import { abbreviatedList } from '../config/diagnostics.ts'
import type { ManagementCommand } from '../control/admin-api/commands.ts'
import type { ConnectionList } from '../observe/connection-list.ts'
import type { Trace } from '../observe/exchange-trace.ts'
import type { ReactorCall, ReactorCallResults } from '../plan/reactor-messages.ts'
import { STATE_NAMES, type StateName } from '../protocol/states.ts'
import type { ApiService } from './api-service.ts'
import { type CommandClient, type CommandHandler, CommandRefused, type CommandRequest } from './control-socket.ts'
import { failureQuery, listFailures } from './failure-service.ts'
import type { MetricsService } from './metrics-service.ts'
import type { PoolService } from './pool-service.ts'
import type { ReloadReport } from './reload-report.ts'
import type { CountersReport, ThrottleService } from './throttle-service.ts'

/** Every command, on a node that has all parts. */
export const COMMANDS = [
  'api',
  'apis',
  'connections',
  'counters',
  'endpoints',
  'failures',
  'lifecycle',
  'manage',
  'pools',
  'reload',
  'reset-counter',
  'usage',
  'walk',
] as const

/** An address that requests can be sent to. */
export interface OpenListener {
  readonly scheme: string
  /** '' for all addresses. */
  readonly host: string
  readonly port: number
}

interface HomeSources {
  readonly apis: Pick<ApiService, 'list' | 'change'>
  readonly reload: () => Promise<ReloadReport>
  /** Applications, keys, subscriptions, users and tokens. Rejects with an error whose message is for the operator. */
  readonly manage: (request: ManagementCommand) => Promise<object>
}

interface ReactorSources {
  readonly apis: Pick<ApiService, 'show'>
  /** The result of each reactor; null where there is none in time. */
  call<One extends ReactorCall>(
    call: One,
    timeoutMs?: number,
  ): readonly Promise<ReactorCallResults[One['kind']] | null>[]
  readonly listeners: readonly OpenListener[]
  /** Name of the field that carries the correlation id of a request. */
  readonly correlationField: string
  /** The parts of messages that traces keep (`stat.tracer.*`). */
  readonly collects: { readonly payloads: boolean; readonly properties: boolean }
  readonly endpoints: {
    readonly list: () => readonly ListedEndpoint[]
    /** By name or URL; false: there is no such endpoint. */
    readonly switch: (name: string, isOn: boolean) => boolean
  }
  readonly throttling: Pick<ThrottleService, 'top' | 'reset'>
  readonly metrics: Pick<MetricsService, 'text'>
  readonly pools: Pick<PoolService, 'list' | 'usage'>
}

export interface ListedEndpoint {
  readonly name: string
  readonly api: string
  readonly url: string
  readonly state: 'ACTIVE' | 'TIMEOUT' | 'SUSPENDED' | 'OFF'
  /** Milliseconds until the endpoint is tried again; -1: nothing waits for it. */
  readonly retryInMs: number
  readonly failures: number
  readonly timeouts: number
  readonly suspensions: number
  readonly recoveries: number
  /** Error code of the last failure, as its client saw it; 0: none. */
  readonly lastError: number
}

export interface EndpointsReport {
  readonly endpoints: readonly ListedEndpoint[]
}

interface ReactorConnections extends ConnectionList {
  readonly reactor: number
}

export interface ConnectionsReport {
  readonly reactors: readonly ReactorConnections[]
  /** Reactors without a result in time. */
  readonly silent: readonly number[]
}

/** First line of `walk`: the reactors watch for the request, which the client now sends. */
export interface WalkArmed {
  readonly listeners: readonly OpenListener[]
  readonly correlationField: string
}

/** Last line of `walk`. */
export interface WalkReport {
  /** -1: no reactor has seen the request. */
  readonly reactor: number
  readonly trace: Trace | null
}

const ROWS_MAX = 100_000
const NAMES_SHOWN = 20
const ROWS_DEFAULT = 1000
const COUNTERS_DEFAULT = 20
const COUNTERS_MAX = 10_000
/** How long the reactors watch for the exchange. */
const WATCH_MS = 10_000
/** For the message with the trace of an exchange that was watched to the end. */
const GRACE_MS = 1000
const CORRELATION_ID = /^[0-9a-f]{32}$/

/** Commands of a node that has APIs. */
export function homeCommands({ apis, reload, manage }: HomeSources): Readonly<Record<string, CommandHandler>> {
  return {
    apis: () => apis.list(),
    lifecycle: ({ name, action, sunsetMs }) => apis.change({ name, action, sunsetMs }),
    reload: () => reload(),
    manage: ({ request }) => runManagement(request, manage),
  }
}

/** Commands of a node that has reactors. */
export function reactorCommands(sources: ReactorSources): Readonly<Record<string, CommandHandler>> {
  return {
    api: ({ name }) => sources.apis.show(name),
    connections: request => listConnections(request, sources),
    counters: request => listCounters(request, sources),
    endpoints: request => listEndpoints(request, sources),
    failures: request => listFailures(failureQuery(request), call => sources.call(call)),
    pools: () => sources.pools.list(),
    'reset-counter': request => resetCounter(request, sources),
    usage: async () => sources.pools.usage(await sources.metrics.text()),
    walk: (request, client) => traceRequest(request, client, sources),
  }
}

/** The control thread validates the members of the request. */
async function runManagement(request: unknown, manage: HomeSources['manage']): Promise<object> {
  const isRequest = typeof request === 'object' && request !== null && 'action' in request
  if (!isRequest || typeof request.action !== 'string')
    throw new CommandRefused('expected {"request": {"action": "…"}}')
  try {
    return await manage({ ...request, action: request.action })
  } catch (error) {
    throw new CommandRefused((error as Error).message)
  }
}

async function listConnections(request: CommandRequest, sources: ReactorSources): Promise<ConnectionsReport> {
  const { side = '', state = '', limit = ROWS_DEFAULT } = request
  if (side !== '' && side !== 'source' && side !== 'target') throw new CommandRefused('a side is source or target')
  if (state !== '' && !STATE_NAMES.some(name => name === state))
    throw new CommandRefused(`there is no such state; the states are ${STATE_NAMES.join(', ')}`)
  if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 0 || limit > ROWS_MAX)
    throw new CommandRefused(`a limit is a whole number, 0 to ${ROWS_MAX}`)
  const query = { side, state: state as StateName | '', limit } as const
  const results = await Promise.all(sources.call({ kind: 'connections', query }))
  const reactors = results.flatMap((result, reactor) => (result === null ? [] : [{ reactor, ...result }]))
  const silent = results.flatMap((result, reactor) => (result === null ? [reactor] : []))
  return { reactors, silent }
}

/** Lists all endpoints; switches one before, where the request says so. */
function listEndpoints({ turn, name }: CommandRequest, { endpoints }: ReactorSources): EndpointsReport {
  if (turn === 'on' || turn === 'off') {
    if (typeof name !== 'string' || !endpoints.switch(name, turn === 'on')) {
      const known = endpoints.list().map(endpoint => endpoint.name)
      const others = known.length === 0 ? '' : `; there is ${abbreviatedList(known, NAMES_SHOWN)}`
      throw new CommandRefused(`there is no endpoint ${name}${others}`)
    }
  }
  return { endpoints: endpoints.list() }
}

function listCounters({ by = 'limit', limit = COUNTERS_DEFAULT }: CommandRequest, { throttling }: ReactorSources) {
  if (by !== 'rate' && by !== 'limit') throw new CommandRefused('counters are listed by rate or by limit')
  if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 1 || limit > COUNTERS_MAX)
    throw new CommandRefused(`expected a limit of 1 to ${COUNTERS_MAX}`)
  return throttling.top(by, limit) satisfies CountersReport
}

function resetCounter({ key }: CommandRequest, { throttling }: ReactorSources): object {
  if (typeof key !== 'string' || !throttling.reset(key))
    throw new CommandRefused(`there is no counter ${key}; throttle top lists the keys`)
  return {}
}

/** All reactors watch for the exchange: the kernel picks the one that gets its connection. */
async function traceRequest(
  { correlationId }: CommandRequest,
  client: CommandClient,
  sources: ReactorSources,
): Promise<WalkReport> {
  if (typeof correlationId !== 'string' || !CORRELATION_ID.test(correlationId))
    throw new CommandRefused('expected a correlationId of 32 hexadecimal digits')
  try {
    const { collects } = sources
    const watching = await Promise.all(sources.call({ kind: 'watch', correlationId, waitMs: WATCH_MS, collects }))
    if (watching.includes(false)) throw new CommandRefused('another walk is running; wait for its end')
    const { listeners, correlationField } = sources
    client.send({ listeners, correlationField } satisfies WalkArmed)
    return await firstTrace(sources.call({ kind: 'trace', correlationId }, WATCH_MS + GRACE_MS), client.gone)
  } finally {
    sources.call({ kind: 'unwatch', correlationId })
  }
}

/** The trace of the reactor that had the exchange; none where no reactor had it, or the client has left. */
async function firstTrace(traces: readonly Promise<Trace | null>[], gone: AbortSignal): Promise<WalkReport> {
  const { promise, resolve } = Promise.withResolvers<WalkReport>()
  const none = { reactor: -1, trace: null }
  traces.forEach((pending, reactor) => void pending.then(trace => trace !== null && resolve({ reactor, trace })))
  void Promise.all(traces).then(() => resolve(none))
  gone.addEventListener('abort', () => resolve(none))
  if (gone.aborted) resolve(none)
  return await promise
}
