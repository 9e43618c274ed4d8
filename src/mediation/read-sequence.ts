/** A sequence file as a program. In the primary only: it takes the parsers of XML, XPath and JSONPath. */
import type { Findings } from '../config/findings.ts'
import { parseXml, type XmlBounds } from '../config/xml.ts'
import { MEDIATORS } from './mediators/list.ts'
import type { SequenceProgram } from './program.ts'
import { Reading } from './reading.ts'
import { SEQUENCE_NAMESPACE } from './xml-format.ts'

const BOUNDS: XmlBounds = { bytes: 1024 * 1024, elements: 10_000, depth: 100 }

/**
 * `name`: what it is called by, which the file must say too. `label`: how its file is called in faults. Undefined, with
 * all of its faults, when it cannot be run.
 */
export async function readSequence(
  name: string,
  label: string,
  text: string,
  findings: Findings,
): Promise<SequenceProgram | undefined> {
  const before = findings.faults.length
  const root = await parseXml(text, label, 'sequence', findings, BOUNDS)
  if (root === undefined) return undefined
  if (root.namespace !== SEQUENCE_NAMESPACE) {
    return findings.fault(root.where, 'xmlns', 'is not of the sequence language', `add xmlns="${SEQUENCE_NAMESPACE}"`)
  }
  const { loadParsers } = await import('./expression-parsers.ts')
  const reading = new Reading(MEDIATORS, await loadParsers(), findings)
  const steps = reading.root(root, name)
  if (findings.faults.length > before) return undefined
  return { name, label, steps, requestFields: [...reading.requestFields], calls: [...reading.calls] }
}
