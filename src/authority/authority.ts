/**
 * Who may do what, for all reactors: what this node keeps itself, and what it asks of others. Parts begin in the order
 * of `open`, and end in the opposite one; what a node does not need is never loaded.
 */
import type { AuthorityPlan } from '../authority-messages.ts'
import { InquiryFailed } from '../identity/identity-state.ts'
import type { EventLog } from '../observe/events.ts'
import type { Answers, ReactorLines } from './reactor-lines.ts'

interface AuthorityOutlets {
  readonly lines: ReactorLines
  readonly report: EventLog['report']
}

export class Authority {
  /** Of the management listener; 0 without one. */
  readonly port = 0
  /** For whoever starts the node: a password that was made for it, a token to try. */
  readonly said: readonly string[] = []
  /** Rejects with why this node cannot begin. Reactors have been told everything when it resolves. */
  static async open(plan: AuthorityPlan, outlets: AuthorityOutlets): Promise<Authority> {
    const authority = new Authority()
    outlets.lines.open(plan.epoch, authority.#answers())
    outlets.lines.tell({ kind: 'complete' })
    return authority
  }

  /** Rejects with why not; then everything is as it was. */
  async reload(_plan: AuthorityPlan): Promise<void> {}

  async close(): Promise<void> {}

  #answers(): Answers {
    const nobody = (what: string) => () => Promise.reject(new InquiryFailed(`this node has no ${what}`))
    return {
      key: nobody('such issuer'),
      introspect: nobody('key manager to ask'),
      password: nobody('users'),
      claims: nobody('users'),
      backendToken: nobody('such backend'),
      backendJwt: nobody('key to sign with'),
    }
  }
}
