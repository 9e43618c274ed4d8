/** Properties under which sequences read a request: its API, resource and caller, and the CORS grant. */
import { type CallerProperty, isCallerProperty } from '../../mediation/caller-properties.ts'
import type { Message } from '../../mediation/message.ts'
import type { Json } from '../../mediation/value.ts'
import type { Api } from './api.ts'
import { accountOf } from './caller.ts'
import type { Exchange } from './exchange.ts'

const CORS_LINE = /^(Access-Control-[A-Za-z-]+): (.*)\r$/gm

/** Sets the properties that name the request, its API and its resource. */
export function describeRequest(message: Message, exchange: Exchange): void {
  const { api, resource, method } = exchange
  message.describe('default', 'REST_METHOD', method)
  message.describe('axis2', 'HTTP_METHOD', method)
  message.describe('axis2', 'REMOTE_ADDR', exchange.clientAddress)
  message.describe('default', 'TRANSPORT_IN_NAME', exchange.isSecured ? 'https' : 'http')
  // The canonical path was matched and goes to the backend. A sequence that decides by the path must see the same one.
  const path = (api === null ? exchange.requestTarget : exchange.canonicalTarget).slice(exchange.pathAt)
  message.describe('default', 'REST_FULL_REQUEST_PATH', path)
  message.to = path
  message.describe('default', 'CORRELATION_ID', exchange.correlationId)
  message.findsOuter = (scope, name) => callerProperty(exchange, scope, name)
  if (api === null) return
  message.describe('default', 'API_NAME', api.name)
  message.describe('default', 'SYNAPSE_REST_API', api.fullName)
  message.describe('default', 'SYNAPSE_REST_API_VERSION', api.version)
  message.describe('default', 'REST_API_CONTEXT', api.path)
  message.describe('default', 'REST_SUB_REQUEST_PATH', exchange.canonicalTarget.slice(exchange.backendPathAt))
  if (resource !== null) message.describe('default', 'API_ELECTED_RESOURCE', resource.template)
  // Only callers with a token have claims.
  const claims = exchange.caller?.claims
  if (claims !== undefined && hasMember(claims)) {
    message.describe('default', 'JWT_CLAIMS', { kind: 'json', value: claims as Json })
  }
}

/** The value of a property of caller or API; undefined for another property, and without an API. */
export function callerProperty(exchange: Exchange, scope: string, name: string): string | undefined {
  return isCallerProperty(scope, name) && exchange.api !== null
    ? CALLER_VALUES[name](exchange, exchange.api)
    : undefined
}

const CALLER_VALUES: Readonly<Record<CallerProperty, (exchange: Exchange, api: Api) => string>> = {
  'api.ut.userId': userOf,
  'api.ut.userName': userOf,
  'api.ut.consumerKey': ({ caller }) => caller?.consumerKey ?? '',
  // The application of a caller without credentials is its address, which is no name.
  'api.ut.application.name': ({ caller }) => (caller?.method === 'none' ? '' : (caller?.application?.name ?? '')),
  'api.ut.application.id': ({ caller }) => caller?.application?.id ?? '',
  'api.ut.api': (_, { name }) => name,
  'api.ut.version': (_, { version }) => version,
  'api.ut.api_version': (_, { version }) => version,
  'api.ut.context': (_, { path }) => path,
  'api.ut.resource': ({ canonicalTarget, backendPathAt }) => canonicalTarget.slice(backendPathAt) || '/',
  'api.ut.HTTP_METHOD': ({ method }) => method,
  'api.ut.hostName': (_, { hostName }) => hostName,
  'api.ut.apiPublisher': (_, { provider }) => provider,
  AM_KEY_TYPE: ({ keyType }) => keyType,
  TransportInURL: ({ canonicalTarget, pathAt }) => canonicalTarget.slice(pathAt),
}

/** The caller as tokens name it; `anonymous` where the API or the resource requires no authentication. */
function userOf({ caller, resource }: Exchange, { isOpen }: Api): string {
  if (caller !== null) return accountOf(caller)
  return isOpen || resource?.authType === 'None' ? 'anonymous' : ''
}

function hasMember(claims: object): boolean {
  for (const _ in claims) return true
  return false
}

/** Sets the properties that `_cors_request_handler_` reads: each field that the policy grants, under its name. */
export function describeCors(message: Message, { corsGrant }: Pick<Exchange, 'corsGrant'>): void {
  if (corsGrant === null) return
  message.set('default', 'CORSConfiguration.Enabled', true)
  for (const [, name, value] of (corsGrant.source ?? corsGrant).lines.matchAll(CORS_LINE)) {
    message.set('default', name!, value!)
  }
}
