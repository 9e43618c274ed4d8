/** Scripted tunnels: a client that asks for an upgrade, a backend that agrees, and both ends at hand. */
import type { TestGateway } from './gateway.ts'
import { connectPeer, type Peer, type ScriptedBackend } from './peers.ts'

/** A request for an upgrade of the API /echo. */
export function asking(protocols = 'websocket', ...fields: readonly string[]): string {
  const lines = ['Host: a', 'Connection: Upgrade', `Upgrade: ${protocols}`, ...fields]
  return `GET /echo/x HTTP/1.1\r\n${lines.map(line => `${line}\r\n`).join('')}\r\n`
}

/** A backend's head that agrees to it. */
export function agreeing(protocols = 'websocket', ...fields: readonly string[]): string {
  const lines = ['Connection: Upgrade', `Upgrade: ${protocols}`, ...fields]
  return `HTTP/1.1 101 Switching Protocols\r\n${lines.map(line => `${line}\r\n`).join('')}\r\n`
}

export interface OpenTunnel {
  readonly client: Peer
  readonly peer: Peer
}

/** Waits for the head of a 101 and takes it; what stands behind it stays. */
export async function takeSwitch(client: Peer): Promise<string> {
  await client.untilText('\r\n\r\n')
  return client.take(client.text.indexOf('\r\n\r\n') + 4)
}

/** A tunnel in which nothing was sent yet. */
export async function openTunnel(gateway: TestGateway, backend: Pick<ScriptedBackend, 'next'>): Promise<OpenTunnel> {
  const client = await connectPeer(gateway.port)
  client.send(asking())
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.send(agreeing())
  await takeSwitch(client)
  return { client, peer }
}
