/** Runs requests to mounted APIs: opens each implementation with its first request on the thread. */
import type { MountedTask } from '../plan/mounted-messages.ts'
import { MountedCall } from './mounted-call.ts'
import type { OpenedApis } from './opened-apis.ts'
import type { TaskContext, TaskResult, TaskRunner } from './task-server.ts'

export function mountedRunner(context: TaskContext, apis: OpenedApis): TaskRunner {
  const calls = new Map<number, MountedCall>()
  context.streams.listen(message => {
    const call = calls.get(message.id)
    // Messages for a request that is over are ignored.
    call?.receive(message)
  })
  return async (task: MountedTask): Promise<TaskResult> => {
    const call = new MountedCall(task, context.streams.post)
    calls.set(task.id, call)
    try {
      const value = await call.run(apis.of(task.api))
      return { value, transfer: value.kind === 'responds' ? buffersOf(value.bytes) : [] }
    } finally {
      calls.delete(task.id)
    }
  }
}

/** The buffer of bytes that fill it; others are copied. */
function buffersOf({ buffer, byteLength }: Uint8Array): readonly ArrayBuffer[] {
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength && byteLength > 0 ? [buffer] : []
}
