/** One request to a mounted API on its thread: runs the implementation, and sends a long response as it is taken. */
import { BodyTooLong, type MountedApi, type MountedResponse } from '../mounted/interface.ts'
import {
  type FromMounted,
  type MountedResult,
  type MountedTask,
  type ResponseHeadData,
  type ToMounted,
  WHOLE_BYTES_MAX,
  WINDOW_BYTES,
} from '../plan/mounted-messages.ts'
import { RequestBody } from './request-body.ts'
import { MountedRequestView } from './mounted-request.ts'
import { causeOf } from './task-server.ts'

/** Longest piece of a response in one message. */
const PIECE_BYTES_MAX = 65_536
const STREAMED: MountedResult = { kind: 'streamed' }
const NOTHING = new Uint8Array()

type Post = (message: FromMounted, transfer: readonly ArrayBuffer[]) => void
type Without<T> = T extends unknown ? Omit<T, 'kind' | 'id'> : never

/** The implementation has returned something that is no response; the message names the rule. */
class InvalidResponse extends Error {
  override readonly name = 'InvalidResponse'
}

/** `open`: somebody waits for the response. `cut`: nobody does. `taken`: the whole response has left. */
type CallState = 'open' | 'cut' | 'taken'

export class MountedCall {
  readonly #task: MountedTask
  readonly #post: Post
  readonly #body: RequestBody
  readonly #request: MountedRequestView
  #state: CallState = 'open'
  /** Bytes that the client takes now. */
  #credit = WINDOW_BYTES
  /** Wakes what sends the response; null: it does not wait for the client. */
  #wake: (() => void) | null = null
  /** Messages of the reactor so far. */
  #heard = 0
  /** Resolves when the task ends although the implementation goes on. */
  readonly #givenUp = Promise.withResolvers<MountedResult>()
  #timer: NodeJS.Timeout | null = null

  constructor(task: MountedTask, post: Post) {
    this.#task = task
    this.#post = post
    const ask = (bytes: number): void => this.#send({ what: 'wants', bytes })
    this.#body = new RequestBody(task.body, ask, () => this.#announceWait())
    this.#request = new MountedRequestView(task.request, this.#body)
  }

  /** Never rejects. */
  async run(opening: Promise<MountedApi> | MountedApi): Promise<MountedResult> {
    // An implementation that answers at once costs no further message.
    const announced = setImmediate(() => this.#send({ what: 'began' }))
    const result = await Promise.race([this.#run(opening), this.#givenUp.promise])
    clearImmediate(announced)
    if (this.#timer !== null) clearTimeout(this.#timer)
    return result
  }

  receive(message: ToMounted): void {
    this.#heard++
    this.#apply(message)
    // A message for the other direction, or for none, changes nothing for what waits.
    if (this.#wake !== null || this.#body.isAwaited) this.#announceWait()
  }

  #apply(message: ToMounted): void {
    switch (message.what) {
      case 'chunk':
        this.#body.receive(message.bytes, message.last)
        return
      case 'wants':
        this.#credit += message.bytes
        break
      case 'client-ended':
        this.#request.hasClientEnded = true
        return
      case 'taken':
        this.#state = 'taken'
        break
      case 'cut':
        this.#cut()
    }
    this.#wake?.()
    this.#wake = null
  }

  /** From now on the request needs no permit (D805). */
  #announceWait(): void {
    if (this.#state === 'open') this.#send({ what: 'waits', heard: this.#heard })
  }

  #cut(): void {
    if (this.#state !== 'open') return
    this.#state = 'cut'
    this.#body.cut()
    this.#request.abort()
    const { timeoutMs } = this.#task
    if (timeoutMs > 0) this.#timer = setTimeout(() => this.#givenUp.resolve(STREAMED), timeoutMs)
  }

  async #run(opening: Promise<MountedApi> | MountedApi): Promise<MountedResult> {
    let api: MountedApi
    try {
      api = await opening
    } catch (error) {
      return { kind: 'fails', failure: 'unopened', cause: causeOf(error) }
    }
    try {
      return await this.#respond(await api.handle(this.#request))
    } catch (error) {
      // The implementation that the abort has interrupted may throw anything.
      if (this.#state !== 'open') return STREAMED
      const failure = error instanceof BodyTooLong ? 'too-long' : error instanceof InvalidResponse ? 'invalid' : 'threw'
      const cause = error instanceof InvalidResponse ? error.message : causeOf(error)
      return { kind: 'fails', failure, cause }
    }
  }

  async #respond(response: MountedResponse): Promise<MountedResult> {
    const head = headOf(response)
    const { body = NOTHING, length = -1 } = response
    if (typeof body === 'string' || body instanceof Uint8Array) {
      const bytes = bytesOf(body)
      if (bytes.length <= WHOLE_BYTES_MAX) return { kind: 'responds', head, bytes }
      return this.#stream(head, bytes.length, [bytes])
    }
    const isIterable = typeof body === 'object' && body !== null && Symbol.asyncIterator in body
    if (!isIterable) throw new InvalidResponse('the body is neither text, nor bytes, nor an asynchronous iterable')
    return this.#stream(head, length, body)
  }

  async #stream(
    head: ResponseHeadData,
    length: number,
    pieces: AsyncIterable<string | Uint8Array> | Iterable<Uint8Array>,
  ): Promise<MountedResult> {
    this.#send({ what: 'head', head, length })
    let sent = 0
    for await (const piece of pieces) {
      const bytes = bytesOf(piece)
      sent += bytes.length
      if (length >= 0 && sent > length) throw new InvalidResponse('the body is longer than its length')
      for (let at = 0; at < bytes.length; at += PIECE_BYTES_MAX) {
        if (!(await this.#waitForCredit())) return STREAMED
        // A Buffer would slice without a copy, and its memory belongs to others too.
        const copy = new Uint8Array(bytes.subarray(at, at + PIECE_BYTES_MAX))
        this.#credit -= copy.length
        this.#send({ what: 'chunk', bytes: copy }, [copy.buffer as ArrayBuffer])
      }
    }
    if (length >= 0 && sent < length) throw new InvalidResponse('the body is shorter than its length')
    this.#send({ what: 'end' })
    // The place is held until the response has left: then a thread that dies fails the response too.
    while (this.#state === 'open') await this.#woken()
    return STREAMED
  }

  /** False: nobody waits for the response. */
  async #waitForCredit(): Promise<boolean> {
    while (this.#state === 'open' && this.#credit <= 0) await this.#woken()
    return this.#state === 'open'
  }

  #woken(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    this.#announceWait()
    return promise
  }

  #send(message: Without<FromMounted>, transfer: readonly ArrayBuffer[] = []): void {
    this.#post({ kind: 'mounted', id: this.#task.id, ...message } as FromMounted, transfer)
  }
}

function headOf(response: MountedResponse): ResponseHeadData {
  if (typeof response !== 'object' || response === null) throw new InvalidResponse('there is no response')
  const { status, reason = '', fields = [] } = response
  if (!Number.isInteger(status)) throw new InvalidResponse('the status is no number')
  if (typeof reason !== 'string' || !Array.isArray(fields)) throw new InvalidResponse('the head has other types')
  return { status, reason, fields: fields.map(([name, value]) => [String(name), String(value)]) }
}

/** Bytes with a buffer of their own, or a view that is copied before it is sent. */
function bytesOf(piece: string | Uint8Array): Uint8Array {
  if (typeof piece === 'string') return ENCODER.encode(piece)
  if (piece instanceof Uint8Array) return piece
  throw new InvalidResponse('a piece of the body is neither text nor bytes')
}

const ENCODER = new TextEncoder()
