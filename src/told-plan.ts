/**
 * How a plan gets from the primary into a thread. Of thousands of APIs a structured clone takes several times as long
 * as JSON, and is made anew for every thread; the text is made once, and read by all threads side by side.
 */
import type { CorsDefinition } from './config/api-definition.ts'
import type { ApiPlan, ReactorPlan } from './plan.ts'

/** The APIs as JSON. */
export type ToldPlan = Omit<ReactorPlan, 'apis'> & { readonly apis: string }

/** APIs with the same CORS share it, and what reactors make of it. */
interface ApisText {
  readonly cors: readonly CorsDefinition[]
  readonly apis: readonly (Omit<ApiPlan, 'cors'> & { readonly cors: number | null })[]
}

/** Reactors that are told in one turn are told the same; nobody needs a text that may be long after that. */
let last = new WeakRef<{ readonly apis: ReactorPlan['apis']; readonly text: string }>({ apis: [], text: textOf([]) })

export function toldPlan(plan: ReactorPlan): ToldPlan {
  const { apis } = plan
  let told = last.deref()
  if (told?.apis !== apis) {
    told = { apis, text: textOf(apis) }
    last = new WeakRef(told)
  }
  return { ...plan, apis: told.text }
}

export function planFrom({ apis: text, ...plan }: ToldPlan): ReactorPlan {
  const { cors, apis } = JSON.parse(text) as ApisText
  return { ...plan, apis: apis.map(api => Object.assign(api, { cors: api.cors === null ? null : cors[api.cors]! })) }
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
