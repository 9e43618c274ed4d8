/**
 * The record of a run: what bench/results/latest.json holds. Owns its shape, the medians, and the rule by which
 * rounds that disagree are marked. The shape may gain fields but must not lose or rename any, or two runs can no
 * longer be compared.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { PairedRatio } from './contest/paired-ratio.ts'
import { METRIC_NAMES, type MetricName, type Sample, summaryRule } from './metric.ts'

/** A round that differs from the median of its peer by more than this share is marked. */
const DISAGREEMENT = 0.25
/** The metrics whose rounds are compared; tail latencies vary by nature and are left out. */
const STEADY: readonly MetricName[] = ['requestsPerSecond', 'cpuMicrosPerRequest', 'readyMs']

export interface PeerResult {
  readonly rounds: readonly Sample[]
  readonly median: Sample
  /** Numbers, from 1, of the rounds that disagree with the median by more than a quarter. */
  readonly disagreeing: readonly number[]
}

export interface Surroundings {
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
  readonly surroundings: Surroundings
  /** Duration of the fixed computation on the proxy's core after each round: the machine's own drift. */
  readonly probeMs: readonly number[]
  readonly peers: Readonly<Record<string, PeerResult>>
  /** Of a contest: what one contestant costs in comparison with another. */
  readonly compared?: readonly Compared[]
  /** Peers that were asked for but not measured, and why. */
  readonly skipped: Readonly<Record<string, string>>
}

export interface Compared extends PairedRatio {
  readonly of: string
  readonly to: string
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

/** Positions of the values that differ from the median by more than a quarter of it. */
export function disagreeing(values: readonly number[]): number[] {
  const middle = median(values)
  return values.flatMap((value, index) => (Math.abs(value - middle) > DISAGREEMENT * middle ? [index] : []))
}

function summary(name: MetricName, values: readonly number[]): number {
  const rule = summaryRule(name)
  if (rule === 'sum') return values.reduce((sum, value) => sum + value, 0)
  return rule === 'greatest' ? Math.max(...values) : median(values)
}

/** Medians per metric; what failed is added up, because one failed round must not vanish behind two good ones. */
export function summarize(rounds: readonly Sample[]): PeerResult {
  const middle: { [name in MetricName]?: number } = {}
  for (const name of METRIC_NAMES) {
    const values = rounds.flatMap(round => round[name] ?? [])
    if (values.length === 0) continue
    middle[name] = summary(name, values)
  }
  const marked = new Set<number>()
  for (const name of STEADY) {
    for (const index of disagreeing(rounds.map(round => round[name] ?? Number.NaN))) marked.add(index + 1)
  }
  return { rounds, median: middle, disagreeing: [...marked].sort((a, b) => a - b) }
}

export function readResults(file: string): Results {
  const parsed = JSON.parse(readFileSync(file, 'utf8')) as Results
  if (parsed.schema !== 1) throw new Error(`${file} is not a result file of this bench (schema ${parsed.schema})`)
  return parsed
}

/** Adds scenarios to a file, replacing those of the same name and keeping the others. */
export function mergeResults(file: string, fresh: Results): Results {
  const kept = existsSync(file) ? readResults(file).scenarios : {}
  const merged: Results = { schema: 1, scenarios: { ...kept, ...fresh.scenarios } }
  writeResults(file, merged)
  return merged
}

export function writeResults(file: string, results: Results): void {
  writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`)
}
