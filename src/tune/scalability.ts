/**
 * The Universal Scalability Law (N. Gunther): X(n) = rate n / (1 + contention (n - 1) + crosstalk n (n - 1)).
 * Contention is the part that is done one after another, crosstalk what each client costs every other one.
 */
import { type Interval, median, quantile, type SeededRandom } from './statistics.ts'

/** Throughputs of all repeats at one number of clients. */
export interface ScalingPoint {
  readonly clients: number
  readonly throughputs: readonly number[]
}

interface Coefficients {
  /** Throughput of one client. */
  readonly rate: number
  readonly contention: number
  readonly crosstalk: number
}

export interface ScalingFit extends Coefficients {
  /** Clients with the highest throughput; Infinity without crosstalk. */
  readonly peakClients: number
  /** Share of the variance of the medians that the law explains. */
  readonly explained: number
  readonly intervals: Readonly<Record<'rate' | 'contention' | 'crosstalk' | 'peakClients', Interval>>
  /** Intervals of the fitted throughput, in the order of the points. */
  readonly band: readonly Interval[]
}

const RESAMPLES = 400
const TAIL = 0.025

export function throughputAt({ rate, contention, crosstalk }: Coefficients, clients: number): number {
  return (rate * clients) / (1 + contention * (clients - 1) + crosstalk * clients * (clients - 1))
}

/** Null for fewer than four numbers of clients: three coefficients would fit any of them. */
export function fitScaling(points: readonly ScalingPoint[], random: SeededRandom): ScalingFit | null {
  const usable = points.filter(({ throughputs }) => median(throughputs) > 0)
  if (usable.length < 4) return null
  const medians = usable.map(({ clients, throughputs }) => [clients, median(throughputs)] as const)
  const best = leastSquares(medians)
  const resampled = Array.from({ length: RESAMPLES }, () =>
    leastSquares(
      usable.map(({ clients, throughputs }) => {
        const drawn = throughputs.map(() => throughputs[random.below(throughputs.length)]!)
        return [clients, Math.max(median(drawn), Number.MIN_VALUE)] as const
      }),
    ),
  )
  const interval = (value: (fit: Coefficients) => number): Interval => {
    const found = resampled.map(value)
    return { low: quantile(found, TAIL), high: quantile(found, 1 - TAIL) }
  }
  return {
    ...best,
    peakClients: peakOf(best),
    explained: explainedBy(best, medians),
    intervals: {
      rate: interval(({ rate }) => rate),
      contention: interval(({ contention }) => contention),
      crosstalk: interval(({ crosstalk }) => crosstalk),
      peakClients: interval(peakOf),
    },
    band: points.map(({ clients }) => interval(fit => throughputAt(fit, clients))),
  }
}

function peakOf({ contention, crosstalk }: Coefficients): number {
  if (crosstalk <= 0) return Number.POSITIVE_INFINITY
  return Math.max(1, Math.sqrt(Math.max(0, 1 - contention) / crosstalk))
}

type Row = readonly [clients: number, throughput: number]

function explainedBy(fit: Coefficients, rows: readonly Row[]): number {
  const mean = rows.reduce((sum, [, throughput]) => sum + throughput, 0) / rows.length
  const residual = rows.reduce((sum, [clients, throughput]) => sum + (throughput - throughputAt(fit, clients)) ** 2, 0)
  const total = rows.reduce((sum, [, throughput]) => sum + (throughput - mean) ** 2, 0)
  return total === 0 ? 1 : 1 - residual / total
}

/**
 * n / X is linear in 1, n - 1 and n (n - 1). Rows are divided by n / X, so that every row counts by its relative error.
 * Coefficients are not negative: of all sets of columns whose solution is not negative, the best one is taken.
 */
function leastSquares(rows: readonly Row[]): Coefficients {
  const columns = (clients: number): readonly number[] => [1, clients - 1, clients * (clients - 1)]
  const weighted = rows.map(([clients, throughput]) => columns(clients).map(value => (value * throughput) / clients))
  let best: readonly number[] = [1 / Math.max(...rows.map(([clients, throughput]) => throughput / clients)), 0, 0]
  let least = squares(weighted, best)
  for (const chosen of [[0], [0, 1], [0, 2], [0, 1, 2]]) {
    const solved = solve(weighted, chosen)
    if (solved === null || solved.some(value => value < 0) || solved[0] === 0) continue
    const sum = squares(weighted, solved)
    if (sum < least) [best, least] = [solved, sum]
  }
  const [first = 1, second = 0, third = 0] = best
  return { rate: 1 / first, contention: second / first, crosstalk: third / first }
}

/** Every weighted row is to be 1. */
function squares(rows: readonly (readonly number[])[], solution: readonly number[]): number {
  return rows.reduce(
    (sum, row) => sum + (1 - row.reduce((total, value, at) => total + value * solution[at]!, 0)) ** 2,
    0,
  )
}

/** Normal equations of the chosen columns, by elimination; null where they have no single solution. */
function solve(rows: readonly (readonly number[])[], chosen: readonly number[]): readonly number[] | null {
  const matrix = chosen.map(one => [
    ...chosen.map(other => rows.reduce((sum, row) => sum + row[one]! * row[other]!, 0)),
    rows.reduce((sum, row) => sum + row[one]!, 0),
  ])
  const size = chosen.length
  for (let column = 0; column < size; column++) {
    const pivot = matrix
      .slice(column)
      .reduce((found, row) => (Math.abs(row[column]!) > Math.abs(found[column]!) ? row : found))
    if (Math.abs(pivot[column]!) < 1e-12) return null
    matrix[matrix.indexOf(pivot)] = matrix[column]!
    matrix[column] = pivot
    for (const row of matrix) {
      if (row === pivot) continue
      const factor = row[column]! / pivot[column]!
      for (let at = column; at <= size; at++) row[at]! -= factor * pivot[at]!
    }
  }
  const solution = [0, 0, 0]
  for (const [at, column] of chosen.entries()) solution[column] = matrix[at]![size]! / matrix[at]![at]!
  return solution
}
