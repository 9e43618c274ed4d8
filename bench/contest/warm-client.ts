/**
 * A client whose token is remembered, beside a flood of tokens that are not: what it waits for is what the flood costs
 * those who are known already. It asks at a constant rate, and a request that leaves late has waited since its time.
 */
import { fileURLToPath } from 'node:url'
import { LatencyHistogram } from '../load/latency-histogram.ts'
import type { SteadyOutcome, SteadyPlan } from '../load/load-plan.ts'
import type { Sample } from '../metric.ts'
import { LOAD_CORE, pinned, Program } from '../program.ts'
import { tokenIssuer } from '../token-issuer.ts'

const GENERATOR = fileURLToPath(new URL('../load/steady-generator.ts', import.meta.url))

/** Few enough that the flood has the gateway to itself. */
export interface WarmClient {
  readonly connections: number
  readonly ratePerSecond: number
}

export function warmPlan(client: WarmClient, port: number, path: string, seconds: number): SteadyPlan {
  return { ...client, port, path, seconds, fields: { Authorization: `Bearer ${tokenIssuer().tokens(1)[0]}` } }
}

/** The figures of the client, with whatever `flood` comes to meanwhile. */
export async function besideWarm<Flood>(
  plan: SteadyPlan,
  flood: () => Promise<Flood>,
): Promise<readonly [Flood, Sample]> {
  const words = [process.execPath, GENERATOR, JSON.stringify(plan)]
  const generator = new Program('the warm client', pinned(LOAD_CORE, words))
  try {
    await generator.line(/^started$/)
    const printed = generator.line(/^\{/)
    const [{ line }, come] = await Promise.all([printed, flood()])
    return [come, warmSample(JSON.parse(line) as SteadyOutcome)]
  } finally {
    await generator.stop()
  }
}

/** What was not answered with 200, or not at all, is an error and has no latency. */
export function warmSample({ asked, records }: SteadyOutcome): Sample {
  const latencies = new LatencyHistogram()
  const good = records.filter(({ status }) => status === 200)
  for (const { askedMs, answeredMs } of good) latencies.record(answeredMs - askedMs)
  return {
    warmP50Ms: latencies.percentileMs(0.5),
    warmP99Ms: latencies.percentileMs(0.99),
    warmP999Ms: latencies.percentileMs(0.999),
    warmErrors: asked - good.length,
  }
}
