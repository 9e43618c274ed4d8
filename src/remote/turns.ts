/**
 * Whose turn it is to be asked: so many at once, in all and of one host, and so many that wait for one. A host that is
 * silent, however many want something of it, keeps nobody from asking another one.
 */

interface TurnLimits {
  /** Under way at once, to all hosts. */
  readonly requestsMax: number
  readonly perHostMax: number
  /** For one host. */
  readonly waitingMax: number
}

interface Host {
  underWay: number
  readonly waiting: (() => void)[]
}

export class Turns {
  readonly #limits: TurnLimits
  /** The one that had its turn last is the last. */
  readonly #hosts = new Map<string, Host>()
  #underWay = 0

  constructor(limits: TurnLimits) {
    this.#limits = limits
  }

  /**
   * Resolves with the number of others that are under way to the host; then `end` is owed. Rejects where too many wait,
   * and with the reason of the signal.
   */
  async begin(name: string, signal: AbortSignal): Promise<number> {
    const host = this.#hosts.get(name) ?? { underWay: 0, waiting: [] }
    this.#hosts.set(name, host)
    if (this.#hasRoom(host)) this.#give(host)
    else await this.#wait(host, signal)
    return host.underWay - 1
  }

  end(name: string): void {
    const host = this.#hosts.get(name)!
    host.underWay--
    this.#underWay--
    this.#hosts.delete(name)
    if (host.underWay + host.waiting.length > 0) this.#hosts.set(name, host)
    for (const next of this.#hosts.values()) {
      if (next.waiting.length === 0 || !this.#hasRoom(next)) continue
      this.#give(next)
      next.waiting.shift()!()
      return
    }
  }

  #hasRoom({ underWay }: Host): boolean {
    const { requestsMax, perHostMax } = this.#limits
    return this.#underWay < requestsMax && underWay < perHostMax
  }

  #give(host: Host): void {
    host.underWay++
    this.#underWay++
  }

  #wait({ waiting }: Host, signal: AbortSignal): Promise<void> {
    if (waiting.length >= this.#limits.waitingMax) throw new Error('too many requests are waiting')
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const go = (): void => {
      signal.removeEventListener('abort', late)
      resolve()
    }
    const late = (): void => {
      waiting.splice(waiting.indexOf(go), 1)
      reject(signal.reason)
    }
    waiting.push(go)
    signal.addEventListener('abort', late, { once: true })
    return promise
  }
}
