/**
 * The step that checks the query of a GraphQL API and says which operations it asks for, before anything else of the
 * request flow runs. No sequence file holds it.
 */
import { MediationFault } from '../mediation-fault.ts'
import { mediator } from '../mediator.ts'
import { COMPLEXITY, DEPTH, IS_MESSAGE, OPERATIONS, QUERY_MEDIATOR, type QuerySettings } from './graphql-sequence.ts'
import { InvalidQuery, QueryCheck } from './query-check.ts'
import { queryOf, queryOfMessage } from './request-query.ts'

const INVALID_QUERY = 900422

export const checkQuery = mediator<QuerySettings>({
  name: QUERY_MEDIATOR,
  attributes: [],
  elements: [],
  parse: (element, parser) =>
    parser.error(element, '', 'is no element of sequence files', 'declare an API of the type GRAPHQL'),
  needs: () => 'worker',
  compile: settings => {
    let check: QueryCheck | undefined
    return message => {
      check ??= new QueryCheck(settings)
      try {
        const query = message.get('default', IS_MESSAGE) === true ? queryOfMessage(message) : queryOf(message)
        // A message that asks for nothing.
        if (query === null) return true
        const { operations, depth, complexity } = check.check(query)
        message.set('default', OPERATIONS, operations.join(','))
        message.set('default', DEPTH, depth)
        message.set('default', COMPLEXITY, complexity)
        return true
      } catch (error) {
        if (!(error instanceof InvalidQuery)) throw error
        const { errors } = error
        throw new MediationFault({
          code: INVALID_QUERY,
          message: `The query is not valid: ${errors.join('; ')}`,
          cause: `the query has ${errors.length} errors`,
        })
      }
    }
  },
})
