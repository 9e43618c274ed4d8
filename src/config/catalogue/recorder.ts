/** The flight recorder: exchanges that failed or were slow. */
import { isNot } from '../conditions.ts'
import { actsIf, live, section } from '../key.ts'
import { duration, integer } from '../kinds.ts'

const DAY_MS = 86_400_000

export const recorder = section('recorder', 'The flight recorder, which `sluice failures` reads.', {
  size: live(
    integer(
      256,
      'exchanges',
      0,
      10_000,
      'Failed or slow exchanges that each reactor keeps, and as many again that clients cause; 0: none.',
    ),
  ),
  slow_threshold: actsIf(
    isNot('.size', 0),
    live(duration(0, 'ms', 0, DAY_MS, 'An exchange that lasts so long is kept as slow; 0: none is.')),
  ),
})
