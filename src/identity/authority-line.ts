/** A reactor's end of the line to the authority: news come in, inquiries go out, bounded in number and in time. */
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { Asked, FromAuthority, IdentityNews, Inquiry, InquiryResults } from './feed.ts'
import { InquiryFailed, type Line } from './identity-state.ts'

interface LineLimits {
  /** Inquiries under way at once. */
  readonly inquiriesMax: number
  readonly answerMs: number
}
const LIMITS: LineLimits = { inquiriesMax: 1024, answerMs: 5000 }

interface Waiting {
  readonly timer: NodeJS.Timeout
  resolve(value: InquiryResults[Inquiry['kind']]): void
  reject(cause: InquiryFailed): void
}

export class AuthorityLine implements Line {
  readonly #port: MessagePort
  readonly #take: (news: IdentityNews) => void
  readonly #limits: LineLimits
  readonly #waiting = new Map<number, Waiting>()
  #nextId = 1
  #isOver = false

  /** `limits`: for tests. */
  constructor(port: MessagePort, take: (news: IdentityNews) => void, limits = LIMITS) {
    this.#port = port
    this.#take = take
    this.#limits = limits
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
    const { inquiriesMax, answerMs } = this.#limits
    if (this.#isOver) return Promise.reject(new InquiryFailed('the thread of the authority has ended'))
    if (this.#waiting.size >= inquiriesMax) {
      return Promise.reject(new InquiryFailed(`${inquiriesMax} inquiries are under way already`))
    }
    const id = this.#nextId++
    const { promise, resolve, reject } = Promise.withResolvers<InquiryResults[Inquiry['kind']]>()
    const late = (): void => this.#fail(id, `the authority has not answered within ${answerMs} ms`)
    const timer = setTimeout(late, answerMs).unref()
    this.#waiting.set(id, { timer, resolve, reject })
    this.#port.postMessage({ id, inquiry } satisfies Asked)
    return promise as Promise<InquiryResults[I['kind']]>
  }

  close(): void {
    this.#end()
    this.#port.close()
  }

  #receive(message: FromAuthority): void {
    if (message.kind === 'news') this.#take(message.news)
    else if (message.kind === 'failed') this.#fail(message.id, message.cause)
    else this.#settle(message.id)?.resolve(message.value)
  }

  #fail(id: number, cause: string): void {
    this.#settle(id)?.reject(new InquiryFailed(cause))
  }

  /** Undefined: it was given up. */
  #settle(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return undefined
    this.#waiting.delete(id)
    clearTimeout(waiting.timer)
    return waiting
  }

  #end(): void {
    this.#isOver = true
    for (const id of [...this.#waiting.keys()]) this.#fail(id, 'the thread of the authority has ended')
  }
}
