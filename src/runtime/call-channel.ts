/**
 * Calls between two threads by message. The calling side has a `CallChannel`, which numbers its calls, limits how many
 * are pending and times each of them out; the other side posts the result with `respond`.
 */

export interface CallMessage<Call = unknown> {
  readonly kind: 'call'
  readonly id: number
  readonly call: Call
}

export type ResultMessage =
  | { readonly kind: 'result'; readonly id: number; readonly value: unknown }
  /** `cause`: a sentence for the caller, without anything secret. */
  | { readonly kind: 'failure'; readonly id: number; readonly cause: string }

/** `failed`: the other side says so. `closed`: the other side is gone. `busy`: too many calls are pending. */
type CallFailure = 'failed' | 'late' | 'closed' | 'busy'

/** A call without a result; the message says why. */
export class CallFailed extends Error {
  override readonly name = 'CallFailed'
  readonly reason: CallFailure

  constructor(message: string, reason: CallFailure) {
    super(message)
    this.reason = reason
  }
}

export interface CallLimits {
  readonly pendingMax: number
  /** Pending calls of one kind; left out: as many as of all kinds. */
  readonly pendingOfKindMax?: number
  readonly timeoutMs: number
}

/** A Worker, a MessagePort. */
interface CallPort {
  postMessage(message: CallMessage | ResultMessage): void
}

interface Pending {
  readonly kind: string
  readonly resolve: (value: never) => void
  readonly reject: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

/** A union of calls, told apart by `kind`. */
export interface Kinded {
  readonly kind: string
}
/** The type of the result for each kind of call. */
export type ResultsOf<Call extends Kinded> = { readonly [Kind in Call['kind']]: unknown }

export class CallChannel<Call extends Kinded, Results extends ResultsOf<Call>> {
  readonly #peer: string
  readonly #port: CallPort
  readonly #limits: CallLimits
  readonly #Failure: new (
    message: string,
    reason: CallFailure,
  ) => Error
  readonly #pending = new Map<number, Pending>()
  readonly #pendingOfKind = new Map<string, number>()
  #lastId = 0
  /** Why there can be no further call; '' while there can. */
  #closedBecause = ''

  /** `peer`: name of the other side, for messages. `Failure`: class of the errors that calls reject with. */
  constructor(
    peer: string,
    port: CallPort,
    limits: CallLimits,
    Failure: new (message: string, reason: CallFailure) => Error = CallFailed,
  ) {
    this.#peer = peer
    this.#port = port
    this.#limits = limits
    this.#Failure = Failure
  }

  /** Rejects with the class of the constructor, `CallFailed` by default. */
  call<One extends Call>(call: One, timeoutMs = this.#limits.timeoutMs): Promise<Results[One['kind']]> {
    const { kind } = call
    const { pendingMax, pendingOfKindMax = pendingMax } = this.#limits
    const ofKind = this.#pendingOfKind.get(kind) ?? 0
    if (this.#closedBecause !== '') return this.#rejected(this.#closedBecause, 'closed')
    if (this.#pending.size >= pendingMax) {
      return this.#rejected(`${pendingMax} calls to ${this.#peer} are pending already`, 'busy')
    }
    if (ofKind >= pendingOfKindMax) {
      return this.#rejected(`${ofKind} calls of this kind to ${this.#peer} are pending already`, 'busy')
    }
    const id = ++this.#lastId
    const { promise, resolve, reject } = Promise.withResolvers<Results[One['kind']]>()
    const late = (): void => this.#fail(id, `${this.#peer} has not responded within ${timeoutMs} ms`, 'late')
    // A pending call keeps no thread from ending.
    const timer = setTimeout(late, timeoutMs).unref()
    this.#pending.set(id, { kind, resolve, reject, timer })
    this.#pendingOfKind.set(kind, ofKind + 1)
    this.#port.postMessage({ kind: 'call', id, call })
    return promise
  }

  /** Ignores the result of a call that has timed out. */
  settle(message: ResultMessage): void {
    if (message.kind === 'failure') this.#fail(message.id, message.cause, 'failed')
    else this.#take(message.id)?.resolve(message.value as never)
  }

  /** Fails every pending call and each later one. */
  close(cause: string): void {
    this.#closedBecause = cause
    for (const id of [...this.#pending.keys()]) this.#fail(id, cause, 'closed')
  }

  #fail(id: number, message: string, reason: CallFailure): void {
    this.#take(id)?.reject(new this.#Failure(message, reason))
  }

  #rejected(message: string, reason: CallFailure): Promise<never> {
    return Promise.reject(new this.#Failure(message, reason))
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id)
    if (pending === undefined) return undefined
    this.#pending.delete(id)
    this.#pendingOfKind.set(pending.kind, this.#pendingOfKind.get(pending.kind)! - 1)
    clearTimeout(pending.timer)
    return pending
  }
}

/** Posts what `handle` returns, or the sentence that `causeOf` makes of what it throws. */
export async function respond<Call>(
  port: CallPort,
  { id, call }: CallMessage<Call>,
  handle: (call: Call) => unknown,
  causeOf: (error: Error) => string = error => error.message,
): Promise<void> {
  try {
    port.postMessage({ kind: 'result', id, value: await handle(call) })
  } catch (error) {
    port.postMessage({ kind: 'failure', id, cause: causeOf(error as Error) })
  }
}
