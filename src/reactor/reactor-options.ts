/** Services and loaded parts that a reactor gets from its thread, or from a test. */
import type { AuthState } from '../auth/auth-state.ts'
import type { CustomValidator } from '../auth/custom-validator.ts'
import type { ReactorAuth } from '../auth/reactor-auth.ts'
import type { WorkerService } from '../mediation/worker-service.ts'
import type { AccessLog } from '../observe/access-log.ts'
import type { AnalyticsEvents } from '../observe/analytics-events.ts'
import type { TraceRecords } from '../observe/trace-records.ts'
import type { ApiPlan } from '../plan/reactor-plan.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import type { Filter } from '../proxy/exchange/contract.ts'
import type { SocketLevel } from '../socket/byte-socket.ts'
import type { TlsLevel } from '../socket/tls.ts'
import type { Throttle } from '../throttle/throttle.ts'
import type { WorkTimes } from './api-work.ts'
import type { ReactorMediation } from './reactor-mediation.ts'

export interface ReactorOptions {
  readonly level: SocketLevel
  /** TLS at that level; null where nothing in the plan is secured. */
  readonly tls: TlsLevel | null
  readonly report: Report
  /** null: no access log. */
  readonly accessLog: AccessLog | null
  /** null: no events for analytics. */
  readonly analytics: Pick<AnalyticsEvents, 'append' | 'flush'> | null
  /** null: requests are not traced. */
  readonly traces: TraceRecords | null
  /** Keys, subscriptions and revocations, as the control thread sends them. */
  readonly authState: AuthState
  /** The operator's validator; null for none. */
  readonly validator: CustomValidator | null
  buildFilterChain(api: ApiPlan, auth: ReactorAuth, throttle: Throttle): readonly Filter[]
  /** As `loadMediation` has it: null where no message of the APIs is mediated. */
  readonly mediation: typeof ReactorMediation | null
  /** Runs the flows that need a worker, in place of worker threads; for tests. */
  readonly worker?: Pick<WorkerService, 'mediate'>
  /** First file of a worker thread; for tests. */
  readonly workerEntry?: URL | undefined
  /** Times of work beside requests; for tests. */
  readonly workTimes?: Partial<WorkTimes> | undefined
  /** Clock of limits, in milliseconds since 1970; `Date.now` by default. */
  readonly wallMs?: () => number
  /** Called when a draining reactor has no connection left. */
  drained(): void
}

/** Parts of a reload that load modules, so that they exist before it begins. */
export type LoadedParts = Pick<ReactorOptions, 'tls' | 'validator' | 'mediation'>
