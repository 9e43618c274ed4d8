/**
 * A backend that parses requests with the strict parser, records them and responds. Bytes that the strict parser
 * refuses are recorded as violations: the gateway must never send them.
 */
import { type Peer, ScriptedBackend } from './peers.ts'
import { Malformed, parseRequest, type StrictMessage } from './strict-http.ts'

/** Returns the response; undefined: the test responds itself. */
type Respond = (request: StrictMessage, peer: Peer) => string | Uint8Array | undefined

const OK: Respond = () => 'HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 2\r\n\r\nok'

export class StrictBackend {
  readonly #scripted: ScriptedBackend
  /** Complete requests of all connections, in order of completion. */
  readonly requests: StrictMessage[] = []
  readonly violations: string[] = []
  respond: Respond = OK

  private constructor(scripted: ScriptedBackend) {
    this.#scripted = scripted
  }

  static async listen(answer: Respond = OK): Promise<StrictBackend> {
    let backend: StrictBackend
    const scripted = await ScriptedBackend.listen(peer => void backend.#serve(peer))
    backend = new StrictBackend(scripted)
    backend.respond = answer
    return backend
  }

  get port(): number {
    return this.#scripted.port
  }

  /** Connections with bytes that are not part of a complete request. */
  partialRequests(): readonly { readonly text: string; readonly ending: string }[] {
    return this.#scripted.peers.filter(({ length }) => length > 0).map(({ text, ending }) => ({ text, ending }))
  }

  /** Drops closed connections from the record. */
  dropClosed(): void {
    const open = this.#scripted.peers.filter(({ isClosed, ending }) => !isClosed && ending === '')
    this.#scripted.peers.splice(0, this.#scripted.peers.length, ...open)
  }

  async #serve(peer: Peer): Promise<void> {
    try {
      while (!peer.isClosed) {
        const request = parseRequest(peer.received, 0)
        if (request === undefined) {
          if (peer.ending !== '') {
            peer.end()
            return
          }
          await peer.changed()
          continue
        }
        peer.take(request.end)
        this.requests.push(request)
        const response = this.respond(request, peer)
        if (response !== undefined) peer.send(response)
      }
    } catch (error) {
      if (!(error instanceof Malformed)) throw error
      this.violations.push(`${error.message} in ${JSON.stringify(peer.text)}`)
      peer.reset()
    }
  }

  close(): void {
    this.#scripted.close()
  }
}
