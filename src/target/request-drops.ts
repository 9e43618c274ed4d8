/** Fields of a request that no backend gets, by configuration. One for all backends of a thread. */
import type { Surroundings } from '../exchange/surroundings.ts'
import { KIND } from '../http1/field-kinds.ts'
import { forwardedKinds } from '../http1/forwarded.ts'
import { type Drops, drops } from '../http1/rewrite.ts'

export class RequestDrops {
  /** Made when they are first needed. */
  readonly #tables: (Drops | undefined)[] = new Array(8).fill(undefined)
  readonly #settings: Pick<Surroundings['settings'], 'preservesUserAgent' | 'forwardedFields'>

  constructor(settings: Surroundings['settings']) {
    this.#settings = settings
  }

  /** The settings are others now. */
  renew(): void {
    this.#tables.fill(undefined)
  }

  /** Which fields are left out depends on the body and on the client. */
  table(chunked: boolean, trusted: boolean, expects: boolean): Drops {
    const key = (chunked ? 1 : 0) | (trusted ? 2 : 0) | (expects ? 4 : 0)
    let table = this.#tables[key]
    if (table === undefined) {
      const { preservesUserAgent, forwardedFields } = this.#settings
      // Host is always said anew, in front of the fields: as the client said it, or that of the endpoint.
      const kinds: number[] = [
        KIND.CORRELATION,
        KIND.HOST,
        KIND.CREDENTIAL,
        ...forwardedKinds(forwardedFields, trusted),
      ]
      if (!preservesUserAgent) kinds.push(KIND.USER_AGENT)
      if (!chunked) kinds.push(KIND.TRAILER)
      // RFC 9110 10.1.1: an expectation in a 1.0 request is ignored.
      if (!expects) kinds.push(KIND.EXPECT)
      table = drops(...kinds)
      this.#tables[key] = table
    }
    return table
  }
}
