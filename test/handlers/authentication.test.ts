/** A certificate beside the other ways in: which of them decides, and what is asked for on top of it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Exchange } from '../../src/exchange/exchange.ts'
import { AuthenticationHandler } from '../../src/handlers/authentication.ts'
import { type CertificateAuthenticator, denial, type Found } from '../../src/handlers/authenticator.ts'
import { Head } from '../../src/http1/head.ts'
import { AllowedScopes, CALLER_KIND, type Grant, ResourceNeeds } from '../../src/identity/grants.ts'
import type { Identity } from '../../src/identity/identity.ts'
import { NO_ACCESS } from '../harness/api-plan.ts'

const RESOURCE = { template: '/x', verb: 'GET', authType: 'Application', tier: 'Unlimited', scopes: [] } as const
const identity = {
  plan: { authField: 'authorization', passesAuthField: false },
  allowedScopes: new AllowedScopes([]),
  validator: null,
} as unknown as Identity

function grant(user: string): Grant {
  const caller = { user, keyType: 'PRODUCTION' } as Grant['caller']
  return { kind: 'grant', caller, callerKind: CALLER_KIND.APPLICATION, scopes: [], token: null }
}

function finding(scheme: CertificateAuthenticator['scheme'], found: Found): CertificateAuthenticator {
  return { scheme, authenticate: () => found }
}

const GOOD = grant('certificate')
const BAD = denial(900901)
const TOKEN = grant('token')

/** [certificate, needs one, needs another, what the others find, who is let in or the code]. */
const ROWS: readonly (readonly [Found, boolean, boolean, Found, string | number])[] = [
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

for (const [certificate, needsCertificate, needsOther, other, expected] of ROWS) {
  const name = (found: Found) => found?.kind ?? 'nothing'
  const asked = `${needsCertificate ? 'mandatory' : 'optional'}, others ${needsOther ? 'mandatory' : 'optional'}`
  test(`certificate: ${name(certificate)}, ${asked} and ${name(other)}: ${expected}`, () => {
    const handler = new AuthenticationHandler({
      identity,
      access: { ...NO_ACCESS, schemes: ['mutual_tls', 'oauth2'], needsCertificate, needsOther },
      needs: new ResourceNeeds([RESOURCE]),
      isOpen: false,
      certificates: finding('mutual_tls', certificate),
      others: [finding('oauth2', undefined), finding('basic', other)],
    })
    const exchange = new Exchange({} as never, { peerThumbprint: '' }, '127.0.0.1', 1, 'id')
    exchange.head = new Head(1)
    exchange.resource = RESOURCE
    const verdict = handler.request(exchange)
    assert.ok(!(verdict instanceof Promise))
    assert.equal(verdict === undefined ? exchange.caller?.user : verdict.code, expected)
  })
}
