/** Settings of bodies as without a configuration. */
import { DEFAULT_LIMITS } from '../../../src/mediation/formats/body-limits.ts'
import type { FormatSettings } from '../../../src/mediation/formats/format-settings.ts'
import { DEFAULT_CONVERSION } from '../../../src/mediation/formats/json-to-xml.ts'

export const DEFAULT_FORMATS: FormatSettings = {
  limits: DEFAULT_LIMITS,
  conversion: DEFAULT_CONVERSION,
  pieceSize: 3072,
  builders: {},
  formatters: {},
  ofBlockingCalls: null,
}
