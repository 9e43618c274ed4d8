/**
 * WebSocket handshakes through mediation sequences: the gateway, the upgrade request and the response of the backend.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { faultsWith } from './default-sequences.ts'
import { type GatewayOptions, startGateway, type TestApi, type TestGateway } from './gateway.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from './peers.ts'
import { switchingProtocols, upgradeRequest } from './tunnels.ts'

type Edited = Readonly<Record<string, string>>

export interface MediatedGateway {
  readonly gateway: TestGateway
  readonly backend: ScriptedBackend
}

export const SIDES = ['dispatchSeq', 'outDispatchSeq'] as const
type Side = (typeof SIDES)[number]

/** Starts a gateway with these sequences and a scripted backend; checks after the test that no connection is open. */
export async function startMediated(
  t: TestContext,
  edited: Edited,
  options: GatewayOptions = {},
  api: Partial<TestApi> = {},
): Promise<MediatedGateway> {
  const backend = await ScriptedBackend.listen()
  const faults = await faultsWith(edited)
  const gateway = await startGateway([{ context: '/echo', port: backend.port, ...api }], {
    accessLog: 'json',
    faults,
    ...options,
  })
  t.after(async () => {
    try {
      await assertNothingOpen(gateway)
    } finally {
      gateway.stop()
      backend.close()
    }
  })
  return { gateway, backend }
}

export async function assertNothingOpen({ metrics, countedTargets }: TestGateway): Promise<void> {
  await eventually('the end of all connections', () => metrics().counts.connectionsOpen === 0 && countedTargets() === 0)
  assert.equal(metrics().counts.tunnelsOpen, 0)
}

/** Sends an upgrade request; for `outDispatchSeq` the backend accepts the upgrade. */
export async function requestUpgrade(
  { gateway, backend }: MediatedGateway,
  side: Side,
  request = upgradeRequest(),
  fields: string[] = [],
): Promise<Peer> {
  const client = await connectPeer(gateway.port)
  client.send(request)
  if (side === 'outDispatchSeq') await acceptUpgrade(backend, fields)
  return client
}

export async function acceptUpgrade(
  backend: ScriptedBackend,
  fields: readonly string[] = [],
  rest = '',
): Promise<Peer> {
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.send(switchingProtocols('websocket', ...fields) + rest)
  return peer
}

/** Closes the client and all backend connections; the gateway would keep reusable ones. */
export function disconnect({ backend }: MediatedGateway, client: Peer): void {
  client.reset()
  for (const peer of backend.peers) peer.destroy()
}

export function json(format: string, ...expressions: readonly string[]): string {
  const args = expressions.map(expression => `<arg expression="${expression}"/>`).join('')
  return `<payloadFactory media-type="json"><format>${format}</format><args>${args}</args></payloadFactory>`
}

export const status = (code: number) => `<property name="HTTP_SC" value="${code}" scope="axis2"/>`
