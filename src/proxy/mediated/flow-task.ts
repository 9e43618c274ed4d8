/** The task of a worker for an exchange, and the meaning of its result for the head of a request. */
import { describeFailure, describeRaised, fillFaultMessage } from '../../faults/fault-message.ts'
import { callerProperty, describeRequest } from '../exchange/request-properties.ts'
import { faultDetails } from '../../faults/fault-details.ts'
import { faultFormat } from '../../faults/fault-format.ts'
import type { CallChain } from '../../http1/call-chain.ts'
import { type FieldKinds, KIND } from '../../http1/field-kinds.ts'
import type { FlowPlan } from '../../mediation/flow-plan.ts'
import { Message } from '../../mediation/message.ts'
import { maskedBy } from '../../mediation/secret-values.ts'
import {
  type FlowTask,
  type MessageState,
  NO_STATE,
  type TaskGathering,
  type TransferredBody,
  type TransferredMessage,
} from '../../mediation/worker-task.ts'
import type { PendingFault } from '../exchange/api-mediation.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { type FieldChange, fieldsIn, HeadEdit } from '../exchange/head-edit.ts'
import type { TraceLink } from '../exchange/trace-context.ts'
import type { HeldBody } from './body-collector.ts'
import { joined } from './body-source.ts'
import type { Fields } from './fed-message.ts'

/** The head of a message, as flows see it. */
export type MessageHead = Pick<TransferredMessage, 'method' | 'target' | 'status' | 'reason' | 'fields'>

/** Fields that tell backends the way of a request. */
export const OF_WAY: readonly number[] = [
  ...[KIND.FORWARDED, KIND.X_FORWARDED_FOR, KIND.X_FORWARDED_HOST, KIND.X_FORWARDED_PROTO, KIND.X_FORWARDED_OTHER],
]

/** Request fields that the gateway leaves out or replaces, unless a flow has set them. */
export const GUARDED: readonly number[] = [
  ...[KIND.USER_AGENT, ...OF_WAY, KIND.AUTHORIZATION, KIND.HOST, KIND.TRACE_PARENT, KIND.TRACE_STATE],
]

export function requestHead(exchange: Exchange, fields: Fields): MessageHead {
  const target = exchange.canonicalTarget.slice(exchange.backendPathAt)
  return { method: exchange.method, target, status: 0, reason: '', fields }
}

/** The properties that name request, API and resource, for the first flow of an exchange. */
export function firstState(exchange: Exchange): MessageState {
  const message = new Message(() => undefined)
  describeRequest(message, exchange)
  return message.state()
}

/** The state with the properties of caller and API that a flow reads; those that a sequence has set stay. */
export function withCallerProperties(exchange: Exchange, reads: FlowPlan['reads'], state: MessageState): MessageState {
  if (reads === undefined) return state
  const absent = (scope: 'default' | 'axis2') =>
    reads.flatMap(name => {
      const value = state[scope].some(([known]) => known === name) ? undefined : callerProperty(exchange, scope, name)
      return value === undefined ? [] : [[name, value] as const]
    })
  return {
    ...state,
    default: [...state.default, ...absent('default')],
    axis2: [...state.axis2, ...absent('axis2')],
  }
}

/** The state of a fault flow: the properties that fault sequences read, beside those of the flow before. */
export function faultState(exchange: Exchange, state: MessageState, fault: PendingFault): MessageState {
  const { refusal, failure } = fault
  const message = new Message(() => undefined)
  message.restore(state)
  const details = faultDetails(refusal, failure)
  const format = faultFormat(exchange.captured)
  fillFaultMessage(message, exchange, details, refusal.throttling?.nextAccessMs ?? 0, failure, format)
  describeRaised(message, refusal)
  return message.state()
}

/** The state of the onError of a `<send>` that has failed: that of its flow, and what sequences read of a fault. */
export function onErrorState(
  exchange: Exchange,
  state: MessageState,
  { refusal, failure }: PendingFault,
): MessageState {
  const message = new Message(() => undefined)
  if (state === NO_STATE) describeRequest(message, exchange)
  message.restore(state)
  describeFailure(message, faultDetails(refusal, failure), failure)
  return message.state()
}

/** The gateway's own lines of a fault, by their names. */
export function linesOfFault({ retryAfterS }: Exchange, { refusal: { lines } }: PendingFault): Fields {
  return fieldsIn(retryAfterS === 0 ? lines : `${lines}Retry-After: ${retryAfterS}\r\n`)
}

/** Fields, and those of `own` whose names they lack. */
export function withAbsent(fields: Fields, own: Fields): Fields {
  const names = new Set(fields.map(([name]) => name.toLowerCase()))
  return [...fields, ...own.filter(([name]) => !names.has(name.toLowerCase()))]
}

export interface TaskOptions {
  /** The aggregate of the response flow that gathers copies of a request flow; null for none. */
  readonly gathering: TaskGathering | null
  /** As of FlowTask; 0: none. */
  readonly own: number
  /** As of FlowTask; null: FIRST_CALL. */
  readonly calls: CallChain | null
  /** As of FlowTask; null: the exchange is not traced. */
  readonly trace: TraceLink | null
  /** As of FlowTask. */
  readonly collects: boolean
}

const NO_OPTIONS: TaskOptions = { gathering: null, own: 0, calls: null, trace: null, collects: false }

/**
 * The task that runs a flow. The bytes of a body are a copy: the reactor keeps its own until the flow has read it.
 */
export function flowTask(
  api: string,
  flow: FlowTask['flow'],
  sequences: readonly string[],
  head: MessageHead,
  body: HeldBody,
  state: MessageState,
  { gathering, own, calls, trace, collects }: TaskOptions = NO_OPTIONS,
): FlowTask {
  const message = { ...head, body: transferred(body), state }
  const task = { kind: 'flow', api, flow, sequences, message } as const
  const isPlain = gathering === null && own === 0 && calls === null && trace === null
  if (isPlain && !collects) return task
  return {
    ...task,
    ...(gathering === null ? {} : { gathering }),
    ...(own === 0 ? {} : { own }),
    ...(calls === null ? {} : { calls }),
    ...(trace === null ? {} : { trace }),
    ...(collects ? { collects } : {}),
  }
}

function transferred(body: HeldBody): TransferredBody {
  if (body.kind !== 'memory') return body
  return { kind: 'bytes', bytes: joined(body.pieces, body.length) }
}

/**
 * The edit that a fed request needs beside its fields: method, target, and guarded fields that the flow has set. Null
 * for none; the rule that a part breaks, where one cannot stand in a head. `secrets`: values that no trace shows.
 */
export function editOfRequest(
  before: MessageHead,
  after: MessageHead,
  kinds: FieldKinds,
  secrets: readonly string[] = [],
): HeadEdit | string | null {
  if (!/^(?:[/?]|$)/.test(after.target)) return 'the target is no path with a query'
  const line = {
    // HEAD changes the framing of the response, which the client's own method decides.
    ...(after.method === before.method || [after.method, before.method].includes('HEAD')
      ? {}
      : { method: after.method }),
    ...(after.target === before.target ? {} : { target: after.target, shownTarget: maskedBy(secrets, after.target) }),
  }
  return editOfGuarded(changedGuarded(before.fields, after.fields, kinds), line, kinds)
}

/** The edit for guarded fields and parts of the request line: null for none; the rule that a part breaks. */
export function editOfGuarded(
  guarded: readonly FieldChange[],
  line: { readonly method?: string; readonly target?: string; readonly shownTarget?: string },
  kinds: FieldKinds,
): HeadEdit | string | null {
  const isHost = ({ name }: FieldChange) => kinds.kindOf(name) === KIND.HOST
  const host = guarded.find(isHost)?.value ?? ''
  const fields = guarded.filter(field => !isHost(field))
  const changes = { ...line, ...(host === '' ? {} : { host }) }
  if (fields.length === 0 && Object.keys(changes).length === 0) return null
  try {
    return new HeadEdit(fields, changes)
  } catch (error) {
    return (error as Error).message
  }
}

/** Returns the guarded fields that the flow has set or removed. */
function changedGuarded(before: Fields, after: Fields, kinds: FieldKinds): FieldChange[] {
  const changed: FieldChange[] = []
  const isGuarded = (name: string) => GUARDED.includes(kinds.kindOf(name))
  let from = 0
  const passOver = (end: number): void => {
    for (; from < end; from++) {
      const name = before[from]![0]
      if (isGuarded(name) && !after.some(sameName(name))) changed.push({ name, value: undefined })
    }
  }
  for (const [name, value] of after) {
    // Fields that a flow leaves are in order, so most are found by one comparison.
    const at = indexOfField(before, from, name, value)
    if (at !== -1) {
      passOver(at)
      from = at + 1
    } else if (isGuarded(name) && !before.filter(sameName(name)).some(([, known]) => known === value)) {
      changed.push({ name, value })
    }
  }
  passOver(before.length)
  return changed
}

/** Names of fields have no case. */
function sameName(name: string): (field: Fields[number]) => boolean {
  const lower = name.toLowerCase()
  return ([other]) => other.toLowerCase() === lower
}

function indexOfField(fields: Fields, from: number, name: string, value: string): number {
  for (let at = from; at < fields.length; at++) {
    if (fields[at]![0] === name && fields[at]![1] === value) return at
  }
  return -1
}
