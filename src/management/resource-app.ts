/** What every part of the REST API does the same: who asks, what is answered when something is refused. */
import { type Context, Hono } from 'hono'
import { type Callers, clientOf, type ManagementCaller } from './callers.ts'
import { answerProblem, Problem, problemOf } from './problem.ts'
import type { ManagementRoom } from './room.ts'

type Verb = 'get' | 'post' | 'put' | 'patch' | 'delete'
type Answer = (context: Context, caller: ManagementCaller) => Promise<Response>

export class ResourceApp {
  readonly app = new Hono()
  /** What all of its paths begin with. */
  readonly base: string
  readonly #callers: Callers

  constructor(base: string, callers: Callers, room: () => ManagementRoom) {
    this.base = base
    this.#callers = callers
    this.app.notFound(context => answerProblem(context, new Problem(404, 'there is nothing at this path')))
    this.app.onError((error, context) => {
      const problem = problemOf(error)
      if (!(problem instanceof Problem)) throw error
      if (problem.status === 503) {
        room().report('error', 'management request failed', {
          CAUSE_OF_ERROR: error.message,
          CLIENT_ADDRESS: clientOf(context),
        })
      }
      return answerProblem(context, problem)
    })
  }

  /** One of the scopes is needed. Nothing of the request is looked at before it is known who asks. */
  on(verb: Verb, path: string, scopes: readonly string[], answer: Answer): void {
    this.app[verb](`${this.base}${path}`, async context => {
      const caller = await this.#callers.admit(context, scopes)
      return answer(context, caller)
    })
  }
}

/** A segment of the path; the routes have it. */
export function segment(context: Context, name: string): string {
  return context.req.param(name) ?? ''
}

/** 201 with the address of what was made. */
export function created(context: Context, shape: object, id: string): Response {
  context.header('Location', `${context.req.path}/${encodeURIComponent(id)}`)
  return context.json(shape, 201)
}
