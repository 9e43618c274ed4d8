/** Runs requests to mounted APIs: opens each implementation with its first request on the thread. */
import { pathToFileURL } from 'node:url'
import { builtInModule } from '../mounted/built-in.ts'
import { MountedDatabases } from '../mounted/database-access.ts'
import type { MountedApi, MountedContext, OpenMountedApi } from '../mounted/interface.ts'
import type { MountedTask } from '../plan/mounted-messages.ts'
import type { MountedPlan } from '../plan/worker-plan.ts'
import { MountedCall } from './mounted-call.ts'
import type { TaskContext, TaskResult, TaskRunner } from './task-server.ts'

export function mountedRunner(context: TaskContext): TaskRunner {
  const apis = new OpenedApis(context)
  const calls = new Map<number, MountedCall>()
  context.streams.listen(message => {
    const call = calls.get(message.id)
    // A request that is over has nothing to say about its rest.
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

/** The implementations of a thread. */
class OpenedApis {
  readonly #context: TaskContext
  readonly #opened = new Map<string, MountedApi | Promise<MountedApi>>()
  readonly #databases: MountedDatabases

  constructor(context: TaskContext) {
    this.#context = context
    this.#databases = new MountedDatabases(context.plan.database)
  }

  of(identity: string): MountedApi | Promise<MountedApi> {
    const known = this.#opened.get(identity)
    if (known !== undefined) return known
    const opening = this.#open(identity)
    this.#opened.set(identity, opening)
    opening.then(
      api => this.#opened.set(identity, api),
      // The next request tries again.
      () => this.#opened.delete(identity),
    )
    return opening
  }

  async #open(identity: string): Promise<MountedApi> {
    const plan = this.#context.plan.mounted[identity]
    if (plan === undefined) throw new Error('the API is not deployed any more')
    const { name, version, settings } = plan
    const open = await loadModule(plan)
    const context: MountedContext = {
      api: { name, version },
      settings,
      home: this.#context.plan.home,
      log: (level, event, fields = {}) => this.#context.report(level, event, { API: `${name}:${version}`, ...fields }),
      database: <Tables>() => this.#databases.of<Tables>(name),
      secrets: () => this.#databases.secrets(),
      wake: () => undefined,
    }
    const api = await open(context)
    if (typeof api?.handle !== 'function') throw new TypeError('open returned nothing that handles requests')
    return api
  }
}

async function loadModule({ module }: MountedPlan): Promise<OpenMountedApi> {
  const builtIn = builtInModule(module)
  const { open } = (builtIn === undefined ? await import(pathToFileURL(module).href) : await builtIn()) as {
    readonly open?: OpenMountedApi
  }
  if (typeof open !== 'function') throw new TypeError('the module exports no function open')
  return open
}
