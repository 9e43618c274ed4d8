/** The sequence that checks the queries of a GraphQL API. */
import type { SequencePlan } from '../sequence-plan.ts'

/** Its only step, which no sequence file holds. */
export const QUERY_MEDIATOR = 'graphqlQuery'
export const QUERY_SEQUENCE = '(GraphQL query)'

/** Properties that the step sets: `QUERY a,QUERY b`, and numbers. */
export const OPERATIONS = 'GRAPHQL_OPERATIONS'
export const DEPTH = 'GRAPHQL_DEPTH'
export const COMPLEXITY = 'GRAPHQL_COMPLEXITY'

/** Fields of every schema that show it. */
export const INTROSPECTION = ['__schema', '__type']

/** Property that the reactor sets: the payload is a message of a subprotocol, not the body of a request. */
export const IS_MESSAGE = 'GRAPHQL_IS_MESSAGE'
/** Property of such a message that asks for operations: its id. */
export const MESSAGE_ID = 'GRAPHQL_MESSAGE_ID'

export interface QuerySettings {
  /** In the schema definition language. */
  readonly schema: string
  /** Complexity of fields by `Type.field`; 1 for the others. */
  readonly complexity: Readonly<Record<string, number>>
  readonly allowsIntrospection: boolean
}

export function querySequence(settings: QuerySettings): SequencePlan {
  return {
    name: QUERY_SEQUENCE,
    label: 'GraphQL',
    steps: [{ mediator: QUERY_MEDIATOR, line: 1, settings }],
    onError: '',
    requestFields: [],
    calls: [],
    isDefault: false,
  }
}
