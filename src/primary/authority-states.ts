/** The states of the authority, seen from the primary, and what moves it from one to another, as one table. */

export type AuthorityState =
  /** There is no plan yet. Its thread may be there, and loads its modules. */
  | 'waiting'
  /** The first thread has its plan, and the start of the node waits for it. */
  | 'starting'
  | 'serving'
  /** There is no thread: the last one has died, and the next one comes after a while. */
  | 'pausing'
  /** Another thread has the plan. */
  | 'replacing'
  /** It is over, or will be: no thread follows. */
  | 'ending'

export type AuthorityEvent =
  /** A thread is told the plan. */
  | 'planned'
  /** A thread has told everything. */
  | 'begun'
  /** A thread has ended, for whatever reason. */
  | 'died'
  /** The pause is over. */
  | 'resumed'
  | 'ended'

type Transitions = Readonly<Record<AuthorityState, Readonly<Partial<Record<AuthorityEvent, AuthorityState>>>>>

/** A cell that is missing is an event that cannot come. */
const TRANSITIONS: Transitions = {
  waiting: { planned: 'starting', died: 'waiting', ended: 'ending' },
  // Whoever waits for the start is told why there is none, and nothing is tried again.
  starting: { begun: 'serving', died: 'ending', ended: 'ending' },
  serving: { died: 'pausing', ended: 'ending' },
  pausing: { resumed: 'replacing', ended: 'ending' },
  replacing: { begun: 'serving', died: 'pausing', ended: 'ending' },
  // What a thread says before it hears of its end makes no difference.
  ending: { begun: 'ending', died: 'ending', ended: 'ending' },
}

/** Throws for an event that cannot come in this state. */
export function nextAuthorityState(state: AuthorityState, event: AuthorityEvent): AuthorityState {
  const next = TRANSITIONS[state][event]
  if (next === undefined) throw new Error(`the authority is ${state}: it cannot be ${event}`)
  return next
}
