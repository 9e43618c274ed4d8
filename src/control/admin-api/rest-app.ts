/** Base of the REST APIs: authorisation per route, and problem responses. */
import { type Context, Hono } from 'hono'
import { type AdminAuthenticator, clientAddressOf, type AdminCaller } from './authentication.ts'
import { problemResponse, Problem, problemOf } from './problem.ts'
import type { AdminServices } from './admin-services.ts'

type Verb = 'get' | 'post' | 'put' | 'patch' | 'delete'
export type RestHandler = (context: Context, caller: AdminCaller) => Promise<Response>

export class RestApp {
  readonly app = new Hono()
  /** Prefix of all paths. */
  readonly base: string
  readonly #authenticator: AdminAuthenticator

  constructor(base: string, authenticator: AdminAuthenticator, services: () => AdminServices) {
    this.base = base
    this.#authenticator = authenticator
    this.app.notFound(context => problemResponse(context, new Problem(404, 'no resource at this path')))
    this.app.onError((error, context) => {
      const problem = problemOf(error)
      if (!(problem instanceof Problem)) throw error
      if (problem.status === 503) {
        services().report('error', 'management request failed', {
          CAUSE_OF_ERROR: error.message,
          CLIENT_ADDRESS: clientAddressOf(context),
        })
      }
      return problemResponse(context, problem)
    })
  }

  /** Adds a route that requires one of the scopes. The handler runs after the caller is authorised. */
  readonly route = (verb: Verb, path: string, scopes: readonly string[], handler: RestHandler): void => {
    this.app[verb](`${this.base}${path}`, async context => {
      const caller = await this.#authenticator.authorize(context, scopes)
      return handler(context, caller)
    })
  }
}

/** Value of a path parameter, which the route guarantees. */
export function pathParameter(context: Context, name: string): string {
  return context.req.param(name) ?? ''
}

/** 201 with the Location of the new resource. */
export function createdResponse(context: Context, representation: object, id: string): Response {
  context.header('Location', `${context.req.path}/${encodeURIComponent(id)}`)
  return context.json(representation, 201)
}
