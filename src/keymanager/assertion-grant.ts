/** A JWT of an issuer that is trusted to vouch for its users (RFC 7523 2.1, 3). */
import type { KeyManager, VerifiedAssertion } from './key-manager.ts'
import { OAuthRefusal } from './oauth-refusal.ts'
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
  const { name, untilMs } = vouchedFor(manager, verified)
  takeOnce(manager, verified.issuer, assertion, untilMs)
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

/** Throws OAuthRefusal: also where no more of them can be remembered, rather than let one be shown twice. */
function takeOnce({ assertions, surroundings }: KeyManager, issuer: string, assertion: string, untilMs: number): void {
  const shown = assertions.take(assertion, untilMs, surroundings.now())
  if (shown === 'again') throw invalidGrant('the assertion was shown before')
  if (shown === 'first') return
  surroundings.log('warn', 'assertion refused: too many that are still good were shown', { ISSUER: issuer })
  throw new OAuthRefusal('temporarily_unavailable', 'no more assertions can be remembered now', { status: 503 })
}

/** Whom it vouches for, here and now (RFC 7523 3), and until when, in milliseconds since 1970. */
function vouchedFor({ settings, surroundings }: KeyManager, { claims }: VerifiedAssertion) {
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
  const untilMs = expiresMs + settings.skewMs
  const isEarly = [nbf, iat].some(moment => typeof moment !== 'number' || moment * 1000 > nowMs + settings.skewMs)
  if (untilMs <= nowMs || isEarly || expiresMs > nowMs + LIFE_MS_MAX)
    throw invalidGrant('the assertion is not of this time')
  return { name: sub, untilMs }
}
