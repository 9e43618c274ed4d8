/** What management asks of the key manager: tokens and API keys for applications. */
import { verify } from 'node:crypto'
import { readJwt } from '../identity/strict-jwt.ts'
import { enabledGrants } from '../keymanager/token-endpoint.ts'
import type { KeyManager } from '../keymanager/key-manager.ts'
import type { TokenDesk } from '../management/room.ts'

export function tokenDesk(manager: KeyManager): TokenDesk {
  return {
    issue: async ({ consumerKey }, scopes) => {
      const answer = await manager.tokenFor(consumerKey, scopes)
      const granted = answer.scope === undefined ? [] : answer.scope.split(' ').filter(Boolean)
      return { token: answer.access_token, scopes: granted, validityS: answer.expires_in }
    },
    issueApiKey: terms => manager.makeApiKey(terms),
    readApiKey: key => Promise.resolve(readApiKey(manager, key)),
    get grants() {
      return enabledGrants(manager.settings)
    },
    get issuer() {
      return manager.settings.issuer
    },
  }
}

function readApiKey({ signingKeys, settings, surroundings }: KeyManager, key: string) {
  const jwt = readJwt(key)
  if (typeof jwt === 'string' || jwt.algorithm !== 'RS256' || jwt.claims.iss !== settings.issuer) return null
  const signer = signingKeys.verificationKey(jwt.kid ?? '')
  if (signer === undefined || !verify('sha256', Buffer.from(jwt.signedPart), signer, jwt.signature)) return null
  const { jti, exp, token_type: type, application } = jwt.claims as Readonly<Record<string, unknown>>
  const { id } = (application ?? {}) as { readonly id?: unknown }
  if (type !== 'apiKey' || typeof jti !== 'string' || typeof exp !== 'number' || typeof id !== 'string') return null
  return exp * 1000 <= surroundings.now() ? null : { jti, applicationId: id, expiresMs: exp * 1000 }
}
