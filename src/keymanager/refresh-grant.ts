/**
 * A refresh token is good once: the next one comes with the tokens that it is exchanged for. One that is shown again
 * was stolen, from whom nobody can tell, so that all that came of the authorisation ends (RFC 9700 4.14.2).
 */
import { OAuthRefusal } from './oauth-refusal.ts'
import { invalidGrant, type Redemption } from './redemption.ts'
import { readScopes } from './scopes.ts'
import { subjectAgain } from './subjects.ts'
import { issueTokens, type RefreshData, type TokenAnswer } from './token-maker.ts'
import { endFamily } from './token-revocation.ts'

const REFUSED = 'the refresh token is not good'

export async function redeemRefreshToken({ manager, client, form, address }: Redemption): Promise<TokenAnswer> {
  const token = form.required('refresh_token')
  const asked = readScopes(form.text('scope'))
  const { tokens } = manager.registry
  const known = await tokens.find(token)
  // Whoever it does not belong to must not be able to use it up.
  if (known?.issued.kind !== 'refresh' || known.issued.consumerKey !== client.consumerKey) throw invalidGrant(REFUSED)
  if (known.issued.state === 'ACTIVE' && asked.some(scope => !known.issued.scopes.includes(scope))) {
    throw new OAuthRefusal('invalid_scope', 'more was asked for than was granted at first')
  }
  const before = await tokens.use(token)
  if (before === null) throw invalidGrant(REFUSED)
  const { issued } = before
  if (issued.state !== 'ACTIVE') {
    const why = issued.state === 'USED' ? 'refresh token was shown again' : 'revoked refresh token was shown'
    await endFamily(manager, issued, why, address)
    throw invalidGrant(REFUSED)
  }
  if (issued.expiresMs <= manager.surroundings.now()) throw invalidGrant(REFUSED)
  const subject = await subjectAgain(manager, client, issued)
  if (subject === null) throw invalidGrant(REFUSED)
  const wanted = asked.length === 0 ? issued.scopes : asked
  return issueTokens(manager, {
    client,
    subject,
    scopes: manager.scopes.grant(wanted, subject),
    family: issued.family,
    refreshes: true,
    identifies: true,
    nonce: '',
    authenticatedS: (JSON.parse(before.data) as RefreshData).authenticatedS,
  })
}
