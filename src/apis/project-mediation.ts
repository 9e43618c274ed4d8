/**
 * The sequences and policies of a project. The project reader reads them as text. `parseMediation` parses the text
 * later, and loads the parsers of the language only for a project that has any.
 */
import { abbreviatedList, type Diagnostic, Diagnostics, formatValue } from '../config/diagnostics.ts'
import type { AdmissionPlan } from '../mediation/flow-plan.ts'
import type { SequencePlan } from '../mediation/sequence-plan.ts'
import {
  type ApiDefinition,
  DESTINATION_SEQUENCE,
  FLOWS,
  type FirstSequences,
  hasWebSocketEndpoint,
  type MediationDefinition,
} from './api-definition.ts'
import { readPolicies } from './api-policies.ts'
import { backendSequence, isDestination } from './endpoints.ts'
import type { Operations } from './operations.ts'
import { escapeXml } from './policy-template.ts'
import { shownName } from './policy-names.ts'
import type { ProjectFolder } from './project-folder.ts'
import { readSequences, type SequenceSource, sequenceText } from './project-sequences.ts'
import type { YamlFile } from './yaml-file.ts'

/** Ends the request flow of an API of the endpoint type `default`. */
const TO_DESTINATION: SequenceSource = {
  name: DESTINATION_SEQUENCE,
  label: DESTINATION_SEQUENCE,
  text: sequenceText(DESTINATION_SEQUENCE, '<send><endpoint><default/></endpoint></send>'),
}

/** Ends the request flow of an API whose backend is a sequence: what that leaves is the response. */
function toSequence(name: string): SequenceSource {
  const text = sequenceText(DESTINATION_SEQUENCE, `<sequence key="${escapeXml(name)}"/><loopback/>`)
  return { name: DESTINATION_SEQUENCE, label: `endpointConfig.sequence ${name}`, text }
}

function lastSteps(file: YamlFile): readonly SequenceSource[] {
  if (isDestination(file)) return [TO_DESTINATION]
  const name = backendSequence(file)
  return name === '' ? [] : [toSequence(name)]
}

/** The sequences and policies of a project before they are parsed. */
export interface MediationSource extends Omit<MediationDefinition, 'sequences'> {
  readonly sources: readonly SequenceSource[]
  /** Sequences of the gateway itself. */
  readonly plans: readonly SequencePlan[]
}

/** Sequences of the gateway itself that an API asks for, and where they run. */
export interface OwnSteps {
  readonly plans: readonly SequencePlan[]
  readonly first?: FirstSequences
  readonly admission?: AdmissionPlan
}

/**
 * Returns null for a project without sequences and policies. `api`: `NAME:vVERSION`. `paths`: the context of the API
 * and the templates of its resources.
 */
export function readMediation(
  file: YamlFile,
  project: ProjectFolder,
  api: string,
  operations: Operations | undefined,
  paths: readonly string[],
  own: OwnSteps | null,
  found: Diagnostics,
): MediationSource | null {
  const sequences = readSequences(file, project, api, found)
  const policies = readPolicies(file, project, operations, paths, found)
  const sources = [...sequences.sources, ...policies.sources, ...lastSteps(file)]
  const { extensions, ofHome } = sequences
  if (sources.length === 0 && ofHome.length === 0 && own === null) return null
  const flows = { extensions, policies: policies.ofApi, byOperation: policies.byOperation }
  const mediation = { sources, plans: [], ...flows, ...(ofHome.length === 0 ? {} : { ofHome }) }
  return own === null ? mediation : { ...mediation, ...own }
}

/** APIs that the summary names; it counts the further ones. */
const SUMMARIES_MAX = 20

/** Returns a diagnostic for each API with sequences or policies in its project; it names those that run. */
export function mediationSummaries(apis: readonly ApiDefinition[]): readonly Diagnostic[] {
  const mediated = apis.flatMap(({ name, version, mediation }) =>
    mediation === null ? [] : { name, version, mediation },
  )
  const told = mediated.slice(0, SUMMARIES_MAX).map(({ name, version, mediation }) => {
    return { where: `API ${name} ${version}`, key: '', given: '', expected: summaryOf(mediation), hint: '' }
  })
  const others = mediated.length - told.length
  if (others === 0) return told
  const expected = `${others} more APIs run sequences and policies of their projects`
  return [...told, { where: 'apis', key: '', given: '', expected, hint: 'sluice api list shows them' }]
}

function summaryOf(mediation: MediationDefinition): string {
  const { sequences, extensions, policies, byOperation, first, admission } = mediation
  const operations = Object.keys(byOperation).length
  const ofFlows = FLOWS.flatMap(flow => {
    const own = flow === 'fault' ? [] : (first?.[flow] ?? [])
    const names = [...own, ...extensions[flow], ...policies[flow]].map(shownName)
    return names.length === 0 ? [] : `${flow} ${abbreviatedList(names, NAMES_MAX)}`
  })
  const ofOperations = operations === 0 ? [] : [`policies of ${counted(operations, 'operation')}`]
  const checked =
    admission === undefined ? [] : `the check of queries for ${counted(admission.operations.length, 'operation')}`
  const backend = sequences.find(({ name }) => name === DESTINATION_SEQUENCE)?.calls ?? []
  const backends = backend.map(name => `the sequence ${name} as backend`)
  const parts = [...ofFlows, ...ofOperations].concat(checked, backends)
  return parts.length === 0 ? 'runs no sequence of its project' : `runs ${parts.join('; ')}`
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

/** Names that the summary shows of one flow. */
const NAMES_MAX = 5

interface ParsedMediation extends Pick<Diagnostics, 'errors' | 'warnings'> {
  readonly mediation: MediationDefinition
}

/** The result leaves out sequences that have errors. */
export async function parseMediation({ sources, plans, ...rest }: MediationSource): Promise<ParsedMediation> {
  const { parseSequence } = await import('../mediation/sequence-parser.ts')
  const found = new Diagnostics()
  const sequences: SequencePlan[] = [...plans]
  for (const { name, label, text } of sources) {
    const plan = await parseSequence(name, label, text, found)
    if (plan !== undefined) sequences.push(plan)
  }
  return { mediation: { ...rest, sequences }, errors: found.errors, warnings: found.warnings }
}

/**
 * Why an API with a WebSocket endpoint is refused: a sequence or policy of its response flow needs a worker, which
 * cannot run on the 101 of a handshake (D269).
 */
export async function handshakeDiagnostic(
  api: ApiDefinition,
  { sequences, extensions, policies, byOperation }: MediationDefinition,
): Promise<Diagnostic | undefined> {
  if (!hasWebSocketEndpoint(api)) return undefined
  const own = new Map(sequences.map(plan => [plan.name, plan]))
  const names = [extensions, policies, ...Object.values(byOperation)].flatMap(({ response }) => response)
  const { needsOf } = await import('../mediation/needs.ts')
  const found = names.find(name => needsOf([name], key => own.get(key)) === 'worker')
  if (found === undefined) return undefined
  return {
    where: own.get(found)?.label ?? '',
    key: 'response flow',
    given: formatValue(found),
    expected: 'reads or makes a body, so it does not run on WebSocket handshakes',
    hint: 'keep to properties, header fields and conditions over them',
  }
}
