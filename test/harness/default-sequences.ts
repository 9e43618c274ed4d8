/** The default sequences of the package, read once per process: what words the faults of gateways in tests. */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FaultPlan } from '../../src/plan.ts'
import { loadSequences } from '../../src/sequence-files.ts'

const { files } = await loadSequences(join(tmpdir(), 'no-such-home'))

export const DEFAULT_FAULTS: FaultPlan = {
  programs: [...files.values()].map(({ program }) => program),
  aiSequence: '',
}
