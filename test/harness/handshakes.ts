/** Handshakes of WebSocket in front of sequences: who asks, who agrees, and that nothing is left of them. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { faultsWith } from './default-sequences.ts'
import { type MorePlan, startGateway, type TestApi, type TestGateway } from './gateway.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from './peers.ts'
import { agreeing, asking } from './tunnels.ts'

type Edited = Readonly<Record<string, string>>

export interface Stage {
  readonly gateway: TestGateway
  readonly backend: ScriptedBackend
}

export const SIDES = ['dispatchSeq', 'outDispatchSeq'] as const
type Side = (typeof SIDES)[number]

/** A gateway whose sequences are these, in front of a scripted backend. In the end nothing of anybody is left. */
export async function startStage(
  t: TestContext,
  edited: Edited,
  more: MorePlan = {},
  api: Partial<TestApi> = {},
): Promise<Stage> {
  const backend = await ScriptedBackend.listen()
  const faults = await faultsWith(edited)
  const gateway = await startGateway([{ context: '/echo', port: backend.port, ...api }], {}, 'json', [], {
    faults,
    ...more,
  })
  t.after(async () => {
    try {
      await nothingIsLeft(gateway)
    } finally {
      gateway.stop()
      backend.close()
    }
  })
  return { gateway, backend }
}

export async function nothingIsLeft({ metrics, heldRows }: TestGateway): Promise<void> {
  await eventually('the end of all connections', () => metrics().counts.connectionsOpen === 0 && heldRows() === 0)
  assert.equal(metrics().counts.tunnelsOpen, 0)
}

/** A client that asks, and the backend that agrees to it where the request gets so far. */
export async function shake(
  { gateway, backend }: Stage,
  side: Side,
  request = asking(),
  fields: string[] = [],
): Promise<Peer> {
  const client = await connectPeer(gateway.port)
  client.send(request)
  if (side === 'outDispatchSeq') await agree(backend, fields)
  return client
}

export async function agree(backend: ScriptedBackend, fields: readonly string[] = [], behind = ''): Promise<Peer> {
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.send(agreeing('websocket', ...fields) + behind)
  return peer
}

/** Both ends are the test's to end: the gateway keeps what it may use again. */
export function leave({ backend }: Stage, client: Peer): void {
  client.reset()
  for (const peer of backend.peers) peer.destroy()
}

export function json(format: string, ...expressions: readonly string[]): string {
  const args = expressions.map(expression => `<arg expression="${expression}"/>`).join('')
  return `<payloadFactory media-type="json"><format>${format}</format><args>${args}</args></payloadFactory>`
}

export const status = (code: number) => `<property name="HTTP_SC" value="${code}" scope="axis2"/>`
