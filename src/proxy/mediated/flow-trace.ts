/**
 * Notes of flows for `sluice walk`: which sequences run, what comes of it, and, where the configuration collects them
 * (`stat.tracer.*`), the payload and the properties that the flow leaves. Secrets are masked, texts have a limit.
 */
import { leftProperties } from '../../mediation/left-properties.ts'
import { Message } from '../../mediation/message.ts'
import type { WorkerFailure } from '../../mediation/worker-service.ts'
import type { FlowTask, FlowResult, MessageState, TransferredMessage } from '../../mediation/worker-task.ts'
import { redactMembers } from '../../observe/redact.ts'
import { tracer } from '../../protocol/tracer.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { HeldBody } from './body-collector.ts'
import type { Fields } from './fed-message.ts'

type FlowName = FlowTask['flow']
/** A body on its way to a worker, or back. */
type TracedBody = HeldBody | TransferredMessage['body']

/** Characters of a note. */
const TEXT_MAX = 2048
/** Characters that a note is made from: a secret may stand at its end. */
const SOURCE_MAX = 4 * TEXT_MAX
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g

export function traceTask(
  exchange: Exchange,
  task: Pick<FlowTask, 'flow' | 'sequences'>,
  fields: Fields,
  held: HeldBody,
  state: MessageState,
): void {
  if (tracer === null) return
  const { flow, sequences } = task
  const length = held.kind === 'none' ? 0 : held.length
  tracer.note(exchange, 'mediation', `${flow} flow ${sequences.join(', ')}, body of ${length} bytes to a worker`)
  notePayload(exchange, `before the ${flow} flow`, held, fields, state)
}

export function traceResult(
  exchange: Exchange,
  flow: FlowName,
  result: FlowResult | { readonly kind: 'refused' },
): void {
  if (tracer === null) return
  tracer.note(exchange, 'mediation', `${flow} flow ${result.kind}`)
  if ('left' in result && result.left !== undefined) noteProperties(exchange, flow, result.left)
  if (!('message' in result)) return
  const { body, fields, state } = result.message
  notePayload(exchange, `after the ${flow} flow`, body, fields, state)
}

export function traceFailure(exchange: Exchange, flow: FlowName, { reason }: WorkerFailure): void {
  tracer?.note(exchange, 'mediation', `${flow} flow failed: ${reason}`)
}

/** `message`: as a flow on the reactor leaves it. */
export function traceProperties(exchange: Exchange, flow: FlowName, message: Message): void {
  if (tracer?.collects.properties === true) noteProperties(exchange, flow, leftProperties(message))
}

function noteProperties(exchange: Exchange, flow: FlowName, left: string): void {
  tracer?.note(exchange, 'properties', `after the ${flow} flow: ${printable(left)}`)
}

function notePayload(exchange: Exchange, when: string, body: TracedBody, fields: Fields, state: MessageState): void {
  if (tracer?.collects.payloads !== true) return
  tracer.note(exchange, 'payload', `${when}: ${payloadText(body, fields, state)}`)
}

function payloadText(body: TracedBody, fields: Fields, state: MessageState): string {
  if (body.kind === 'file') return `${body.length} bytes in a file`
  if (body.kind !== 'bytes' && body.kind !== 'memory') return body.kind === 'none' ? 'none' : 'unchanged'
  const coding = fields.find(([name]) => name.toLowerCase() === 'content-encoding')?.[1] ?? ''
  const pieces = body.kind === 'bytes' ? [body.bytes] : body.pieces
  if (coding !== '') return `${pieces.reduce((sum, { length }) => sum + length, 0)} bytes, coded (${printable(coding)})`
  return printable(redactMembers(messageOf(state).secrets.mask(startOf(pieces))))
}

function startOf(pieces: readonly Uint8Array[]): string {
  const parts: Uint8Array[] = []
  let left = SOURCE_MAX
  for (const piece of pieces) {
    if (left === 0) break
    const part = piece.subarray(0, left)
    parts.push(part)
    left -= part.length
  }
  return Buffer.concat(parts).toString('utf8')
}

/** Knows the secret fields that sequences have read. */
function messageOf(state: MessageState): Message {
  const message = new Message(() => undefined)
  message.restore(state)
  return message
}

function printable(text: string): string {
  const plain = text.replace(CONTROL, ' ')
  return plain.length > TEXT_MAX ? `${plain.slice(0, TEXT_MAX)}…` : plain
}
