/**
 * The scenario `hot-path-replay`: what a request costs phase by phase, from recorded bytes that run through a whole
 * reactor on sockets in memory (`micro/exchange.ts`). Each visit is a process of its own; the rows take turns.
 */
import { existsSync } from 'node:fs'
import type { Sample } from './metric.ts'
import { pairedRatio } from './paired/paired-ratio.ts'
import { PROXY_CORE, pinned, runToEnd } from './program.ts'
import type { Comparison, PeerResult, RoundRecorder } from './results.ts'

/** Parts of each row, as `micro/exchange.ts` takes them. */
export const REPLAY_ROWS: Readonly<Record<string, string>> = {
  'open API': 'plain',
  'open API, heads differ': 'differ',
  JWT: 'token',
  'JWT, heads differ': 'token+differ',
  'access log': 'log',
  'access log, heads differ': 'log+differ',
  'operations, CORS': 'operations+resources+cors+origin',
  'operations, CORS, heads differ': 'operations+resources+cors+origin+differ',
  'POST 256 B': 'post',
  'POST 256 B, heads differ': 'post+differ',
  'POST 256 B, chunked': 'post+chunked',
  'POST 256 B, chunked, heads differ': 'post+chunked+differ',
  'header policy': 'policy',
  '1,000 JWTs in turn, open API': 'tokens',
  '1,000 JWTs in turn': 'tokens+token',
  '1,000 JWTs in turn, caches emptied': 'tokens+token+cold',
  'JWT, five limits': 'token+limits',
}

const SCRIPT = 'bench/micro/exchange.ts'
const BEFORE = ', before'

interface ReplayRun {
  readonly rounds: number
  /** Exchanges per visit. */
  readonly exchanges: number
  /** Root of this checkout. */
  readonly root: string
  /** Root of another checkout, which gets rows of its own; undefined for none. */
  readonly beforeRoot: string | undefined
  reportProgress(round: number, row: string): void
  probe(): Promise<void>
}

export async function replayRounds(recorder: RoundRecorder, run: ReplayRun): Promise<void> {
  const { rounds, exchanges, root, beforeRoot } = run
  const roots: readonly (readonly [suffix: string, root: string])[] =
    beforeRoot === undefined
      ? [['', root]]
      : [
          ['', root],
          [BEFORE, beforeRoot],
        ]
  const visits = Object.entries(REPLAY_ROWS).flatMap(([row, parts]) => {
    return roots.map(([suffix, from]) => ({ row: row + suffix, parts, script: `${from}/${SCRIPT}` }))
  })
  for (let round = 1; round <= rounds; round++) {
    // Alternating order, so that no row always follows the same other one.
    for (const { row, parts, script } of round % 2 === 1 ? visits : visits.toReversed()) {
      run.reportProgress(round, row)
      await recorder.measure(row, () => visit(script, parts, exchanges))
    }
    await run.probe()
  }
}

async function visit(script: string, parts: string, exchanges: number): Promise<Sample> {
  if (!existsSync(script)) throw new Error(`there is no ${script}`)
  const command = pinned(PROXY_CORE, [process.execPath, script, parts, String(exchanges)])
  return JSON.parse(await runToEnd('a replay', command)) as Sample
}

/** Each row relative to the same one of the other checkout. */
export function replayComparisons(rows: Readonly<Record<string, PeerResult>>): readonly Comparison[] {
  return Object.keys(REPLAY_ROWS).flatMap(candidate => {
    const baseline = candidate + BEFORE
    const [own, other] = [rows[candidate]?.rounds, rows[baseline]?.rounds]
    if (own === undefined || other === undefined) return []
    // Each visit is a start.
    const ratios = own.map(({ exchangeNs }, round) => [
      (exchangeNs ?? Number.NaN) / (other[round]?.exchangeNs ?? Number.NaN),
    ])
    return [{ candidate, baseline, metric: 'exchangeNs', ...pairedRatio(ratios) } as const]
  })
}
