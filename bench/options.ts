/** The command line of the bench. */
import { parseArgs } from 'node:util'
import { SCENARIOS } from './scenarios.ts'

export const HELP = `npm run bench -- [options]

  --scenario NAME,...   only these (default: all but open loop, healthcare, deliveries, paired ones); a prefix such as
                        fail-over selects all scenarios of that group:
                        ${Object.keys(SCENARIOS).join(', ')}
  --peer NAME,...       only these (default: all): sluice, nginx, nginx-64k, haproxy, haproxy-64k, http-proxy,
                        fast-proxy, reply-from; in paired scenarios: sluice-core, sluice-before, sluice-open,
                        sluice-secured, sluice-secured-log, sluice-1-api, sluice-100-apis, sluice-10k-apis; in
                        hot-path-*: ceiling, sluice-plain, sluice-log, sluice-jwt, sluice-jwt-log;
                        in limits-* and refused: ceiling, sluice-no-level, sluice-one-level, sluice-five-levels,
                        sluice-10-keys, sluice-100k-keys, sluice-1m-keys, sluice-refused, sluice-refused-jwt,
                        node-floor;
                        in mediation-*: sluice-mediated, sluice-unmediated, sluice-no-policy, sluice-header-policy;
                        elsewhere only when named: sluice-again, ceiling
  --rounds N            rounds, in which the peers take turns (default 5)
  --seconds N           seconds of load per peer and round (default 3)
  --quick               2 rounds of 1 second, small data: checks that everything works, measures little
  --open-loop           adds the open loop: 50 % and 80 % of the peak rate that each peer reaches in this run
  --before DIR          another checkout of this repository, as sluice-before in the scenarios chain-*, and
                        in rows of its own in hot-path-replay
  --rate N              the open loop at N requests per second for all peers, instead of shares of their peaks
  --profile             writes CPU profiles of all threads of sluice and prints the most expensive functions
  --profile-dir DIR     folder of the profiles (default bench/results/profile)
  --json FILE           file of the record (default bench/results/latest.json)
  --write               publishes the scenarios of this run in bench/README.md and bench/results
  --base-port N         first of the eighty ports in use (default 18000); if one is taken, others behind

BENCH_EXTRA='name=command' adds another proxy (bench/peers/extra.ts).
`

export interface Options {
  readonly scenarios: readonly string[]
  /** Undefined for all peers. */
  readonly peers: readonly string[] | undefined
  readonly rounds: number
  readonly seconds: number
  readonly ratePerSecond: number
  /** Little data: databases and numbers of client addresses. */
  readonly isQuick: boolean
  readonly profileFolder: string | undefined
  readonly jsonFile: string | undefined
  readonly write: boolean
  readonly basePort: number
  /** Folder of another checkout of this repository. */
  readonly beforeFolder: string | undefined
}

export class UsageError extends Error {}

function wholeNumber(option: string, text: string, least: number): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < least)
    throw new UsageError(`--${option}: expected a whole number from ${least}`)
  return value
}

function selectScenarios(text: string | undefined, openLoop: boolean): string[] {
  const names = Object.keys(SCENARIOS)
  const isOpen = (name: string): boolean => SCENARIOS[name]?.kind === 'open'
  const isLong = (name: string): boolean => ['paired', 'healthcare', 'deliveries'].includes(SCENARIOS[name]!.kind)
  if (text === undefined) return names.filter(name => (openLoop || !isOpen(name)) && !isLong(name))
  const chosen = text.split(',').flatMap(word => matchingScenarios(word, names))
  return openLoop ? [...new Set([...chosen, ...names.filter(isOpen)])] : chosen
}

/** The scenario with this name, or all scenarios of a group: `fail-over` selects the three `fail-over-*`. */
function matchingScenarios(word: string, names: readonly string[]): string[] {
  const found = names.includes(word) ? [word] : names.filter(name => name.startsWith(`${word}-`))
  if (found.length === 0) throw new UsageError(`--scenario: there is no ${word}; there are ${names.join(', ')}`)
  return found
}

/** Undefined for `--help`. Throws UsageError. */
export function readOptions(words: readonly string[]): Options | undefined {
  const { values } = parse(words)
  if (values.help) return undefined
  const rounds = values.rounds ?? (values.quick ? '2' : '5')
  const seconds = values.seconds ?? (values.quick ? '1' : '3')
  return {
    scenarios: selectScenarios(values.scenario, values['open-loop']),
    peers: values.peer?.split(','),
    rounds: wholeNumber('rounds', rounds, 1),
    seconds: wholeNumber('seconds', seconds, 1),
    isQuick: values.quick,
    ratePerSecond: wholeNumber('rate', values.rate, 0),
    profileFolder: values.profile ? values['profile-dir'] : undefined,
    jsonFile: values.json,
    write: values.write,
    basePort: wholeNumber('base-port', values['base-port'], 1024),
    beforeFolder: values.before,
  }
}

function parse(words: readonly string[]) {
  const flag = { type: 'boolean', default: false } as const
  try {
    return parseArgs({
      args: [...words],
      options: {
        scenario: { type: 'string' },
        peer: { type: 'string' },
        rounds: { type: 'string' },
        seconds: { type: 'string' },
        quick: flag,
        'open-loop': flag,
        rate: { type: 'string', default: '0' },
        profile: flag,
        'profile-dir': { type: 'string', default: 'bench/results/profile' },
        json: { type: 'string' },
        write: flag,
        'base-port': { type: 'string', default: '18000' },
        before: { type: 'string' },
        help: flag,
      },
    })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}
