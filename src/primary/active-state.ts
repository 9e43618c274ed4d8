/** The state of the home that is active on a node: a reload replaces all of it in one turn of the event loop. */
import {
  logReconciliation,
  reconcileLifecycles,
  unsavedDiagnostics,
  withLifecycles,
} from '../plan/lifecycle-planning.ts'
import { loadNeeds } from '../plan/mediation-planning.ts'
import { ApiPlanner, type PlannedApis } from '../plan/api-planning.ts'
import { endpointsOf } from '../apis/api-definition.ts'
import type { LoadedApis } from '../apis/api-projects.ts'
import type { DeclaredApplication } from '../apis/application-files.ts'
import { LifecycleStore } from '../apis/lifecycle-file.ts'
import { ConfigurationErrors, formatDiagnostic } from '../config/diagnostics.ts'
import type { Resolution } from '../config/resolve.ts'
import { createSigner, type SigningResult } from '../plan/backend-signing.ts'
import type { LivePlan } from '../plan/reactor-plan.ts'
import { allowedScopes, withIssuer } from '../plan/auth-planning.ts'
import { globalCors, livePlan } from '../plan/reactor-planning.ts'
import { tokenApis } from '../plan/token-apis.ts'
import type { SequenceSet } from '../mediation/sequence-files.ts'
import type { Log } from '../observe/log.ts'
import type { PolicySet } from '../throttle/policy.ts'
import type { TlsDraft, TlsMaterial } from '../tls/tls-material.ts'
import type { Installation, LoadedHome } from './home-loading.ts'

export const ISSUER = 'oauth.oidc.id_token.issuer'

type Configured = Pick<Resolution, 'configuration' | 'keys'>

export class ActiveState {
  /** Keys that take a restart have the value that runs. */
  configured: Configured
  projects: LoadedApis['projects']
  planned: PlannedApis
  /** Null: no listener and no client connection uses TLS. */
  tls: TlsMaterial | null
  sequences: SequenceSet
  /** Applications of the home's files. */
  declared: readonly DeclaredApplication[]
  /** Throttling policies of the home's files. */
  policies: PolicySet
  /** Signer of the tokens for backends. */
  signing: SigningResult = { signer: null, error: null }
  #sharedIssuer = ''

  constructor(
    configured: ActiveState['configured'] & Pick<LoadedHome, 'applications' | 'policies'>,
    projects: ActiveState['projects'],
    planned: PlannedApis,
    tls: TlsMaterial | null,
    sequences: SequenceSet,
  ) {
    this.configured = configured
    this.declared = configured.applications
    this.policies = configured.policies
    this.projects = projects
    this.planned = planned
    this.tls = tls
    this.sequences = sequences
  }

  /** The database has given this node its issuer. */
  shareIssuer(issuer: string): void {
    this.#sharedIssuer = issuer
    this.configured = this.withSharedIssuer(this.configured)
  }

  /** The issuer of the database in place of the default, unless the operator names another one. */
  withSharedIssuer<One extends Configured>(configured: One): One {
    const value = this.#sharedIssuer
    const isDefault = ({ path, where }: Resolution['keys'][number]): boolean => path === ISSUER && where === ''
    if (value === '' || !configured.keys.some(isDefault)) return configured
    const keys = configured.keys.map(key => (isDefault(key) ? { ...key, value } : key))
    return { ...configured, keys, configuration: withIssuer(configured.configuration, value) }
  }

  /** The part that a reload replaces in a reactor. */
  get live(): LivePlan {
    const { configured, planned, tls, sequences, policies, signing } = this
    return livePlan(configured.configuration, planned, tls?.plans ?? null, {
      sequences,
      policies,
      signer: signing.signer,
    })
  }
}

export interface OpenedState {
  readonly planner: ApiPlanner
  readonly active: ActiveState
  readonly lifecycles: LifecycleStore
  /** Opens key stores and watches them, on a node that has had no TLS before. */
  readonly openTls: (draft: TlsDraft) => Promise<TlsMaterial>
}

interface StateOptions {
  readonly installation: Installation
  /** Without errors, but for those of single APIs. */
  readonly loaded: LoadedHome
  readonly log: Log
}

/**
 * Makes a loaded home active; the caller holds the lock of the data folder. `reactors`: for how many the shared tables
 * have columns. `tlsChanged`: keys or certificates were read again. Rejects with ConfigurationErrors.
 */
export async function openState(options: StateOptions, reactors: number, tlsChanged: () => void): Promise<OpenedState> {
  const { installation, loaded } = options
  const { configuration, apis, sequences, proxies } = loaded
  const endpoints = apis.apis.reduce((sum, api) => sum + endpointsOf(api).length, 0)
  const planner = new ApiPlanner(reactors, endpoints)
  const definitions = [...apis.apis, ...tokenApis(configuration, apis.apis)]
  const asDeclared = planner.plan({
    ...{ definitions, proxies, sequences },
    cors: globalCors(configuration),
    allowedScopes: allowedScopes(configuration),
    aiSequence: configuration['apim.ai'].custom_error_response_sequence,
    needsOf: await loadNeeds(definitions, sequences),
  })
  const lifecycles = await openLifecycles(options, asDeclared)
  const planned = withLifecycles(asDeclared, lifecycles.records)
  const openTls = (draft: TlsDraft) => openMaterial(draft, options, tlsChanged)
  const tls = loaded.tls === null ? null : await openTls(loaded.tls)
  const active = new ActiveState(loaded, apis.projects, planned, tls, sequences)
  active.signing = createSigner(loaded.signing, installation.dataDir)
  const { error } = active.signing
  if (error !== null) throw new ConfigurationErrors([error])
  return { planner, active, lifecycles, openTls }
}

/** Rejects with ConfigurationErrors. */
async function openLifecycles(
  { installation, loaded, log }: StateOptions,
  planned: PlannedApis,
): Promise<LifecycleStore> {
  const store = LifecycleStore.open(installation.dataDir)
  const reconciled = reconcileLifecycles(store.records, planned, loaded.configuration)
  logReconciliation(log, reconciled)
  for (const diagnostic of unsavedDiagnostics(await store.adopt(reconciled.records)))
    log.error(formatDiagnostic(diagnostic))
  return store
}

/** The TLS modules are loaded only where something uses TLS. */
async function openMaterial(draft: TlsDraft, options: StateOptions, changed: () => void): Promise<TlsMaterial> {
  const { TlsMaterial: Material } = await import('../tls/tls-material.ts')
  const { installation, log } = options
  return Material.open(draft, { home: installation.home, dataDir: installation.dataDir, log, changed })
}
