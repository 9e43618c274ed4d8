/** The lifecycle states of an API, the allowed transitions, and the names of the actions that lead to a state. */
import type { LifecycleState } from './api-definition.ts'

/** Target state -> name of the action, as users of the reference platform know it. */
type Transitions = Readonly<Partial<Record<LifecycleState, string>>>

const TRANSITIONS: Readonly<Record<LifecycleState, Transitions>> = {
  CREATED: { PUBLISHED: 'Publish', PROTOTYPED: 'Deploy as a Prototype' },
  PROTOTYPED: { PUBLISHED: 'Publish', CREATED: 'Demote to Created' },
  PUBLISHED: {
    BLOCKED: 'Block',
    DEPRECATED: 'Deprecate',
    PROTOTYPED: 'Deploy as a Prototype',
    CREATED: 'Demote to Created',
    PUBLISHED: 'Re-Publish',
  },
  BLOCKED: { PUBLISHED: 'Re-Publish', DEPRECATED: 'Deprecate' },
  DEPRECATED: { RETIRED: 'Retire' },
  RETIRED: {},
}

export const LIFECYCLE_STATES = Object.keys(TRANSITIONS) as readonly LifecycleState[]

/** Every action once. */
export const ACTIONS: readonly string[] = [...new Set(Object.values(TRANSITIONS).flatMap(to => Object.values(to)))]

/** Short forms of actions. */
const SHORT_FORMS: readonly (readonly [word: string, target: LifecycleState])[] = [
  ['Prototype', 'PROTOTYPED'],
  ['Demote', 'CREATED'],
]

const TARGETS: ReadonlyMap<string, LifecycleState> = new Map(
  [
    ...LIFECYCLE_STATES.map(state => [state, state] as const),
    ...Object.values(TRANSITIONS).flatMap(all => Object.entries(all).map(([to, action]) => [action, to] as const)),
    ...SHORT_FORMS,
  ].map(([word, target]) => [normalized(word), target as LifecycleState]),
)

/** `Deploy as a Prototype`, `deploy-as-a-prototype` and `DEPLOY_AS_A_PROTOTYPE` become equal. */
function normalized(word: string): string {
  return word.toLowerCase().replaceAll(/[\s_-]/g, '')
}

/** The target state of an action or of a state's own name; undefined for any other word. */
export function targetState(word: string): LifecycleState | undefined {
  return TARGETS.get(normalized(word))
}

/** The actions that a state allows: `Block`, `Deprecate`. */
export function actionsFrom(state: LifecycleState): readonly string[] {
  return Object.values(TRANSITIONS[state])
}

export function allowsTransition(from: LifecycleState, to: LifecycleState): boolean {
  return TRANSITIONS[from][to] !== undefined
}
