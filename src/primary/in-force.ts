/** What is in force. Reloads replace it, piece by piece and all at one moment. */
import type { PlannedApis } from './api-planner.ts'
import type { ApiDefinitions } from '../config/api-definitions.ts'
import type { DeclaredApplication } from '../config/application-files.ts'
import type { Resolution } from '../config/resolve.ts'
import type { Signing } from './backend-signing.ts'
import type { LivePlan } from '../plan.ts'
import { livePlan } from './planning.ts'
import type { Prepared } from './preparation.ts'
import type { SequenceSet } from './sequence-files.ts'
import type { TlsMaterial } from '../tls/tls-material.ts'

export class InForce {
  /** With the values that run, where those that are set take a restart. */
  configured: Pick<Resolution, 'configuration' | 'keys'>
  projects: ApiDefinitions['projects']
  planned: PlannedApis
  /** Null while nothing is secured. */
  tls: TlsMaterial | null
  sequences: SequenceSet
  /** Of application files. */
  declared: readonly DeclaredApplication[]
  /** Of tokens for backends. */
  signing: Signing = { signer: null, fault: null }

  constructor(
    configured: InForce['configured'] & Pick<Prepared, 'applications'>,
    projects: InForce['projects'],
    planned: PlannedApis,
    tls: TlsMaterial | null,
    sequences: SequenceSet,
  ) {
    this.configured = configured
    this.declared = configured.applications
    this.projects = projects
    this.planned = planned
    this.tls = tls
    this.sequences = sequences
  }

  /** For the reactors. */
  get live(): LivePlan {
    const { configured, planned, tls, sequences, signing } = this
    return livePlan(configured.configuration, planned, tls?.plans ?? null, sequences, signing.signer)
  }
}
