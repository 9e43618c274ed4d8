/**
 * Mediation in one reactor: mediations of its APIs, worker threads, bodies that they read, endpoints of sequences, and
 * what tasks ask of the reactor.
 */
import { CompiledSequences } from '../mediation/compiled-sequences.ts'
import type { ApiMediationPlan } from '../mediation/flow-plan.ts'
import type { FlowStatistics } from '../mediation/flow-statistics.ts'
import type { BodyChecks } from '../mediation/policies/well-formed-body.ts'
import type { WorkerService } from '../mediation/worker-service.ts'
import type { CacheUsage } from '../runtime/cache-usage.ts'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import type { TraceRecords } from '../observe/trace-records.ts'
import {
  type ApiChanges,
  apiIdentity,
  type ApiPlan,
  type LivePlan,
  type ReactorPlan,
  wordsOutcomes,
} from '../plan/reactor-plan.ts'
import type { ApiMediation } from '../proxy/exchange/api-mediation.ts'
import type { ConnectionContexts, Report } from '../proxy/exchange/connection-context.ts'
import { newIdPrefix } from '../proxy/exchange/correlation-id.ts'
import { CheckedMediation, withBodyCheck } from '../proxy/mediated/body-check.ts'
import { BodyStore } from '../proxy/mediated/body-store.ts'
import { HeadMediation, needsOnlyHeads } from '../proxy/mediated/head-mediation.ts'
import { reportRaised } from '../proxy/mediated/mediation-refusals.ts'
import type { Admission, MediationServices } from '../proxy/mediated/mediation-services.ts'
import { MountedCalls, type MountedServices } from '../proxy/mediated/mounted-calls.ts'
import { MountedTarget } from '../proxy/mediated/mounted-target.ts'
import { OwnTargets } from '../proxy/mediated/own-targets.ts'
import type { TokenSource } from '../proxy/mediated/sequence-endpoint.ts'
import { TaskCallsServer } from '../proxy/mediated/task-calls-server.ts'
import { WorkerMediation } from '../proxy/mediated/worker-mediation.ts'
import { type Pipeline, refuse, refuseAtOnce, refuseRaised, respondWith } from '../proxy/pipeline.ts'
import type { PoolContext } from '../proxy/target/connection-pool.ts'
import type { EndpointTable } from '../proxy/target/endpoint-table.ts'
import { TurnQuota } from '../runtime/turn-quota.ts'
import type { Throttle } from '../throttle/throttle.ts'
import type { WorkTimes } from './api-work.ts'
import { OperationAdmission } from './operation-admission.ts'
import { outcomeFault } from './outcome-fault.ts'
import { ReactorWorkers } from './reactor-workers.ts'
import { SequenceTargets } from './sequence-targets.ts'

/** Messages that go to workers, and results that come back, in one turn of the loop: each takes some 30 µs (D590). */
const MESSAGES_PER_TURN = 3

interface ReactorMediationOptions {
  readonly report: Report
  readonly metrics: MetricsColumn
  readonly contexts: ConnectionContexts
  readonly pools: PoolContext
  readonly endpoints: EndpointTable
  /** Sequences of the home. */
  readonly sequences: CompiledSequences
  /** Null: flows are not counted. */
  readonly statistics: FlowStatistics | null
  /** Access tokens for endpoints of sequences, by the key of their plan. */
  readonly tokensOf: (key: string) => TokenSource
  /** Exists when the first request comes. */
  readonly pipeline: () => Pipeline
  readonly throttle: () => Throttle
  /** Null where requests are not traced. */
  readonly traces: TraceRecords | null
  /** In place of worker threads, for tests; undefined: none. */
  readonly worker: Pick<WorkerService, 'mediate'> | undefined
  /** First file of a worker thread, for tests; undefined: that of the room. */
  readonly workerEntry: URL | undefined
  /** Times of work beside requests, for tests; undefined: the usual ones. */
  readonly workTimes: Partial<WorkTimes> | undefined
  /** Called when no message is mediated in the background any more. */
  readonly backgroundOver: () => void
}

export class ReactorMediation {
  readonly #options: ReactorMediationOptions
  readonly #bodyChecks: BodyChecks | null
  readonly #store: BodyStore
  readonly #targets: SequenceTargets
  readonly #ownTargets = new OwnTargets()
  readonly #workers: ReactorWorkers
  readonly #calls: TaskCallsServer
  readonly #services: MediationServices
  readonly #mounted: MountedServices
  /** `mediation.synapse.global_timeout_interval`. */
  #timeoutMs: number
  #isGivenUp = false

  constructor(plan: ReactorPlan, options: ReactorMediationOptions) {
    const { report, metrics, contexts, pools, endpoints, workerEntry: entry, workTimes } = options
    this.#options = options
    this.#bodyChecks = plan.bodyChecks
    this.#store = new BodyStore(plan.bodies)
    this.#targets = new SequenceTargets(pools, endpoints, options.tokensOf)
    this.#targets.prepare(plan.sequenceEndpoints)()
    const calls = new MountedCalls()
    const receive: MountedCalls['receive'] = (message, reply) => calls.receive(message, reply)
    this.#workers = new ReactorWorkers(plan, {
      ...{ report, metrics, receive, entry, workTimes },
      serve: call => this.#calls.serve(call),
      left: task => this.#calls.leave(task),
      count: counts => options.statistics?.counter.add(counts),
    })
    this.#calls = new TaskCallsServer({
      context: contexts.plain,
      store: this.#store,
      endpoints: this.#targets,
      ownTargets: this.#ownTargets,
      idPrefix: newIdPrefix(),
      blockingCalls: plan.blockingCalls,
      background: task => this.#workers.services.plain.background(task),
      backgroundOver: options.backgroundOver,
      traces: options.traces,
    })
    this.#services = this.#newServices()
    this.#timeoutMs = plan.responseTimeoutMs
    const { refuse, bug } = this.#services
    const countLate = (): void => metrics.add(METRIC.workerTimeouts, 1)
    const shared = { contexts, report, refuse, bug, countLate, timeoutMs: () => this.#timeoutMs }
    this.#mounted = { workers: this.#workers.mounted, calls, store: this.#store, ...shared }
  }

  /** Builds what a reload changes; throws where that fails. The returned function applies it and cannot fail. */
  prepare(live: LivePlan, apis: ApiChanges): () => void {
    const applyTargets = this.#targets.prepare(live.sequenceEndpoints)
    return () => {
      applyTargets()
      this.#store.limits = live.bodies
      this.#timeoutMs = live.responseTimeoutMs
      this.#calls.update(live.blockingCalls)
      this.#workers.deploy(live, apis)
    }
  }

  /** Usage of the addresses that messages chose. */
  dynamicEndpointsUsage(): CacheUsage {
    return this.#targets.usage()
  }

  /** Usage of the responses that sequences keep. */
  keptResponsesUsage(): CacheUsage {
    return this.#calls.keptUsage()
  }

  /** No job runs and no message is mediated in the background, or nobody waits for them any more. */
  get isWorkOver(): boolean {
    return this.#workers.isWorkOver && (this.#isGivenUp || this.#calls.inBackground === 0)
  }

  /** As of `ReactorWorkers`. */
  stopWork(): Promise<void> {
    return this.#workers.stopWork()
  }

  /** Ends the wait for jobs and messages in the background. */
  giveUpWork(): void {
    this.#workers.giveUpWork()
    const { inBackground: MESSAGES } = this.#calls
    if (MESSAGES > 0 && !this.#isGivenUp)
      this.#options.report('warn', 'messages in the background given up', { MESSAGES })
    this.#isGivenUp = true
  }

  /** Ends all worker threads. */
  close(): void {
    this.#workers.close()
  }

  /** The implementation of a mounted API; null for one with endpoints. */
  mountedOf(api: ApiPlan): MountedTarget | null {
    return api.mounted === null ? null : new MountedTarget(apiIdentity(api), api.mounted.module, this.#mounted)
  }

  /** Function that words faults of the gateway for an API; undefined: the fault sequences. */
  faultWordingOf(api: ApiPlan): typeof outcomeFault | undefined {
    return wordsOutcomes(api) ? outcomeFault : undefined
  }

  /** The mediation of an API; null where its messages pass as they are. */
  mediationOf(api: ApiPlan): ApiMediation | null {
    const own = api.mediation === null ? null : this.#mediationBy(api, api.mediation)
    if (this.#bodyChecks === null) return own
    const checked = withBodyCheck(api)
    return new CheckedMediation(own, this.#mediationBy(checked, checked.mediation), this.#bodyChecks)
  }

  #mediationBy(api: ApiPlan, mediation: ApiMediationPlan): ApiMediation {
    const { name, version } = api
    const { sequences: home, contexts, report, statistics, pipeline } = this.#options
    const sequences = new CompiledSequences(mediation.sequences, report, home, statistics?.counter)
    const answers = {
      respond: (exchange, response) => respondWith(exchange, pipeline(), response),
      fault: (exchange, fault) => this.#services.refuseRaised(exchange, fault),
    } satisfies ConstructorParameters<typeof HeadMediation>[4]
    if (needsOnlyHeads(mediation)) {
      return new HeadMediation(
        mediation,
        `${name}:${version}`,
        sequences,
        contexts.plain,
        answers,
        (exchange, fault, onError, state) =>
          pipeline().faults.respondByOnError(exchange, fault, sequences, onError, state),
      )
    }
    return new WorkerMediation(
      api,
      sequences,
      contexts.plain,
      this.#services,
      answers,
      (exchange, fault, names, state) => pipeline().faults.respondByFlow(exchange, fault, sequences, names, state),
      this.#admissionOf(api, mediation),
    )
  }

  #admissionOf(api: ApiPlan, { admission }: ApiMediationPlan): Admission | null {
    return admission === undefined ? null : new OperationAdmission(api, admission, this.#options.throttle())
  }

  #newServices(): MediationServices {
    const { worker, contexts, report, pipeline } = this.#options
    return {
      workers: worker === undefined ? this.#workers.services : { plain: worker, secured: worker },
      turns: new TurnQuota(MESSAGES_PER_TURN),
      store: this.#store,
      contexts,
      report,
      endpoints: this.#targets,
      ownTargets: this.#ownTargets,
      refuse: (exchange, { refusal, failure, sequence }) => refuse(exchange, pipeline(), refusal, failure, sequence),
      refuseAtOnce: (exchange, { refusal, failure, sequence }) =>
        refuseAtOnce(exchange, pipeline(), refusal, failure, sequence),
      refuseRaised: (exchange, fault) => {
        reportRaised(report, exchange, fault)
        refuseRaised(exchange, pipeline(), fault)
      },
      bug: (exchange, error) => pipeline().onError(exchange, error),
    }
  }
}
