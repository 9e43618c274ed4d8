/** The life of a supervised thread, seen from the primary, as one table: reactors and the control thread alike. */

export type ThreadState =
  /** No plan yet. The thread may exist already and load its modules. */
  | 'waiting'
  /** The first thread has its plan, and the start of the node waits for it. */
  | 'starting'
  | 'serving'
  /** The thread has died, and a replacement starts after a pause. */
  | 'pausing'
  /** The replacement has its plan. */
  | 'replacing'
  /** No thread follows. */
  | 'ending'

export type ThreadEvent =
  /** The plan was posted to the thread. */
  | 'planned'
  /** The thread reports that it does its work. */
  | 'started'
  /** The thread has exited, for whatever reason. */
  | 'died'
  /** The pause is over. */
  | 'resumed'
  /** The node ends, or its start has failed. */
  | 'ended'

type Transitions = Readonly<Record<ThreadState, Readonly<Partial<Record<ThreadEvent, ThreadState>>>>>

/** A missing cell is an event that cannot come in that state. */
const TRANSITIONS: Transitions = {
  waiting: { planned: 'starting', died: 'waiting', ended: 'ending' },
  // The death of a first thread fails the start of the node: nothing is retried.
  starting: { started: 'serving', died: 'ending', ended: 'ending' },
  serving: { died: 'pausing', ended: 'ending' },
  pausing: { resumed: 'replacing', ended: 'ending' },
  replacing: { started: 'serving', died: 'pausing', ended: 'ending' },
  // Reports that a thread has posted before it is told to end.
  ending: { started: 'ending', died: 'ending', ended: 'ending' },
}

/** Throws for an event that cannot come in this state. */
export function nextThreadState(state: ThreadState, event: ThreadEvent): ThreadState {
  const next = TRANSITIONS[state][event]
  if (next === undefined) throw new Error(`a thread that is ${state} cannot be ${event}`)
  return next
}
