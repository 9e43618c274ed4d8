/** Which interaction a method and a path mean (R4, http.html#summary). */
import { ConnectionUnavailable } from '../../database/connection-pool.ts'
import { type Answer, type Interaction, refused, RESOURCE_TYPE, type WriteRun } from './interaction.ts'
import { ReadInteractions } from './read-interactions.ts'
import { searchPairs } from './search-query.ts'
import type { ServiceStorage } from './storage.ts'
import {
  create,
  explainRefusal,
  patch,
  patchMatch,
  remove,
  removeMatch,
  update,
  updateMatch,
} from './write-interactions.ts'

/** The subject of a path, and the methods that it allows. */
type Place =
  | { readonly kind: 'type' | 'search' | 'history'; readonly methods: readonly string[] }
  | { readonly kind: 'instance' | 'instance history'; readonly methods: readonly string[]; readonly id: string }
  | { readonly kind: 'version'; readonly methods: readonly string[]; readonly id: string; readonly version: string }

export class Interactions {
  readonly #storage: ServiceStorage
  readonly #reads: ReadInteractions

  constructor(storage: ServiceStorage) {
    this.#storage = storage
    this.#reads = new ReadInteractions(storage)
  }

  /**
   * Rejects with Refused, and with errors of the database. `write`: left out for a transaction of its own. `newId`: of
   * the service that a create makes.
   */
  async run(
    interaction: Interaction,
    write: WriteRun = work => this.#storage.write(work),
    newId?: string,
  ): Promise<Answer> {
    const place = placeOf(interaction.segments)
    if (place === undefined) throw refused('not-found')
    if (!place.methods.includes(interaction.method)) {
      const allowed = place.methods.flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
      throw refused('method-not-allowed', {}, [['Allow', allowed.join(', ')]])
    }
    try {
      return await this.#runAt(place, interaction, write, newId)
    } catch (error) {
      if (error instanceof ConnectionUnavailable) throw refused('overload', {}, [['Retry-After', '1']])
      throw explainRefusal(error)
    }
  }

  #runAt(place: Place, interaction: Interaction, write: WriteRun, newId?: string): Promise<Answer> {
    const { method } = interaction
    switch (place.kind) {
      case 'search':
        return this.#searchByForm(interaction)
      case 'history':
        return this.#reads.history(interaction, '')
      case 'instance history':
        return this.#reads.history(interaction, place.id)
      case 'version':
        return this.#reads.readVersion(interaction, place.id, place.version)
      case 'instance':
        if (method === 'PUT') return update(interaction, write, place.id)
        if (method === 'PATCH') return patch(interaction, write, place.id)
        if (method === 'DELETE') return remove(interaction, write, place.id)
        return this.#reads.read(interaction, place.id)
      case 'type':
        if (method === 'POST') return create(interaction, write, newId)
        if (method === 'PUT') return updateMatch(interaction, write)
        if (method === 'PATCH') return patchMatch(interaction, write)
        if (method === 'DELETE') return removeMatch(interaction, write)
        return this.#reads.search(interaction)
    }
  }

  async #searchByForm(interaction: Interaction): Promise<Answer> {
    const { mediaType } = interaction.content
    if (mediaType !== '' && mediaType !== 'application/x-www-form-urlencoded') {
      throw refused('media-type', { parameter: 'Content-Type' })
    }
    return this.#reads.search(interaction, searchPairs(await interaction.content.text()))
  }
}

const GET = ['GET']

/** Undefined: nothing is there. */
function placeOf(segments: readonly string[]): Place | undefined {
  const [type, id, history, version] = segments
  if (type !== RESOURCE_TYPE || segments.length > 4) return undefined
  if (id === undefined) return { kind: 'type', methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] }
  if (segments.length === 2) {
    if (id === '_search') return { kind: 'search', methods: ['POST'] }
    if (id === '_history') return { kind: 'history', methods: GET }
    return { kind: 'instance', methods: ['GET', 'PUT', 'PATCH', 'DELETE'], id }
  }
  if (history !== '_history') return undefined
  return version === undefined
    ? { kind: 'instance history', methods: GET, id }
    : { kind: 'version', methods: GET, id, version }
}
