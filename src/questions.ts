/** What the primary asks of its reactors, and what they answer: plain data, by message. */
import type { ConnectionList, ConnectionQuery } from './observe/connection-row.ts'
import type { Trace } from './observe/exchange-trace.ts'
import type { ApiChanges, LivePlan } from './plan.ts'

export type Question =
  | { readonly kind: 'connections'; readonly query: ConnectionQuery }
  /** Watch for the exchange with that correlation id; at most one is watched for. Answers whether it is. */
  | { readonly kind: 'arm'; readonly correlationId: string; readonly waitMs: number }
  /** Answers when that exchange is over, or nobody watches for it any more: null if it was never seen. */
  | { readonly kind: 'trace'; readonly correlationId: string }
  | { readonly kind: 'disarm'; readonly correlationId: string }
  /** Other settings, keys and APIs from now on. Answers '', or why not: then everything is as it was. */
  | { readonly kind: 'deploy'; readonly live: LivePlan; readonly apis: ApiChanges }

interface Answers {
  readonly connections: ConnectionList
  readonly arm: boolean
  readonly trace: Trace | null
  readonly disarm: true
  readonly deploy: string
}

export type Answer<Q extends Question = Question> = Answers[Q['kind']]

/** To a reactor. */
export interface Asked {
  readonly kind: 'ask'
  readonly id: number
  readonly question: Question
}

/** From a reactor. */
export interface Answered {
  readonly kind: 'answer'
  readonly id: number
  readonly answer: Answer
}
