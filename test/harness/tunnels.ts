/** Scripted tunnels: upgrade request, 101 response, and both ends of an open tunnel. */
import type { TestGateway } from './gateway.ts'
import { connectPeer, type Peer, type ScriptedBackend } from './peers.ts'

/** A request to the API /echo to switch to one of `protocols`. */
export function upgradeRequest(protocols = 'websocket', ...fields: readonly string[]): string {
  const lines = ['Host: a', 'Connection: Upgrade', `Upgrade: ${protocols}`, ...fields]
  return `GET /echo/x HTTP/1.1\r\n${lines.map(line => `${line}\r\n`).join('')}\r\n`
}

/** A 101 response that switches to `protocols`. */
export function switchingProtocols(protocols = 'websocket', ...fields: readonly string[]): string {
  const lines = ['Connection: Upgrade', `Upgrade: ${protocols}`, ...fields]
  return `HTTP/1.1 101 Switching Protocols\r\n${lines.map(line => `${line}\r\n`).join('')}\r\n`
}

export interface OpenTunnel {
  readonly client: Peer
  readonly peer: Peer
}

/** Waits for the head of a response and takes it; the bytes after the head stay. */
export async function takeHead(client: Peer): Promise<string> {
  await client.untilText('\r\n\r\n')
  return client.take(client.text.indexOf('\r\n\r\n') + 4)
}

/** Opens a tunnel to the API /echo. */
export async function openTunnel(gateway: TestGateway, backend: Pick<ScriptedBackend, 'next'>): Promise<OpenTunnel> {
  const client = await connectPeer(gateway.port)
  client.send(upgradeRequest())
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.send(switchingProtocols())
  await takeHead(client)
  return { client, peer }
}
