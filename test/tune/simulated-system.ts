/** Systems with a known optimum, as functions of sizes and clients, with seeded noise. */
import type { OtherUse } from '../../src/tune/other-programs.ts'
import type { Measured, Sizes, System } from '../../src/tune/system.ts'
import { SeededRandom } from '../../src/tune/statistics.ts'

export const CEILING = 100_000

export class SimulatedSystem implements System {
  readonly configured: Sizes[] = []
  readonly rates: number[] = []
  readonly #throughput: (sizes: Sizes, clients: number) => number
  readonly #random: SeededRandom
  readonly #noise: number
  #sizes: Sizes = {}
  /** Use by other programs; `isQuiet`: while nothing is measured. */
  others: (isQuiet: boolean) => OtherUse | null = () => ({ share: 0, programs: [] })
  /** Share of the requests that fail. */
  failed: (sizes: Sizes) => number = () => 0

  /** `noise`: 0.02 for 2 % up and down. */
  constructor(throughput: (sizes: Sizes, clients: number) => number, noise = 0.01, seed = 7) {
    this.#throughput = throughput
    this.#noise = noise
    this.#random = new SeededRandom(seed)
  }

  async configure(sizes: Sizes): Promise<void> {
    this.configured.push(sizes)
    this.#sizes = sizes
  }

  async closed(clients: number): Promise<Measured> {
    const throughput = this.#noisy(this.#throughput(this.#sizes, clients))
    return this.#measured(throughput, (clients / throughput) * 1000)
  }

  /** The latency of a queue with one server: it grows without bound towards the peak. */
  async open(rate: number, clients: number): Promise<Measured> {
    this.rates.push(rate)
    const used = rate / this.#throughput(this.#sizes, clients)
    return this.#measured(rate, 1 / Math.max(0.01, 1 - used))
  }

  async quiet(): Promise<OtherUse | null> {
    return this.others(true)
  }

  async ceiling(): Promise<Measured> {
    return this.#measured(CEILING, 1)
  }

  #noisy(value: number): number {
    return value * (1 + this.#noise * (2 * this.#random.next() - 1))
  }

  #measured(throughput: number, p99Ms: number): Measured {
    const generatorBusy = throughput / CEILING
    const succeeded = Math.round(throughput)
    const share = this.failed(this.#sizes)
    const errors = share === 1 ? 100 : Math.round((succeeded * share) / (1 - share))
    return {
      ...{ throughput, p50Ms: p99Ms / 2, p99Ms, p999Ms: p99Ms * 2, generatorBusy },
      ...{ errors, failures: errors === 0 ? {} : { '503 (102540)': errors }, requests: succeeded + errors },
      others: this.others(false),
    }
  }
}
