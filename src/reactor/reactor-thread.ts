/** The thread of a reactor: builds the reactor from its plan and serves the messages of the primary. */
import { parentPort } from 'node:worker_threads'
import { buildFilterChain } from '../filters/build-chain.ts'
import { PortControlChannel } from '../auth/control-channel.ts'
import type { CustomValidator } from '../auth/custom-validator.ts'
import type { AuthPlan } from '../auth/auth-plan.ts'
import { AuthState } from '../auth/auth-state.ts'
import { AccessLog, type AccessLogFormat } from '../observe/access-log.ts'
import type { AnalyticsEvents } from '../observe/analytics-events.ts'
import type { TraceRecords } from '../observe/trace-records.ts'
import { EventLog } from '../observe/events.ts'
import { AccessLogFile } from '../observe/access-log-file.ts'
import { sinkCallbacks } from '../observe/access-log-sink.ts'
import { AccessSampling } from '../observe/access-sampling.ts'
import { METRIC, MetricsColumn } from '../observe/metrics.ts'
import type { AccessLogPlan } from '../plan/access-log-planning.ts'
import { receivePlan } from '../plan/plan-codec.ts'
import type { LivePlan } from '../plan/reactor-plan.ts'
import type { FromReactor, ReactorCall, ToReactor } from '../plan/reactor-messages.ts'
import { respond } from '../runtime/call-channel.ts'
import { TRIM_STEP_MS, trimOnceIdle } from '../runtime/heap-trim.ts'
import { loadMediation } from './mediation-loading.ts'
import type { ModuleGuard } from './module-guard.ts'
import { Reactor } from './reactor.ts'
import { handleLevel } from '../socket/handle-socket.ts'
import { streamLevel } from '../socket/stream-socket.ts'
import type { TlsLevel } from '../socket/tls.ts'
import type { Validators } from './validator-loading.ts'

/** A replacement listens after so long without a snapshot: open APIs must be reached. */
const SNAPSHOT_MS = 5000

const plan = receivePlan()
const port = parentPort!
const metrics = new MetricsColumn(plan.metrics, plan.reactor)

function post(message: FromReactor): void {
  port.postMessage(message)
}

const events = new EventLog(event => post({ kind: 'event', event }), {
  level: plan.logLevel,
  nowMs: () => performance.now(),
  onSuppressed: () => metrics.add(METRIC.logLinesSuppressed, 1),
})

const authState = new AuthState(plan.authVersion, plan.auth)
authState.policies.setPlan(plan.throttling)

const file = plan.accessLog.target === 'file' ? openAccessLog() : null

function openAccessLog(): AccessLogFile {
  const callbacks = sinkCallbacks('access log', metrics, (level, event, fields) => events.report(level, event, fields))
  return new AccessLogFile(plan.accessLog.path, callbacks)
}

async function accessLog(): Promise<AccessLog | null> {
  if (plan.accessLog.target === 'off') return null
  // The primary alone writes to standard output and to syslog: lines of several reactors stay whole there.
  const write = (batch: Uint8Array, written: () => void): void => {
    if (file === null) post({ kind: 'access', batch })
    else file.write(batch, written)
  }
  const { shares, perSecond } = plan.accessLog
  return new AccessLog(await lineFormat(plan.accessLog), write, {
    wallOffsetMs: () => Date.now() - performance.now(),
    lends: file !== null,
    sampling: shares.length === 0 && perSecond === 0 ? null : new AccessSampling(shares, perSecond),
    sampledOut: () => metrics.add(METRIC.accessLogSampledOut, 1),
  })
}

async function lineFormat({ format, template, escapes }: AccessLogPlan): Promise<AccessLogFormat> {
  if (format !== 'template') return format
  const { templateLines } = await import('../observe/access-template.ts')
  return templateLines(template, escapes)
}

async function analytics(): Promise<AnalyticsEvents | null> {
  if (plan.analytics === null) return null
  const { AnalyticsEvents: Events } = await import('../observe/analytics-events.ts')
  return new Events({
    ...plan.analytics,
    wallOffsetMs: () => Date.now() - performance.now(),
    publish: batch => authState.call({ kind: 'analytics', ...batch }),
    onDropped: events => metrics.add(METRIC.analyticsDropped, events),
  })
}

async function traces(): Promise<TraceRecords | null> {
  if (plan.traces === null) return null
  const { TraceRecords: Records } = await import('../observe/trace-records.ts')
  return new Records({
    ...plan.traces,
    wallOffsetMs: () => Date.now() - performance.now(),
    publish: batch => authState.call({ kind: 'traces', ...batch }),
    onDropped: exchanges => metrics.add(METRIC.traceRecordsDropped, exchanges),
  })
}

/** The TLS modules are loaded only where a listener or a route uses TLS: they take memory and time. */
async function tlsLevel({ tlsServer, tlsClients }: LivePlan): Promise<TlsLevel | null> {
  if (tlsServer === null && Object.keys(tlsClients).length === 0) return null
  if (plan.level === 'streams') return (await import('../socket/tls-stream.ts')).streamTls
  return (await import('../socket/tls-handle.ts')).handleTls()
}

let tls = await tlsLevel(plan)

// Modules add to it while they load, which the compiler does not see.
let guard = null as ModuleGuard | null

/** Loaded with the first module of the operator. */
async function moduleGuard(): Promise<ModuleGuard> {
  const { ModuleGuard: Guard } = await import('./module-guard.ts')
  guard ??= new Guard(plan.home)
  return guard
}

let validators: Validators | null = null

/** The operator's validator; null for none. Rejects with ModuleError. */
async function customValidator({ validator }: AuthPlan): Promise<CustomValidator | null> {
  if (validator === '') return null
  if (validators === null) {
    const { Validators: Loaded } = await import('./validator-loading.ts')
    validators = new Loaded(plan, { report, metrics, guard: await moduleGuard() })
  }
  return validators.load(validator)
}

/** A validator that cannot be loaded stops no start: it refuses every caller, with the cause. */
async function firstValidator(): Promise<CustomValidator | null> {
  try {
    return await customValidator(plan.auth)
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error)
    events.report('error', 'key validation handler not loaded', { CAUSE_OF_ERROR: cause })
    return () => {
      throw new Error(cause)
    }
  }
}

const handlers =
  plan.handlers === null
    ? null
    : await (await import('./handler-loading.ts')).loadHandlers(plan.handlers, plan, {
        ...{ report, metrics, guard: await moduleGuard() },
      })

function report(
  level: 'debug' | 'info' | 'warn' | 'error',
  event: string,
  fields: Record<string, string | number>,
): void {
  events.report(level, event, fields)
}

const reactor = new Reactor(plan, {
  level: plan.level === 'handles' ? handleLevel() : streamLevel,
  tls,
  report,
  accessLog: await accessLog(),
  analytics: await analytics(),
  traces: await traces(),
  authState,
  validator: await firstValidator(),
  mediation: await loadMediation(plan, plan.apis),
  buildFilterChain: (...of) => handlers?.filter.chain(buildFilterChain(...of)) ?? buildFilterChain(...of),
  drained: finish,
})

function finish(): void {
  reactor.stop()
  handlers?.close()
  validators?.close()
  authState.close()
  const written = file === null ? Promise.resolve() : file.close()
  written.then(() => {
    // Without its port and its timers the thread ends by itself.
    port.close()
  })
}

guard?.serve()

/** The last deployment: deployments run in the order of their calls. */
let deploying: Promise<unknown> = Promise.resolve()

async function deploy({ live, apis }: Extract<ReactorCall, { kind: 'deploy' }>): Promise<true> {
  tls ??= await tlsLevel(live)
  if (live.auth.validator !== '') (await moduleGuard()).serve()
  const [validator, mediation] = [await customValidator(live.auth), await loadMediation(live, apis.deployed)]
  reactor.deploy(live, apis, { tls, validator, mediation })
  authState.updatePlan(live.auth)
  authState.policies.setPlan(live.throttling)
  events.setLevel(live.logLevel)
  return true
}

async function serve(call: ReactorCall): Promise<unknown> {
  if (call.kind === 'deploy') {
    const deployed = deploying.then(() => deploy(call))
    deploying = deployed.catch(() => {})
    return deployed
  }
  if (call.kind === 'sockets') return reactor.sockets
  if (call.kind === 'closeListeners') {
    reactor.stopListening()
    // The process that takes over works from now on.
    void reactor.stopWork()
    return true
  }
  try {
    return await reactor.inspector.serve(call)
  } catch (error) {
    events.report('error', 'bug', { CAUSE_OF_ERROR: stackOf(error as Error) })
    throw error
  }
}

function stackOf(error: Error): string {
  return error.stack ?? error.message
}

port.on('message', (message: ToReactor) => {
  if (message.kind === 'call') void respond(port, message, serve, stackOf)
  else if (message.kind === 'drain') reactor.drain(message.keepsIdle)
  else if (message.kind === 'cutOff') reactor.cutOff()
  else if (message.kind === 'reopenLogs') file?.reopen()
  else if (message.kind === 'channel') {
    authState.attach(new PortControlChannel(message.port, update => authState.apply(update)))
  } else if (message.kind === 'hang') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
})

/** Resolves with the first snapshot, which authenticates the first callers; at once where every API is open. */
async function snapshotReceived(): Promise<void> {
  if (plan.apis.every(({ access }) => access.schemes.length === 0)) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(() => {
    events.report('error', 'credentials cannot be checked yet', {
      CAUSE_OF_ERROR: 'no snapshot from the control thread',
    })
    resolve()
  }, SNAPSHOT_MS)
  authState.firstSnapshot.promise.then(resolve)
  await promise
  clearTimeout(timer)
}

snapshotReceived()
  .then(() => reactor.start())
  .then(
    ports => {
      post({ kind: 'listening', fds: Object.values(reactor.sockets).flat() })
      post({ kind: 'started', started: ports })
      trimOnceIdle(plan.reactor * TRIM_STEP_MS, () => metrics.read(METRIC.connectionsOpen) === 0)
    },
    (error: Error) => post({ kind: 'failed', cause: error.message }),
  )
