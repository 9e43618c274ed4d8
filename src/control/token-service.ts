/** Tokens and API keys of the key manager, for the admin API. */
import { verify } from 'node:crypto'
import { parseJwt } from '../auth/jwt-parser.ts'
import { enabledGrants } from './oauth/token-endpoint.ts'
import type { KeyManager } from './oauth/key-manager.ts'
import type { TokenService } from './admin-api/admin-services.ts'

export function tokenService(manager: KeyManager): TokenService {
  return {
    issueToken: async ({ consumerKey }, scopes) => {
      const answer = await manager.issueApplicationToken(consumerKey, scopes)
      const granted = answer.scope === undefined ? [] : answer.scope.split(' ').filter(Boolean)
      return { token: answer.access_token, scopes: granted, validityS: answer.expires_in }
    },
    issueApiKey: terms => manager.issueApiKey(terms),
    verifyApiKey: key => Promise.resolve(readApiKey(manager, key)),
    get grants() {
      return enabledGrants(manager.settings)
    },
    get issuer() {
      return manager.settings.issuer
    },
  }
}

function readApiKey({ signingKeys, settings, nowMs }: KeyManager, key: string) {
  const jwt = parseJwt(key)
  if (typeof jwt === 'string' || jwt.algorithm !== 'RS256' || jwt.claims.iss !== settings.issuer) return null
  const signer = signingKeys.verificationKey(jwt.kid ?? '')
  if (signer === undefined || !verify('sha256', Buffer.from(jwt.signedPart), signer, jwt.signature)) return null
  const { jti, exp, token_type: type, application } = jwt.claims as Readonly<Record<string, unknown>>
  const { id } = (application ?? {}) as { readonly id?: unknown }
  if (type !== 'apiKey' || typeof jti !== 'string' || typeof exp !== 'number' || typeof id !== 'string') return null
  return exp * 1000 <= nowMs() ? null : { jti, applicationId: id, expiresMs: exp * 1000 }
}
