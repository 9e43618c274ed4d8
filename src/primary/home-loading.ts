/**
 * Reads and validates a whole home: configuration, APIs, applications, sequences, forward proxies, key stores. `check`
 * reports the result, a start and a reload make it active; nothing is changed or written here.
 */
import { loadApis } from '../apis/api-loading.ts'
import { callsOverTls } from './control-plan.ts'
import { attributeDiagnostics } from '../config/diagnostic-positions.ts'
import { type ApiDefinition, endpointsOf } from '../apis/api-definition.ts'
import { sequencesMayUseTls } from '../plan/api-planning.ts'
import { readSigningKey, NO_SIGNING, type SigningKeySource } from '../plan/backend-signing.ts'
import { type DeclaredApplication, readApplications, unknownReferences } from '../apis/application-files.ts'
import { readPolicies } from '../apis/policy-files.ts'
import { unknownSettingTiers, unknownTiers } from '../apis/tier-names.ts'
import type { LoadedApis, ApiProjects } from '../apis/api-projects.ts'
import type { Configuration } from '../config/catalogue.ts'
import type { Diagnostic } from '../config/diagnostics.ts'
import { type Examination, examine } from '../config/load.ts'
import type { Resolution, ResolvedKey } from '../config/resolve.ts'
import { type ForwardProxies, readForwardProxies } from '../plan/forward-proxies.ts'
import { hasTlsListener, planListeners } from '../plan/listener-planning.ts'
import { redisUsesTls, withoutRedis } from '../plan/redis-planning.ts'
import { accessErrors, hasManagementListener } from '../plan/management-plan.ts'
import { receiverAddress } from '../plan/receiver-planning.ts'
import { nodeComponents } from '../plan/node-components.ts'
import { AT_RELOAD, AT_START } from './project-reader.ts'
import { moduleDiagnostics } from './operator-modules.ts'
import { validateRegistry } from '../control/registry/registry-validation.ts'
import { type LifecycleFile, readLifecycleFile } from '../apis/lifecycle-file.ts'
import {
  loadSequences,
  NO_SEQUENCES,
  missingEndpoint,
  missingSequence,
  sequencesOfFlows,
  type SequenceSet,
} from '../mediation/sequence-files.ts'
import { checkAggregates, checkEventStreams, checkFaultSequences, checkHandshakes } from '../plan/mediation-planning.ts'
import { webSocketSequenceErrors } from '../mediation/websocket-sequences.ts'
import { namesInForce } from '../throttle/policy-index.ts'
import { throttlePlan } from '../plan/throttle-planning.ts'
import type { PolicySet } from '../throttle/policy.ts'
import type { TlsDraft, TlsInputs } from '../tls/tls-material.ts'

/** The folders of a node, and the values that its command line sets. */
export interface Installation {
  readonly home: string
  readonly dataDir: string
  /** `section.key=value`, in the order given. */
  readonly sets: readonly string[]
}

export interface LoadedHome {
  readonly configuration: Configuration
  readonly keys: readonly ResolvedKey[]
  /** Without APIs that have errors, unless their earlier version goes on. */
  readonly apis: LoadedApis
  readonly proxies: ForwardProxies
  /** A file with errors is replaced by the active sequence, or the default. */
  readonly sequences: SequenceSet
  /** Lifecycle states that operators have set; null: the file was not read. */
  readonly lifecycles: LifecycleFile | null
  /** Applications of the home's files. */
  readonly applications: readonly DeclaredApplication[]
  /** Throttling policies of the home's files. */
  readonly policies: PolicySet
  /** Null: no listener and no client connection uses TLS. */
  readonly tls: TlsDraft | null
  /** The key that signs tokens for backends. */
  readonly signing: SigningKeySource
  /** Errors that refuse a start or a reload. Errors of single APIs stand in `apis`: they refuse nothing else. */
  readonly errors: readonly Diagnostic[]
  /** Keys that the catalogue does not have: warnings at a start, errors under `check`. */
  readonly unknown: readonly Diagnostic[]
  readonly warnings: readonly Diagnostic[]
}

/** The active parts that a faulty file falls back to. */
interface ActiveParts {
  /** No version is active yet. */
  readonly isStart: boolean
  readonly projects: LoadedApis['projects']
  readonly sequences: SequenceSet
  /** Merges a configuration without errors with the running one. */
  merge(resolution: Resolution): Pick<Resolution, 'configuration' | 'keys' | 'errors'>
}

export const NOTHING_ACTIVE: ActiveParts = {
  isStart: true,
  projects: new Map(),
  sequences: NO_SEQUENCES,
  merge: resolution => resolution,
}

/** `examined`: the configuration, where the caller has examined it already. */
export async function loadHome(
  { home, sets, dataDir }: Installation,
  projects: ApiProjects,
  running: ActiveParts = NOTHING_ACTIVE,
  examined: Examination = examine(home, sets, dataDir),
): Promise<LoadedHome> {
  const { unknown } = examined
  const { configuration, keys, errors } = examined.errors.length === 0 ? running.merge(examined) : examined
  const { runsGateway, runsKeyManager, runsTrafficManager } = nodeComponents(configuration)
  // Without its configuration file nothing else of a home can be validated. Files of parts that the node does not run
  // are not opened: they may belong to another node.
  if (examined.unreadable || !(runsGateway || runsKeyManager || runsTrafficManager)) {
    const nothing = { apis: NO_APIS, lifecycles: null, applications: [], policies: NO_POLICIES, tls: null, ...NO_PARTS }
    return { configuration, keys, ...nothing, errors, unknown, warnings: examined.warnings }
  }
  const thread = running.isStart ? AT_START : AT_RELOAD
  const { diagnostics, ...parts } = runsGateway
    ? await gatewayParts({ configuration, keys }, home, running)
    : NO_GATEWAY
  const { files } = parts.sequences
  const apis = await loadApis(projects, configuration, runsGateway, running.projects, thread, files)
  const lifecycles = readLifecycleFile(dataDir)
  const tls = await tlsDraftFor({ configuration, keys }, apis, home, parts.sequences)
  const declared = await loadApplications(home, configuration, apis)
  const registry = runsKeyManager ? validateRegistry(configuration) : NO_DIAGNOSTICS
  const modules = await moduleDiagnostics(configuration, home, { runsGateway, runsKeyManager })
  const ofKeys = [...diagnostics.errors, ...modules.errors, ...accessErrors(configuration), ...registry.errors]
  return {
    ...{ configuration, keys, apis, lifecycles, tls, unknown },
    applications: declared.applications,
    policies: declared.policies,
    ...parts,
    errors: [
      ...errors,
      ...attributeDiagnostics(ofKeys, keys),
      ...(tls?.diagnostics.errors ?? []),
      ...lifecycles.errors,
      ...declared.errors,
    ],
    warnings: [
      ...examined.warnings,
      ...attributeDiagnostics(
        [...diagnostics.warnings, ...registry.warnings, ...modules.warnings, ...declared.ofKeys],
        keys,
      ),
      ...declared.warnings,
      ...(await checkHandshakes(apis.apis, parts.sequences)),
      ...(await checkEventStreams(apis.apis, parts.sequences)),
      ...(await checkAggregates(apis.apis, parts.sequences)),
      ...checkFaultSequences(parts.sequences),
      ...missingEndpoints(apis.apis, parts.sequences),
      ...(await unusableFiles(home, apis.apis, parts.sequences)),
    ],
  }
}

/** Sequences of flows that name an endpoint or a template which makes none: each of their calls is a fault. */
function missingEndpoints(apis: readonly ApiDefinition[], { files, endpoints }: SequenceSet): readonly Diagnostic[] {
  const ofHome = [...sequencesOfFlows(files)].flatMap(name => files.get(name)?.plan ?? [])
  const ofApis = apis.flatMap(({ mediation }) => mediation?.sequences ?? [])
  return [...ofHome, ...ofApis].flatMap(plan => {
    const missing = missingEndpoint(plan, endpoints)
    return missing === undefined ? [] : [{ ...missing, where: plan.label }]
  })
}

/** Sequences that name a file of the home that cannot be used. */
async function unusableFiles(
  home: string,
  apis: readonly ApiDefinition[],
  { files }: SequenceSet,
): Promise<readonly Diagnostic[]> {
  const plans = [...[...files.values()].map(({ plan }) => plan), ...apis.flatMap(api => api.mediation?.sequences ?? [])]
  const using = plans.filter(plan => plan.files !== undefined)
  if (using.length === 0) return []
  const { usedFileProblems } = await import('../mediation/home-texts.ts')
  return usedFileProblems(home, using)
}

interface DeclaredParts extends FoundDiagnostics {
  readonly applications: readonly DeclaredApplication[]
  readonly policies: PolicySet
  /** Warnings about keys, without their place. */
  readonly ofKeys: readonly Diagnostic[]
}

/** Applications and throttling policies of the home's files, with a warning for each name that is not known. */
export async function loadApplications(
  home: string,
  configuration: Configuration,
  { names, apis }: Pick<LoadedApis, 'names' | 'apis'>,
): Promise<DeclaredParts> {
  const read = await readApplications(home)
  const own = configuration.oauth['oidc.id_token.issuer']
  const issuers = new Set([own, ...configuration['apim.jwt.issuer'].map(({ name }) => name)])
  // A key manager alone may have no copy of the APIs.
  const isApart = names.size === 0 && !nodeComponents(configuration).runsGateway
  const unknown = unknownReferences(read.applications, isApart ? null : names, issuers)
  const policies = await readPolicies(home, throttlePlan(configuration, NO_POLICIES).conditions)
  const plan = throttlePlan(configuration, policies.set)
  const tiers = {
    application: namesInForce('application', plan),
    subscription: namesInForce('subscription', plan),
    advanced: namesInForce('advanced', plan),
  }
  const { runsKeyManager } = nodeComponents(configuration)
  const ofTiers = unknownTiers(read.applications, apis, tiers, runsKeyManager)
  return {
    applications: read.applications,
    policies: policies.set,
    ofKeys: unknownSettingTiers(configuration['apim.throttling'], tiers, runsKeyManager),
    errors: [...read.errors, ...policies.errors],
    warnings: [
      ...read.warnings,
      ...unknown,
      ...policies.warnings,
      ...ofTiers,
      ...withoutRedis(configuration, policies.set),
    ],
  }
}

interface FoundDiagnostics {
  readonly errors: readonly Diagnostic[]
  readonly warnings: readonly Diagnostic[]
}

/** Parts of the home that only reactors use. */
interface GatewayParts extends Pick<LoadedHome, 'proxies' | 'sequences' | 'signing'> {
  readonly diagnostics: FoundDiagnostics
}

async function gatewayParts(
  { configuration, keys }: Pick<Resolution, 'configuration' | 'keys'>,
  home: string,
  { sequences: active, isStart }: ActiveParts,
): Promise<GatewayParts> {
  const proxies = await readForwardProxies(configuration, keys)
  const sequences = await loadSequences(home, active)
  const signing = await readSigningKey(configuration, home)
  const missing = [
    ...missingAiSequence(configuration, sequences),
    ...webSocketSequenceErrors(configuration, sequences, isStart),
  ]
  const errors = [...proxies.errors, ...missing, ...signing.errors]
  return { proxies, sequences, signing, diagnostics: { errors, warnings: proxies.warnings } }
}

/** `[apim.ai]` names a sequence that does not exist. */
function missingAiSequence(configuration: Configuration, { files }: SequenceSet): readonly Diagnostic[] {
  const given = configuration['apim.ai'].custom_error_response_sequence
  if (given === '' || files.has(given)) return []
  return [missingSequence('apim.ai.custom_error_response_sequence', given)]
}

const NO_APIS: LoadedApis = {
  apis: [],
  projects: new Map(),
  kept: [],
  names: new Set(),
  skipped: [],
  errors: [],
  warnings: [],
}
const NO_POLICIES: PolicySet = { policies: [], denied: [] }
const NO_DIAGNOSTICS: FoundDiagnostics = { errors: [], warnings: [] }
const NO_PARTS: Omit<GatewayParts, 'diagnostics'> = {
  proxies: { proxyFor: () => null, ...NO_DIAGNOSTICS },
  sequences: NO_SEQUENCES,
  signing: NO_SIGNING,
}
const NO_GATEWAY: GatewayParts = { ...NO_PARTS, diagnostics: NO_DIAGNOSTICS }

/** Opens key stores and profiles where a listener or a client connection uses TLS; null: nothing does. */
export async function tlsDraftFor(
  { configuration, keys }: Pick<Resolution, 'configuration' | 'keys'>,
  { apis }: Pick<LoadedApis, 'apis'>,
  home: string,
  sequences: SequenceSet,
): Promise<TlsDraft | null> {
  const receives = receiverAddress(configuration)?.isSecured === true
  const listens = receives || hasTlsListener(planListeners(configuration)) || hasManagementListener(configuration)
  const { runsGateway } = nodeComponents(configuration)
  const ofApis = apis.some(api => endpointsOf(api).some(({ url }) => /^(?:https|wss):/i.test(url)))
  const dials = runsGateway && (ofApis || sequencesMayUseTls(apis, sequences))
  const counts = runsGateway && redisUsesTls(configuration)
  if (!listens && !dials && !counts && !callsOverTls(configuration)) return null
  const { draftTls } = await import('../tls/tls-material.ts')
  return draftTls(tlsSources(configuration, keys, listens), home)
}

function tlsSources(configuration: Configuration, keys: readonly ResolvedKey[], listens: boolean): TlsInputs {
  const wss = configuration['transport.wss']
  return {
    https: configuration['transport.passthru_https'],
    wss: { location: wss['sender.trust_store.location'], password: wss['sender.trust_store.password'] },
    hostname: configuration.server.hostname,
    listens,
    isManagementOnly: !hasTlsListener(planListeners(configuration)),
    attribute: findings => attributeDiagnostics(findings, keys),
  }
}
