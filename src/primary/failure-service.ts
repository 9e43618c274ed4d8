/** Exchanges that the flight recorders of the reactors have kept, for `sluice failures` and the dashboard. */
import { FAILURE_SIDES, type FailureList, type FailureQuery } from '../observe/flight-recorder.ts'
import type { ReactorCall } from '../plan/reactor-messages.ts'
import { CommandRefused, type CommandRequest } from './control-socket.ts'

export interface FailuresReport extends FailureList {
  /** Reactors without a result in time. */
  readonly silent: readonly number[]
}

/** Calls every reactor; null where one does not respond in time. */
type CallReactors = (call: Extract<ReactorCall, { kind: 'failures' }>) => readonly Promise<FailureList | null>[]

const ROWS_MAX = 10_000
const ROWS_DEFAULT = 50
const STATUS_MAX = 999

/** Newest first, over all reactors. */
export async function listFailures(query: FailureQuery, call: CallReactors): Promise<FailuresReport> {
  const lists = await Promise.all(call({ kind: 'failures', query }))
  const told = lists.filter(list => list !== null)
  const all = told.flatMap(({ rows }) => rows).sort((one, other) => other.endedMs - one.endedMs)
  const rows = all.slice(0, query.limit)
  return {
    rows,
    omitted: sum(told.map(({ omitted }) => omitted)) + all.length - rows.length,
    skipped: sum(told.map(({ skipped }) => skipped)),
    silent: lists.flatMap((list, reactor) => (list === null ? [reactor] : [])),
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}

/** The filter of a request of the command line. Throws CommandRefused. */
export function failureQuery(request: CommandRequest): FailureQuery {
  const { side, sinceOf, limit = ROWS_DEFAULT } = request
  if (side !== undefined && !FAILURE_SIDES.some(known => known === side))
    throw new CommandRefused(`a side is ${FAILURE_SIDES.join(', ')}`)
  if (!isWhole(limit, ROWS_MAX)) throw new CommandRefused(`a limit is a whole number, 0 to ${ROWS_MAX}`)
  if (sinceOf !== undefined && !(Array.isArray(sinceOf) && sinceOf.every(Number.isFinite)))
    throw new CommandRefused('sinceOf is a list of times')
  return {
    ...textOf(request, 'id'),
    ...textOf(request, 'api'),
    ...numberOf(request, 'code', Number.MAX_SAFE_INTEGER),
    ...numberOf(request, 'status', STATUS_MAX),
    ...(side === undefined ? {} : { side: side as FailureQuery['side'] & string }),
    ...numberOf(request, 'since', Number.MAX_SAFE_INTEGER),
    ...(sinceOf === undefined ? {} : { sinceOf: sinceOf as number[] }),
    limit,
  }
}

function textOf(request: CommandRequest, name: 'id' | 'api'): Partial<FailureQuery> {
  const value = request[name]
  if (value === undefined) return {}
  if (typeof value !== 'string') throw new CommandRefused(`${name} is a text`)
  return { [name]: value }
}

function numberOf(request: CommandRequest, name: 'code' | 'status' | 'since', most: number): Partial<FailureQuery> {
  const value = request[name]
  if (value === undefined) return {}
  if (!isWhole(value, most)) throw new CommandRefused(`${name} is a whole number`)
  return { [name]: value }
}

function isWhole(value: unknown, most: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= most
}
