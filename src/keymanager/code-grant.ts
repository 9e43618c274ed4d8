/** An authorization code is exchanged (RFC 6749 4.1.3, RFC 7636 4.6). */
import { createHash } from 'node:crypto'
import { invalidGrant, type Redemption } from './redemption.ts'
import { subjectAgain } from './subjects.ts'
import { issueTokens, mayRefresh, type TokenAnswer } from './token-maker.ts'
import { endFamily } from './token-revocation.ts'

/** What a code was given for, kept beside it. */
export interface CodeData {
  /** As the request had it; '' where it left it out. */
  readonly redirectUri: string
  /** Of S256; '' without PKCE, which confidential clients may do without. */
  readonly challenge: string
  readonly nonce: string
  readonly authenticatedS: number
}

const REFUSED = 'the code is not good'
/** RFC 7636 4.1. */
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/

export async function redeemCode({ manager, client, form, address }: Redemption): Promise<TokenAnswer> {
  const code = form.required('code')
  const known = await manager.registry.tokens.find(code)
  if (known?.issued.kind !== 'code' || known.issued.consumerKey !== client.consumerKey) throw invalidGrant(REFUSED)
  const data = JSON.parse(known.data) as CodeData
  const before = await manager.registry.tokens.use(code)
  if (before === null) throw invalidGrant(REFUSED)
  const { issued } = before
  if (issued.state !== 'ACTIVE') {
    // RFC 6749 10.5.
    await endFamily(manager, issued, 'authorization code was shown again', address)
    throw invalidGrant(REFUSED)
  }
  if (issued.expiresMs <= manager.surroundings.now()) throw invalidGrant(REFUSED)
  if (form.text('redirect_uri') !== data.redirectUri) throw invalidGrant('redirect_uri is not that of the request')
  if (!isVerified(form.text('code_verifier'), data.challenge)) throw invalidGrant('code_verifier is not right')
  const subject = await subjectAgain(manager, client, issued)
  if (subject === null) throw invalidGrant(REFUSED)
  return issueTokens(manager, {
    client,
    subject,
    scopes: issued.scopes,
    family: issued.family,
    refreshes: mayRefresh(manager, client),
    identifies: true,
    nonce: data.nonce,
    authenticatedS: data.authenticatedS,
  })
}

/** A verifier without a challenge is a request whose challenge was taken away on its way (RFC 9700 4.8.2). */
function isVerified(verifier: string, challenge: string): boolean {
  if (challenge === '' || verifier === '') return challenge === verifier
  return VERIFIER.test(verifier) && createHash('sha256').update(verifier).digest('base64url') === challenge
}
