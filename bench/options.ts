/** The command line of the bench. */
import { parseArgs } from 'node:util'
import { SCENARIOS } from './scenarios.ts'

export const HELP = `npm run bench -- [options]

  --scenario NAME,...   only these (default: all but the open loop and the contests):
                        ${Object.keys(SCENARIOS).join(', ')}
  --peer NAME,...       only these (default: all): sluice, nginx, nginx-64k, haproxy, haproxy-64k, http-proxy,
                        fast-proxy, reply-from; of contests: sluice-core, sluice-before, sluice-1-api,
                        sluice-100-apis, sluice-10k-apis; only when named: sluice-again
  --rounds N            interleaved rounds (default 5)
  --seconds N           seconds of load per peer and round (default 3)
  --quick               2 rounds of 1 second: proves that everything works, measures little
  --open-loop           also the constant rates: 50 % and 80 % of the peak each peer reaches in this run
  --before DIR          another state of this repository, as sluice-before in the contests (chain)
  --rate N              the open loop at this many requests per second for all peers instead
  --profile             CPU profile of sluice (all its threads) and its most expensive functions
  --profile-dir DIR     where the profiles go (default bench/results/profile)
  --json FILE           where the record goes (default bench/results/latest.json)
  --write               adds the scenarios of this run to the results that bench/README.md shows
  --base-port N         first of the forty ports in use (default 18000)

BENCH_EXTRA='name=command' adds a proxy of your own (bench/peers/extra.ts).
`

export interface Options {
  readonly scenarios: readonly string[]
  /** Undefined: all of them. */
  readonly peers: readonly string[] | undefined
  readonly rounds: number
  readonly seconds: number
  readonly ratePerSecond: number
  readonly profileFolder: string | undefined
  readonly jsonFile: string | undefined
  readonly write: boolean
  readonly basePort: number
  /** Where another state of this repository is. */
  readonly beforeFolder: string | undefined
}

export class UsageError extends Error {}

function wholeNumber(option: string, text: string, least: number): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < least)
    throw new UsageError(`--${option}: expected a whole number from ${least}`)
  return value
}

function chosenScenarios(text: string | undefined, openLoop: boolean): string[] {
  const names = Object.keys(SCENARIOS)
  const isOpen = (name: string): boolean => SCENARIOS[name]?.kind === 'open'
  const isContest = (name: string): boolean => SCENARIOS[name]?.kind === 'contest'
  if (text === undefined) return names.filter(name => (openLoop || !isOpen(name)) && !isContest(name))
  const chosen = text.split(',').flatMap(word => named(word, names))
  return openLoop ? [...new Set([...chosen, ...names.filter(isOpen)])] : chosen
}

/** A scenario by its name, or all whose names begin so: `fail-over` for the three of them. */
function named(word: string, names: readonly string[]): string[] {
  const found = names.includes(word) ? [word] : names.filter(name => name.startsWith(`${word}-`))
  if (found.length === 0) throw new UsageError(`--scenario: there is no ${word}; there are ${names.join(', ')}`)
  return found
}

/** Undefined when only help was asked for. */
export function readOptions(words: readonly string[]): Options | undefined {
  const { values } = parse(words)
  if (values.help) return undefined
  const rounds = values.rounds ?? (values.quick ? '2' : '5')
  const seconds = values.seconds ?? (values.quick ? '1' : '3')
  return {
    scenarios: chosenScenarios(values.scenario, values['open-loop']),
    peers: values.peer?.split(','),
    rounds: wholeNumber('rounds', rounds, 1),
    seconds: wholeNumber('seconds', seconds, 1),
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
