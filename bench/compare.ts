/**
 * Compares two records: `node bench/compare.ts OLD.json NEW.json` prints each metric of every scenario and peer in both
 * as a ratio new / old. The ratios of unchanged peers show the drift of the machine between the runs.
 */
import { formatMetric, METRIC, METRIC_NAMES, type MetricName } from './metric.ts'
import { readResults, type Results } from './results.ts'

/** Smaller changes are noise. */
const NOTABLE_CHANGE = 0.05

function assessment(name: MetricName, ratio: number): string {
  const { better } = METRIC[name]
  if (better === 'neither' || !Number.isFinite(ratio) || Math.abs(ratio - 1) < NOTABLE_CHANGE) return ''
  return ratio < 1 === (better === 'less') ? 'better' : 'worse'
}

function metricRow(before: number | undefined, after: number | undefined, name: MetricName): string[] {
  if (before === undefined || after === undefined || METRIC[name].better === 'neither') return []
  if (before === 0 && after === 0) return []
  const ratio = after / before
  const cells = [METRIC[name].title, formatMetric(name, before), formatMetric(name, after), `${ratio.toFixed(2)}×`]
  return [`| ${[...cells, assessment(name, ratio)].join(' | ')} |`]
}

export function compareResults(before: Results, after: Results): string {
  const parts: string[] = []
  for (const [scenario, { title, peers }] of Object.entries(after.scenarios)) {
    for (const [peer, { median }] of Object.entries(peers)) {
      const earlier = before.scenarios[scenario]?.peers[peer]?.median
      if (earlier === undefined) continue
      const rows = METRIC_NAMES.flatMap(name => metricRow(earlier[name], median[name], name))
      parts.push(
        [`### ${title}: ${peer}`, '', '| | old | new | new/old | |', '|---|---:|---:|---:|---|', ...rows].join('\n'),
      )
    }
  }
  return parts.length === 0 ? 'The two records have no scenario and peer in common.' : parts.join('\n\n')
}

if (import.meta.main) {
  const [before, after] = process.argv.slice(2)
  if (before === undefined || after === undefined) {
    console.error('node bench/compare.ts OLD.json NEW.json')
    process.exitCode = 2
  } else {
    console.log(compareResults(readResults(before), readResults(after)))
  }
}
