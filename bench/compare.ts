/**
 * Two records side by side: `node bench/compare.ts OLD.json NEW.json` prints, for every scenario and peer in both,
 * each figure as a ratio new / old. The ratios of the peers that did not change are the machine's own drift; read
 * those of the gateway against them.
 */
import { formatMetric, METRIC, METRIC_NAMES, type MetricName } from './metric.ts'
import { readResults, type Results } from './results.ts'

/** Smaller differences are noise on any machine this was tried on. */
const NOTEWORTHY = 0.05

function verdict(name: MetricName, ratio: number): string {
  const { better } = METRIC[name]
  if (better === 'neither' || !Number.isFinite(ratio) || Math.abs(ratio - 1) < NOTEWORTHY) return ''
  return ratio < 1 === (better === 'less') ? 'better' : 'worse'
}

function compared(before: number | undefined, after: number | undefined, name: MetricName): string[] {
  if (before === undefined || after === undefined || METRIC[name].better === 'neither') return []
  if (before === 0 && after === 0) return []
  const ratio = after / before
  const cells = [METRIC[name].title, formatMetric(name, before), formatMetric(name, after), `${ratio.toFixed(2)}×`]
  return [`| ${[...cells, verdict(name, ratio)].join(' | ')} |`]
}

export function comparison(before: Results, after: Results): string {
  const parts: string[] = []
  for (const [scenario, { title, peers }] of Object.entries(after.scenarios)) {
    for (const [peer, { median }] of Object.entries(peers)) {
      const earlier = before.scenarios[scenario]?.peers[peer]?.median
      if (earlier === undefined) continue
      const rows = METRIC_NAMES.flatMap(name => compared(earlier[name], median[name], name))
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
    console.log(comparison(readResults(before), readResults(after)))
  }
}
