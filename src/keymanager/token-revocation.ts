/** `/oauth2/revoke` (RFC 7009), and how what came of one authorisation ends. */
import type { Client, IssuedToken } from '../registry/entities.ts'
import type { Form } from './form.ts'
import type { KeyManager } from './key-manager.ts'

/** Somebody has shown again what is good for one use. */
export async function endFamily(
  manager: KeyManager,
  { family, consumerKey }: IssuedToken,
  why: string,
  address: string,
): Promise<void> {
  await manager.registry.tokens.revoke({ family })
  manager.memory.clear()
  const fields = { CONSUMER_KEY: consumerKey, CLIENT_ADDRESS: address }
  manager.surroundings.log('warn', `${why}: all tokens of its authorisation were revoked`, fields)
}

/** Of a refresh token all that came of its authorisation. Tokens of other clients, and unknown ones, change nothing. */
export async function revokeToken(manager: KeyManager, client: Client, form: Form): Promise<void> {
  const known = await manager.registry.tokens.find(form.required('token'))
  if (known === null || known.issued.consumerKey !== client.consumerKey) return
  const { id, family, kind } = known.issued
  await manager.registry.tokens.revoke(kind === 'access' ? { id } : { family })
  manager.memory.clear()
}
