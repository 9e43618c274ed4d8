/**
 * Plans the mediation flows of an API: which sequences run in which order, and what they need. Extension sequences of
 * the home join those of the API by their names, as the reference platform names them: `WSO2AM--Ext--In` for every API,
 * `NAME:vVERSION--In` and `PROVIDER--NAME:vVERSION--In` for one.
 */
import {
  type ApiDefinition,
  DESTINATION_SEQUENCE,
  type FirstSequences,
  type Flow,
  type FlowNames,
  hasWebSocketEndpoint,
  type MediationDefinition,
  NO_FLOW_NAMES,
} from '../apis/api-definition.ts'
import { abbreviatedList, type Diagnostic } from '../config/diagnostics.ts'
import { callerPropertiesOf } from '../mediation/caller-properties.ts'
import { withEndpointForms } from '../mediation/endpoint-forms.ts'
import {
  type ApiMediationPlan,
  type FlowPlan,
  type FlowsPlan,
  gathersCopies,
  keptParts,
  makesCopies,
  mostOf,
  needsWorkerAlone,
  NO_FLOW,
  setsProperty,
} from '../mediation/flow-plan.ts'
import type { needsOf as needsOfSequences, SequenceLookup } from '../mediation/needs.ts'
import { KEEPING } from '../mediation/policies/kept-request.ts'
import { SOAP_FAULT_CHECK } from '../mediation/soap-fault-check.ts'
import { FORCE_ERROR_ON_SOAP_FAULT } from '../mediation/transport-properties.ts'
import { EXTENSION_PREFIXES, type ExtensionFlow, isOfFlow } from '../mediation/sequence-files.ts'
import type { SequenceSet } from '../mediation/sequence-files.ts'
import type { SequencePlan } from '../mediation/sequence-plan.ts'
import { TOKEN_API_NAMES } from './reactor-plan.ts'

/** Words faults that the fault flow of an API does not answer, as on the reference platform (D825). */
const LAST_FAULT = 'fault'
/** Words such faults of `/token` and `/revoke`. */
const LAST_TOKEN_FAULT = '_token_fault_'
const NOTHING_FIRST: FirstSequences = { request: [], response: [], unread: [] }
const NO_MEDIATION: MediationDefinition = {
  sequences: [],
  extensions: NO_FLOW_NAMES,
  policies: NO_FLOW_NAMES,
  byOperation: {},
}

/** Sequences that no project has: other sequences ask for them. */
const ADDED = [SOAP_FAULT_CHECK, ...Object.values(KEEPING)]

/** Computes what sequences need: loads every mediator. */
export type NeedsOf = typeof needsOfSequences

/** For homes without any flow, so that a start loads no mediator. */
export const NO_NEEDS: NeedsOf = () => {
  throw new Error('the needs of flows were not loaded')
}

/** `NO_NEEDS` unless a project or the home has sequences that run in flows. */
export async function loadNeeds(definitions: readonly ApiDefinition[], { files }: SequenceSet): Promise<NeedsOf> {
  const hasFlows = definitions.some(({ mediation }) => mediation !== null) || [...files.keys()].some(isOfFlow)
  return hasFlows ? (await import('../mediation/needs.ts')).needsOf : NO_NEEDS
}

/**
 * Null: every message of the API passes as it is. The order of sequences is that of D720 in every flow. `aiSequence`:
 * fault sequence of AI APIs; '' for the usual one.
 */
export function mediationPlan(
  api: ApiDefinition,
  { files, endpoints }: SequenceSet,
  needsOf: NeedsOf,
  aiSequence = '',
): ApiMediationPlan | null {
  const {
    sequences,
    extensions,
    policies,
    byOperation,
    first = NOTHING_FIRST,
    admission,
  } = api.mediation ?? NO_MEDIATION
  const own = new Map(sequences.map(sequence => [sequence.name, sequence]))
  const lookup: SequenceLookup = name => {
    return own.get(name) ?? files.get(name)?.plan ?? ADDED.find(sequence => sequence.name === name)
  }
  const before = (flow: ExtensionFlow): readonly string[] => {
    return [...sequencesOfAll(flow, files), ...extensions[FLOWS[flow]], ...sequencesOfHome(api, flow, files)]
  }
  const request = [...first.request, ...before('In'), ...policies.request]
  const last = own.has(DESTINATION_SEQUENCE) ? [DESTINATION_SEQUENCE] : []
  const response = [...before('Out'), ...policies.response]
  const fault = [...before('Fault'), ...policies.fault]
  const flow = (names: readonly string[]): FlowPlan =>
    names.length === 0 ? NO_FLOW : withReads({ sequences: names, needs: needsOf(names, lookup) })
  const withReads = (plan: FlowPlan): FlowPlan => {
    // Responses to copies run through the response flow within the task of the request.
    const reads = callerPropertiesOf([...plan.sequences, ...response], lookup)
    return reads.length === 0 ? plan : { ...plan, reads }
  }
  const responseFlow = (names: readonly string[]): FlowPlan =>
    gathersCopies(names, lookup) ? { ...flow(names), gathers: true } : flow(names)
  const ofType = api.isAi && files.has(aiSequence) ? aiSequence : LAST_FAULT
  const lastFault = TOKEN_API_NAMES.includes(api.name) ? LAST_TOKEN_FAULT : ofType
  // A fault that the flow leaves unanswered is worded as others are. That sequence always runs on the reactor.
  const faultFlow = (names: readonly string[]): FlowPlan =>
    names.length === 0 || !files.has(lastFault)
      ? flow(names)
      : withReads({ sequences: [...names, lastFault], needs: mostOf('heads', needsOf(names, lookup)) })
  // The sequence of the admission reads the body.
  const admitted = (own: FlowPlan): FlowPlan => (admission === undefined ? own : { ...own, needs: 'worker' })
  const flowsWith = (operation: FlowNames, readsFirst: boolean): FlowsPlan => {
    const requests = [...request, ...operation.request, ...last]
    // Handshakes have no body, and a worker cannot run on them (D269).
    const mayCheck = !hasWebSocketEndpoint(api) && setsProperty(requests, lookup, FORCE_ERROR_ON_SOAP_FAULT)
    const checks = mayCheck ? [SOAP_FAULT_CHECK.name] : []
    const responses = [...checks, ...(readsFirst ? first.response : []), ...response, ...operation.response]
    const keeping = keptParts(responses, lookup).map(part => KEEPING[part].name)
    return {
      request: admitted(flow([...keeping, ...requests])),
      response: responseFlow(responses),
      fault: faultFlow([...fault, ...operation.fault]),
    }
  }
  const flows = flowsWith(NO_FLOW_NAMES, true)
  const keys = new Set([...Object.keys(byOperation), ...first.unread])
  const ofOperations = Array.from(keys, key => {
    return [key, flowsWith(byOperation[key] ?? NO_FLOW_NAMES, !first.unread.includes(key))] as const
  })
  const all = [flows, ...ofOperations.map(([, each]) => each)]
  const used = new Set(all.flatMap(each => [...each.request.sequences, ...each.response.sequences]))
  const ofApi = sequences.map(sequence => withEndpointForms(sequence, endpoints))
  const known = [...ofApi, ...ADDED.filter(({ name }) => used.has(name))]
  const plan = { sequences: known, flows, byOperation: Object.fromEntries(ofOperations) }
  if (admission !== undefined) return { ...plan, admission }
  return isEmpty(flows) && ofOperations.every(([, each]) => isEmpty(each)) ? null : plan
}

/**
 * Warns of APIs with a WebSocket endpoint whose response flow needs a worker because of sequences of the home: the flow
 * does not run on the 101 of a handshake, behind which frames may follow at once (D269). Projects are refused before.
 */
export async function checkHandshakes(
  apis: readonly ApiDefinition[],
  sequences: SequenceSet,
): Promise<readonly Diagnostic[]> {
  const concerned = apis.filter(hasWebSocketEndpoint)
  if (concerned.length === 0) return []
  const needsOf = await loadNeeds(concerned, sequences)
  return concerned.flatMap(api => {
    const plan = mediationPlan(api, sequences, needsOf)
    const flows = plan === null ? [] : [plan.flows, ...Object.values(plan.byOperation)]
    const unrun = flows.find(({ response }) => response.needs === 'worker')
    if (unrun === undefined) return []
    return {
      where: `API ${api.name}:${api.version}`,
      key: 'response flow',
      given: unrun.response.sequences.join(', '),
      expected: 'reads or makes a body, so it does not run on WebSocket handshakes',
      hint: 'keep to properties, header fields and conditions over them',
    }
  })
}

/** Warns of APIs of the type SSE whose response flow reads the body: that of an event stream may never end. */
export async function checkEventStreams(
  apis: readonly ApiDefinition[],
  sequences: SequenceSet,
): Promise<readonly Diagnostic[]> {
  const concerned = apis.filter(({ isEventStream }) => isEventStream === true)
  if (concerned.length === 0) return []
  const needsOf = await loadNeeds(concerned, sequences)
  return concerned.flatMap(api => {
    const plan = mediationPlan(api, sequences, needsOf)
    const flows = plan === null ? [] : [plan.flows, ...Object.values(plan.byOperation)]
    const reading = flows.find(({ response }) => response.needs === 'worker')?.response.sequences ?? []
    const own = new Map(plan?.sequences.map(sequence => [sequence.name, sequence]))
    const lookup: SequenceLookup = name => own.get(name) ?? sequences.files.get(name)?.plan
    const name = reading.find(each => needsOf([each], lookup) === 'worker')
    if (name === undefined) return []
    return {
      where: placeOfWorker(lookup(name)!, lookup, needsOf),
      key: 'response flow',
      given: name,
      expected: `reads the body, and that of API ${api.name}:${api.version}, an event stream, may never end`,
      hint: 'keep to properties, header fields and conditions over them, or change the type of the API',
    }
  })
}

/** File and line of the first mediator that needs a worker. */
function placeOfWorker(plan: SequencePlan, lookup: SequenceLookup, needsOf: NeedsOf): string {
  const only = (step: SequencePlan['steps'][number]): SequencePlan => ({ ...plan, steps: [step], onError: '' })
  const step = plan.steps.find(each => needsOf([''], name => (name === '' ? only(each) : lookup(name))) === 'worker')
  return step === undefined ? plan.label : `${plan.label}:${step.line}`
}

/** APIs with an `<aggregate>` of their own in the response flow, whose flows make no copies. */
export async function checkAggregates(
  apis: readonly ApiDefinition[],
  sequences: SequenceSet,
): Promise<readonly Diagnostic[]> {
  const lookupOf = (plan: ApiMediationPlan): SequenceLookup => {
    const own = new Map(plan.sequences.map(sequence => [sequence.name, sequence]))
    return name => own.get(name) ?? sequences.files.get(name)?.plan
  }
  const concerned = apis.filter(({ mediation }) => {
    const own = new Map(mediation?.sequences.map(sequence => [sequence.name, sequence]))
    return gathersCopies([...own.keys()], name => own.get(name))
  })
  if (concerned.length === 0) return []
  const needsOf = await loadNeeds(concerned, sequences)
  return concerned.flatMap(api => {
    const plan = mediationPlan(api, sequences, needsOf)!
    const flows = [plan.flows, ...Object.values(plan.byOperation)]
    const alone = flows.find(({ request, response }) => {
      // Copies of the response flow may gather in a sequence that receives what they have asked for.
      return response.gathers === true && !makesCopies([...request.sequences, ...response.sequences], lookupOf(plan))
    })
    if (alone === undefined) return []
    return {
      where: `API ${api.name}:${api.version}`,
      key: 'response flow',
      given: alone.response.sequences.join(', '),
      expected: 'has an <aggregate>, and the request flow makes no copies',
      hint: 'make copies with <clone> or <iterate> and <send> in the request flow',
    }
  })
}

/** Sequences of the home that word faults by their codes: those of the specification, and others named like them. */
const OF_CODES = /^(?:fault|main|guardrail_fault|_.+_)$/

/** Sequences of codes with a mediator that only a worker runs: refusals never wait for one (D825). */
export function checkFaultSequences({ files }: SequenceSet): readonly Diagnostic[] {
  const lookup: SequenceLookup = name => files.get(name)?.plan
  return [...files].flatMap(([name, { label }]) => {
    if (!OF_CODES.test(name) || !needsWorkerAlone([name], lookup)) return []
    const expected = 'has a mediator that only a worker runs: refusals get the default body instead'
    const hint = 'keep to properties, conditions and payloadFactory with its format inside, and no FreeMarker'
    return [{ where: label, key: 'sequence', given: name, expected, hint }]
  })
}

type Files = SequenceSet['files']

const FLOWS: Readonly<Record<ExtensionFlow, Flow>> = { In: 'request', Out: 'response', Fault: 'fault' }

function firstOf(names: readonly string[], files: Files): readonly string[] {
  return names.filter(name => files.has(name)).slice(0, 1)
}

/** The sequence of the home that runs for every API; empty for none. */
function sequencesOfAll(flow: ExtensionFlow, files: Files): readonly string[] {
  const names = EXTENSION_PREFIXES.map(prefix => `${prefix}--${flow}`)
  return firstOf(names, files)
}

/** The sequence of the home that runs for one API, unless its project has one of its own; empty for none. */
function sequencesOfHome(api: ApiDefinition, flow: ExtensionFlow, files: Files): readonly string[] {
  const isReplaced = (api.mediation ?? NO_MEDIATION).extensions[FLOWS[flow]].length > 0
  return isReplaced ? [] : firstOf(extensionNames(api, flow), files)
}

/** APIs of a sequence of every API, as the summary names them: passwords and tokens pass such a sequence. */
const EVERY_API = 'every API, also for /token and /revoke'
/** Extension sequences that the summary names, and APIs of each. */
const SUMMARIES_MAX = 20
const APIS_MAX = 5

/** Returns a diagnostic for each extension sequence of the home; it names the APIs for which that runs. */
export function extensionSummaries(apis: readonly ApiDefinition[], { files }: SequenceSet): readonly Diagnostic[] {
  const names = [...files.keys()].filter(isOfFlow)
  if (names.length === 0) return []
  const users = new Map<string, string[]>(names.map(name => [name, []]))
  for (const flow of ['In', 'Out', 'Fault'] as const) {
    for (const name of sequencesOfAll(flow, files)) users.get(name)!.push(EVERY_API)
    for (const api of apis) {
      for (const name of sequencesOfHome(api, flow, files)) users.get(name)!.push(`API ${api.name} ${api.version}`)
    }
  }
  const told = [...users].slice(0, SUMMARIES_MAX).map(([name, of]) => {
    const whom = of.length === 0 ? 'no API' : abbreviatedList(of, APIS_MAX)
    return { where: files.get(name)!.label, key: '', given: '', expected: `${name} runs for ${whom}`, hint: '' }
  })
  const others = names.length - told.length
  if (others === 0) return told
  const expected = `${others} more extension sequences run`
  return [...told, { where: 'sequences', key: '', given: '', expected, hint: 'sluice api show names them' }]
}

/** Names of the extension sequence of one API in the home, the more specific one first. */
function extensionNames({ name, version, access: { provider } }: ApiDefinition, flow: ExtensionFlow): string[] {
  const plain = `${name}:v${version}--${flow}`
  return provider === '' ? [plain] : [`${provider.replaceAll('@', '-AT-')}--${plain}`, `${provider}--${plain}`, plain]
}

function isEmpty({ request, response, fault }: FlowsPlan): boolean {
  return [request, response, fault].every(({ sequences }) => sequences.length === 0)
}
