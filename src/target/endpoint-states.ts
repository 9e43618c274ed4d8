/**
 * The states of an endpoint and what moves it from one to another, as one table. A cell that is missing is an event
 * that changes nothing: the failure of a request that was sent before the endpoint was suspended is no news.
 * test/target/endpoint-states.test.ts asserts all cells from a grid written by hand.
 */

export const ENDPOINT_STATE = {
  ACTIVE: 0,
  /** A time-out or a few: it waits for a while, and is used again. */
  TIMEOUT: 1,
  SUSPENDED: 2,
  /** Its time is up and a request has been let through to it; reported as SUSPENDED. */
  TRIED: 3,
  /** Its health check fails: no request is let through; reported as SUSPENDED. */
  UNHEALTHY: 4,
  /** Switched off by hand. */
  OFF: 5,
} as const
type EndpointStateName = keyof typeof ENDPOINT_STATE
export type EndpointState = (typeof ENDPOINT_STATE)[EndpointStateName]

/** State -> the documented one. */
export const REPORTED_STATE = ['ACTIVE', 'TIMEOUT', 'SUSPENDED', 'SUSPENDED', 'SUSPENDED', 'OFF'] as const

export const ENDPOINT_EVENT = {
  /** A response came, whatever its status. */
  SUCCEEDED: 0,
  /** A failure of those that lead to TIMEOUT, with a retry left. */
  TIMED_OUT: 1,
  /** A failure that suspends, or a time-out with no retry left. */
  FAILED: 2,
  /** Its time is up: a request is let through. */
  TRIED: 3,
  SWITCHED_OFF: 4,
  SWITCHED_ON: 5,
  /** So many checks in a row that the health of the endpoint has changed. */
  CHECK_FAILED: 6,
  CHECK_PASSED: 7,
} as const
type EndpointEventName = keyof typeof ENDPOINT_EVENT
export type EndpointEvent = (typeof ENDPOINT_EVENT)[EndpointEventName]

type EndpointTransitions = {
  readonly [S in EndpointStateName]: { readonly [E in EndpointEventName]?: EndpointStateName }
}

const BY_HAND = { SWITCHED_OFF: 'OFF', SWITCHED_ON: 'ACTIVE' } as const

const TRANSITIONS: EndpointTransitions = {
  ACTIVE: { TIMED_OUT: 'TIMEOUT', FAILED: 'SUSPENDED', SWITCHED_OFF: 'OFF', CHECK_FAILED: 'UNHEALTHY' },
  TIMEOUT: {
    SUCCEEDED: 'ACTIVE',
    TIMED_OUT: 'TIMEOUT',
    FAILED: 'SUSPENDED',
    CHECK_FAILED: 'UNHEALTHY',
    CHECK_PASSED: 'ACTIVE',
    ...BY_HAND,
  },
  SUSPENDED: {
    SUCCEEDED: 'ACTIVE',
    TRIED: 'TRIED',
    CHECK_FAILED: 'UNHEALTHY',
    CHECK_PASSED: 'ACTIVE',
    ...BY_HAND,
  },
  TRIED: {
    SUCCEEDED: 'ACTIVE',
    TIMED_OUT: 'SUSPENDED',
    FAILED: 'SUSPENDED',
    TRIED: 'TRIED',
    CHECK_FAILED: 'UNHEALTHY',
    CHECK_PASSED: 'ACTIVE',
    ...BY_HAND,
  },
  UNHEALTHY: { CHECK_PASSED: 'ACTIVE', ...BY_HAND },
  OFF: { SWITCHED_ON: 'ACTIVE' },
}

const EVENT_SHIFT = 3
const SAME = 255

const CELLS = compile()

function compile(): Uint8Array {
  const cells = new Uint8Array(Object.keys(ENDPOINT_STATE).length << EVENT_SHIFT).fill(SAME)
  for (const [state, row] of Object.entries(TRANSITIONS)) {
    for (const [event, next] of Object.entries(row)) {
      const at =
        (ENDPOINT_STATE[state as EndpointStateName] << EVENT_SHIFT) | ENDPOINT_EVENT[event as EndpointEventName]
      cells[at] = ENDPOINT_STATE[next]
    }
  }
  return cells
}

/** The state that follows; undefined where the event changes nothing. */
export function nextState(state: EndpointState, event: EndpointEvent): EndpointState | undefined {
  const next = CELLS[(state << EVENT_SHIFT) | event]!
  return next === SAME ? undefined : (next as EndpointState)
}
