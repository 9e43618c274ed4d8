/**
 * Everything that a home folder says, read and judged at once: configuration, APIs, forward proxies, key stores.
 * `check` reports it, a start and a reload put it in force; nothing is changed or written here.
 */
import { loadApis } from './api-loading.ts'
import { asksSecured } from './authority-planning.ts'
import { attributed } from './attribution.ts'
import { endpointsOf } from '../config/api-definition.ts'
import { draftSigning, NOTHING_SIGNED, type SigningDraft } from './backend-signing.ts'
import { type DeclaredApplication, readApplications } from '../config/application-files.ts'
import type { ApiDefinitions, ApiProjects } from '../config/api-definitions.ts'
import type { Configuration } from '../config/catalogue.ts'
import type { Fault } from '../config/fault.ts'
import { type Examination, examine } from '../config/load.ts'
import type { Resolution, ResolvedKey } from '../config/resolve.ts'
import { type ForwardProxies, forwardProxies } from './forward-proxies.ts'
import { listensSecured, planListeners } from './listener-plans.ts'
import { accessFaults, listensForManagement } from './management-planning.ts'
import { partsOf } from './node-parts.ts'
import { missingModules } from './operator-modules.ts'
import { judgeRegistry } from '../registry/judgement.ts'
import { type LifecycleFile, readLifecycles } from '../store/lifecycle-book.ts'
import { loadSequences, NO_SEQUENCES, noSuchSequence, type SequenceSet } from './sequence-files.ts'
import { missingSocketSequences } from './socket-sequences.ts'
import type { TlsDraft, TlsSources } from '../tls/tls-material.ts'

/** Where the configuration is, and how the command line has changed it. */
export interface Place {
  readonly home: string
  readonly dataDir: string
  /** `section.key=value`, in the order given. */
  readonly sets: readonly string[]
}

export interface Prepared {
  readonly configuration: Configuration
  readonly keys: readonly ResolvedKey[]
  /** An API that is faulty is not among them, unless it goes on as it was. */
  readonly apis: ApiDefinitions
  readonly proxies: ForwardProxies
  /** Of a file that is faulty another one stands there. */
  readonly sequences: SequenceSet
  /** What the command line has made of APIs; null on a node without any. */
  readonly lifecycles: LifecycleFile | null
  /** What files say of applications. */
  readonly applications: readonly DeclaredApplication[]
  /** Null where nothing is secured. */
  readonly tls: TlsDraft | null
  /** What tokens for backends are signed with. */
  readonly signing: SigningDraft
  /** With any of these it is of no use. Those of APIs stand with the APIs: they stop no other. */
  readonly faults: readonly Fault[]
  /** Keys that the catalogue does not have: warnings at start, faults under `check`. */
  readonly unknown: readonly Fault[]
  readonly warnings: readonly Fault[]
}

/** What is in force while something else is prepared. */
interface Running {
  /** Nothing is in force: what is faulty has nothing to go on with. */
  readonly isStart: boolean
  readonly projects: ApiDefinitions['projects']
  readonly sequences: SequenceSet
  /** What can be in force of a configuration without faults, and what of it cannot be. */
  settle(resolution: Resolution): Pick<Resolution, 'configuration' | 'keys' | 'faults'>
}

export const NOTHING_RUNS: Running = {
  isStart: true,
  projects: new Map(),
  sequences: NO_SEQUENCES,
  settle: resolution => resolution,
}

/** `examined`: where the configuration was looked at already. */
export async function prepare(
  { home, sets, dataDir }: Place,
  projects: ApiProjects,
  running: Running = NOTHING_RUNS,
  examined: Examination = examine(home, sets, dataDir),
): Promise<Prepared> {
  const { unknown } = examined
  const { configuration, keys, faults } = examined.faults.length === 0 ? running.settle(examined) : examined
  const { runsGateway, runsKeyManager } = partsOf(configuration)
  // Nothing can be said of the rest where the file itself cannot be read.
  // What only another kind of node would read is not opened: it may be that of another node.
  if (examined.unreadable || !(runsGateway || runsKeyManager)) {
    const nothing = { apis: NO_APIS, lifecycles: null, applications: [], tls: null, ...NO_PARTS }
    return { configuration, keys, ...nothing, faults, unknown, warnings: examined.warnings }
  }
  const apis = loadApis(projects, configuration, running.projects)
  const { found, ...parts } = runsGateway ? await gatewayParts({ configuration, keys }, home, running) : NO_GATEWAY
  const lifecycles = readLifecycles(dataDir)
  const tls = await draftOf({ configuration, keys }, apis, home)
  const { applications, faults: undeclared } = readApplications(home)
  const registry = runsKeyManager ? judgeRegistry(configuration) : NOTHING_FOUND
  const modules = await missingModules(configuration, home, { runsGateway, runsKeyManager })
  const ofKeys = [...found.faults, ...modules, ...accessFaults(configuration), ...registry.faults]
  return {
    ...{ configuration, keys, apis, lifecycles, applications, tls, unknown },
    ...parts,
    faults: [
      ...faults,
      ...attributed(ofKeys, keys),
      ...(tls?.findings.faults ?? []),
      ...lifecycles.faults,
      ...undeclared,
    ],
    warnings: [...examined.warnings, ...attributed([...found.warnings, ...registry.warnings], keys)],
  }
}

interface Found {
  readonly faults: readonly Fault[]
  readonly warnings: readonly Fault[]
}

/** What only reactors act on. */
interface GatewayParts extends Pick<Prepared, 'proxies' | 'sequences' | 'signing'> {
  readonly found: Found
}

async function gatewayParts(
  { configuration, keys }: Pick<Resolution, 'configuration' | 'keys'>,
  home: string,
  { sequences: inForce, isStart }: Running,
): Promise<GatewayParts> {
  const proxies = await forwardProxies(configuration, keys)
  const sequences = await loadSequences(home, inForce)
  const signing = await draftSigning(configuration, home)
  const unnamed = [
    ...missingSequence(configuration, sequences),
    ...missingSocketSequences(configuration, sequences, isStart),
  ]
  const faults = [...proxies.faults, ...unnamed, ...signing.faults]
  return { proxies, sequences, signing, found: { faults, warnings: proxies.warnings } }
}

/** `[apim.ai]` names a sequence that is not there. */
function missingSequence(configuration: Configuration, { files }: SequenceSet): readonly Fault[] {
  const given = configuration['apim.ai'].custom_error_response_sequence
  if (given === '' || files.has(given)) return []
  return [noSuchSequence('apim.ai.custom_error_response_sequence', given)]
}

const NO_APIS: ApiDefinitions = { apis: [], projects: new Map(), kept: [], leftOut: [], faults: [], warnings: [] }
const NOTHING_FOUND: Found = { faults: [], warnings: [] }
const NO_PARTS: Omit<GatewayParts, 'found'> = {
  proxies: { proxyFor: () => null, ...NOTHING_FOUND },
  sequences: NO_SEQUENCES,
  signing: NOTHING_SIGNED,
}
const NO_GATEWAY: GatewayParts = { ...NO_PARTS, found: NOTHING_FOUND }

/** Key stores and profiles are opened where something is secured; what reads them is loaded only then. */
export async function draftOf(
  { configuration, keys }: Pick<Resolution, 'configuration' | 'keys'>,
  { apis }: Pick<ApiDefinitions, 'apis'>,
  home: string,
): Promise<TlsDraft | null> {
  const listens = listensSecured(planListeners(configuration)) || listensForManagement(configuration)
  const { runsGateway } = partsOf(configuration)
  const dials = runsGateway && apis.some(api => endpointsOf(api).some(({ url }) => /^(?:https|wss):/i.test(url)))
  if (!listens && !dials && !asksSecured(configuration)) return null
  const { draftTls } = await import('../tls/tls-material.ts')
  return draftTls(tlsSources(configuration, keys, listens), home)
}

function tlsSources(configuration: Configuration, keys: readonly ResolvedKey[], listens: boolean): TlsSources {
  const wss = configuration['transport.wss']
  return {
    https: configuration['transport.passthru_https'],
    wss: { location: wss['sender.trust_store.location'], password: wss['sender.trust_store.password'] },
    hostname: configuration.server.hostname,
    listens,
    isManagementAlone: !listensSecured(planListeners(configuration)),
    attributed: findings => attributed(findings, keys),
  }
}
