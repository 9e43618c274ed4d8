/** The policy jwtClaimBasedAccessValidator with real tokens: on the reactor, and on a worker beside a body. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { builtInPolicy } from '../../src/apis/built-in-policies.ts'
import { NO_ACCESS } from '../harness/api-plan.ts'
import { flowsOf } from '../harness/flows.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { OWN_ISSUER, ScriptedControl } from '../harness/scripted-control.ts'
import { StrictBackend } from '../harness/strict-backend.ts'

const POLICY = builtInPolicy('jwtClaimBasedAccessValidator')!
const READS_BODY = '<property name="n" expression="json-eval($.n)"/>'

type Parameters = Readonly<Record<string, string>>
type Claim = unknown

/** [parameters beside the claim, claim of the token, status, code of the fault]. */
const CASES: readonly (readonly [parameters: Parameters, claim: Claim, status: number, code: number])[] = [
  [{ accessVerificationClaimValue: 'gold' }, 'gold', 200, 0],
  [{ accessVerificationClaimValue: 'gold' }, 'silver', 403, 900912],
  [{ accessVerificationClaimValue: 'gold' }, 'Gold', 403, 900912],
  [{ accessVerificationClaimValue: 'gold' }, undefined, 403, 900913],
  [{ accessVerificationClaimValue: 'gold' }, ' ', 403, 900913],
  [{ accessVerificationClaimValue: 'gold' }, [], 403, 900913],
  [{ accessVerificationClaimValue: 'gold' }, ['silver', 'gold'], 200, 0],
  [{ accessVerificationClaimValue: '7' }, 7, 200, 0],
  [{ accessVerificationClaimValue: 'gold' }, { toString: 'gold', valueOf: 1 }, 403, 900912],
  [{ accessVerificationClaimValue: 'gold' }, [[{ toJSON: 1 }], null, ['gold']], 403, 900912],
  [{ accessVerificationClaimValue: '[object Object]' }, {}, 403, 900912],
  [{ accessVerificationClaimValue: 'gold', accessVerificationClaimValueRegex: '[a-z]+' }, 'silver', 200, 0],
  [{ accessVerificationClaimValue: 'gold', accessVerificationClaimValueRegex: '[a-z]+' }, 'A1', 403, 900912],
  [{ accessVerificationClaimValue: 'A1', accessVerificationClaimValueRegex: '[a-z]+' }, 'gold', 403, 900912],
  [{ accessVerificationClaimValue: 'gold', shouldAllowValidation: 'true' }, 'silver', 200, 0],
  [{ accessVerificationClaimValue: 'gold', shouldAllowValidation: 'true' }, undefined, 403, 900913],
]

const given = [...new Set(CASES.map(([parameters]) => JSON.stringify(parameters)))]
const steps = given.map(text => {
  const defaults = POLICY.parameters.map(({ name, fallback }) => [name, fallback] as const)
  const own = Object.entries(JSON.parse(text) as Parameters)
  return POLICY.elements(new Map([...defaults, ['accessVerificationClaim', 'level'], ...own]), 'request')
})
const backend = await StrictBackend.listen()
const api = 'orders:1.0.0'
const access = { ...NO_ACCESS, api, schemes: ['oauth2'] } as const
const apis = await Promise.all(
  ['', READS_BODY].flatMap((more, kind) =>
    steps.map(async (step, at) => ({
      context: `/${kind === 0 ? 'reactor' : 'worker'}${at}`,
      port: backend.port,
      overrides: { name: 'orders', access, mediation: await flowsOf({ request: step + more }) },
    })),
  ),
)
const gateway = await startGateway(apis, { hasFilterChain: true, authChanges: { issuers: [OWN_ISSUER] } })
const control = new ScriptedControl(gateway.authState)
control.subscribe('shop', api)
after(() => {
  gateway.stop()
  backend.close()
})

for (const [parameters, claim, status, code] of CASES) {
  const at = given.indexOf(JSON.stringify(parameters))
  for (const place of ['reactor', 'worker']) {
    const title = `${JSON.stringify(parameters)} with the claim ${JSON.stringify(claim)} is ${status} on the ${place}`
    test(title, async () => {
      const token = control.token('shop', claim === undefined ? {} : { level: claim })
      const peer = await connectPeer(gateway.port)
      const body = 'Content-Type: application/json\r\nContent-Length: 2\r\n'
      const head = `POST /${place}${at}/x HTTP/1.1\r\nHost: a\r\n${body}`
      peer.send(`${head}Authorization: Bearer ${token}\r\n\r\n{}`)
      const response = await takeResponse(peer)
      peer.destroy()
      assert.equal(response.status, status, response.body)
      if (code !== 0) assert.match(response.body, new RegExp(`"code":"?${code}`))
    })
  }
}
