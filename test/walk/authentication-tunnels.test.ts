/** Tunnels of callers who lose the right to them: whatever takes it away ends both sides, soon and visibly. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { NO_ACCESS } from '../harness/api-plan.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'
import { OWN_ISSUER, ScriptedAuthority } from '../harness/scripted-authority.ts'
import { agreeing, asking, takeSwitch } from '../harness/tunnels.ts'

const backend = await ScriptedBackend.listen()
const access = { ...NO_ACCESS, subject: 'echo:1.0.0', schemes: ['oauth2'] as const }
const gateway = await startGateway([{ context: '/echo', port: backend.port, unlike: { access } }], {}, null, [], {
  isChained: true,
  identityChanges: { issuers: [OWN_ISSUER] },
})
const authority = new ScriptedAuthority(gateway.identity)
after(() => {
  gateway.stop()
  backend.close()
})

async function openTunnel(token: string): Promise<{ readonly client: Peer; readonly peer: Peer }> {
  const client = await connectPeer(gateway.port)
  client.send(asking('websocket', `Authorization: Bearer ${token}`))
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  assert.ok(!/authorization/i.test(peer.take()))
  peer.send(agreeing())
  await takeSwitch(client)
  client.send('ping')
  await peer.untilText('ping')
  return { client, peer }
}

interface Loss {
  readonly name: string
  readonly claims?: () => object
  /** What takes the right away; nothing: time does. */
  lose(consumerKey: string): void
  readonly said: RegExp
}

const LOSSES: readonly Loss[] = [
  {
    name: 'a token that expires',
    claims: () => ({ exp: Math.floor(Date.now() / 1000) + 1 }),
    lose() {},
    said: /^the token has expired$/,
  },
  {
    name: 'a token that is revoked',
    claims: () => ({ jti: 'of-a-tunnel' }),
    lose: () => authority.revoke('of-a-tunnel'),
    said: /^the token was revoked$/,
  },
  {
    name: 'a subscription that is blocked',
    lose: key => authority.subscribe(key, 'echo:1.0.0', 'BLOCKED'),
    said: /^the subscription does not hold any more \(900907\)$/,
  },
  {
    name: 'an application that is gone',
    lose: key => authority.tell({ removed: { applications: [key], keys: [], subscriptions: [] } }),
    said: /\(900908\)$/,
  },
]

for (const [at, { name, claims = () => ({}), lose, said }] of LOSSES.entries()) {
  test(`${name} ends the tunnel on both sides, and no other one`, async () => {
    authority.subscribe(`app-${at}`, 'echo:1.0.0')
    authority.subscribe('other', 'echo:1.0.0')
    const other = await openTunnel(authority.token('other'))
    const { client, peer } = await openTunnel(authority.token(`app-${at}`, claims()))
    const before = gateway.reports.length
    lose(`app-${at}`)
    await eventually('both sides are closed', () => client.ending !== '' && peer.ending !== '')
    assert.deepEqual([client.ending, peer.ending], ['RST', 'RST'])
    const told = gateway.reports.slice(before).filter(({ event }) => event === 'tunnel ended')
    assert.equal(told.length, 1)
    assert.match(String(told[0]!.fields.CAUSE_OF_ERROR), said)
    other.client.send('still here')
    await other.peer.untilText('still here')
    other.client.end()
    other.peer.end()
  })
}

test('tunnels that end by themselves are forgotten', async () => {
  authority.subscribe('leaver', 'echo:1.0.0')
  const { client, peer } = await openTunnel(authority.token('leaver', { jti: 'leaver' }))
  client.end()
  peer.end()
  await eventually('it is over', () => gateway.metrics().counts.tunnelsOpen === 0)
  const before = gateway.reports.length
  authority.revoke('leaver')
  const { client: last } = await openTunnel(authority.token('leaver', { exp: Math.floor(Date.now() / 1000) + 1 }))
  await eventually('the last one is closed', () => last.ending !== '')
  assert.equal(gateway.reports.slice(before).filter(({ event }) => event === 'tunnel ended').length, 1)
})
