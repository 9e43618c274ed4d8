/** APIs whose clients are known by certificate: who is let in, and as whom. */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { after, test } from 'node:test'
import type { Caller } from '../../src/exchange/caller.ts'
import type { Handler } from '../../src/exchange/contract.ts'
import { isConfirmed } from '../../src/handlers/mutual-tls.ts'
import type { AccessPlan } from '../../src/identity/identity-plan.ts'
import type { TlsIdentity } from '../../src/socket/tls.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { NO_ACCESS } from '../harness/api-plan.ts'
import { CA, CLIENT, INTERMEDIATE_CLIENT, OTHER_CA, OTHER_CLIENT } from '../harness/certificates.ts'
import { startGateway, type TestApi } from '../harness/gateway.ts'
import { connectSecured, serverPlan } from '../harness/secured-peers.ts'

const callers: (Caller | null)[] = []
const confirmed: boolean[] = []
const looks: Handler = {
  name: 'looks',
  request(exchange) {
    callers.push(exchange.caller)
    confirmed.push(isConfirmed(exchange, thumbprintOf(CLIENT)), isConfirmed(exchange, ''))
    return undefined
  },
}

const certificates = [{ thumbprint: thumbprintOf(CLIENT), alias: 'shop', tier: 'Gold' }]
const SCOPED = { template: '/*', verb: 'GET', authType: 'Application User', tier: 'Unlimited', scopes: ['a'] } as const
function api(context: string, access: Partial<AccessPlan>): TestApi {
  const unlike = { access: { ...NO_ACCESS, certificates, ...access }, resources: [SCOPED] }
  return { context, port: backend.port, unlike }
}

const backend = await AnsweringBackend.listen()
const gateway = await startGateway(
  [
    api('/alone', { schemes: ['mutual_tls'] }),
    api('/either', { schemes: ['mutual_tls', 'oauth2'] }),
    api('/both', { schemes: ['mutual_tls', 'oauth2'], needsCertificate: true, needsOther: true }),
  ],
  {},
  null,
  [looks],
  {
    kinds: ['https'],
    isChained: true,
    tlsServer: serverPlan({ verifyClient: 'optional', ca: [CA.cert, OTHER_CA.cert] }),
  },
)
after(() => {
  gateway.stop()
  backend.close()
})

function thumbprintOf({ cert }: TlsIdentity): string {
  return Buffer.from(new X509Certificate(cert).fingerprint256.replaceAll(':', ''), 'hex').toString('base64url')
}

async function ask(path: string, identity: TlsIdentity | null): Promise<string> {
  const { peer } = await connectSecured(gateway.port, identity ?? {})
  peer.send(`GET ${path}/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
  await peer.untilEnd()
  return /^HTTP\/1\.1 (\d+)/.exec(peer.text)![1]! + (/"code":(\d+)/.exec(peer.text)?.[1] ?? '')
}

const CASES: readonly (readonly [who: string, identity: TlsIdentity | null, ...outcomes: readonly string[]])[] = [
  ['a client that is listed', CLIENT, '200', '200', '401900902'],
  ['one of the same authority that is not', INTERMEDIATE_CLIENT, '401900901', '401900902', '401900901'],
  ['one of another authority', OTHER_CLIENT, '401900901', '401900902', '401900901'],
  ['nobody', null, '401900902', '401900902', '401900902'],
]
for (const [who, identity, ...outcomes] of CASES) {
  for (const [place, path] of ['/alone', '/either', '/both'].entries()) {
    test(`${path}, ${who}: ${outcomes[place]}`, async () => assert.equal(await ask(path, identity), outcomes[place]))
  }
}

test('a client that is listed is known by its alias, with the tier of the list', async () => {
  callers.length = 0
  await ask('/alone', CLIENT)
  await ask('/alone', CLIENT)
  const [caller, again] = callers
  assert.equal(caller, again)
  const { method, user, subscriptionTier, application, keyType } = caller!
  assert.deepEqual(
    { method, user, subscriptionTier, application, keyType },
    { method: 'mutual_tls', user: 'shop', subscriptionTier: 'Gold', application: null, keyType: 'PRODUCTION' },
  )
})

test('RFC 8705 3: a token is confirmed by the certificate that it names, and by no other and none', async () => {
  confirmed.length = 0
  await ask('/alone', CLIENT)
  assert.deepEqual(confirmed, [true, false])
})
