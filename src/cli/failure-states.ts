/** The states of a kept exchange on both sides with their durations, and its cause in words. */
import { STATE_PHRASES, TRANSPORT_ADVICE } from '../faults/advice.ts'
import { FAULT, type FaultCode } from '../faults/error-codes.ts'
import type { RecordedFailure } from '../observe/flight-recorder.ts'
import type { StateName } from '../protocol/states.ts'

export interface StateSpan {
  readonly side: 'source' | 'target'
  readonly state: StateName
  /** Microseconds since the start of the exchange. */
  readonly fromUs: number
  readonly toUs: number
}

/** States behind the end of a message: no time of the exchange is spent in them. */
const OVER: readonly StateName[] = ['CLOSED', 'RESPONSE_DONE', 'CLOSING']

/** In the order of their starts. A state lasts until the next one of its side, or until the exchange ends. */
export function statesOf({ steps, durationUs }: Pick<RecordedFailure, 'steps' | 'durationUs'>): readonly StateSpan[] {
  return steps.flatMap(({ us, side, state }, at) => {
    const next = steps.slice(at + 1).find(step => step.side === side)
    if (OVER.includes(state)) return []
    return [{ side, state, fromUs: us, toUs: Math.max(us, next?.us ?? durationUs) }]
  })
}

/** The state in which the exchange failed: the last one of the side that failed. */
export function failedState(failure: RecordedFailure): StateSpan | undefined {
  const states = statesOf(failure)
  if (failure.kind === 'slow') return longestState(states)
  const side = failure.side === 'target' ? 'target' : 'source'
  return states.findLast(span => span.side === side)
}

/** Backends explain what their clients wait for, so a state of the backend wins over one that lasts as long. */
function longestState(states: readonly StateSpan[]): StateSpan | undefined {
  const length = ({ fromUs, toUs, side }: StateSpan) => (toUs - fromUs) * (side === 'target' ? 2 : 1)
  return [...states].sort((one, other) => length(other) - length(one))[0]
}

const SIDES = { source: 'client', target: 'backend', gateway: 'gateway' } as const

export function sideName(side: RecordedFailure['side']): string {
  return SIDES[side]
}

/** Words the cause of a failure in one sentence. */
export function causeOf(failure: RecordedFailure): string {
  const { errorBase, errorState, side, cause, kind, status } = failure
  const detail = cause === '' ? '' : `: ${cause}`
  const advice = TRANSPORT_ADVICE[errorBase]
  if (advice !== undefined && side !== 'gateway') {
    const when = STATE_PHRASES[side][errorState] ?? ''
    return `${advice.summary.replace('{when}', when).replace(/\.$/, '')}${detail}`
  }
  if (Object.hasOwn(FAULT, errorBase)) {
    const { message, description } = FAULT[errorBase as FaultCode]
    return cause === '' ? `${message}: ${description}` : `${message}${detail}`
  }
  if (kind === 'error') return side === 'target' ? `the backend responded with ${status}` : `a response with ${status}`
  if (kind === 'reset') return cause === '' ? 'the exchange ended without a complete response' : cause
  const state = failedState(failure)
  const share = state === undefined ? '' : `, ${duration(state.toUs - state.fromUs)} of it in ${where(state)}`
  return `slow: ${duration(failure.durationUs)}${share}${detail}`
}

function where({ side, state }: StateSpan): string {
  return `${state} of the ${SIDES[side]} connection`
}

/** Three digits: 850 µs, 12.3 ms, 30.0 s, 15.2 min. */
export function duration(us: number): string {
  if (us < 1000) return `${us} µs`
  const [value, unit] = us < 1e6 ? [us / 1000, 'ms'] : us < 6e7 ? [us / 1e6, 's'] : [us / 6e7, 'min']
  return `${value.toPrecision(Math.max(3, String(Math.floor(value)).length))} ${unit}`
}
