/** A GraphQL API for tests: its schema, operations with scopes and a tier, and complexity. */
const SCHEMA = `type Query { hero(id: ID): Character heroes(first: Int): [Character] open: String other: String
  many(first: Int = 100): [Character] mine: String }
type Mutation { rename(name: String!): Character }
type Subscription { changes: Character }
type Character { name: String friends(first: Int): [Character] age: Int }
`
const COMPLEXITY = `type: graphql_complexity
version: v4
data:
  list:
    - {type: Character, field: friends, complexityValue: 5}
`
export const GRAPHQL_OPERATIONS = `  type: GRAPHQL
  operations:
    - {target: hero, verb: QUERY, authType: "Application & Application User", scopes: [read], throttlingPolicy: HeroTier}
    - {target: heroes, verb: QUERY, authType: "Application & Application User"}
    - {target: many, verb: QUERY, authType: "Application & Application User"}
    - {target: mine, verb: QUERY, authType: "Application User"}
    - {target: open, verb: QUERY, authType: None}
    - {target: rename, verb: MUTATION, authType: "Application & Application User", scopes: [write]}
    - {target: changes, verb: SUBSCRIPTION, authType: "Application & Application User", scopes: [read]}
`
export const GRAPHQL_FILES = { 'Definitions/schema.graphql': SCHEMA, 'Definitions/graphql-complexity.yaml': COMPLEXITY }
