/** A configuration as a test wants it: in force, or all that is wrong with it thrown at once. */
import { join } from 'node:path'
import type { Configuration } from '../../src/config/catalogue.ts'
import { ConfigurationFaults, describe } from '../../src/config/fault.ts'
import { examine } from '../../src/config/load.ts'
import type { ResolvedKey } from '../../src/config/resolve.ts'

export interface Loaded {
  readonly configuration: Configuration
  /** As a start would print them, unknown keys first. */
  readonly warnings: readonly string[]
  readonly resolved: readonly ResolvedKey[]
}

/** Throws ConfigurationFaults. */
export function loadConfiguration(home: string, sets: readonly string[], dataDir = join(home, 'data')): Loaded {
  const { faults, unknown, warnings, configuration, keys } = examine(home, sets, dataDir)
  if (faults.length > 0) throw new ConfigurationFaults(faults)
  const ignored = unknown.map(fault => `${describe(fault)}; it has no effect`)
  return { configuration, warnings: [...ignored, ...warnings.map(describe)], resolved: keys }
}
