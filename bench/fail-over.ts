/**
 * One of two backends falls ill while requests come at a constant rate: how each of them was answered, when the
 * healthy one had taken over, and when the other was used again. Illness and recovery are real: SIGKILL, SIGSTOP, a new
 * process.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { SteadyOutcome, SteadyPlan, SteadyRecord } from './load/load-plan.ts'
import type { Sample } from './metric.ts'
import type { Place } from './peers/peer.ts'
import { LOAD_CORE, Program, pinned } from './program.ts'
import type { FailOver } from './scenarios.ts'

const GENERATOR = fileURLToPath(new URL('load/steady-generator.ts', import.meta.url))
const TWIN = fileURLToPath(new URL('twin-backend.ts', import.meta.url))

const CALM_MS = 1000
const ILL_MS = 3000
const RECOVERY_MS = 3000
const FLAP_MS = 1000
export const FAIL_OVER_SECONDS = (CALM_MS + ILL_MS + RECOVERY_MS) / 1000

/** Slower than the healthy one ever is on a busy machine, faster than any timeout. */
const DISTURBED_MS = 250
/** The healthy one has taken over when nothing was disturbed for so long. */
const QUIET_MS = 500
const SICK = 'first'

/** When the illness began and when the backend was well again, milliseconds of the epoch. */
interface Course {
  readonly illMs: number
  readonly wellMs: number
}

const now = (): number => performance.timeOrigin + performance.now()

class Twin {
  readonly #name: string
  readonly #port: number
  #program: Program | undefined

  constructor(name: string, port: number) {
    this.#name = name
    this.#port = port
  }

  async start(): Promise<void> {
    const words = [process.execPath, TWIN, String(this.#port), this.#name]
    this.#program = new Program(`the ${this.#name} backend`, pinned(LOAD_CORE, words))
    await this.#program.accepting(this.#port)
  }

  freeze(): void {
    this.#program?.signal('SIGSTOP')
  }

  thaw(): void {
    this.#program?.signal('SIGCONT')
  }

  async kill(): Promise<void> {
    await this.#program?.stop('SIGKILL')
  }
}

const ILLNESSES: Readonly<Record<FailOver['illness'], (sick: Twin) => Promise<void>>> = {
  async dies(sick) {
    await sick.kill()
    await sleep(ILL_MS)
    await sick.start()
  },
  async hangs(sick) {
    sick.freeze()
    await sleep(ILL_MS)
    sick.thaw()
  },
  async flaps(sick) {
    for (let elapsedMs = 0; elapsedMs < ILL_MS; elapsedMs += FLAP_MS) {
      await sick.kill()
      await sleep(FLAP_MS / 2)
      await Promise.all([sick.start(), sleep(FLAP_MS / 2)])
    }
  },
}

/** Both twins, for a proxy that stands in front of them. */
export class Twins {
  readonly #sick: Twin
  readonly #healthy: Twin

  constructor([first, second]: Place['twinPorts']) {
    this.#sick = new Twin(SICK, first)
    this.#healthy = new Twin('second', second)
  }

  async start(): Promise<void> {
    await Promise.all([this.#sick.start(), this.#healthy.start()])
  }

  async stop(): Promise<void> {
    await Promise.all([this.#sick.kill(), this.#healthy.kill()])
  }

  async fallIll(illness: FailOver['illness']): Promise<Course> {
    const illMs = now()
    await ILLNESSES[illness](this.#sick)
    return { illMs, wellMs: now() }
  }
}

export async function failOverRound(port: number, scenario: FailOver, twins: Twins): Promise<Sample> {
  const { path, connections, ratePerSecond, illness } = scenario
  const plan: SteadyPlan = { port, path, connections, ratePerSecond, seconds: FAIL_OVER_SECONDS }
  const words = [process.execPath, GENERATOR, JSON.stringify(plan)]
  const generator = new Program('the steady generator', pinned(LOAD_CORE, words))
  try {
    await generator.line(/^started$/)
    const printed = generator.line(/^\{/)
    const [{ line }, course] = await Promise.all([printed, sleep(CALM_MS).then(() => twins.fallIll(illness))])
    return failOverSample(JSON.parse(line) as SteadyOutcome, course)
  } finally {
    await generator.stop()
  }
}

export function failOverSample({ asked, records }: SteadyOutcome, course: Course): Sample {
  const inOrder = records.toSorted((a, b) => a.askedMs - b.askedMs)
  const takenOverMs = takeOver(inOrder, course)
  const again = inOrder.find(({ askedMs, server }) => askedMs >= course.wellMs && server === SICK)
  const answered = records.filter(({ status }) => status !== 0)
  const good = answered.filter(wasGood).length
  return {
    askedCount: asked,
    answeredCount: good,
    refusedCount: answered.length - good,
    unansweredCount: asked - answered.length,
    slowestMs: Math.max(0, ...answered.map(record => record.answeredMs - record.askedMs)),
    ...(takenOverMs === undefined ? {} : { takenOverMs }),
    ...(again === undefined ? {} : { usedAgainMs: again.answeredMs - course.wellMs }),
  }
}

function wasGood({ status }: SteadyRecord): boolean {
  return status >= 200 && status <= 299
}

/** When the first stretch without a disturbance began, after the illness did and before it ended. */
function takeOver(inOrder: readonly SteadyRecord[], { illMs, wellMs }: Course): number | undefined {
  let quietFromMs = illMs
  for (const record of inOrder) {
    if (record.askedMs < illMs) continue
    if (Math.min(record.askedMs, wellMs) - quietFromMs >= QUIET_MS) return quietFromMs - illMs
    if (record.askedMs > wellMs) return undefined
    const undisturbed = wasGood(record) && record.server !== SICK && record.answeredMs - record.askedMs < DISTURBED_MS
    if (!undisturbed) quietFromMs = record.askedMs
  }
  return undefined
}
