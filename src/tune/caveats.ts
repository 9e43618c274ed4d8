/** Caveats of the results, as sentences for terminal and report. */
import { plural } from './plural.ts'
import { percent } from './proposals.ts'
import type { TuneResult } from './search.ts'
import { disturbanceText } from './series.ts'
import { failuresText } from './system.ts'

/** Fewer failed requests are not worth a sentence. */
const FAILED_SHOWN = 0.01

/** Empty for results without any. */
export function caveatsOf(result: TuneResult): readonly string[] {
  const { generator, drift, others, scaling, knobs, open } = result
  const disturbed = disturbanceText(others)
  const failed = scaling.points.filter(point => point.failed > FAILED_SHOWN)
  const worst = failed.toSorted((one, other) => other.failed - one.failed)[0]
  const dots = [...scaling.points, ...open, ...knobs.flatMap(({ points }) => points)]
  return [
    ...(generator.isBottleneck ? ['the load generator may have been the limit, so the gateway may do more'] : []),
    ...(disturbed === '' ? [] : [disturbed]),
    ...(others.quiet === null && dots.length > 0
      ? ['this system does not tell what other programs used of the processors']
      : []),
    ...(drift === null
      ? []
      : [
          `the same sizes did ${drift.ratio.toFixed(2)} times in "${drift.to}" what they did in "${drift.from}": ` +
            'something changed meanwhile, so run it again',
        ]),
    ...(worst === undefined
      ? []
      : [
          `${percent(worst.failed)} of the requests of ${plural(worst.clients, 'client')} failed with the current ` +
            `sizes (${failuresText(worst.failures)})`,
        ]),
  ]
}
