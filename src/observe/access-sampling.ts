/** Which exchanges get a line in the access log: shares by status, and a limit of lines per second. */

/** `from`, `to`: lowest and highest status. `share`: 0 to 1. */
interface StatusShare {
  readonly from: number
  readonly to: number
  readonly share: number
}

const STATUSES = 600

export class AccessSampling {
  /** By status. */
  readonly #shares = new Float32Array(STATUSES).fill(1)
  readonly #perSecond: number
  readonly #random: () => number
  /** Lines that may still be written in `#second`. */
  #left = 0
  #second = -1

  /** The narrower of two ranges wins. `perSecond`: of this thread; 0: no limit. */
  constructor(shares: readonly StatusShare[], perSecond: number, random: () => number = Math.random) {
    const width = ({ from, to }: StatusShare): number => to - from
    for (const { from, to, share } of [...shares].sort((one, other) => width(other) - width(one))) {
      this.#shares.fill(share, from, to + 1)
    }
    this.#perSecond = perSecond
    this.#random = random
  }

  /** True if an exchange gets a line. `nowMs`: any clock in milliseconds. */
  takes(status: number, nowMs: number): boolean {
    const share = this.#shares[status] ?? 1
    if (share < 1 && this.#random() >= share) return false
    if (this.#perSecond === 0) return true
    const second = Math.floor(nowMs / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#left = this.#perSecond
    }
    if (this.#left === 0) return false
    this.#left--
    return true
  }
}
