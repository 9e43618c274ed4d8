/** Contract between the outbox and the senders of messages. */
import type { AddressGuard } from './address-guard.ts'

/** Result of one attempt to deliver. */
export type AttemptResult =
  /** The receiver has taken the message. `detail`: what it said, such as 'HTTP 202'. */
  | { readonly kind: 'delivered'; readonly detail: string }
  /** A later attempt may succeed. `afterMs`: the wait that the receiver asks for; null where it asks for none. */
  | { readonly kind: 'retry'; readonly cause: string; readonly afterMs: number | null }
  /** No later attempt can succeed: the delivery becomes a dead letter. */
  | { readonly kind: 'failed'; readonly cause: string }

export interface SenderOptions<Limits> {
  readonly guard: AddressGuard
  /** Connections to one server: with one account, where there are accounts. */
  readonly connectionsMax?: number
  /** Certificates (PEM) that are trusted beside those of Node. */
  readonly ca?: readonly string[]
  readonly limits?: Partial<Limits>
}

/** Sends messages of one kind over a bounded number of connections. */
export interface MessageSender<Message> {
  /** Rejects only for a bug. After `signal` is aborted, it ends at once with `retry`. */
  send(message: Message, signal: AbortSignal): Promise<AttemptResult>
  close(): void
}
