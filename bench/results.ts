/**
 * The record of a run (bench/results/latest.json): its shape, the medians, and the rule that marks outlier rounds.
 * Metric names and the medians keep their names and places, because compare.ts also reads records of older checkouts.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { leastOf, METRIC_NAMES, type MetricName, type Sample, summaryRule } from './metric.ts'
import type { PairedRatio } from './paired/paired-ratio.ts'

/** A round is an outlier if it differs from the median of its peer by more than this share. */
const OUTLIER_SHARE = 0.25
/** The metrics that are checked for outliers. Tail latencies are not among them, because they always vary. */
const STABLE_METRICS: readonly MetricName[] = ['requestsPerSecond', 'cpuMicrosPerRequest', 'exchangeNs', 'readyMs']

export interface PeerResult {
  readonly rounds: readonly Sample[]
  /** Despite its name the sum, the greatest or the least value for some metrics (see `summaryRule`). */
  readonly median: Sample
  /** Numbers, from 1, of the outlier rounds. */
  readonly outliers: readonly number[]
}

export interface Environment {
  readonly processor: string
  readonly processors: number
  readonly kernel: string
  readonly node: string
  readonly commit: string
  readonly versions: Readonly<Record<string, string>>
}

export interface ScenarioResult {
  readonly title: string
  /** The command line that repeats this scenario. */
  readonly command: string
  readonly startedAt: string
  readonly secondsPerRound: number
  readonly loadGenerator: string
  readonly backend: string
  readonly environment: Environment
  /** Milliseconds that the speed probe took on the proxy's core after each round; shows how the machine drifts. */
  readonly probeMs: readonly number[]
  readonly peers: Readonly<Record<string, PeerResult>>
  /** Result of a paired scenario: cost of one peer relative to another. */
  readonly comparisons?: readonly Comparison[]
  /** Sentences below the table. */
  readonly notes?: readonly string[]
  /** Requested peers without a result, with the reason. */
  readonly skipped: Readonly<Record<string, string>>
}

/** A metric of `candidate` divided by that of `baseline`. */
export interface Comparison extends PairedRatio {
  /** Left out: CPU per request. */
  readonly metric?: MetricName
  readonly candidate: string
  readonly baseline: string
  /** The difference of both, divided by the metric of this peer. */
  readonly per?: string
  /** Target: the greatest ratio that is acceptable. */
  readonly limit?: number
}

export interface Results {
  readonly schema: 1
  readonly scenarios: Readonly<Record<string, ScenarioResult>>
}

export function median(values: readonly number[]): number {
  if (values.length === 0) return Number.NaN
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** Indexes of the values that differ from the median by more than a quarter of it. */
export function outlierIndexes(values: readonly number[]): number[] {
  const middle = median(values)
  return values.flatMap((value, index) => (Math.abs(value - middle) > OUTLIER_SHARE * middle ? [index] : []))
}

/** CPU use of other programs that needs no warning, in per cent of a processor. */
const OTHERS_PERCENT_MAX = 10

/** The most that other programs used; undefined where it is little. */
export function mostUsedByOthers({ peers }: Pick<ScenarioResult, 'peers'>): number | undefined {
  const others = Object.values(peers).flatMap(({ rounds }) => rounds.map(round => round.othersPercent ?? 0))
  const most = Math.max(0, ...others)
  return most > OTHERS_PERCENT_MAX ? most : undefined
}

/** Returns whether other programs, or another speed of the machine, make a run worth repeating. */
export function isDisturbed(result: Pick<ScenarioResult, 'peers' | 'probeMs'>): boolean {
  return mostUsedByOthers(result) !== undefined || outlierIndexes(result.probeMs).length > 0
}

function summary(name: MetricName, values: readonly number[]): number {
  const rule = summaryRule(name)
  if (rule === 'sum') return values.reduce((sum, value) => sum + value, 0)
  return rule === 'greatest' ? Math.max(...values) : median(values)
}

/** Summarizes the rounds of one peer: one value per metric, and the outlier rounds. */
export function summarize(rounds: readonly Sample[]): PeerResult {
  const middle: { [name in MetricName]?: number } = {}
  for (const name of METRIC_NAMES) {
    const least = leastOf(name)
    const values = rounds.flatMap(round => round[least ?? name] ?? [])
    if (values.length > 0) middle[name] = least === undefined ? summary(name, values) : Math.min(...values)
  }
  const outliers = new Set<number>()
  for (const name of STABLE_METRICS) {
    for (const index of outlierIndexes(rounds.map(round => round[name] ?? Number.NaN))) outliers.add(index + 1)
  }
  return { rounds, median: middle, outliers: [...outliers].sort((a, b) => a - b) }
}

/** Collects the samples of a scenario, and the peers that failed with the reason. */
export class RoundRecorder {
  readonly probeMs: number[] = []
  readonly skipped: Record<string, string> = {}
  readonly #samples = new Map<string, Sample[]>()

  /** Runs an action unless its peer has failed before; an error of the action skips the peer from now on. */
  async attempt(peer: string, action: () => Promise<void>): Promise<void> {
    if (this.skipped[peer] !== undefined) return
    try {
      await action()
    } catch (error) {
      this.skipped[peer] = error instanceof Error ? error.message : String(error)
    }
  }

  measure(peer: string, action: () => Promise<Sample>): Promise<void> {
    return this.attempt(peer, async () => {
      const sample = await action()
      const samples = this.#samples.get(peer) ?? []
      samples.push(sample)
      this.#samples.set(peer, samples)
    })
  }

  /** The last sample of a peer. */
  last(peer: string): Sample | undefined {
    return this.#samples.get(peer)?.at(-1)
  }

  /** A peer that failed in any round has no result: its earlier rounds may already have been affected. */
  summaries(): Record<string, PeerResult> {
    const complete = [...this.#samples].filter(([peer]) => this.skipped[peer] === undefined)
    return Object.fromEntries(complete.map(([peer, samples]) => [peer, summarize(samples)]))
  }
}

export function readResults(file: string): Results {
  const parsed = JSON.parse(readFileSync(file, 'utf8')) as Results
  if (parsed.schema !== 1) throw new Error(`${file} is not a result file of this bench (schema ${parsed.schema})`)
  return parsed
}

/** Adds scenarios to a file; replaces those of the same name and keeps the others. */
export function mergeResults(file: string, fresh: Results): Results {
  const previous = existsSync(file) ? readResults(file).scenarios : {}
  const merged: Results = { schema: 1, scenarios: { ...previous, ...fresh.scenarios } }
  writeResults(file, merged)
  return merged
}

export function writeResults(file: string, results: Results): void {
  writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`)
}
