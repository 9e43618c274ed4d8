/**
 * The query of a request: GET with `query`, or POST with JSON or `application/graphql` (GraphQL over HTTP). A request
 * that two readers could take differently is refused: the backend must execute the query that was checked.
 */
import { mediaTypeOf } from '../../http1/media-type.ts'
import { bodyFormatOf } from '../formats/body-types.ts'
import { repeatedMembers } from '../formats/json-members.ts'
import { jsonOf } from '../formats/json-text.ts'
import { MediationFault } from '../mediation-fault.ts'
import type { Message } from '../message.ts'
import { queryPairs } from '../openapi/parameters.ts'
import type { Json } from '../value.ts'
import { MESSAGE_ID } from './graphql-sequence.ts'
import { InvalidQuery, type Query } from './query-check.ts'
import { isQueryParameter, MESSAGE_MEMBERS, QUERY_MEMBERS, refuseOtherCase, refuseStored } from './query-members.ts'

const UNSUPPORTED = 102522
/** Messages that ask for an operation: of `graphql-transport-ws` and of `graphql-ws`. */
const ASKING_TYPES = ['subscribe', 'start']

/** Throws InvalidQuery, and MediationFault where the body cannot be read. */
export function queryOf(message: Message): Query {
  const { method, target } = message.receivedHead
  const parameters = queryPairs(target).filter(([name]) => isQueryParameter(name))
  if (method === 'GET') return queryOfTarget(message, parameters)
  if (parameters.length > 0) throw new InvalidQuery('a POST request must have its query in the body alone')
  const type = mediaTypeOf(message.receivedField('content-type') ?? '')
  if (bodyFormatOf(type) === 'json') return queryOfJson(message)
  if (type !== 'application/graphql') {
    const told = 'The query of a POST request is application/json or application/graphql'
    throw new MediationFault({ code: UNSUPPORTED, message: told })
  }
  const payload = message.bodySource?.build('text/plain')
  const text = payload?.kind === 'text' ? payload.text : ''
  return { text, operationName: '', variables: {}, isSafe: false }
}

function queryOfTarget(message: Message, parameters: ReturnType<typeof queryPairs>): Query {
  if (message.bodySource !== null) throw new InvalidQuery('a GET request must have no body')
  const names = parameters.map(([name]) => name)
  refuseOtherCase(names, QUERY_MEMBERS)
  const repeated = names.find((name, at) => names.indexOf(name) !== at)
  if (repeated !== undefined) throw new InvalidQuery(`${repeated} must not be repeated`)
  const values = new Map(parameters)
  const text = (name: string): string => {
    try {
      return decodeURIComponent((values.get(name) ?? '').replaceAll('+', ' '))
    } catch {
      throw new InvalidQuery(`${name} must have well-formed percent-escapes`)
    }
  }
  if (!values.has('query')) throw new InvalidQuery('query is required')
  const query = text('query')
  const extensions = text('extensions')
  refuseStored(query, {
    ...Object.fromEntries(values),
    extensions: extensions === '' ? null : jsonIn(extensions, 'extensions'),
  })
  const variables = text('variables')
  return {
    text: query,
    operationName: text('operationName'),
    variables: variables === '' ? {} : variablesOf(jsonIn(variables, 'variables')),
    isSafe: true,
  }
}

/** JSON of a parameter, which the backend gets as it is. */
function jsonIn(text: string, name: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new InvalidQuery(`${name} must be JSON`)
  }
  if (repeatedMembers(text, 1).length > 0) throw new InvalidQuery(`${name} must not repeat a member`)
  return value
}

function variablesOf(value: unknown): Query['variables'] {
  if (value === undefined || value === null) return {}
  if (typeof value !== 'object' || Array.isArray(value)) throw new InvalidQuery('variables must be an object')
  return value as Query['variables']
}

/** The backend gets the JSON that was read: of a repeated name the one value that counts here. */
function queryOfJson(message: Message): Query {
  const { payload } = message
  if (payload?.kind !== 'json') throw new InvalidQuery('query is required')
  const value: Json = jsonOf(payload)
  const query = queryOfObject(value)
  message.json = value
  return query
}

function queryOfObject(value: Json | undefined): Query {
  if (Array.isArray(value)) throw new InvalidQuery('several queries in one request are not supported')
  if (typeof value !== 'object' || value === null) throw new InvalidQuery('the body must be an object')
  const members = value as Readonly<Record<string, unknown>>
  refuseOtherCase(Object.keys(members), QUERY_MEMBERS)
  const { query, operationName = null, variables } = members
  if (typeof query !== 'string') throw new InvalidQuery('query is required, as text')
  if (operationName !== null && typeof operationName !== 'string') throw new InvalidQuery('operationName must be text')
  refuseStored(query, members)
  return { text: query, operationName: operationName ?? '', variables: variablesOf(variables), isSafe: false }
}

/**
 * The query of a message of a WebSocket subprotocol; null: the message asks for none. The backend gets the JSON that
 * was read. Throws InvalidQuery.
 */
export function queryOfMessage(message: Message): Query | null {
  const { payload } = message
  const value: Json = payload?.kind === 'json' ? jsonOf(payload) : null
  if (typeof value !== 'object' || value === null) throw new InvalidQuery('a message must be an object')
  refuseOtherCase(Object.keys(value), MESSAGE_MEMBERS)
  const { type, id, payload: query } = value as Readonly<Record<string, Json>>
  message.json = value
  if (typeof type !== 'string') throw new InvalidQuery('a message must have a type')
  if (!ASKING_TYPES.includes(type)) return null
  if (typeof id !== 'string') throw new InvalidQuery('a message that asks for an operation must have an id, as text')
  message.set('default', MESSAGE_ID, id)
  return queryOfObject(query)
}
