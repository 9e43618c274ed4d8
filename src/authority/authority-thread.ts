/** Entry of the authority's thread: opens it from its plan, takes lines to reactors, answers the primary's messages. */
import { parentPort, workerData } from 'node:worker_threads'
import type { AuthorityThreadData, FromAuthorityThread, ToAuthority } from '../authority-messages.ts'
import { EventLog } from '../observe/events.ts'
import { METRIC, MetricsColumn } from '../observe/metrics.ts'
import { Authority } from './authority.ts'
import { PendingAnswers } from '../structure/pending-answers.ts'
import { ReactorLines } from './reactor-lines.ts'

const BEAT_MS = 500
const QUESTION_LIMITS = { waitingMax: 256, answerMs: 10_000 }

const { beats, runsKeyManager } = workerData as AuthorityThreadData
const port = parentPort!
let metrics: MetricsColumn | null = null
let authority: Authority | null = null
/** The message before: each finds what those before it have left. */
let last: Promise<void> = Promise.resolve()

function post(message: FromAuthorityThread): void {
  port.postMessage(message)
}

const events = new EventLog(event => post({ kind: 'event', event }), {
  level: 'info',
  nowMs: () => performance.now(),
  suppressed: () => metrics?.add(METRIC.logLinesSuppressed, 1),
})

function bug(error: unknown): void {
  events.report('error', 'bug', { CAUSE_OF_ERROR: error instanceof Error ? (error.stack ?? '') : String(error) })
}

const lines = new ReactorLines({ bug })

// Loaded while the primary reads what the plan is made of; a failure comes again where it is needed.
if (runsKeyManager) void import('./key-manager-part.ts').catch(() => {})

/** To the primary. */
const questions = new PendingAnswers<object>('the primary', QUESTION_LIMITS)

async function manage({ id, request }: Extract<ToAuthority, { kind: 'manage' }>): Promise<void> {
  try {
    if (authority === null) throw new Error('the key manager has not begun yet')
    post({ kind: 'managed', id, value: await authority.manage(request) })
  } catch (error) {
    post({ kind: 'unmanaged', id, cause: (error as Error).message })
  }
}

setInterval(() => {
  Atomics.add(beats, 0, 1)
  events.tick()
}, BEAT_MS)

async function act(message: Extract<ToAuthority, { kind: 'start' | 'reload' | 'stop' }>): Promise<void> {
  if (message.kind === 'stop') {
    await authority?.close()
    post({ kind: 'stopped' })
    return
  }
  const { plan } = message
  events.setLevel(plan.configuration.logging.level)
  if (message.kind === 'reload') {
    await authority?.reload(plan).then(
      () => post({ kind: 'reloaded', cause: '' }),
      (error: Error) => post({ kind: 'reloaded', cause: error.message }),
    )
    return
  }
  metrics = new MetricsColumn(plan.metrics, plan.column)
  try {
    authority = await Authority.open(plan, {
      lines,
      report: (level, event, fields) => events.report(level, event, fields),
      ask: question => questions.ask(id => post({ kind: 'question', id, question })),
    })
    post({ kind: 'started', port: authority.port, said: authority.said })
  } catch (error) {
    post({ kind: 'failed', cause: (error as Error).message })
  }
}

port.on('message', (message: ToAuthority) => {
  // Reactors may be there before there is anything to tell them.
  if (message.kind === 'line') lines.attach(message.reactor, message.port)
  else if (message.kind === 'manage') void manage(message)
  else if (message.kind === 'told') questions.answer(message.id, message.value)
  else if (message.kind === 'untold') questions.fail(message.id, message.cause)
  else if (message.kind === 'start' || message.kind === 'reload' || message.kind === 'stop')
    last = last.then(() => act(message)).catch(bug)
})
