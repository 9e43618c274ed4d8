/** Threads that the system refuses: to piscina they are threads that have failed at their start (D808). */
import { EventEmitter } from 'node:events'
import workerThreads, { type Worker } from 'node:worker_threads'

/** Stands for a Worker that the system refuses: its only event is an error, in the next turn of the event loop. */
class RefusedThread extends EventEmitter {
  readonly threadId = -1

  constructor(error: unknown) {
    super()
    setImmediate(() => {
      this.emit('error', error)
      this.emit('exit', 1)
    })
  }

  postMessage(): void {}

  ref(): void {}

  unref(): void {}

  async terminate(): Promise<number> {
    return 1
  }
}

/** Node throws where the system refuses a thread; nobody catches that in the listener where piscina replaces one. */
export function refuseThreadsByEvent(): void {
  if (workerThreads.Worker === guarded) return
  guarded = new Proxy(workerThreads.Worker, {
    construct(target, given: ConstructorParameters<typeof Worker>) {
      try {
        return Reflect.construct(target, given)
      } catch (error) {
        return new RefusedThread(error)
      }
    },
  })
  workerThreads.Worker = guarded
}

/** The constructor that piscina gets; null before the first call. */
let guarded: typeof Worker | null = null
