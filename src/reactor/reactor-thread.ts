/** Entry of a reactor's thread: builds the reactor from its plan, answers the primary's messages. */
import { parentPort } from 'node:worker_threads'
import { chainOf } from '../chain-of.ts'
import { loadModule } from '../config/module-file.ts'
import { AuthorityLine } from '../identity/authority-line.ts'
import type { Validator } from '../identity/identity.ts'
import type { IdentityPlan } from '../identity/identity-plan.ts'
import { IdentityState } from '../identity/identity-state.ts'
import { AccessLog } from '../observe/access-log.ts'
import { EventLog } from '../observe/events.ts'
import { LineFile } from '../observe/line-file.ts'
import { METRIC, MetricsColumn } from '../observe/metrics.ts'
import { ownPlan } from './own-plan.ts'
import type { FromReactor, LivePlan, ToReactor } from '../plan.ts'
import type { Answer, Asked, Question } from '../questions.ts'
import { Reactor } from './reactor.ts'
import { handleLevel } from '../socket/handle-socket.ts'
import { streamLevel } from '../socket/stream-socket.ts'
import type { TlsLevel } from '../socket/tls.ts'

/** A reactor that replaces another one does not wait longer for what it is told: what is open is to be reached. */
const INFORMED_MS = 5000

const plan = ownPlan()
const port = parentPort!
const metrics = new MetricsColumn(plan.metrics, plan.reactor)

function post(message: FromReactor): void {
  port.postMessage(message)
}

const events = new EventLog(event => post({ kind: 'event', event }), {
  level: plan.logLevel,
  nowMs: () => performance.now(),
  suppressed: () => metrics.add(METRIC.logLinesSuppressed, 1),
})

const identity = new IdentityState(plan.identityEpoch, plan.identity)

const file = plan.accessLog.target === 'file' ? openAccessLog() : null

function openAccessLog(): LineFile {
  return new LineFile(plan.accessLogPath, {
    dropped: lines => metrics.add(METRIC.accessLogDrops, lines),
    failed: cause => events.report('error', 'access log failed', { CAUSE_OF_ERROR: cause.message }),
  })
}

function accessLog(): AccessLog | null {
  if (plan.accessLog.target === 'off') return null
  // Only the primary writes to stdout, so that lines of several reactors stay whole.
  const write =
    file === null ? (batch: Uint8Array) => post({ kind: 'access', batch }) : (batch: Uint8Array) => file.write(batch)
  return new AccessLog(plan.accessLog.format, write, { wallOffsetMs: () => Date.now() - performance.now() })
}

/** Loaded only where something is secured: it costs memory and time. */
async function tlsLevel({ tlsServer, tlsClients }: LivePlan): Promise<TlsLevel | null> {
  if (tlsServer === null && Object.keys(tlsClients).length === 0) return null
  if (plan.level === 'streams') return (await import('../socket/tls-stream.ts')).streamTls
  return (await import('../socket/tls-handle.ts')).handleTls()
}

let tls = await tlsLevel(plan)

/** Of the operator's own; null where there is none. Throws where it cannot be loaded. */
async function ownValidator({ validator }: IdentityPlan): Promise<Validator | null> {
  return validator === '' ? null : ((await loadModule(plan.home, validator, 'validate')) as Validator)
}

/** At a start traffic begins all the same: whoever would have been asked about is refused, and says why. */
async function firstValidator(): Promise<Validator | null> {
  try {
    return await ownValidator(plan.identity)
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error)
    events.report('error', 'key validation handler not loaded', { CAUSE_OF_ERROR: cause })
    return () => {
      throw new Error(cause)
    }
  }
}

const reactor = new Reactor(plan, {
  level: plan.level === 'handles' ? handleLevel() : streamLevel,
  tls,
  report: (level, event, fields) => events.report(level, event, fields),
  accessLog: accessLog(),
  identity,
  validator: await firstValidator(),
  chainOf,
  drained: finish,
})

function finish(): void {
  reactor.stop()
  identity.close()
  const written = file === null ? Promise.resolve() : file.close()
  written.then(() => {
    post({ kind: 'drained' })
    port.close()
  })
}

/** The reload before, in force or not: what was asked for last is what is in force last. */
let deploying: Promise<unknown> = Promise.resolve()

/** '' when it is in force. */
async function deploy({ live, apis }: Extract<Question, { kind: 'deploy' }>): Promise<string> {
  try {
    tls ??= await tlsLevel(live)
    reactor.deploy(live, apis, tls, await ownValidator(live.identity))
    identity.renew(live.identity)
    events.setLevel(live.logLevel)
    return ''
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error)
  }
}

function answerTo(question: Question): Answer | Promise<Answer> {
  if (question.kind !== 'deploy') return reactor.answers.answer(question)
  const next = deploying.then(() => deploy(question))
  deploying = next
  return next
}

async function answer({ id, question }: Asked): Promise<void> {
  try {
    post({ kind: 'answer', id, answer: await answerTo(question) })
  } catch (error) {
    // Traffic goes on; whoever asked is told that there was no answer.
    events.report('error', 'bug', { CAUSE_OF_ERROR: error instanceof Error ? (error.stack ?? '') : String(error) })
  }
}

port.on('message', (message: ToReactor) => {
  if (message.kind === 'ask') void answer(message)
  else if (message.kind === 'drain') reactor.drain()
  else if (message.kind === 'cutOff') reactor.cutOff()
  else if (message.kind === 'reopenLogs') file?.reopen()
  else if (message.kind === 'line') identity.connect(new AuthorityLine(message.port, news => identity.take(news)))
  else if (message.kind === 'hang') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
})

/** Whoever comes once it listens is to be known, unless nobody needs to be. */
async function informed(): Promise<void> {
  if (plan.apis.every(({ access }) => access.schemes.length === 0)) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(() => {
    events.report('error', 'credentials cannot be checked yet', { CAUSE_OF_ERROR: 'the authority has told nothing' })
    resolve()
  }, INFORMED_MS)
  identity.complete.promise.then(resolve)
  await promise
  clearTimeout(timer)
}

informed()
  .then(() => reactor.start())
  .then(
    ports => post({ kind: 'listening', ports }),
    (error: Error) => post({ kind: 'failed', cause: error.message }),
  )
