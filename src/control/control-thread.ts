/**
 * The control thread: opens the control plane from its plan, takes channels to reactors, serves the primary's calls.
 */
import { parentPort, workerData } from 'node:worker_threads'
import type {
  ControlPlan,
  ControlThreadData,
  FromControlThread,
  PrimaryCall,
  PrimaryCallResults,
  SupervisorCall,
  ToControlThread,
} from '../plan/control-messages.ts'
import { EventLog } from '../observe/events.ts'
import { METRIC, MetricsColumn } from '../observe/metrics.ts'
import { ThreadWatch } from '../observe/thread-metrics.ts'
import { NEW_SOCKET } from '../socket/byte-socket.ts'
import { CallChannel, respond } from '../runtime/call-channel.ts'
import { trimOnceIdle } from '../runtime/heap-trim.ts'
import { authPlan, withIssuer } from '../plan/auth-planning.ts'
import { ControlPlane } from './control-plane.ts'
import { ReactorChannels } from './reactor-channels.ts'
import { IssuerShared } from './registry/registry-errors.ts'

const HEARTBEAT_MS = 500
const CALLS = { pendingMax: 256, timeoutMs: 10_000 }

const { heartbeats, runsKeyManager } = workerData as ControlThreadData
const port = parentPort!
let metrics: MetricsColumn | null = null
let controlPlane: ControlPlane | null = null
/** Start, reloads and stop run in the order of their messages. */
let last: Promise<unknown> = Promise.resolve()

function post(message: FromControlThread): void {
  port.postMessage(message)
}

const events = new EventLog(event => post({ kind: 'event', event }), {
  level: 'info',
  nowMs: () => performance.now(),
  onSuppressed: () => metrics?.add(METRIC.logLinesSuppressed, 1),
})

function bug(error: Error): void {
  events.report('error', 'bug', { CAUSE_OF_ERROR: error.stack ?? error.message })
}

const reactors = new ReactorChannels({ bug })
const primary = new CallChannel<PrimaryCall, PrimaryCallResults>('the primary', port, CALLS)

// The modules load while the primary makes the plan. A failure comes again where they are used.
if (runsKeyManager) void import('./local-key-manager.ts').catch(() => {})

setInterval(() => {
  Atomics.add(heartbeats, 0, 1)
  events.tick()
}, HEARTBEAT_MS)

async function start({ plan, fd }: Extract<ToControlThread, { kind: 'start' }>): Promise<void> {
  events.setLevel(plan.configuration.logging.level)
  metrics = new MetricsColumn(plan.metrics, plan.column)
  ThreadWatch.start(plan.metrics, plan.column)
  try {
    const { controlPlane: opened, sharedIssuer } = await openPlane(plan, fd)
    controlPlane = opened
    const { port: managementPort, firstAccount } = opened
    post({ kind: 'started', started: { port: managementPort, firstAccount, sharedIssuer } })
    trimOnceIdle()
  } catch (error) {
    post({ kind: 'failed', cause: (error as Error).message })
  }
}

/** Opens the control plane; once more, with the issuer of the database, where the node has to take that issuer. */
async function openPlane(
  plan: ControlPlan,
  listenerFd: number,
): Promise<{ readonly controlPlane: ControlPlane; readonly sharedIssuer: string }> {
  const context = {
    reactors,
    metrics: new MetricsColumn(plan.metrics, plan.column),
    report: (...event: Parameters<EventLog['report']>) => events.report(...event),
    callPrimary: <One extends PrimaryCall>(call: One) => primary.call(call),
    listenerFd,
  }
  try {
    return { controlPlane: await ControlPlane.open(plan, context), sharedIssuer: '' }
  } catch (error) {
    if (!(error instanceof IssuerShared)) throw error
    const { issuer } = error
    const HINT = `the default is ${plan.ownIssuer}; to change it, set oauth.oidc.id_token.issuer on all nodes`
    events.report('info', 'issuer taken from the database', { ISSUER: issuer, HINT })
    return { controlPlane: await ControlPlane.open(withOwnIssuer(plan, issuer), context), sharedIssuer: issuer }
  }
}

function withOwnIssuer(plan: ControlPlan, issuer: string): ControlPlan {
  const configuration = withIssuer(plan.configuration, issuer)
  const { declared, ownIssuer } = plan
  const keys = declared.keys.map(key => (key.issuer === ownIssuer ? { ...key, issuer } : key))
  const { issuers } = authPlan(configuration)
  return { ...plan, configuration, ownIssuer: issuer, issuers, declared: { ...declared, keys } }
}

async function stop(): Promise<void> {
  await controlPlane?.close()
  post({ kind: 'stopped' })
}

async function serve(call: SupervisorCall): Promise<unknown> {
  if (call.kind === 'manage') {
    if (controlPlane === null) throw new Error('the key manager has not started yet')
    return controlPlane.manage(call.request)
  }
  if (call.kind === 'socket') return controlPlane?.listenerFd ?? NEW_SOCKET
  if (call.kind === 'closeListener') {
    await controlPlane?.closeListener()
    return true
  }
  return inOrder(async () => {
    events.setLevel(call.plan.configuration.logging.level)
    await controlPlane?.reload(call.plan)
    return true
  })
}

function inOrder<T>(act: () => Promise<T>): Promise<T> {
  const acted = last.then(act)
  last = acted.catch(() => {})
  return acted
}

port.on('message', (message: ToControlThread) => {
  // A reactor may attach before there is a control plane.
  if (message.kind === 'channel') reactors.attach(message.reactor, message.port)
  else if (message.kind === 'call') void respond(port, message, serve)
  else if (message.kind === 'start') inOrder(() => start(message)).catch(bug)
  else if (message.kind === 'stop') inOrder(stop).catch(bug)
  else primary.settle(message)
})
