/**
 * The lines to all reactors: news go out, inquiries are answered. News are posted to every line before the shared epoch
 * goes up, so that a reactor that sees the number has them all.
 */
import type { MessagePort } from 'node:worker_threads'
import { FactBook } from './fact-book.ts'
import type { Asked, FromAuthority, IdentityNews, Inquiry, InquiryResults } from '../identity/feed.ts'
import { InquiryFailed } from '../identity/identity-state.ts'

/** Each rejects with InquiryFailed where it cannot know, within a bounded time; its message goes to the log. */
export type Answers = {
  readonly [K in Inquiry['kind']]: (inquiry: Extract<Inquiry, { kind: K }>) => Promise<InquiryResults[K]>
}

interface LinesOutlets {
  /** Nobody foresaw it. */
  bug(error: unknown): void
}

export class ReactorLines {
  readonly #book = new FactBook()
  readonly #ports = new Map<number, MessagePort>()
  readonly #outlets: LinesOutlets
  #epoch: Int32Array | null = null
  #answers: Answers | null = null

  constructor(outlets: LinesOutlets) {
    this.#outlets = outlets
  }

  /** Until then nothing can be answered, and nobody has been told of anything. */
  open(epoch: SharedArrayBuffer, answers: Answers): void {
    this.#epoch = new Int32Array(epoch)
    this.#answers = answers
  }

  /** A reactor that begins is told all that the others know. */
  attach(reactor: number, port: MessagePort): void {
    this.#ports.get(reactor)?.close()
    this.#ports.set(reactor, port)
    port.on('message', (asked: Asked) => void this.#answer(port, asked))
    port.on('close', () => {
      if (this.#ports.get(reactor) === port) this.#ports.delete(reactor)
    })
    for (const news of this.#book.account()) post(port, { kind: 'news', news })
    this.#moveOn()
  }

  /** In force on every reactor from its next decision on. */
  tell(news: IdentityNews): void {
    this.#book.take(news)
    for (const port of this.#ports.values()) post(port, { kind: 'news', news })
    this.#moveOn()
  }

  #moveOn(): void {
    if (this.#epoch !== null) Atomics.add(this.#epoch, 0, 1)
  }

  async #answer(port: MessagePort, { id, inquiry }: Asked): Promise<void> {
    try {
      if (this.#answers === null) throw new InquiryFailed('the authority has not begun yet')
      const answer = this.#answers[inquiry.kind] as (asked: Inquiry) => Promise<InquiryResults[Inquiry['kind']]>
      post(port, { kind: 'answer', id, value: await answer(inquiry) })
    } catch (error) {
      const isForeseen = error instanceof InquiryFailed
      if (!isForeseen) this.#outlets.bug(error)
      post(port, { kind: 'failed', id, cause: isForeseen ? error.message : 'a fault in the authority' })
    }
  }
}

function post(port: MessagePort, message: FromAuthority): void {
  port.postMessage(message)
}
