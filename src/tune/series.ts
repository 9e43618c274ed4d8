/**
 * Measures points several times in random order. Runs during which other programs used the processors are measured
 * again, within a bound; those that stay disturbed are counted.
 */
import { plural } from './plural.ts'
import type { SeededRandom } from './statistics.ts'
import { failuresText, type Measured, NO_RESPONSE, type Sizes, type System, TuneFailed } from './system.ts'

interface Point {
  /** For the progress. */
  readonly doing: string
  measure(): Promise<Measured>
}

export interface MeasuredPoint {
  /** In the order of the repeats. */
  readonly measured: readonly Measured[]
  /** Measurements that other programs have disturbed, after all repetitions. */
  readonly disturbed: number
}

export interface SeriesOptions {
  readonly repeats: number
  readonly progress: (done: number, total: number, doing: string) => void
}

/** Effects of other programs on the measurements. */
export interface Disturbance {
  /** Highest share of the processors' time that other programs used while nothing was measured; null: unknown. */
  readonly quiet: number | null
  /** The same during measurements; a backend on this machine is one of these programs. */
  readonly highest: number | null
  /** The programs at the highest of these shares. */
  readonly programs: readonly string[]
  /** Measurements that were made again. */
  readonly repeated: number
  /** Measurements that were disturbed and stayed so, and all. */
  readonly disturbed: number
  readonly all: number
}

/** More than the least use by other programs that the same point had (D610). */
const DISTURBED = 0.1
/** Further measurements for disturbed ones, of all planned. */
const AGAIN_SHARE = 0.25
const AGAIN_MOST = 2

interface Run {
  readonly point: Point
  readonly own: Run[]
  measured: Measured
  /** The processors were not idle before or after the runs that were made with this one. */
  isBusy: boolean
}

export class Series {
  readonly #system: System
  readonly #random: SeededRandom
  readonly #options: SeriesOptions
  #total: number
  #left: number
  #done = 0
  #busiest = 0
  #highest = 0
  #quiet: number | null = null
  #others: number | null = null
  #programs: readonly string[] = []
  #repeated = 0
  #disturbed = 0
  #all = 0

  /** `planned`: measurements that come at least. */
  constructor(system: System, random: SeededRandom, planned: number, options: SeriesOptions) {
    this.#system = system
    this.#random = random
    this.#options = options
    this.#total = planned
    this.#left = Math.ceil(planned * AGAIN_SHARE)
  }

  /** `base`: sizes that serve requests; where a run has no success, they tell a dead backend from a bad size. */
  async run(points: readonly Point[], base: Sizes): Promise<readonly MeasuredPoint[]> {
    const rows = points.map((): Run[] => [])
    let quiet = await this.#quietShare()
    for (let repeat = 0; repeat < this.#options.repeats; repeat++) {
      for (const at of this.#random.shuffled([...points.keys()])) {
        const run = { point: points[at]!, own: rows[at]!, measured: await this.once(points[at]!, base), isBusy: false }
        rows[at]!.push(run)
      }
    }
    let made = rows.flat()
    for (let pass = 0; ; pass++) {
      const after = await this.#quietShare()
      for (const run of made) run.isBusy = Math.max(quiet, after) > DISTURBED
      made = pass === AGAIN_MOST ? [] : this.#random.shuffled(rows.flat().filter(isDisturbed)).slice(0, this.#left)
      if (made.length === 0) break
      quiet = after
      for (const run of made) await this.#again(run, base)
    }
    this.#all += rows.flat().length
    return rows.map(row => {
      const disturbed = row.filter(isDisturbed).length
      this.#disturbed += disturbed
      return { measured: row.map(({ measured }) => measured), disturbed }
    })
  }

  /** Rejects with TuneFailed where nothing succeeds any more. */
  async once({ doing, measure }: Point, base: Sizes): Promise<Measured> {
    this.#options.progress(this.#done++, this.#total, doing)
    const measured = await measure()
    this.#busiest = Math.max(this.#busiest, measured.generatorBusy)
    this.#highest = Math.max(this.#highest, measured.throughput)
    const { others, throughput } = measured
    if (others !== null && others.share >= Math.max(this.#others ?? 0, this.#quiet ?? 0))
      this.#programs = others.programs
    if (others !== null) this.#others = Math.max(this.#others ?? 0, others.share)
    if (throughput === 0) await this.#mustServe(doing, base)
    return measured
  }

  /** Highest busy share of the load generator, and highest throughput, since the last call. */
  takeHighest(): { readonly busy: number; readonly throughput: number } {
    const highest = { busy: this.#busiest, throughput: this.#highest }
    this.#busiest = 0
    this.#highest = 0
    return highest
  }

  get disturbance(): Disturbance {
    return {
      ...{ quiet: this.#quiet, highest: this.#others, programs: this.#programs },
      ...{ repeated: this.#repeated, disturbed: this.#disturbed, all: this.#all },
    }
  }

  async #again(run: Run, base: Sizes): Promise<void> {
    this.#left--
    this.#total++
    this.#repeated++
    const measured = await this.once({ ...run.point, doing: `${run.point.doing}, again` }, base)
    if (shareOf(measured) < shareOf(run.measured)) run.measured = measured
  }

  async #mustServe(doing: string, base: Sizes): Promise<void> {
    await this.#system.configure(base)
    const { throughput, failures } = await this.#system.closed(1)
    if (throughput > 0) return
    const what = `no request has succeeded in "${doing}", nor with the sizes that served before`
    throw new TuneFailed(
      `${what} (${failuresText(failures) || NO_RESPONSE}): the backend has ended or fails, or a quota is used up`,
    )
  }

  async #quietShare(): Promise<number> {
    const use = await this.#system.quiet()
    if (use === null) return 0
    if (use.share >= Math.max(this.#others ?? 0, this.#quiet ?? 0)) this.#programs = use.programs
    this.#quiet = Math.max(this.#quiet ?? 0, use.share)
    return use.share
  }
}

function shareOf({ others }: Measured): number {
  return others?.share ?? 0
}

function isDisturbed({ own, measured, isBusy }: Run): boolean {
  const least = isBusy ? 0 : Math.min(...own.map(run => shareOf(run.measured)))
  return shareOf(measured) > least + DISTURBED
}

/** Effects of other programs, as a sentence; '' for none. */
export function disturbanceText({ quiet, highest, programs, repeated, disturbed, all }: Disturbance): string {
  if (quiet === null || highest === null) return ''
  const names = programs.length === 0 ? '' : `: ${programs.join(', ')}`
  const idle = quiet > DISTURBED ? [`${percent(quiet)} of the processors while nothing was measured`] : []
  const busy = disturbed + repeated > 0 ? [`up to ${percent(highest)} during measurements`] : []
  if (idle.length + busy.length === 0) return ''
  const again = repeated === 0 ? '' : `; ${plural(repeated, 'measurement was', 'measurements were')} made again`
  const left = disturbed === 0 ? ', and none stays disturbed' : `, ${disturbed} of ${all} stay disturbed`
  return `other programs used ${[...idle, ...busy].join(', ')}${names}${again}${left}`
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}
