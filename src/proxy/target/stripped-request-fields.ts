/** Request fields that no backend gets, by configuration. One for all backends of a thread. */
import { KIND } from '../../http1/field-kinds.ts'
import { forwardedKinds } from '../../http1/forwarded.ts'
import { type StrippedKinds, strippedKinds } from '../../http1/rewrite.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'

export class StrippedRequestFields {
  /** Filled on first use. */
  readonly #tables: (StrippedKinds | undefined)[] = new Array(16).fill(undefined)
  readonly #settings: Pick<ConnectionContext['settings'], 'preservesUserAgent' | 'forwardedFields'>

  constructor(settings: ConnectionContext['settings']) {
    this.#settings = settings
  }

  /** Drops tables that were made from old settings. */
  update(): void {
    this.#tables.fill(undefined)
  }

  /** The stripped kinds depend on the body, on the client and its version, and on whether the request is traced. */
  table(chunked: boolean, trusted: boolean, expects: boolean, traced: boolean): StrippedKinds {
    const key = (chunked ? 1 : 0) | (trusted ? 2 : 0) | (expects ? 4 : 0) | (traced ? 8 : 0)
    let table = this.#tables[key]
    if (table === undefined) {
      const { preservesUserAgent, forwardedFields } = this.#settings
      // Host is always written in front of the fields: that of the client, or that of the endpoint.
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
      if (traced) kinds.push(KIND.TRACE_PARENT, KIND.TRACE_STATE)
      table = strippedKinds(...kinds)
      this.#tables[key] = table
    }
    return table
  }
}
