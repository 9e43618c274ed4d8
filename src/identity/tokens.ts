/** Verdicts of tokens in a reactor: remembered ones at once, others by verification or introspection. */
import type { Inquiry, InquiryResults } from './feed.ts'
import type { IssuerBook } from './issuer-book.ts'

/** What verdicts are made of; IdentityState is one. */
export interface TokenSources {
  /** Changes with anything that a verdict or a grant may have been made of. */
  readonly epoch: number
  /** Takes in what has been told since. */
  catchUp(): void
  readonly issuers: IssuerBook
  readonly revoked: { has(revocationKey: string): boolean }
  /** Rejects with the cause where there is no answer. */
  ask<K extends Inquiry['kind']>(inquiry: Extract<Inquiry, { kind: K }>): Promise<InquiryResults[K]>
}

/** What a reactor lends to it. */
export interface TokenSurroundings {
  readonly sources: TokenSources
  readonly metrics: { add(cell: number, by: number): void }
  /** Reactors of the gateway, which share the threads that verify. */
  readonly reactors: number
  /** Milliseconds since 1970. */
  wallMs(): number
}
