/** Calls of modules of the operator on the thread of a reactor, with a time limit. */
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import { LimitedCalls } from '../runtime/limited-calls.ts'
import { makeLoopsInterruptible } from '../runtime/loop-interrupts.ts'
import { processorWaitMs, systemThreadId } from '../runtime/thread-scheduling.ts'

/** Milliseconds between two looks at the time that this thread has waited for a processor. */
const WAIT_MS = 100

export interface ModuleCalls {
  /** Longest time of a call in milliseconds; 0: there is no limit. */
  readonly limitMs: number
  /** Runs a call that keeps its own result and errors, and ends it at the limit. */
  readonly run: (call: () => void) => void
  /** A call was ended. Returns how many milliseconds of it the thread has waited for a processor, or more. */
  readonly ended: () => number
  readonly close: () => void
}

export const UNLIMITED_CALLS: ModuleCalls = { limitMs: 0, run: call => call(), ended: () => 0, close: () => undefined }

/** Without a limit where this Node has none, with a line in the log. */
export function moduleCalls(limitMs: number, report: Report, metrics: MetricsColumn): ModuleCalls {
  // The thread of a reactor is terminated too where a module does not end.
  makeLoopsInterruptible()
  try {
    const calls = new LimitedCalls(limitMs)
    const thread = systemThreadId()
    let waitedMs = processorWaitMs(thread)
    const timer = setInterval(() => {
      waitedMs = processorWaitMs(thread)
    }, WAIT_MS).unref()
    return {
      limitMs,
      run: call => calls.run(call),
      ended: () => {
        metrics.add(METRIC.handlerPhasesEnded, 1)
        return processorWaitMs(thread) - waitedMs
      },
      close: () => {
        clearInterval(timer)
        calls.close()
      },
    }
  } catch (error) {
    const fields = { KEY: 'mediation.handlers.synchronous_timeout', CAUSE_OF_ERROR: (error as Error).message }
    report('warn', 'modules on reactors have no time limit', fields)
    return UNLIMITED_CALLS
  }
}
