/**
 * Tasks of flows and their results on their way between threads: everything but the body as one JSON text, where all
 * values of the state are plain. A structured clone of head and state takes twice the processor time.
 */
import type { Value } from './value.ts'
import type { FlowResult, FlowTask, MessageState, TransferredBody } from './worker-task.ts'

/** `text`: the object without the body of its message. */
interface Packed {
  readonly kind: 'flow' | 'packed'
  readonly text: string
  readonly body: TransferredBody
}

export type PackedTask = FlowTask | (Packed & { readonly kind: 'flow' })
export type PackedResult = FlowResult | (Packed & { readonly kind: 'packed' })

const NO_BODY: TransferredBody = { kind: 'none' }

export function packTask(task: FlowTask): PackedTask {
  if (task.kind !== 'flow' || !isPlain(task.message.state)) return task
  const { body } = task.message
  return { kind: 'flow', text: JSON.stringify({ ...task, message: { ...task.message, body: NO_BODY } }), body }
}

export function unpackTask(packed: PackedTask): FlowTask {
  if (!('text' in packed)) return packed
  const task = JSON.parse(packed.text) as FlowTask
  return { ...task, message: { ...task.message, body: packed.body } }
}

export function packResult(result: FlowResult): PackedResult {
  if (!('message' in result) || !isPlain(result.message.state)) return result
  const { body } = result.message
  return { kind: 'packed', text: JSON.stringify({ ...result, message: { ...result.message, body: NO_BODY } }), body }
}

export function unpackResult(packed: PackedResult): FlowResult {
  if (packed.kind !== 'packed') return packed
  const result = JSON.parse(packed.text) as Extract<FlowResult, { message: unknown }>
  return { ...result, message: { ...result.message, body: packed.body } }
}

/** Whether JSON has every value of the state as it is. */
function isPlain({ default: own, axis2, operation, variables }: MessageState): boolean {
  return [own, axis2, operation, variables].every(values => values.every(([, value]) => isPlainValue(value)))
}

function isPlainValue(value: Value): boolean {
  if (typeof value === 'number') return Number.isFinite(value) && !Object.is(value, -0)
  return typeof value === 'string' || typeof value === 'boolean'
}
