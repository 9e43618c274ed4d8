/** Loads a configuration for a test, with its warnings; throws all its errors at once. */
import { join } from 'node:path'
import type { Configuration } from '../../src/config/catalogue.ts'
import { ConfigurationErrors, formatDiagnostic } from '../../src/config/diagnostics.ts'
import { examine } from '../../src/config/load.ts'
import type { ResolvedKey } from '../../src/config/resolve.ts'

export interface Loaded {
  readonly configuration: Configuration
  /** As a start would print them, unknown keys first. */
  readonly warnings: readonly string[]
  readonly resolved: readonly ResolvedKey[]
}

/** Throws ConfigurationErrors. */
export function loadConfiguration(home: string, sets: readonly string[], dataDir = join(home, 'data')): Loaded {
  const { errors, unknown, warnings, configuration, keys } = examine(home, sets, dataDir)
  if (errors.length > 0) throw new ConfigurationErrors(errors)
  const ignored = unknown.map(diagnostic => `${formatDiagnostic(diagnostic)}; it has no effect`)
  return { configuration, warnings: [...ignored, ...warnings.map(formatDiagnostic)], resolved: keys }
}
