/** Revokes tokens: on request of a client (`/oauth2/revoke`, RFC 7009), and after a replay. */
import type { Client, IssuedToken } from '../registry/entities.ts'
import type { Form } from './form.ts'
import type { KeyManager } from './key-manager.ts'

/** Revokes all tokens of an authorisation after a single-use credential was replayed. `event`: for the log. */
export async function revokeFamily(
  manager: KeyManager,
  { family, consumerKey }: IssuedToken,
  event: string,
  address: string,
): Promise<void> {
  await manager.registry.tokens.revoke({ family })
  manager.introspectionCache.clear()
  const fields = { CONSUMER_KEY: consumerKey, CLIENT_ADDRESS: address }
  manager.report('warn', `${event}: all tokens of its authorisation revoked`, fields)
}

/** Revokes an access token, or all tokens of the authorisation of a refresh token. Ignores tokens of other clients. */
export async function revokeToken(manager: KeyManager, client: Client, form: Form): Promise<void> {
  const known = await manager.registry.tokens.find(form.required('token'))
  if (known === null || known.issued.consumerKey !== client.consumerKey) return
  const { id, family, kind } = known.issued
  await manager.registry.tokens.revoke(kind === 'access' ? { id } : { family })
  manager.introspectionCache.clear()
}
