/** A JWT of an issuer that is trusted to vouch for its users (RFC 7523 2.1, 3). */
import type { KeyManager, VerifiedAssertion } from './key-manager.ts'
import { invalidGrant, type Redemption } from './redemption.ts'
import { readScopes } from './scopes.ts'
import { federatedSubject } from './subjects.ts'
import { issueTokens, type TokenAnswer } from './token-maker.ts'

const ASSERTION_CHARS_MAX = 16_384
const SUBJECT_CHARS_MAX = 255
/** One that lasts longer is no proof that the user is there. */
const LIFE_MS_MAX = 24 * 3_600_000

export async function redeemAssertion({ manager, client, form }: Redemption): Promise<TokenAnswer> {
  const assertion = form.required('assertion')
  const asked = readScopes(form.text('scope'))
  if (assertion.length > ASSERTION_CHARS_MAX) throw invalidGrant('the assertion is too long')
  const verified = await manager.surroundings.verifyAssertion(assertion)
  if (verified === null) throw invalidGrant('no trusted issuer has signed the assertion')
  const name = subjectOf(manager, verified)
  if (!manager.assertions.take(assertion)) throw invalidGrant('the assertion was shown before')
  const subject = federatedSubject(verified.issuer, name, client.tenant)
  return issueTokens(manager, {
    client,
    subject,
    scopes: manager.scopes.grant(asked, subject),
    family: '',
    // RFC 7521 4.1: another assertion is all that it takes.
    refreshes: false,
    identifies: true,
    nonce: '',
    authenticatedS: 0,
  })
}

/** Whom it vouches for, here and now (RFC 7523 3). */
function subjectOf({ settings, surroundings }: KeyManager, { claims }: VerifiedAssertion): string {
  const { sub, aud, exp, nbf = 0, iat = 0 } = claims
  const nowMs = surroundings.now()
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  const ours = [settings.issuer, `${surroundings.origin}/oauth2/token`]
  if (typeof sub !== 'string' || sub === '' || sub.length > SUBJECT_CHARS_MAX) {
    throw invalidGrant('the assertion names nobody')
  }
  if (!audiences.some(audience => ours.some(one => one === audience))) {
    throw invalidGrant('the assertion is for somebody else')
  }
  const expiresMs = typeof exp === 'number' ? exp * 1000 : 0
  const isOver = expiresMs + settings.skewMs <= nowMs
  const isEarly = [nbf, iat].some(moment => typeof moment !== 'number' || moment * 1000 > nowMs + settings.skewMs)
  if (isOver || isEarly || expiresMs > nowMs + LIFE_MS_MAX) throw invalidGrant('the assertion is not of this time')
  return sub
}
