/** `/oauth2/token`: a grant is shown, and tokens come of it (RFC 6749 3.2, 4). */
import { redeemAssertion } from './assertion-grant.ts'
import { admitClient } from './client-authentication.ts'
import { redeemCode } from './code-grant.ts'
import type { Form } from './form.ts'
import type { KeyManager } from './key-manager.ts'
import { OAuthRefusal } from './oauth-refusal.ts'
import { redeemPassword } from './password-grant.ts'
import type { Redemption } from './redemption.ts'
import { redeemRefreshToken } from './refresh-grant.ts'
import { readScopes } from './scopes.ts'
import { applicationSubject } from './subjects.ts'
import type { KeyManagerSettings } from './settings.ts'
import { issueTokens, mayRefresh, type TokenAnswer } from './token-maker.ts'

interface GrantType {
  /** As clients are registered for it, beside the name that requests have. */
  readonly alias: string
  isEnabled(settings: KeyManagerSettings): boolean
  redeem(redemption: Redemption): Promise<TokenAnswer>
}

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

const GRANT_TYPES: Readonly<Record<string, GrantType>> = {
  client_credentials: {
    alias: '',
    isEnabled: it => it.grants.clientCredentials,
    redeem: redeemCredentials,
  },
  password: { alias: '', isEnabled: it => it.grants.password, redeem: redeemPassword },
  refresh_token: { alias: '', isEnabled: it => it.grants.refreshToken, redeem: redeemRefreshToken },
  authorization_code: { alias: '', isEnabled: it => it.grants.authorizationCode, redeem: redeemCode },
  [JWT_BEARER]: { alias: 'jwt_bearer', isEnabled: it => it.grants.jwtBearer, redeem: redeemAssertion },
}

/** As clients are registered for them, whether or not they are enabled now. */
export const KNOWN_GRANTS: readonly string[] = Object.keys(GRANT_TYPES)

/** Names of those that are enabled, as requests have them. */
export function enabledGrants(settings: KeyManagerSettings): readonly string[] {
  return Object.keys(GRANT_TYPES).filter(name => GRANT_TYPES[name]!.isEnabled(settings))
}

/** Throws OAuthRefusal, and what the registry throws. */
export async function tokenAnswer(
  manager: KeyManager,
  request: Request,
  form: Form,
  address: string,
): Promise<TokenAnswer> {
  const client = await admitClient(manager, request, form, address)
  const name = form.required('grant_type')
  const type = Object.hasOwn(GRANT_TYPES, name) ? GRANT_TYPES[name] : undefined
  if (!type?.isEnabled(manager.settings)) {
    throw new OAuthRefusal('unsupported_grant_type', 'there is no such grant')
  }
  if (!client.grants.includes(name) && (type.alias === '' || !client.grants.includes(type.alias))) {
    throw new OAuthRefusal('unauthorized_client', 'the client is not registered for this grant')
  }
  return type.redeem({ manager, client, form, address })
}

async function redeemCredentials({ manager, client, form }: Redemption): Promise<TokenAnswer> {
  // RFC 6749 4.4: whoever has no secret to show has no credentials.
  if (client.isPublic) throw new OAuthRefusal('unauthorized_client', 'a public client has no credentials')
  const { refreshesApplications, identifiesApplications } = manager.settings.grants
  const asked = readScopes(form.text('scope'))
  const subject = await applicationSubject(manager, client)
  return issueTokens(manager, {
    client,
    subject,
    scopes: manager.scopes.grant(asked, subject),
    family: '',
    refreshes: refreshesApplications && mayRefresh(manager, client),
    identifies: identifiesApplications,
    nonce: '',
    authenticatedS: 0,
  })
}
