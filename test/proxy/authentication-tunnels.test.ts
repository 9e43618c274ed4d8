/** Tunnels whose caller loses access: expiry, revocation and changed subscriptions reset both sides. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { NO_ACCESS } from '../harness/api-plan.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'
import { OWN_ISSUER, ScriptedControl } from '../harness/scripted-control.ts'
import { switchingProtocols, upgradeRequest, takeHead } from '../harness/tunnels.ts'

const backend = await ScriptedBackend.listen()
const access = { ...NO_ACCESS, api: 'echo:1.0.0', schemes: ['oauth2'] as const }
const gateway = await startGateway([{ context: '/echo', port: backend.port, overrides: { access } }], {
  hasFilterChain: true,
  authChanges: { issuers: [OWN_ISSUER] },
})
const control = new ScriptedControl(gateway.authState)
after(() => {
  gateway.stop()
  backend.close()
})

async function openTunnel(token: string): Promise<{ readonly client: Peer; readonly peer: Peer }> {
  const client = await connectPeer(gateway.port)
  client.send(upgradeRequest('websocket', `Authorization: Bearer ${token}`))
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  assert.ok(!/authorization/i.test(peer.take()))
  peer.send(switchingProtocols())
  await takeHead(client)
  client.send('ping')
  await peer.untilText('ping')
  return { client, peer }
}

interface AccessLoss {
  readonly name: string
  readonly claims?: () => object
  /** Removes the access; does nothing for an expiry. */
  lose(consumerKey: string): void
  readonly cause: RegExp
}

const LOSSES: readonly AccessLoss[] = [
  {
    name: 'a token that expires',
    claims: () => ({ exp: Math.floor(Date.now() / 1000) + 2 }),
    lose() {},
    cause: /^the token has expired$/,
  },
  {
    name: 'a token that is revoked',
    claims: () => ({ jti: 'of-a-tunnel' }),
    lose: () => control.revoke('of-a-tunnel'),
    cause: /^the token was revoked$/,
  },
  {
    name: 'a subscription that is blocked',
    lose: key => control.subscribe(key, 'echo:1.0.0', 'BLOCKED'),
    cause: /^the subscription is no longer valid \(900907\)$/,
  },
  {
    name: 'an application that is removed',
    lose: key => control.update({ removed: { applications: [key], keys: [], subscriptions: [] } }),
    cause: /\(900908\)$/,
  },
]

for (const [at, { name, claims = () => ({}), lose, cause }] of LOSSES.entries()) {
  test(`${name} resets both sides of its tunnel and no other tunnel`, async () => {
    control.subscribe(`app-${at}`, 'echo:1.0.0')
    control.subscribe('other', 'echo:1.0.0')
    const other = await openTunnel(control.token('other'))
    const { client, peer } = await openTunnel(control.token(`app-${at}`, claims()))
    const before = gateway.reports.length
    lose(`app-${at}`)
    await eventually('the end of both sides', () => client.ending !== '' && peer.ending !== '')
    assert.deepEqual([client.ending, peer.ending], ['RST', 'RST'])
    const events = gateway.reports.slice(before).filter(({ event }) => event === 'tunnel ended')
    assert.equal(events.length, 1)
    assert.match(String(events[0]!.fields.CAUSE_OF_ERROR), cause)
    other.client.send('still here')
    await other.peer.untilText('still here')
    other.client.end()
    other.peer.end()
  })
}

test('a tunnel that has ended is not affected by a later revocation', async () => {
  control.subscribe('leaver', 'echo:1.0.0')
  const { client, peer } = await openTunnel(control.token('leaver', { jti: 'leaver' }))
  client.end()
  peer.end()
  await eventually('the end of the tunnel', () => gateway.metrics().counts.tunnelsOpen === 0)
  const before = gateway.reports.length
  control.revoke('leaver')
  const { client: last } = await openTunnel(control.token('leaver', { exp: Math.floor(Date.now() / 1000) + 2 }))
  await eventually('the end of the last tunnel', () => last.ending !== '')
  assert.equal(gateway.reports.slice(before).filter(({ event }) => event === 'tunnel ended').length, 1)
})
