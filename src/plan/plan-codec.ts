/**
 * Hands a plan from the primary to a reactor. The APIs go as JSON, made once for all reactors: a structured clone of
 * thousands of APIs is several times slower, and would be made for each thread.
 */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { CorsDefinition } from '../apis/api-definition.ts'
import type { ApiPlan, ReactorPlan } from './reactor-plan.ts'
import type { ThreadData } from './thread-messages.ts'

/** `apis`: JSON of `ApisText`. */
type EncodedPlan = Omit<ReactorPlan, 'apis'> & { readonly apis: string }

/** APIs with the same CORS definition share it by its place in `cors`. */
interface ApisText {
  readonly cors: readonly CorsDefinition[]
  readonly apis: readonly (Omit<ApiPlan, 'cors'> & { readonly cors: number | null })[]
}

/** The text of the last APIs. Reactors get their plans in one turn; the text may be large, so it is kept weakly. */
let last = new WeakRef<{ readonly apis: ReactorPlan['apis']; readonly text: string }>({ apis: [], text: textOf([]) })

export function encodePlan(plan: ReactorPlan): EncodedPlan {
  const { apis } = plan
  let encoded = last.deref()
  if (encoded?.apis !== apis) {
    encoded = { apis, text: textOf(apis) }
    last = new WeakRef(encoded)
  }
  return { ...plan, apis: encoded.text }
}

export function decodePlan({ apis: text, ...plan }: EncodedPlan): ReactorPlan {
  const { cors, apis } = JSON.parse(text) as ApisText
  return { ...plan, apis: apis.map(api => Object.assign(api, { cors: api.cors === null ? null : cors[api.cors]! })) }
}

/** In a reactor's thread, once: blocks until the primary has posted the plan. */
export function receivePlan(): ReactorPlan {
  Atomics.wait((workerData as ThreadData).planPosted, 0, 0)
  const { message } = receiveMessageOnPort(parentPort!) as { readonly message: EncodedPlan }
  return decodePlan(message)
}

function textOf(plans: readonly ApiPlan[]): string {
  const places = new Map<CorsDefinition, number>()
  const apis = plans.map(api => {
    if (api.cors === null) return { ...api, cors: null }
    const cors = places.get(api.cors) ?? places.size
    places.set(api.cors, cors)
    return { ...api, cors }
  })
  return JSON.stringify({ cors: [...places.keys()], apis } satisfies ApisText)
}
