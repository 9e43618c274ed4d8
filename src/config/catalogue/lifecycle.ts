/** `[apim.lifecycle]`: what becomes of APIs that are on their way out. */
import { except, live, section } from '../key.ts'
import { duration } from '../kinds.ts'

const YEAR_S = 365 * 86_400

export const lifecycle = section(
  'apim.lifecycle',
  'The states of APIs (`sluice api lifecycle`) are kept in `lifecycle.json` in the data folder.',
  {
    sunset_after: live(
      except(
        0,
        'no sunset',
        duration(
          180 * 86_400,
          's',
          1,
          10 * YEAR_S,
          'From deprecation to sunset, the end that deprecated APIs announce, where `--sunset` says nothing.',
        ),
      ),
    ),
  },
  { roles: ['api-key-manager', 'gateway-worker'], readBy: ['primary/api-lifecycles.ts'] },
)
