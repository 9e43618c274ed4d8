/** The life of an API: its states, the only ways from one to another, and the words for them. */
import type { LifecycleState } from './api-definition.ts'

/** Where it goes -> what users of such a platform call going there. */
type Ways = Readonly<Partial<Record<LifecycleState, string>>>

const WAYS: Readonly<Record<LifecycleState, Ways>> = {
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

export const LIFECYCLE_STATES = Object.keys(WAYS) as readonly LifecycleState[]

/** For those who do not want to write all of it. */
const SHORT_WORDS: readonly (readonly [word: string, target: LifecycleState])[] = [
  ['Prototype', 'PROTOTYPED'],
  ['Demote', 'CREATED'],
]

const TARGETS: ReadonlyMap<string, LifecycleState> = new Map(
  [
    ...LIFECYCLE_STATES.map(state => [state, state] as const),
    ...Object.values(WAYS).flatMap(ways => Object.entries(ways).map(([to, action]) => [action, to] as const)),
    ...SHORT_WORDS,
  ].map(([word, target]) => [bare(word), target as LifecycleState]),
)

/** `Deploy as a Prototype`, `deploy-as-a-prototype` and `DEPLOY_AS_A_PROTOTYPE` are one. */
function bare(word: string): string {
  return word.toLowerCase().replaceAll(/[\s_-]/g, '')
}

/** The state that an action leads to, or that is named; undefined for a word that means nothing. */
export function targetOf(word: string): LifecycleState | undefined {
  return TARGETS.get(bare(word))
}

/** What can be done to an API in that state: `Block`, `Deprecate`. */
export function actionsFrom(state: LifecycleState): readonly string[] {
  return Object.values(WAYS[state])
}

export function leadsTo(from: LifecycleState, to: LifecycleState): boolean {
  return WAYS[from][to] !== undefined
}

/** Every word, for those who used none of them. */
export const ACTIONS: readonly string[] = [...new Set(Object.values(WAYS).flatMap(ways => Object.values(ways)))]
