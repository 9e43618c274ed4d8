/** What a node holds of its home once it has begun, with or without a gateway: reloads replace it piece by piece. */
import { logSettled, settledNow, unkept, withLifecycles } from './api-lifecycles.ts'
import { ApiPlanner, type PlannedApis } from './api-planner.ts'
import type { AuthorityKeeper } from './authority-keeper.ts'
import { signerOf } from './backend-signing.ts'
import { endpointsOf } from '../config/api-definition.ts'
import type { ApiProjects } from '../config/api-definitions.ts'
import { ConfigurationFaults, describe } from '../config/fault.ts'
import { InForce } from './in-force.ts'
import type { Log } from '../observe/log.ts'
import { globalCors } from './planning.ts'
import type { Place, Prepared } from './preparation.ts'
import { LifecycleBook } from '../store/lifecycle-book.ts'
import type { TlsDraft, TlsMaterial } from '../tls/tls-material.ts'
import { tokenApis } from './token-apis.ts'

/** What every node is started with. */
export interface NodeOptions {
  readonly place: Place
  readonly projects: ApiProjects
  /** Without faults, but for those of single APIs. */
  readonly prepared: Prepared
  readonly authority: AuthorityKeeper
  readonly log: Log
}

export interface NodeState {
  readonly planner: ApiPlanner
  readonly inForce: InForce
  readonly lifecycles: LifecycleBook
  /** Of a node that had no TLS until now. */
  readonly openTls: (draft: TlsDraft) => Promise<TlsMaterial>
}

/**
 * Once the data folder is held: until then another node may write to it. `reactors`: that the tables have room for.
 * `tlsChanged`: keys or certificates were read anew. Throws ConfigurationFaults.
 */
export async function openState(options: NodeOptions, reactors: number, tlsChanged: () => void): Promise<NodeState> {
  const { place, prepared } = options
  const { configuration, apis, sequences, proxies } = prepared
  const endpoints = apis.apis.reduce((sum, api) => sum + endpointsOf(api).length, 0)
  const planner = new ApiPlanner(reactors, endpoints)
  const definitions = [...apis.apis, ...tokenApis(configuration, apis.apis)]
  const drafted = planner.plan(definitions, proxies, globalCors(configuration))
  const lifecycles = await keptLifecycles(options, drafted)
  const planned = withLifecycles(drafted, lifecycles.records)
  const openTls = (draft: TlsDraft) => openMaterial(draft, options, tlsChanged)
  const tls = prepared.tls === null ? null : await openTls(prepared.tls)
  const inForce = new InForce(prepared, apis.projects, planned, tls, sequences)
  inForce.signing = signerOf(prepared.signing, place.dataDir)
  const { fault } = inForce.signing
  if (fault !== null) throw new ConfigurationFaults([fault])
  return { planner, inForce, lifecycles, openTls }
}

/** Throws ConfigurationFaults. */
async function keptLifecycles({ place, prepared, log }: NodeOptions, drafted: PlannedApis): Promise<LifecycleBook> {
  const book = LifecycleBook.open(place.dataDir)
  const settled = settledNow(book.records, drafted, prepared.configuration)
  logSettled(log, settled)
  for (const fault of unkept(await book.follow(settled.records))) log.error(describe(fault))
  return book
}

/** Loaded only where something is secured. */
async function openMaterial(draft: TlsDraft, { place, log }: NodeOptions, changed: () => void): Promise<TlsMaterial> {
  const { TlsMaterial: Material } = await import('../tls/tls-material.ts')
  return Material.open(draft, { home: place.home, dataDir: place.dataDir, log, changed })
}
