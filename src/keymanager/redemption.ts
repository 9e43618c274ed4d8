/** What a grant is redeemed with, by the file of its kind. */
import type { Client } from '../registry/entities.ts'
import type { Form } from './form.ts'
import type { KeyManager } from './key-manager.ts'
import { OAuthRefusal } from './oauth-refusal.ts'

export interface Redemption {
  readonly manager: KeyManager
  readonly client: Client
  readonly form: Form
  /** Of the client, for the log. */
  readonly address: string
}

/** One wording for all that is wrong with a grant (RFC 6749 5.2). */
export function invalidGrant(description: string): OAuthRefusal {
  return new OAuthRefusal('invalid_grant', description)
}
