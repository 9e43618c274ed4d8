/**
 * The 64-bit word of an endpoint, and what each event makes of it. The word holds the state, used retries, suspensions
 * in a row, and the time of the next try. While an endpoint is ACTIVE, the same bits hold its failures in a row, their
 * clients, and the time of the first one. No memory is touched here.
 *
 * Times are tenths of a second of a monotonic clock, compared by their difference, because they wrap every 6.8 years.
 */
import type { EndpointSettings } from '../../apis/api-definition.ts'
import { networkOf } from '../../runtime/ip-address.ts'
import { ENDPOINT_EVENT, ENDPOINT_STATE, type EndpointEvent, type EndpointState, nextState } from './endpoint-states.ts'

/** A change of an endpoint's state, for log and metrics. */
export interface EndpointChange {
  readonly from: EndpointState
  readonly to: EndpointState
  /** Tenths of a second until the endpoint may get requests; -1: waiting does not help. */
  readonly waitTenths: number
}

/** Number of failures in a row that suspend an endpoint which none of them suspends by itself. */
export interface FailureLimits {
  /** 0: none do. */
  readonly suspendFailures: number
  /** Clients that the failures must come from. */
  readonly suspendClients: number
  /** Longest time from the first to the last of them, in milliseconds. */
  readonly suspendWindowMs: number
}

/** The word that follows an event. */
interface NextWord {
  readonly word: bigint
  /** null: nobody is told. */
  readonly change: EndpointChange | null
}

const RETRIES_SHIFT = 3
const RETRIES_MAX = 0xff
const LEVEL_SHIFT = 11
const LEVEL_MAX = 0xffff
export const STATE_MASK = 7
/** Clients of failures in a row are told apart by one of so many bits: two may share one, and count as one then. */
const CLIENT_BITS = 16

/**
 * Time in which one probe keeps other requests away: a slow response, or a reactor that dies, must not keep the
 * endpoint suspended.
 */
const PROBE_TENTHS = 10
/** Longest suspension, whatever the factor: beyond it the clock could not tell past and future apart. */
const YEAR_TENTHS = 365 * 864_000

/** null: the event has no effect. `now`: tenths of a second. `limits`, `bit`: for EXCHANGE_FAILED. */
export function nextWord(
  word: bigint,
  given: EndpointEvent,
  now: number,
  settings: EndpointSettings,
  limits: FailureLimits = NO_LIMITS,
  bit = 0,
): NextWord | null {
  const low = Number(BigInt.asUintN(32, word))
  const due = Number(word >> 32n)
  const from = (low & STATE_MASK) as EndpointState
  if (isOutdated(from, given, due, now)) return null
  const retries = (low >>> RETRIES_SHIFT) & RETRIES_MAX
  const row = given === ENDPOINT_EVENT.EXCHANGE_FAILED ? nextRow(from, low, due, now, limits, bit) : NO_ROW
  const event = effectOf(row.isComplete ? ENDPOINT_EVENT.FAILED : given, from, retries, settings)
  const to = event === undefined ? undefined : nextState(from, event)
  if (to === undefined) return null
  // An active endpoint has failures in a row where the others have their suspensions.
  const last = from === ENDPOINT_STATE.ACTIVE ? 0 : low >>> LEVEL_SHIFT
  const level = to === ENDPOINT_STATE.SUSPENDED ? Math.min(LEVEL_MAX, last + 1) : last
  const wait = event === ENDPOINT_EVENT.EXCHANGE_FAILED ? 0 : waitTenths(to, level, settings)
  const next =
    to === ENDPOINT_STATE.ACTIVE
      ? row.word
      : wordOf(to, to === ENDPOINT_STATE.TIMEOUT ? retries + 1 : retries, level, dueAfter(now, wait))
  const isSilent = to === from && (from === ENDPOINT_STATE.ACTIVE || event === ENDPOINT_EVENT.EXCHANGE_FAILED)
  return { word: next, change: isSilent ? null : { from, to, waitTenths: recoversByItself(to) ? wait : -1 } }
}

/** ACTIVE, or so after a wait; UNHEALTHY and OFF need a health check or an operator. */
export function recoversByItself(state: number): boolean {
  return state !== ENDPOINT_STATE.UNHEALTHY && state !== ENDPOINT_STATE.OFF
}

/** Tenths of a second from `now` until `due`; negative once `due` has passed. */
export function tenthsUntil(due: number, now: number): number {
  return (due - now) | 0
}

function wordOf(state: EndpointState, retries: number, level: number, due: number): bigint {
  const low = state | (Math.min(RETRIES_MAX, retries) << RETRIES_SHIFT) | (level << LEVEL_SHIFT)
  return (BigInt(due) << 32n) | BigInt(low >>> 0)
}

/** Failures in a row of an active endpoint. */
interface FailureRow {
  /** 0: no failures. */
  readonly word: bigint
  /** There are enough of them to suspend the endpoint. */
  readonly isComplete: boolean
}

const NO_ROW: FailureRow = { word: 0n, isComplete: false }
const NO_LIMITS: FailureLimits = { suspendFailures: 0, suspendClients: 0, suspendWindowMs: 0 }

/** The failures in a row with one more, of the client with this bit. A row that took too long begins again. */
function nextRow(
  state: EndpointState,
  low: number,
  since: number,
  now: number,
  { suspendFailures, suspendClients, suspendWindowMs }: FailureLimits,
  bit: number,
): FailureRow {
  if (state !== ENDPOINT_STATE.ACTIVE || suspendFailures === 0) return NO_ROW
  const goesOn = low !== 0 && tenthsUntil(now, since) <= tenths(suspendWindowMs)
  const failures = goesOn ? Math.min(RETRIES_MAX, ((low >>> RETRIES_SHIFT) & RETRIES_MAX) + 1) : 1
  const clients = goesOn ? (low >>> LEVEL_SHIFT) | bit : bit
  return {
    word: wordOf(state, failures, clients, goesOn ? since : now),
    isComplete: failures >= suspendFailures && bitsIn(clients) >= suspendClients,
  }
}

function bitsIn(bits: number): number {
  let count = 0
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++
  return count
}

/** The bit that stands for the network of a client. */
export function clientBit(address: string): number {
  const network = networkOf(address)
  let hash = 0
  for (let i = 0; i < network.length; i++) hash = Math.imul(hash, 31) + network.charCodeAt(i)
  return 1 << ((hash >>> 0) % CLIENT_BITS)
}

/** Ignored events: the time-out of a request that was pending when another was counted, or a probe too early. */
function isOutdated(state: EndpointState, event: EndpointEvent, due: number, now: number): boolean {
  const isEarly = tenthsUntil(due, now) > 0
  if (event === ENDPOINT_EVENT.PROBED) return isEarly
  return isEarly && state === ENDPOINT_STATE.TIMEOUT && event === ENDPOINT_EVENT.TIMED_OUT
}

/** A time-out with no retry left suspends; where suspension is switched off a failure has no effect. */
function effectOf(
  event: EndpointEvent,
  state: EndpointState,
  retries: number,
  settings: EndpointSettings,
): EndpointEvent | undefined {
  const { retriesBeforeSuspension: allowed } = settings
  const suspends = settings.suspensionMs > 0 && settings.suspensionMaxMs > 0
  if (event === ENDPOINT_EVENT.FAILED) return suspends ? event : undefined
  if (event !== ENDPOINT_EVENT.TIMED_OUT || state === ENDPOINT_STATE.PROBING) return event
  if (retries < allowed || (!suspends && allowed > 0)) return event
  return suspends ? ENDPOINT_EVENT.FAILED : undefined
}

/** Tenths of a second that the endpoint stays in a state by itself. */
function waitTenths(state: EndpointState, level: number, settings: EndpointSettings): number {
  if (state === ENDPOINT_STATE.TIMEOUT) return tenths(settings.retryDelayMs)
  if (state === ENDPOINT_STATE.PROBING) return PROBE_TENTHS
  if (state !== ENDPOINT_STATE.SUSPENDED) return 0
  return tenths(Math.min(settings.suspensionMs * settings.suspensionFactor ** (level - 1), settings.suspensionMaxMs))
}

/** Rounds up, so that a wait is never too short: `now` may have begun nearly a tenth ago. */
function dueAfter(now: number, wait: number): number {
  return wait === 0 ? now : (now + wait + 1) | 0
}

function tenths(ms: number): number {
  return Math.min(YEAR_TENTHS, Math.ceil(ms / 100))
}
