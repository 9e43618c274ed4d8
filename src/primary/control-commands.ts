/** What the primary does for the command line: asks its reactors, and puts their answers together. */
import type { ApiDesk } from './api-desk.ts'
import { fewOf } from '../config/fault.ts'
import { type ControlClient, type ControlCommand, type ControlRequest, Refused } from './control-socket.ts'
import type { ManagementRequest } from '../management/commands.ts'
import type { ConnectionList } from '../observe/connection-row.ts'
import type { Trace } from '../observe/exchange-trace.ts'
import { STATE_NAMES, type StateName } from '../protocol/states.ts'
import type { Answer, Question } from '../questions.ts'
import type { ReloadAnswer } from './reload-report.ts'

/** Where a request can be sent to. */
export interface OpenListener {
  readonly scheme: string
  /** '' for all addresses. */
  readonly host: string
  readonly port: number
}

/** What is asked of the gateway. */
interface ControlSources {
  /** What each reactor answers; null: nothing in time. */
  ask<Q extends Question>(question: Q, waitMs?: number): readonly Promise<Answer<Q> | null>[]
  readonly listeners: () => readonly OpenListener[]
  /** Name of the field that carries the id of a request. */
  readonly correlationField: string
  readonly endpoints: {
    readonly list: () => readonly EndpointRow[]
    /** By name or URL; false where there is no such endpoint. */
    readonly turn: (name: string, on: boolean) => boolean
  }
  readonly reload: () => Promise<ReloadAnswer>
  readonly apis: Pick<ApiDesk, 'list' | 'show' | 'change'>
  /** Applications, keys, subscriptions and users. Rejects with why not. */
  readonly manage: (request: ManagementRequest) => Promise<object>
}

export interface EndpointRow {
  readonly name: string
  readonly api: string
  readonly url: string
  /** ACTIVE, TIMEOUT, SUSPENDED or OFF. */
  readonly state: 'ACTIVE' | 'TIMEOUT' | 'SUSPENDED' | 'OFF'
  /** Milliseconds until it is tried again; -1: it is not waited for. */
  readonly retryInMs: number
  readonly failures: number
  readonly timeouts: number
  readonly suspensions: number
  readonly recoveries: number
  /** Error code of the last failure, as its client saw it; 0 where there was none. */
  readonly lastError: number
}

export interface EndpointsAnswer {
  readonly endpoints: readonly EndpointRow[]
}

interface ReactorConnections extends ConnectionList {
  readonly reactor: number
}

export interface ConnectionsAnswer {
  readonly reactors: readonly ReactorConnections[]
  /** Reactors that did not answer in time. */
  readonly silent: readonly number[]
}

/** First line: the reactors watch, send the request. */
export interface WalkArmed {
  readonly listeners: readonly OpenListener[]
  readonly correlationField: string
}

/** Last line. */
export interface WalkAnswer {
  /** -1 where no reactor has seen the request. */
  readonly reactor: number
  readonly trace: Trace | null
}

const ROWS_MAX = 100_000
const NAMES_SHOWN = 20
const ROWS_DEFAULT = 1000
/** An exchange is watched for so long; what has happened by then is told. */
const WATCH_MS = 10_000
/** For the message that says so. */
const GRACE_MS = 1000
const CORRELATION_ID = /^[0-9a-f]{32}$/

export function controlCommands(sources: ControlSources): Readonly<Record<string, ControlCommand>> {
  return {
    connections: request => listConnections(request, sources),
    walk: (request, client) => walkOne(request, client, sources),
    endpoints: request => switchEndpoints(request, sources),
    reload: () => sources.reload(),
    api: ({ name }) => sources.apis.show(name),
    ...apiCommands(sources.apis),
    manage: manageCommand(sources.manage),
  }
}

/** What any node does that knows APIs. */
export function apiCommands(apis: Pick<ApiDesk, 'list' | 'change'>): Readonly<Record<string, ControlCommand>> {
  return {
    apis: () => apis.list(),
    lifecycle: ({ name, action, sunsetMs }) => apis.change({ name, action, sunsetMs }),
  }
}

/** The authority reads the rest of it. */
export function manageCommand(manage: ControlSources['manage']): ControlCommand {
  return async ({ request }) => {
    const isRequest = typeof request === 'object' && request !== null && 'action' in request
    if (!isRequest || typeof request.action !== 'string') throw new Refused('expected {"request": {"action": "…"}}')
    try {
      return await manage({ ...request, action: request.action })
    } catch (error) {
      throw new Refused((error as Error).message)
    }
  }
}

async function listConnections(request: ControlRequest, sources: ControlSources): Promise<ConnectionsAnswer> {
  const { side = '', state = '', limit = ROWS_DEFAULT } = request
  if (side !== '' && side !== 'source' && side !== 'target') throw new Refused('a side is source or target')
  if (state !== '' && !STATE_NAMES.some(name => name === state))
    throw new Refused(`there is no such state; the states are ${STATE_NAMES.join(', ')}`)
  if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 0 || limit > ROWS_MAX)
    throw new Refused(`a limit is a whole number, 0 to ${ROWS_MAX}`)
  const query = { side, state: state as StateName | '', limit } as const
  const answers = await Promise.all(sources.ask({ kind: 'connections', query }))
  const reactors = answers.flatMap((answer, reactor) => (answer === null ? [] : [{ reactor, ...answer }]))
  const silent = answers.flatMap((answer, reactor) => (answer === null ? [reactor] : []))
  return { reactors, silent }
}

/** All endpoints, after one was switched if that was asked for. */
function switchEndpoints({ turn, name }: ControlRequest, { endpoints }: ControlSources): EndpointsAnswer {
  if (turn === 'on' || turn === 'off') {
    if (typeof name !== 'string' || !endpoints.turn(name, turn === 'on')) {
      const known = endpoints.list().map(endpoint => endpoint.name)
      const others = known.length === 0 ? '' : `; there is ${fewOf(known, NAMES_SHOWN)}`
      throw new Refused(`there is no endpoint ${name}${others}`)
    }
  }
  return { endpoints: endpoints.list() }
}

/** Watches for one exchange in all reactors: nobody knows which one the kernel will give its connection to. */
async function walkOne(request: ControlRequest, client: ControlClient, sources: ControlSources): Promise<WalkAnswer> {
  const { correlationId } = request
  if (typeof correlationId !== 'string' || !CORRELATION_ID.test(correlationId))
    throw new Refused('expected a correlationId of 32 hexadecimal digits')
  try {
    const armed = await Promise.all(sources.ask({ kind: 'arm', correlationId, waitMs: WATCH_MS }))
    if (armed.includes(false)) throw new Refused('another walk is under way; wait for its end')
    client.say({ listeners: sources.listeners(), correlationField: sources.correlationField } satisfies WalkArmed)
    return await firstTrace(sources.ask({ kind: 'trace', correlationId }, WATCH_MS + GRACE_MS), client.gone)
  } finally {
    sources.ask({ kind: 'disarm', correlationId })
  }
}

/** That of the reactor which had the exchange; none when no reactor had it, or nobody waits any more. */
async function firstTrace(traces: readonly Promise<Trace | null>[], gone: AbortSignal): Promise<WalkAnswer> {
  const { promise, resolve } = Promise.withResolvers<WalkAnswer>()
  const none = { reactor: -1, trace: null }
  traces.forEach((told, reactor) => void told.then(trace => trace !== null && resolve({ reactor, trace })))
  void Promise.all(traces).then(() => resolve(none))
  gone.addEventListener('abort', () => resolve(none))
  if (gone.aborted) resolve(none)
  return await promise
}
