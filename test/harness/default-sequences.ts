/** The default sequences of the package, read once per process; they word the faults of gateways in tests. */
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Diagnostics, formatDiagnostic } from '../../src/config/diagnostics.ts'
import { parseSequence } from '../../src/mediation/sequence-parser.ts'
import type { FaultPlan } from '../../src/plan/reactor-plan.ts'
import { loadSequences } from '../../src/mediation/sequence-files.ts'

const { files } = await loadSequences(join(tmpdir(), 'no-such-home'))

export const DEFAULT_FAULTS: FaultPlan = {
  sequences: [...files.values()].map(({ plan }) => plan),
  aiSequence: '',
}

/** The default ones, and in place of some of them what stands between the tags here. */
export async function faultsWith(edited: Readonly<Record<string, string>>, aiSequence = ''): Promise<FaultPlan> {
  const findings = new Diagnostics()
  const sequences = new Map(DEFAULT_FAULTS.sequences.map(plan => [plan.name, plan]))
  for (const [name, content] of Object.entries(edited)) {
    const text = `<sequence xmlns="http://ws.apache.org/ns/synapse" name="${name}">${content}</sequence>`
    const plan = await parseSequence(name, `${name}.xml`, text, findings)
    if (plan !== undefined) sequences.set(name, plan)
  }
  assert.deepEqual(findings.errors.map(formatDiagnostic), [])
  return { sequences: [...sequences.values()], aiSequence }
}
