/** Requests that wait for approval (`[apim.workflow]`): who has to wait, and the decisions; shared by REST and CLI. */
import type { Application, Page, Subscription, Workflow } from '../registry/entities.ts'
import type { WorkflowRequest } from '../registry/workflow-store.ts'
import type { AdminServices } from './admin-services.ts'
import type { Actor } from './application-service.ts'
import { notFoundProblem, Problem } from './problem.ts'

/** Types of requests, by what `[apim.workflow]` lets wait. */
const SUBJECTS = {
  AM_APPLICATION_CREATION: 'applications',
  AM_APPLICATION_REGISTRATION_PRODUCTION: 'keys',
  AM_APPLICATION_REGISTRATION_SANDBOX: 'keys',
  AM_SUBSCRIPTION_CREATION: 'subscriptions',
  AM_SUBSCRIPTION_UPDATE: 'subscriptions',
} as const satisfies Record<Workflow['kind'], 'applications' | 'keys' | 'subscriptions'>

export const WORKFLOW_KINDS = Object.keys(SUBJECTS) as readonly Workflow['kind'][]

export const KEY_REQUESTS = {
  PRODUCTION: 'AM_APPLICATION_REGISTRATION_PRODUCTION',
  SANDBOX: 'AM_APPLICATION_REGISTRATION_SANDBOX',
} as const

type Decision = 'APPROVED' | 'REJECTED'

export class ApprovalService {
  readonly #services: () => AdminServices

  constructor(services: () => AdminServices) {
    this.#services = services
  }

  /** The request with which something waits; null where it needs no approval. `properties`: for those who decide. */
  requestFor(
    kind: Workflow['kind'],
    { user, tenant }: Pick<Actor, 'user' | 'tenant'>,
    properties: Readonly<Record<string, string>>,
  ): WorkflowRequest | null {
    const { approvals } = this.#services()
    if (!approvals[SUBJECTS[kind]]) return null
    return { kind, tenant, requester: user, properties, callsEngine: approvals.callsEngine }
  }

  /** Reports a request that was stored, tells those who decide, and has the engine called. */
  async requested(kind: Workflow['kind'], { user, tenant }: Actor, application: string): Promise<void> {
    const { approvals, notices, report } = this.#services()
    report('info', 'approval requested', { USER: user, TENANT: tenant, WORKFLOW_TYPE: kind, APPLICATION: application })
    approvals.wake()
    await notices?.approvalRequested(kind, { name: user, tenant }, application)
  }

  /** Statuses of applications that are not approved, by id. */
  async statuses(applications: readonly Application[]): Promise<ReadonlyMap<string, Workflow['status']>> {
    const ids = applications.map(({ id }) => id)
    const requests = await this.#services().registry.workflows.bySubject('AM_APPLICATION_CREATION', ids)
    return new Map([...requests].map(([id, { status }]) => [id, status]))
  }

  /** Rejects with Problem while the application waits, and after it was rejected. */
  async requireApproved(application: Application): Promise<void> {
    const status = (await this.statuses([application])).get(application.id) ?? 'APPROVED'
    if (status === 'CREATED') throw new Problem(409, `the application ${application.name} waits for approval`)
    if (status === 'REJECTED') throw new Problem(409, `the application ${application.name} was rejected`)
  }

  /** Policies that changed subscriptions wait for, by id of the subscription. */
  async pendingTiers(subscriptions: readonly Subscription[]): Promise<ReadonlyMap<string, string>> {
    const ids = subscriptions.map(({ id }) => id)
    const changes = await this.#services().registry.workflows.bySubject('AM_SUBSCRIPTION_UPDATE', ids)
    const waiting = [...changes].filter(([, { status }]) => status === 'CREATED')
    return new Map(waiting.map(([id, { properties }]) => [id, properties.tier ?? '']))
  }

  /** Requests for keys of an application, which were not used yet. */
  async keyRequests({ id }: Application): Promise<readonly Workflow[]> {
    const all = await this.#services().registry.workflows.listForApplication(id)
    return all.filter(({ kind }) => SUBJECTS[kind] === 'keys')
  }

  listPending(actor: Pick<Actor, 'tenant'>, kind: Workflow['kind'] | '', page: Page) {
    const of = { tenant: actor.tenant, ...(kind === '' ? {} : { kind }) }
    return this.#services().registry.workflows.listPending(of, page)
  }

  async get(id: string, { tenant }: Pick<Actor, 'tenant'>): Promise<Workflow> {
    const workflow = await this.#services().registry.workflows.get(id)
    if (workflow?.tenant !== tenant) throw notFoundProblem('request')
    return workflow
  }

  /** The request of an application that is to be decided. `kinds`: the first one that waits counts. */
  async find(applicationId: string, subject: string, kinds: readonly Workflow['kind'][]): Promise<Workflow> {
    const all = await this.#services().registry.workflows.listForApplication(applicationId)
    const found = all.find(one => one.status === 'CREATED' && one.subject === subject && kinds.includes(one.kind))
    if (found === undefined) throw new Problem(409, 'nothing waits for approval here')
    return found
  }

  /** A decision that was made before may be repeated. `reason`: for the log and those who ask; '' for none. */
  async decide(id: string, decision: Decision, reason: string, actor: Actor): Promise<Workflow> {
    await this.get(id, actor)
    const { registry, notices, report } = this.#services()
    const decided = await registry.workflows.decide(id, decision, reason)
    if (decided === null) {
      const before = await this.get(id, actor)
      if (before.status === decision) {
        // A node may have ended between the decision and its mail.
        await notices?.approvalDecided(before)
        return before
      }
      throw new Problem(409, `the request was ${before.status === 'APPROVED' ? 'approved' : 'rejected'} before`)
    }
    const event = decision === 'APPROVED' ? 'request approved' : 'request rejected'
    const { kind: WORKFLOW_TYPE, requester: REQUESTER } = decided
    report('info', event, { USER: actor.user, TENANT: actor.tenant, WORKFLOW: id, WORKFLOW_TYPE, REQUESTER })
    await notices?.approvalDecided(decided)
    return decided
  }
}
