/**
 * A backend that reads requests with the strict parser, keeps them, and answers each. What the strict parser does not
 * accept is kept as a violation: the gateway must never send it.
 */
import { type Peer, ScriptedBackend } from './peers.ts'
import { Malformed, parseRequest, type StrictMessage } from './strict-http.ts'

/** Bytes to answer with; undefined: nothing, the test does it. */
type Answer = (request: StrictMessage, peer: Peer) => string | Uint8Array | undefined

const OK: Answer = () => 'HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 2\r\n\r\nok'

export class AnsweringBackend {
  readonly #scripted: ScriptedBackend
  /** Requests in order of completion, over all connections. */
  readonly requests: StrictMessage[] = []
  readonly violations: string[] = []
  answer: Answer = OK

  private constructor(scripted: ScriptedBackend) {
    this.#scripted = scripted
  }

  static async listen(answer: Answer = OK): Promise<AnsweringBackend> {
    let backend: AnsweringBackend
    const scripted = await ScriptedBackend.listen(peer => void backend.#serve(peer))
    backend = new AnsweringBackend(scripted)
    backend.answer = answer
    return backend
  }

  get port(): number {
    return this.#scripted.port
  }

  /** Connections on which bytes came that are not part of a complete request. */
  leftovers(): readonly { readonly text: string; readonly ending: string }[] {
    return this.#scripted.peers.filter(({ length }) => length > 0).map(({ text, ending }) => ({ text, ending }))
  }

  /** Closed connections leave no trace any more. */
  forget(): void {
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
        const answer = this.answer(request, peer)
        if (answer !== undefined) peer.send(answer)
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
