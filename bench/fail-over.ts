/**
 * Fail-over rounds: one of two equal backends fails while requests arrive at a constant rate. Failure and recovery are
 * real: SIGKILL, SIGSTOP, a new process. Metrics: responses, time to fail over, time until the backend is used again.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { driveRecorded } from './load/drive.ts'
import type { RecordingOutcome, RequestRecord } from './load/load-plan.ts'
import type { Sample } from './metric.ts'
import type { PeerOptions } from './peers/peer.ts'
import { LOAD_CORE, Program, pinned } from './program.ts'
import type { FailOverLoad } from './scenarios.ts'

const REPLICA_BACKEND = fileURLToPath(new URL('backends/replica-backend.ts', import.meta.url))

const BEFORE_FAILURE_MS = 1000
const FAILURE_MS = 3000
const AFTER_FAILURE_MS = 3000
const FLAP_MS = 1000
export const FAIL_OVER_SECONDS = (BEFORE_FAILURE_MS + FAILURE_MS + AFTER_FAILURE_MS) / 1000

/** Slower than the healthy backend ever is on a busy machine, faster than any timeout of the proxies. */
const SLOW_MS = 250
/** The proxy has failed over when all requests of a period of this length succeeded. */
const STABLE_MS = 500
/** The backend that fails; the other one is 'second'. */
const FAILING = 'first'

/** Milliseconds since the Unix epoch. */
interface FailureTimes {
  readonly failedMs: number
  readonly recoveredMs: number
}

const now = (): number => performance.timeOrigin + performance.now()

class Replica {
  readonly #name: string
  readonly #port: number
  #program: Program | undefined

  constructor(name: string, port: number) {
    this.#name = name
    this.#port = port
  }

  async start(): Promise<void> {
    const command = [process.execPath, REPLICA_BACKEND, String(this.#port), this.#name]
    this.#program = new Program(`the ${this.#name} replica`, pinned(LOAD_CORE, command))
    await this.#program.waitForPort(this.#port)
  }

  suspend(): void {
    this.#program?.signal('SIGSTOP')
  }

  resume(): void {
    this.#program?.signal('SIGCONT')
  }

  async kill(): Promise<void> {
    await this.#program?.stop('SIGKILL')
  }
}

const FAILURES: Readonly<Record<FailOverLoad['failure'], (replica: Replica) => Promise<void>>> = {
  async dies(replica) {
    await replica.kill()
    await sleep(FAILURE_MS)
    await replica.start()
  },
  async hangs(replica) {
    replica.suspend()
    await sleep(FAILURE_MS)
    replica.resume()
  },
  async flaps(replica) {
    for (let elapsedMs = 0; elapsedMs < FAILURE_MS; elapsedMs += FLAP_MS) {
      await replica.kill()
      await sleep(FLAP_MS / 2)
      await Promise.all([replica.start(), sleep(FLAP_MS / 2)])
    }
  },
}

/** The two equal backends behind a proxy. */
export class Replicas {
  readonly #failing: Replica
  readonly #healthy: Replica

  constructor([first, second]: PeerOptions['replicaPorts']) {
    this.#failing = new Replica(FAILING, first)
    this.#healthy = new Replica('second', second)
  }

  async start(): Promise<void> {
    await Promise.all([this.#failing.start(), this.#healthy.start()])
  }

  async stop(): Promise<void> {
    await Promise.all([this.#failing.kill(), this.#healthy.kill()])
  }

  /** Makes one replica fail and recover. */
  async fail(failure: FailOverLoad['failure']): Promise<FailureTimes> {
    const failedMs = now()
    await FAILURES[failure](this.#failing)
    return { failedMs, recoveredMs: now() }
  }
}

export async function failOverRound(port: number, scenario: FailOverLoad, replicas: Replicas): Promise<Sample> {
  const { path, connections, ratePerSecond, failure } = scenario
  const plan = { port, path, connections, ratePerSecond, seconds: FAIL_OVER_SECONDS }
  const [outcome, times] = await driveRecorded(plan, async () => {
    await sleep(BEFORE_FAILURE_MS)
    return replicas.fail(failure)
  })
  return failOverSample(outcome, times)
}

export function failOverSample({ due, records }: RecordingOutcome, times: FailureTimes): Sample {
  const inOrder = records.toSorted((a, b) => a.intendedMs - b.intendedMs)
  const takenOverMs = failOverMs(inOrder, times)
  const restored = inOrder.find(({ intendedMs, server }) => intendedMs >= times.recoveredMs && server === FAILING)
  const answered = records.filter(({ status }) => status !== 0)
  const successes = answered.filter(isSuccess).length
  return {
    askedCount: due,
    answeredCount: successes,
    refusedCount: answered.length - successes,
    unansweredCount: due - answered.length,
    slowestMs: Math.max(0, ...answered.map(record => record.answeredMs - record.intendedMs)),
    ...(takenOverMs === undefined ? {} : { takenOverMs }),
    ...(restored === undefined ? {} : { usedAgainMs: restored.answeredMs - times.recoveredMs }),
  }
}

function isSuccess({ status }: RequestRecord): boolean {
  return status >= 200 && status <= 299
}

/** Time from the failure to the first stable period that begins before the recovery; undefined if there is none. */
function failOverMs(inOrder: readonly RequestRecord[], { failedMs, recoveredMs }: FailureTimes): number | undefined {
  let stableFromMs = failedMs
  for (const record of inOrder) {
    if (record.intendedMs < failedMs) continue
    if (Math.min(record.intendedMs, recoveredMs) - stableFromMs >= STABLE_MS) return stableFromMs - failedMs
    if (record.intendedMs > recoveredMs) return undefined
    const isSlow = record.answeredMs - record.intendedMs >= SLOW_MS
    if (!isSuccess(record) || record.server === FAILING || isSlow) stableFromMs = record.intendedMs
  }
  return undefined
}
