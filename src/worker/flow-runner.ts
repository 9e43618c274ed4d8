/** Runs flows of APIs on messages. The sequences of the home and of each API are compiled with their first use. */
import { callsOf } from '../mediation/backend-calls.ts'
import { CompiledSequences } from '../mediation/compiled-sequences.ts'
import { completeFault } from '../mediation/formatter.ts'
// Sequences of a worker hold any mediator.
import '../mediation/mediators/list.ts'
import { FlowCounter } from '../mediation/flow-statistics.ts'
import { leftProperties } from '../mediation/left-properties.ts'
import type { MessageFormats } from '../mediation/formats/message-formats.ts'
import { MediationFault } from '../mediation/mediation-fault.ts'
import type { BodySource, Message } from '../mediation/message.ts'
import { isAccepted, sendLater } from '../mediation/accepted-requests.ts'
import { fromTransfer, methodOfBody, toTransfer } from '../mediation/message-transfer.ts'
import type { TaskCall, TaskCallResults, TaskServices } from '../mediation/task-calls.ts'
import { CallFailed } from '../runtime/call-channel.ts'
import { type PackedTask, packResult, unpackTask } from '../mediation/task-codec.ts'
import { withOwnBuffer } from '../mediation/transferred-body.ts'
import type {
  FlowResult,
  FlowTask,
  RaisedFault,
  TransferredBody,
  TransferredMessage,
} from '../mediation/worker-task.ts'
import { ThreadCode } from './thread-code.ts'
import type { TaskContext, TaskResult, TaskRunner } from './task-server.ts'
import type { TaskTime } from './task-time.ts'
import { type ThreadFormats, threadFormats } from './thread-formats.ts'

export function flowRunner(context: TaskContext): TaskRunner {
  const sequences = new ThreadSequences(context)
  const code = new ThreadCode(context.plan, context.scriptMemory, context.marks)
  let formats = threadFormats(context.plan.formats, context.plan.home)
  // Where it rejects, so does each task.
  if (formats instanceof Promise) formats.then(ready => (formats = ready)).catch(() => undefined)
  const start = (task: PackedTask, time: TaskTime, ready: ThreadFormats) => {
    const result = new Flow(unpackTask(task), ready, sequences, context, code, time).run()
    if (result instanceof Promise) return result.finally(() => sequences.handOver()).then(packed)
    sequences.handOver()
    return packed(result)
  }
  return (task: PackedTask, time) =>
    formats instanceof Promise ? formats.then(ready => start(task, time, ready)) : start(task, time, formats)
}

function packed({ value, transfer }: FlowEnd): TaskResult {
  return { value: packResult(value), transfer }
}

/** The sequences of a thread. */
class ThreadSequences {
  readonly #context: TaskContext
  /** Null where flows are not counted. */
  readonly #counter: FlowCounter | null
  readonly #apis = new Map<string, CompiledSequences>()
  #home: CompiledSequences | null = null

  constructor(context: TaskContext) {
    this.#context = context
    const { statistics } = context.plan
    this.#counter = statistics === null ? null : new FlowCounter(statistics.capturesAll)
  }

  /** Throws where a plan cannot be compiled. */
  of(api: string): CompiledSequences {
    const { plan, report } = this.#context
    const { apis, former } = plan
    this.#home ??= new CompiledSequences(plan.sequences, report, null, this.#counter, former[''])
    const own = apis[api] ?? []
    if (own.length === 0 && former[api] === undefined) return this.#home
    let found = this.#apis.get(api)
    if (found === undefined) {
      found = new CompiledSequences(own, report, this.#home, this.#counter, former[api])
      this.#apis.set(api, found)
    }
    return found
  }

  /** Hands over what a task has counted: a thread without tasks has no timer (D282). */
  handOver(): void {
    const counts = this.#counter?.take() ?? []
    if (counts.length > 0) this.#context.count(counts)
  }
}

/** Copies of messages that one task may make. */
const COPIES_MAX = 1000
const TOO_MANY_COPIES = 102553

interface FlowEnd extends TaskResult {
  readonly value: FlowResult
}

/** One task, with its messages. */
class Flow {
  readonly #task: FlowTask
  readonly #formats: ThreadFormats
  readonly #sequences: ThreadSequences
  readonly #context: TaskContext
  readonly #time: TaskTime
  /** Bodies of the messages of this task, by what builds them. */
  readonly #bodies = new WeakMap<BodySource, TransferredBody>()
  readonly #services: TaskServices
  /** Services of copies in the response flow. */
  readonly #ofResponses: TaskServices
  /** Calls to backends that the task waits for. */
  #callsOut = 0
  /** Copies that the task may make from now on. */
  #copiesLeft: number

  constructor(
    task: FlowTask,
    formats: ThreadFormats,
    sequences: ThreadSequences,
    context: TaskContext,
    code: ThreadCode,
    time: TaskTime,
  ) {
    this.#task = task
    this.#time = time
    this.#formats = formats
    this.#sequences = sequences
    this.#context = context
    const { api, flow, gathering, own = 0, copiesMax = COPIES_MAX, trace = null } = task
    this.#copiesLeft = copiesMax
    const { report } = context
    this.#services = {
      ...{
        api,
        flow: flow === 'onError' ? 'fault' : flow,
        own,
        gathers: gathering !== undefined,
        calls: callsOf(task),
        trace,
        report,
        code,
      },
      limits: formats.all.limits,
      call: call => this.#call(call),
      isOver: () => time.isOver,
      transfer: (message, isBlocking = false) => this.#transferred(message, null, isBlocking),
      received: (transferred, isBlocking = false) => this.#received(transferred, isBlocking),
      claimCopies: count => this.#claimCopies(count),
      shareCopies: count => this.#shareCopies(count),
      respond: copy => this.#respond(copy),
      parse: (content, contentType) => {
        const body = { kind: 'bytes', bytes: typeof content === 'string' ? Buffer.from(content) : content } as const
        return this.#formats.all.source(body, contentType, '', false).build('')
      },
    }
    this.#ofResponses = { ...this.#services, flow: 'response' }
  }

  /** A call that begins beside another one of the task says so. None begins, or is waited for, after its time. */
  async #call<One extends TaskCall>(call: One): Promise<TaskCallResults[One['kind']]> {
    const { id, endMs, isOver } = this.#time
    if (isOver) throw new CallFailed('nobody waits for the message any more', 'late')
    if (call.kind !== 'backend') return this.#time.within(this.#context.call(call))
    const calls = this.#callsOut === 0 ? call.calls : { ...call.calls, isParallel: true as const }
    const timed = { ...call, calls, task: id, ...(endMs === 0 ? {} : { endMs }) }
    this.#callsOut++
    try {
      return await this.#time.within(this.#context.call(timed))
    } finally {
      this.#callsOut--
    }
  }

  async #respond(copy: Message): Promise<false> {
    const { api, gathering } = this.#task
    if (gathering === undefined) {
      copy.outcome = 'looped'
      return false
    }
    copy.isFromBackend = true
    copy.task = this.#ofResponses
    await this.#sequences.of(api).runInOrder(gathering.sequences, copy)
    // A copy that another one of its aggregate stands for has no task any more.
    const isOver = copy.task === null || copy.outcome === 'dropped' || copy.outcome === 'faulted'
    if (!isOver) copy.outcome = 'responded'
    return false
  }

  #claimCopies(count: number): void {
    this.#copiesLeft -= count
    if (this.#copiesLeft >= 0) return
    const cause = `the sequences have made more than ${COPIES_MAX} copies of a message`
    throw new MediationFault({ code: TOO_MANY_COPIES, message: 'Too many copies', cause })
  }

  /** The task itself keeps one share. */
  #shareCopies(count: number): number {
    const share = Math.floor(this.#copiesLeft / (count + 1))
    this.#copiesLeft -= share * count
    return share
  }

  run(): FlowEnd | Promise<FlowEnd> {
    const { api, sequences, message: transferred } = this.#task
    const message = this.#received(transferred, false)
    // `<send>` of an onError answers the client, or asks another endpoint.
    if (this.#task.flow === 'onError') message.isFromBackend = true
    const own = message.bodySource
    const kind = this.#sequences.of(api).runToEnd(sequences, message)
    return kind instanceof Promise ? this.#endLater(kind, message, own) : this.#end(kind, message, own)
  }

  async #endLater(kind: Promise<FlowResult['kind']>, message: Message, own: BodySource | null): Promise<FlowEnd> {
    // Its client is not to wait for what is sent later.
    this.#time.goesOn = () => message.sendsLater !== ''
    return this.#end(await kind, message, own)
  }

  #end(kind: FlowResult['kind'], message: Message, own: BodySource | null): FlowEnd | Promise<FlowEnd> {
    if (this.#task.flow === 'request' && isAccepted(message, kind)) return this.#accept(kind, message)
    const left = this.#task.collects === true ? { left: leftProperties(message) } : {}
    if (kind === 'drops') return plain({ kind, ...left })
    if (this.#task.flow === 'onError' && message.outcome === 'sent') {
      message.outcome = 'responded'
      return this.#end('responds', message, own)
    }
    if (this.#task.flow === 'fault') completeFault(message)
    if (kind === 'faults') return plain({ ...faultResult(message.fault!, message), ...left })
    try {
      const { value, transfer } = withOwnBuffer(this.#transferred(message, own, false))
      const { endpoint, sentOnError: onError } = message
      const isBodyOfAnswer = this.#task.flow === 'request' && methodOfBody(message) === ''
      const sent = { kind, message: value, endpoint, ...left } satisfies FlowResult
      const result = onError === '' ? sent : { ...sent, onError }
      return { value: isBodyOfAnswer ? { ...result, isBodyOfAnswer } : result, transfer }
    } catch (error) {
      if (!(error instanceof MediationFault)) throw error
      return plain({ ...faultResult(error.raised, message), ...left })
    }
  }

  /** The client gets 202, as for a dropped message, and a task in the background sends what goes on. */
  async #accept(kind: FlowResult['kind'], message: Message): Promise<FlowEnd> {
    try {
      if (kind === 'continues') await sendLater(message)
      return plain({ kind: 'drops' })
    } catch (error) {
      if (!(error instanceof MediationFault)) throw error
      return plain(faultResult(error.raised, message))
    }
  }

  #formatsFor(isBlocking: boolean): MessageFormats {
    return isBlocking ? this.#formats.ofBlockingCalls : this.#formats.all
  }

  #received(transferred: TransferredMessage, isBlocking: boolean): Message {
    const source = this.#formatsFor(isBlocking).sourceOf(transferred)
    if (source !== null) this.#bodies.set(source, transferred.body)
    const message = fromTransfer(transferred, source)
    message.task = this.#services
    return message
  }

  /** `own`: the source of the body that the reactor holds, which need not be sent back. Throws MediationFault. */
  #transferred(message: Message, own: BodySource | null, isBlocking: boolean): TransferredMessage {
    const formats = this.#formatsFor(isBlocking)
    const transferred = toTransfer(message, message => formats.format(message), this.#context.report)
    const source = message.bodySource
    if (transferred.body.kind !== 'untouched' || source === null || source === own) return transferred
    return { ...transferred, body: this.#bodies.get(source)! }
  }
}

function plain(value: FlowResult): FlowEnd {
  return { value, transfer: [] }
}

function faultResult(fault: RaisedFault, message: Message): FlowResult {
  return { kind: 'faults', fault, state: message.stateForNextFlow() }
}
