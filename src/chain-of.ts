/**
 * Which handlers stand between route and target of an API, in which order; built when it is deployed, and only those
 * that have something to do for it. They hold nothing of a reactor, so the primary can say what they are.
 */
import type { CorsDefinition } from './config/api-definition.ts'
import { ApiKeyAuthenticator } from './handlers/api-key.ts'
import { AuthenticationHandler } from './handlers/authentication.ts'
import type { Authenticator } from './handlers/authenticator.ts'
import { BackendHandler } from './handlers/backend-credentials.ts'
import { BasicAuthenticator } from './handlers/basic.ts'
import { BearerAuthenticator } from './handlers/bearer.ts'
import type { ExplainedHandler } from './handlers/chain.ts'
import { CorsHandler } from './handlers/cors.ts'
import { type CorsPolicy, policyOf } from './handlers/cors-policy.ts'
import { BlockedHandler, DeprecatedHandler } from './handlers/lifecycle.ts'
import { ResourceHandler } from './handlers/resources.ts'
import { isConfirmed, MutualTlsAuthenticator } from './handlers/mutual-tls.ts'
import { TokenGrants } from './handlers/token-grants.ts'
import { TransportsHandler } from './handlers/transports.ts'
import { ResourceNeeds } from './identity/grants.ts'
import type { Identity } from './identity/identity.ts'
import type { ApiPlan } from './plan.ts'

/** Those that are the same for many APIs are made once. */
const ONLY = { http: new TransportsHandler('http'), https: new TransportsHandler('https') }
const BLOCKED = new BlockedHandler()
const RESOURCES = new ResourceHandler(false)
const RESOURCES_AND_OPTIONS = new ResourceHandler(true)
const corsHandlers = new WeakMap<CorsPolicy, CorsHandler>()

/**
 * transports · CORS · lifecycle · resources · authentication · backend credentials. What an API does not have is
 * refused before anybody is asked who he is, as on the reference platform. `identity`: of the reactor; null where the
 * chain is only explained.
 */
export function chainOf(api: ApiPlan, identity: Identity | null): readonly ExplainedHandler[] {
  const cors = corsOf(api.cors)
  const resources = cors === null ? RESOURCES : RESOURCES_AND_OPTIONS
  const elected = api.resources.length === 0 ? null : resources
  const chain = [
    transportsOf(api),
    cors,
    lifecycleOf(api),
    elected,
    authenticationOf(api, identity),
    backendOf(api, identity),
  ]
  return chain.filter(handler => handler !== null)
}

/** Created and retired ones are not there for requests. */
export function isServed({ lifecycle: { state } }: Pick<ApiPlan, 'lifecycle'>): boolean {
  return state !== 'CREATED' && state !== 'RETIRED'
}

/** What the requests of an API pass, in order. */
export function explainChain(api: ApiPlan): readonly { readonly name: string; readonly about: string }[] {
  if (!isServed(api)) return [{ name: 'lifecycle', about: `${api.lifecycle.state}: 404 as for an unknown API` }]
  return chainOf(api, null).map(({ name, about }) => ({ name, about }))
}

function transportsOf({ transports }: ApiPlan): TransportsHandler | null {
  const [only] = transports
  return transports.length === 1 ? ONLY[only!] : null
}

function corsOf(definition: CorsDefinition | null): CorsHandler | null {
  const policy = policyOf(definition)
  if (policy === null) return null
  let handler = corsHandlers.get(policy)
  if (handler === undefined) {
    handler = new CorsHandler(policy)
    corsHandlers.set(policy, handler)
  }
  return handler
}

/** A prototype passes as what is published does. */
function lifecycleOf({ lifecycle: { state, deprecatedAtMs, sunsetMs } }: ApiPlan): ExplainedHandler | null {
  if (state === 'BLOCKED') return BLOCKED
  if (state !== 'DEPRECATED' || deprecatedAtMs + sunsetMs === 0) return null
  return new DeprecatedHandler(deprecatedAtMs, sunsetMs)
}

/** Whether anything of an API asks who is there. */
function asks({ access, resources }: Pick<ApiPlan, 'access' | 'resources'>): boolean {
  const isSecured = resources.length === 0 || resources.some(({ authType }) => authType !== 'None')
  return access.schemes.length > 0 && isSecured
}

/** Null where nothing of an API asks for anything: then what clients send is the backend's. */
function authenticationOf(
  { access, resources, keyType, lifecycle: { state } }: ApiPlan,
  identity: Identity | null,
): ExplainedHandler | null {
  if (!asks({ access, resources })) return null
  const needs = new ResourceNeeds(resources)
  const others = identity === null ? [] : authenticatorsOf(access, needs, identity)
  const certificates = certificatesOf({ access, resources, keyType }, needs)
  return new AuthenticationHandler({ identity, access, needs, isOpen: state === 'PROTOTYPED', certificates, others })
}

function certificatesOf(
  { access, resources, keyType }: Pick<ApiPlan, 'access' | 'resources' | 'keyType'>,
  needs: ResourceNeeds,
): MutualTlsAuthenticator | null {
  if (!access.needsCertificate && !access.schemes.includes('mutual_tls')) return null
  return new MutualTlsAuthenticator({
    access,
    keyType,
    needs,
    scopes: new Set(resources.flatMap(({ scopes }) => scopes)),
  })
}

/** Null where backends are told nothing and ask for nothing. */
function backendOf({ name, version, paths, credentials, ...api }: ApiPlan, identity: Identity | null) {
  const tellsCaller = asks(api) && api.lifecycle.state !== 'PROTOTYPED'
  if (!tellsCaller && credentials.production === null && credentials.sandbox === null) return null
  const services = identity?.backend ?? null
  return new BackendHandler({
    api: { name, version, context: paths[0]! },
    credentials,
    tellsCaller,
    services,
  })
}

function authenticatorsOf(
  { schemes, subject, scopeRoles }: ApiPlan['access'],
  needs: ResourceNeeds,
  identity: Identity,
): readonly Authenticator[] {
  const grants = new TokenGrants(identity, needs, subject)
  return [
    schemes.includes('oauth2') ? new BearerAuthenticator(grants, isConfirmed) : null,
    schemes.includes('basic') ? new BasicAuthenticator(identity, needs, scopeRoles) : null,
    schemes.includes('api_key') ? new ApiKeyAuthenticator(grants) : null,
  ].filter(authenticator => authenticator !== null)
}
