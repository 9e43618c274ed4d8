/** A reactor's end of the line to the authority: news come in, inquiries go out, bounded in number and in time. */
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { Asked, FromAuthority, IdentityNews, Inquiry, InquiryResults } from './feed.ts'
import { InquiryFailed, type Line } from './identity-state.ts'
import { PendingAnswers } from '../structure/pending-answers.ts'

/** Inquiries under way at once, and how long each may take. */
const LIMITS = { waitingMax: 1024, answerMs: 5000 }
/** Of them those of one kind: where whoever answers them is silent, the others must get through. */
const KIND_PART = 0.75
const ENDED = 'the thread of the authority has ended'

export class AuthorityLine implements Line {
  readonly #port: MessagePort
  readonly #take: (news: IdentityNews) => void
  readonly #inquiries: PendingAnswers<InquiryResults[Inquiry['kind']]>
  readonly #kindMax: number
  readonly #ofKind = new Map<Inquiry['kind'], number>()
  #isOver = false

  /** `limits`: for tests. */
  constructor(port: MessagePort, take: (news: IdentityNews) => void, limits = LIMITS) {
    this.#port = port
    this.#take = take
    this.#inquiries = new PendingAnswers('the authority', limits, InquiryFailed)
    this.#kindMax = Math.ceil(limits.waitingMax * KIND_PART)
    port.on('message', (message: FromAuthority) => this.#receive(message))
    port.on('close', () => this.#end())
    // A reactor that has nothing else to do may end.
    port.unref()
  }

  drain(): void {
    if (this.#isOver) return
    for (let got = receiveMessageOnPort(this.#port); got !== undefined; got = receiveMessageOnPort(this.#port)) {
      this.#receive(got.message as FromAuthority)
    }
  }

  ask<I extends Inquiry>(inquiry: I): Promise<InquiryResults[I['kind']]> {
    if (this.#isOver) return Promise.reject(new InquiryFailed(ENDED))
    const { kind } = inquiry
    const alike = this.#ofKind.get(kind) ?? 0
    if (alike >= this.#kindMax) {
      return Promise.reject(new InquiryFailed(`${alike} questions of this kind wait for the authority already`))
    }
    this.#ofKind.set(kind, alike + 1)
    return this.#answered(inquiry).finally(() => this.#ofKind.set(kind, this.#ofKind.get(kind)! - 1))
  }

  #answered<I extends Inquiry>(inquiry: I): Promise<InquiryResults[I['kind']]> {
    const answer = this.#inquiries.ask(id => this.#port.postMessage({ id, inquiry } satisfies Asked))
    return answer as Promise<InquiryResults[I['kind']]>
  }

  close(): void {
    this.#end()
    this.#port.close()
  }

  #receive(message: FromAuthority): void {
    if (message.kind === 'news') this.#take(message.news)
    else if (message.kind === 'failed') this.#inquiries.fail(message.id, message.cause)
    else this.#inquiries.answer(message.id, message.value)
  }

  #end(): void {
    this.#isOver = true
    this.#inquiries.failAll(ENDED)
  }
}
