/** What may be done at the paths of one template, by method. */
import { METHODS, type Resource, type ResourcePath } from '../exchange/resource.ts'

const ANY = '*'

export class ResourcePlace implements ResourcePath {
  readonly template: string
  readonly #byVerb = new Map<string, Resource>()
  #allow: string | null = null

  constructor(template: string) {
    this.template = template
  }

  /** Of two for one verb the first holds. */
  add(resource: Resource): void {
    if (!this.#byVerb.has(resource.verb)) this.#byVerb.set(resource.verb, resource)
  }

  get allow(): string {
    this.#allow ??= allowOf([...this.#byVerb.keys()])
    return this.#allow
  }

  resource(method: string): Resource | undefined {
    const own = this.#byVerb.get(method)
    if (own !== undefined) return own
    const served = method === 'HEAD' ? this.#byVerb.get('GET') : undefined
    return served ?? this.#byVerb.get(ANY)
  }
}

/** Made once, by whoever asks first: few places are ever asked. */
function allowOf(verbs: readonly string[]): string {
  const offered = new Set(verbs.includes(ANY) ? METHODS : verbs.includes('GET') ? ['HEAD'] : [])
  for (const verb of verbs) if (verb !== ANY) offered.add(verb)
  // Others follow as they were declared.
  const known = METHODS.filter(method => offered.has(method))
  return [...known, ...[...offered].filter(verb => !METHODS.includes(verb))].join(', ')
}
