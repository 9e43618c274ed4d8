/** Name and password of a user (RFC 6749 4.3). */
import { logIn } from './log-in.ts'
import { invalidGrant, type Redemption } from './redemption.ts'
import { readScopes } from './scopes.ts'
import { issueTokens, mayRefresh, type TokenAnswer } from './token-maker.ts'

export async function redeemPassword({ manager, client, form, address }: Redemption): Promise<TokenAnswer> {
  const asked = readScopes(form.text('scope'))
  const shown = { name: form.required('username'), password: form.required('password'), address }
  const subject = await logIn(manager, client.tenant, shown)
  if (subject === null) throw invalidGrant('the name or the password is wrong')
  return issueTokens(manager, {
    client,
    subject,
    scopes: manager.scopes.grant(asked, subject),
    family: '',
    refreshes: mayRefresh(manager, client),
    identifies: true,
    nonce: '',
    authenticatedS: Math.floor(manager.surroundings.now() / 1000),
  })
}
