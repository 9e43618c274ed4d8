/** What may be done at the paths of one template, by method. */
import type { Resource, ResourcePath } from '../exchange/resource.ts'

const ANY = '*'
/** In this order in Allow; others follow as they were declared. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']

export class ResourcePlace implements ResourcePath {
  readonly template: string
  allow = ''
  readonly #byVerb = new Map<string, Resource>()

  constructor(template: string) {
    this.template = template
  }

  /** Of two for one verb the first holds. */
  add(resource: Resource): void {
    if (this.#byVerb.has(resource.verb)) return
    this.#byVerb.set(resource.verb, resource)
    const verbs = this.#byVerb.has(ANY) ? METHODS : []
    const heads = this.#byVerb.has('GET') ? ['HEAD'] : []
    const offered = new Set([...verbs, ...heads, ...this.#byVerb.keys()])
    offered.delete(ANY)
    const known = METHODS.filter(method => offered.has(method))
    this.allow = [...known, ...[...offered].filter(verb => !METHODS.includes(verb))].join(', ')
  }

  resource(method: string): Resource | undefined {
    const own = this.#byVerb.get(method)
    if (own !== undefined) return own
    const served = method === 'HEAD' ? this.#byVerb.get('GET') : undefined
    return served ?? this.#byVerb.get(ANY)
  }
}
