/** `[apim.lifecycle]`: the sunset date of deprecated APIs. */
import { withSpecialValue, live, section } from '../key.ts'
import { duration } from '../kinds.ts'

const YEAR_S = 365 * 86_400

export const lifecycle = section(
  'apim.lifecycle',
  'Life cycle of APIs; `lifecycle.json` in the data folder keeps their states (`sluice api lifecycle`).',
  {
    sunset_after: live(
      withSpecialValue(
        0,
        'no sunset',
        duration(
          180 * 86_400,
          's',
          1,
          10 * YEAR_S,
          'Time from deprecation to sunset, the announced end of a deprecated API; default of `--sunset`.',
        ),
      ),
    ),
  },
  { roles: ['api-key-manager', 'gateway-worker'] },
)
