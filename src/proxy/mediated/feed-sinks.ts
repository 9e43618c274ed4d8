/** The two sides of a mediated exchange that a body is fed to. */
import type { Written } from '../../socket/byte-socket.ts'
import type { BodyPart, SourceSide } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { FeedSink } from './body-feed.ts'

/** Hears of a feed what its side does not need. */
export interface FeedOwner {
  /** The last part of a request is about to go to the target. */
  requestSent(): void
  /** As of FeedSink. */
  feedFailed(cause: string): void
  feedThrew(error: unknown): void
}

/** The target of an exchange. */
export class TargetSink implements FeedSink {
  readonly #exchange: Exchange
  readonly #owner: FeedOwner

  constructor(exchange: Exchange, owner: FeedOwner) {
    this.#exchange = exchange
    this.#owner = owner
  }

  get isBlocked(): boolean {
    const { target } = this.#exchange
    return target === null || target.isBlocked
  }

  take(part: BodyPart): Written {
    return this.#exchange.target!.requestBody(part)
  }

  feedEnds(): void {
    this.#owner.requestSent()
  }

  feedFailed(cause: string): void {
    this.#owner.feedFailed(cause)
  }

  feedThrew(error: unknown): void {
    this.#owner.feedThrew(error)
  }
}

/** The client of an exchange. */
export class ClientSink implements FeedSink {
  readonly #client: SourceSide
  readonly #owner: FeedOwner

  constructor(client: SourceSide, owner: FeedOwner) {
    this.#client = client
    this.#owner = owner
  }

  get isBlocked(): boolean {
    return this.#client.isBlocked
  }

  take(part: BodyPart): Written {
    return this.#client.responseBody(part)
  }

  feedEnds(): void {}

  feedFailed(cause: string): void {
    this.#owner.feedFailed(cause)
  }

  feedThrew(error: unknown): void {
    this.#owner.feedThrew(error)
  }
}
