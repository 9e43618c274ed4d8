/** Client certificates beside the other schemes: which of them decides, and which further one is required. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Exchange } from '../../src/proxy/exchange/exchange.ts'
import { AuthenticationFilter } from '../../src/auth/authentication-filter.ts'
import { type CertificateAuthenticator, denial, type AuthenticationResult } from '../../src/auth/authenticator.ts'
import { Head } from '../../src/http1/head.ts'
import { CALLER_KIND, type Grant, ResourceRequirements } from '../../src/auth/grants.ts'
import type { ReactorAuth } from '../../src/auth/reactor-auth.ts'
import { NO_ACCESS } from '../harness/api-plan.ts'

const RESOURCE = { template: '/x', verb: 'GET', authType: 'Application', tier: 'Unlimited', scopes: [] } as const
const auth = {
  plan: { authField: 'authorization', passesAuthField: false },
  validator: null,
} as unknown as ReactorAuth

function grant(user: string): Grant {
  const caller = { user, keyType: 'PRODUCTION' } as Grant['caller']
  return { kind: 'grant', caller, callerKind: CALLER_KIND.APPLICATION, scopes: [], subscriptionDenial: 0, token: null }
}

function authenticator(
  scheme: CertificateAuthenticator['scheme'],
  result: AuthenticationResult,
): CertificateAuthenticator {
  return { scheme, authenticate: () => result }
}

const GOOD = grant('certificate')
const BAD = denial(900901)
const TOKEN = grant('token')

/** [result of the certificate, is it required, is another scheme required, result of the others, caller or code]. */
const ROWS: readonly (readonly [AuthenticationResult, boolean, boolean, AuthenticationResult, string | number])[] = [
  [GOOD, false, false, undefined, 'certificate'],
  [GOOD, false, false, BAD, 'certificate'],
  [GOOD, false, true, undefined, 900902],
  [GOOD, false, true, TOKEN, 'token'],
  [GOOD, false, true, BAD, 900901],
  [GOOD, true, false, undefined, 'certificate'],
  [GOOD, true, true, TOKEN, 'token'],
  [undefined, false, false, TOKEN, 'token'],
  [undefined, false, false, undefined, 900902],
  [undefined, false, true, TOKEN, 'token'],
  [undefined, true, false, TOKEN, 900902],
  [undefined, true, true, TOKEN, 900902],
  [BAD, false, false, TOKEN, 900901],
  [BAD, true, true, TOKEN, 900901],
]

for (const [certificate, requiresCertificate, requiresOther, other, expected] of ROWS) {
  const name = (result: AuthenticationResult) => result?.kind ?? 'nothing'
  const asked = `${requiresCertificate ? 'mandatory' : 'optional'}, others ${requiresOther ? 'mandatory' : 'optional'}`
  test(`certificate: ${name(certificate)}, ${asked} and ${name(other)}: ${expected}`, () => {
    const filter = new AuthenticationFilter({
      auth,
      access: { ...NO_ACCESS, schemes: ['mutual_tls', 'oauth2'], requiresCertificate, requiresOther },
      requirements: new ResourceRequirements([RESOURCE]),
      isOpen: false,
      certificates: authenticator('mutual_tls', certificate),
      others: [authenticator('oauth2', undefined), authenticator('basic', other)],
    })
    const exchange = new Exchange({} as never, { peerThumbprint: '' }, '127.0.0.1', 1, 'id')
    exchange.head = new Head(1)
    exchange.resource = RESOURCE
    const verdict = filter.request(exchange)
    assert.ok(!(verdict instanceof Promise))
    assert.equal(verdict === undefined ? exchange.caller?.user : verdict.code, expected)
  })
}
