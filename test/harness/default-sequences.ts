/** The default sequences of the package, read once per process: what words the faults of gateways in tests. */
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe } from '../../src/config/fault.ts'
import { Findings } from '../../src/config/findings.ts'
import { readSequence } from '../../src/mediation/read-sequence.ts'
import type { FaultPlan } from '../../src/plan.ts'
import { loadSequences } from '../../src/primary/sequence-files.ts'

const { files } = await loadSequences(join(tmpdir(), 'no-such-home'))

export const DEFAULT_FAULTS: FaultPlan = {
  programs: [...files.values()].map(({ program }) => program),
  aiSequence: '',
}

/** The default ones, and in place of some of them what stands between the tags here. */
export async function faultsWith(edited: Readonly<Record<string, string>>, aiSequence = ''): Promise<FaultPlan> {
  const findings = new Findings()
  const programs = new Map(DEFAULT_FAULTS.programs.map(program => [program.name, program]))
  for (const [name, content] of Object.entries(edited)) {
    const text = `<sequence xmlns="http://ws.apache.org/ns/synapse" name="${name}">${content}</sequence>`
    const program = await readSequence(name, `${name}.xml`, text, findings)
    if (program !== undefined) programs.set(name, program)
  }
  assert.deepEqual(findings.faults.map(describe), [])
  return { programs: [...programs.values()], aiSequence }
}
