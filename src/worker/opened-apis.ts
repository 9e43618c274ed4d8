/** The implementations of mounted APIs on one thread: each is opened when the thread first needs it. */
import { pathToFileURL } from 'node:url'
import { builtInModule } from '../mounted/built-in.ts'
import { MountedDatabases } from '../mounted/database-access.ts'
import type { MountedApi, MountedContext, OpenMountedApi } from '../mounted/interface.ts'
import { PoolCounts } from '../observe/pool-counts.ts'
import type { MountedPlan } from '../plan/worker-plan.ts'
import type { TaskContext } from './task-server.ts'

export class OpenedApis {
  readonly #context: TaskContext
  readonly #opened = new Map<string, MountedApi | Promise<MountedApi>>()
  readonly #databases: MountedDatabases

  constructor(context: TaskContext) {
    this.#context = context
    this.#databases = new MountedDatabases(context.plan.database, poolObservers(context.marks))
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
    const { name, version, settings, work } = plan
    const open = await loadModule(plan)
    const log: MountedContext['log'] = (level, event, fields = {}) =>
      this.#context.report(level, event, { API: `${name}:${version}`, ...fields })
    const wake = (): void => this.#context.wakes.wake(identity)
    const context: MountedContext = {
      api: { name, version },
      settings,
      home: this.#context.plan.home,
      log,
      database: <Tables>() => this.#databases.of<Tables>(name),
      secrets: () => this.#databases.secrets(),
      wake,
    }
    const api = await open(context)
    if (typeof api?.handle !== 'function') throw new TypeError('open returned nothing that handles requests')
    if (api.work === undefined) return api
    // Work that waits for the first use of its API begins.
    if (work !== 'none') wake()
    else log('warn', 'work of a mounted API does not run', { CAUSE_OF_ERROR: 'its project does not say work: true' })
    return api
  }
}

/** The pools of one thread: their connections in use are one sum. */
function poolObservers(marks: TaskContext['marks']): ConstructorParameters<typeof MountedDatabases>[1] {
  const counts = new PoolCounts('database')
  let all = 0
  return limit => {
    counts.setLimit(limit)
    let used = 0
    return {
      used: connections => {
        all += connections - used
        used = connections
        marks.setUsed('connections', all)
        counts.used(connections)
      },
      waits: () => counts.waits(),
      failed: () => counts.failed('died'),
      worked: () => undefined,
    }
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
