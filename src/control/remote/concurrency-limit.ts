/**
 * Limits concurrent requests in total and per host, with a bounded queue per host. Hosts take turns (round robin), so a
 * host that does not answer never blocks requests to other hosts.
 */

interface ConcurrencyLimits {
  /** Concurrent requests to all hosts together. */
  readonly requestsMax: number
  readonly perHostMax: number
  /** Requests that wait for one host. */
  readonly waitingMax: number
}

interface HostQueue {
  active: number
  readonly waiting: (() => void)[]
}

export class ConcurrencyLimit {
  readonly #limits: ConcurrencyLimits
  /** Ordered by last turn: the host that was served last stands last. */
  readonly #hosts = new Map<string, HostQueue>()
  #active = 0

  constructor(limits: ConcurrencyLimits) {
    this.#limits = limits
  }

  /**
   * Waits for a free slot. Resolves with the number of other requests in flight to the host; the caller then owes one
   * `release`. Rejects where the host's queue is full, and with the reason of `signal` when it aborts.
   */
  async acquire(name: string, signal: AbortSignal): Promise<number> {
    const host = this.#hosts.get(name) ?? { active: 0, waiting: [] }
    this.#hosts.set(name, host)
    if (this.#hasSlot(host)) this.#takeSlot(host)
    else await this.#wait(host, signal)
    return host.active - 1
  }

  release(name: string): void {
    const host = this.#hosts.get(name)!
    host.active--
    this.#active--
    this.#hosts.delete(name)
    if (host.active + host.waiting.length > 0) this.#hosts.set(name, host)
    for (const next of this.#hosts.values()) {
      if (next.waiting.length === 0 || !this.#hasSlot(next)) continue
      this.#takeSlot(next)
      next.waiting.shift()!()
      return
    }
  }

  #hasSlot({ active }: HostQueue): boolean {
    const { requestsMax, perHostMax } = this.#limits
    return this.#active < requestsMax && active < perHostMax
  }

  #takeSlot(host: HostQueue): void {
    host.active++
    this.#active++
  }

  #wait({ waiting }: HostQueue, signal: AbortSignal): Promise<void> {
    if (waiting.length >= this.#limits.waitingMax) throw new Error('too many requests are waiting')
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const proceed = (): void => {
      signal.removeEventListener('abort', abort)
      resolve()
    }
    const abort = (): void => {
      waiting.splice(waiting.indexOf(proceed), 1)
      reject(signal.reason)
    }
    waiting.push(proceed)
    signal.addEventListener('abort', abort, { once: true })
    return promise
  }
}
