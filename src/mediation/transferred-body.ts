/** Moves the bytes of a body between threads: a buffer that holds nothing else is moved, other bytes are copied. */
import type { FlowTask, TransferredMessage } from './worker-task.ts'

interface Moved<Moving> {
  readonly value: Moving
  /** Buffers that are moved with it. */
  readonly transfer: readonly ArrayBuffer[]
}

/** A task whose body is in a buffer of its own. */
export function ownBuffers(task: FlowTask): { readonly task: FlowTask; readonly transfer: readonly ArrayBuffer[] } {
  const { value: message, transfer } = withOwnBuffer(task.message)
  return { task: message === task.message ? task : { ...task, message }, transfer }
}

/** A message whose body is in a buffer of its own. */
export function withOwnBuffer(message: TransferredMessage): Moved<TransferredMessage> {
  const { body } = message
  if (body.kind !== 'bytes') return { value: message, transfer: [] }
  const { bytes } = body
  const { buffer } = bytes
  if (buffer instanceof ArrayBuffer && bytes.byteLength === buffer.byteLength) {
    return { value: message, transfer: [buffer] }
  }
  const own = new Uint8Array(bytes)
  return { value: { ...message, body: { kind: 'bytes', bytes: own } }, transfer: [own.buffer] }
}
