/**
 * Sequences that reloads have changed or removed: messages that came before run them where no other has their name. A
 * response keeps its guardrail, and a copy in the background its steps.
 */
import type { SequencePlan } from '../mediation/sequence-plan.ts'

/** Reloads for which a sequence is kept. */
const RELOADS = 4
/** Sequences of one reactor; beyond, those that changed first are forgotten. */
const SEQUENCES_MAX = 1000
/** In place of the identity of an API. */
const HOME = ''

interface Former {
  readonly owner: string
  readonly plan: SequencePlan
  /** Reloads left. */
  reloads: number
}

export class FormerSequences {
  /** The one that changed first comes first. */
  #kept: Former[] = []

  /** Another reload begins. */
  reload(): void {
    this.#kept = this.#kept.filter(each => --each.reloads > 0)
  }

  /** `owner`: identity of an API; left out: the home. `after`: empty where the API is gone. */
  change(before: readonly SequencePlan[], after: readonly SequencePlan[], owner = HOME): void {
    if (before === after || before.length === 0) return
    const known = new Set(after.map(plan => JSON.stringify(plan)))
    const changed = before.filter(plan => !known.has(JSON.stringify(plan)))
    this.#kept.push(...changed.map(plan => ({ owner, plan, reloads: RELOADS })))
    this.#kept.splice(0, this.#kept.length - SEQUENCES_MAX)
  }

  /** By identity, and '' for those of the home. A later one of a name wins. */
  get plans(): Readonly<Record<string, readonly SequencePlan[]>> {
    const byOwner = Map.groupBy(this.#kept, ({ owner }) => owner)
    return Object.fromEntries([...byOwner].map(([owner, kept]) => [owner, kept.map(({ plan }) => plan)]))
  }
}
