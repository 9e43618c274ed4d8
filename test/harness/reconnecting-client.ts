/** A client that sends one GET after the other on one connection, which it replaces where the gateway closes it. */
import { connectPeer, type Peer } from './peers.ts'
import { takeResponse } from './responses.ts'

export class ReconnectingClient {
  readonly #port: number
  #peer: Peer | undefined

  constructor(port: number) {
    this.#port = port
  }

  async get(target: string): Promise<{ readonly status: number; readonly body: string }> {
    if (this.#peer === undefined || this.#peer.ending !== '' || this.#peer.isClosed) {
      this.#peer = await connectPeer(this.#port)
    }
    this.#peer.send(`GET ${target} HTTP/1.1\r\nHost: gateway.test\r\n\r\n`)
    const { status, body, fields } = await takeResponse(this.#peer)
    if (fields.get('connection')?.includes('close') === true) this.close()
    return { status, body }
  }

  close(): void {
    this.#peer?.destroy()
    this.#peer = undefined
  }
}
