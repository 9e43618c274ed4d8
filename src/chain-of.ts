/**
 * Which handlers stand between route and target of an API, in which order; built when it is deployed, and only those
 * that have something to do for it. They hold nothing of a reactor, so the primary can say what they are.
 */
import type { CorsDefinition } from './config/api-definition.ts'
import type { ExplainedHandler } from './handlers/chain.ts'
import { CorsHandler } from './handlers/cors.ts'
import { type CorsPolicy, policyOf } from './handlers/cors-policy.ts'
import { BlockedHandler, DeprecatedHandler } from './handlers/lifecycle.ts'
import { ResourceHandler } from './handlers/resources.ts'
import { TransportsHandler } from './handlers/transports.ts'
import type { ApiPlan } from './plan.ts'

/** Those that are the same for many APIs are made once. */
const ONLY = { http: new TransportsHandler('http'), https: new TransportsHandler('https') }
const BLOCKED = new BlockedHandler()
const RESOURCES = new ResourceHandler(false)
const RESOURCES_AND_OPTIONS = new ResourceHandler(true)
const corsHandlers = new WeakMap<CorsPolicy, CorsHandler>()

/** transports · CORS · lifecycle · resources */
export function chainOf(api: ApiPlan): readonly ExplainedHandler[] {
  const cors = corsOf(api.cors)
  const resources = cors === null ? RESOURCES : RESOURCES_AND_OPTIONS
  const chain = [transportsOf(api), cors, lifecycleOf(api), api.resources.length === 0 ? null : resources]
  return chain.filter(handler => handler !== null)
}

/** Created and retired ones are not there for requests. */
export function isServed({ lifecycle: { state } }: Pick<ApiPlan, 'lifecycle'>): boolean {
  return state !== 'CREATED' && state !== 'RETIRED'
}

/** What the requests of an API pass, in order. */
export function explainChain(api: ApiPlan): readonly { readonly name: string; readonly about: string }[] {
  if (!isServed(api)) return [{ name: 'lifecycle', about: `${api.lifecycle.state}: 404 as for an unknown API` }]
  return chainOf(api).map(({ name, about }) => ({ name, about }))
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
