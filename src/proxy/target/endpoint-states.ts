/**
 * States and transitions of an endpoint, as one table. An event without a cell changes nothing, such as the failure of
 * a request that was sent before the endpoint was suspended. test/proxy/target/endpoint-states.test.ts asserts all
 * cells from a grid written by hand.
 */

export const ENDPOINT_STATE = {
  ACTIVE: 0,
  /** Timed out with retries left: gets no requests for the retry delay, and is used again. */
  TIMEOUT: 1,
  SUSPENDED: 2,
  /** Suspension is over and a request probes the endpoint. Reported as SUSPENDED. */
  PROBING: 3,
  /** The health check fails: the endpoint gets no requests. Reported as SUSPENDED. */
  UNHEALTHY: 4,
  /** Switched off by an operator. */
  OFF: 5,
} as const
type EndpointStateName = keyof typeof ENDPOINT_STATE
export type EndpointState = (typeof ENDPOINT_STATE)[EndpointStateName]

/** State -> the documented state. */
export const REPORTED_STATE = ['ACTIVE', 'TIMEOUT', 'SUSPENDED', 'SUSPENDED', 'SUSPENDED', 'OFF'] as const

export const ENDPOINT_EVENT = {
  /** A response came, with any status. */
  SUCCEEDED: 0,
  /** A failure that counts as a time-out, with a retry left. */
  TIMED_OUT: 1,
  /** A failure that suspends, or a time-out with no retry left. */
  FAILED: 2,
  /** Suspension is over and a request is let through. */
  PROBED: 3,
  SWITCHED_OFF: 4,
  SWITCHED_ON: 5,
  /** Enough checks in a row have failed, or passed, to change the health of the endpoint. */
  CHECK_FAILED: 6,
  CHECK_PASSED: 7,
  /** A failure that belongs to its exchange; with enough others in a row the table takes it for FAILED. */
  EXCHANGE_FAILED: 8,
} as const
type EndpointEventName = keyof typeof ENDPOINT_EVENT
export type EndpointEvent = (typeof ENDPOINT_EVENT)[EndpointEventName]

type EndpointTransitions = {
  readonly [S in EndpointStateName]: { readonly [E in EndpointEventName]?: EndpointStateName }
}

const BY_OPERATOR = { SWITCHED_OFF: 'OFF', SWITCHED_ON: 'ACTIVE' } as const

const TRANSITIONS: EndpointTransitions = {
  ACTIVE: {
    // Ends the failures in a row.
    SUCCEEDED: 'ACTIVE',
    TIMED_OUT: 'TIMEOUT',
    FAILED: 'SUSPENDED',
    SWITCHED_OFF: 'OFF',
    CHECK_FAILED: 'UNHEALTHY',
    EXCHANGE_FAILED: 'ACTIVE',
  },
  TIMEOUT: {
    SUCCEEDED: 'ACTIVE',
    TIMED_OUT: 'TIMEOUT',
    FAILED: 'SUSPENDED',
    CHECK_FAILED: 'UNHEALTHY',
    CHECK_PASSED: 'ACTIVE',
    ...BY_OPERATOR,
  },
  SUSPENDED: {
    SUCCEEDED: 'ACTIVE',
    PROBED: 'PROBING',
    CHECK_FAILED: 'UNHEALTHY',
    CHECK_PASSED: 'ACTIVE',
    ...BY_OPERATOR,
  },
  PROBING: {
    SUCCEEDED: 'ACTIVE',
    TIMED_OUT: 'SUSPENDED',
    FAILED: 'SUSPENDED',
    PROBED: 'PROBING',
    CHECK_FAILED: 'UNHEALTHY',
    CHECK_PASSED: 'ACTIVE',
    // The connection was opened: the next request probes at once.
    EXCHANGE_FAILED: 'PROBING',
    ...BY_OPERATOR,
  },
  UNHEALTHY: { CHECK_PASSED: 'ACTIVE', ...BY_OPERATOR },
  OFF: { SWITCHED_ON: 'ACTIVE' },
}

const EVENT_SHIFT = 4
const NO_CHANGE = 255

const CELLS = compile()

function compile(): Uint8Array {
  const cells = new Uint8Array(Object.keys(ENDPOINT_STATE).length << EVENT_SHIFT).fill(NO_CHANGE)
  for (const [state, row] of Object.entries(TRANSITIONS)) {
    for (const [event, next] of Object.entries(row)) {
      const at =
        (ENDPOINT_STATE[state as EndpointStateName] << EVENT_SHIFT) | ENDPOINT_EVENT[event as EndpointEventName]
      cells[at] = ENDPOINT_STATE[next]
    }
  }
  return cells
}

/** The next state; undefined where the event changes nothing. */
export function nextState(state: EndpointState, event: EndpointEvent): EndpointState | undefined {
  const next = CELLS[(state << EVENT_SHIFT) | event]!
  return next === NO_CHANGE ? undefined : (next as EndpointState)
}
